/* What an account may have at most, judged in the transaction that would make one more; inside
 * src/store alone. A bound of 0 in `general`, the setting, means any number; the account's own goes
 * before it. The account is locked by the caller, so that the count stands still. */
#ifndef STORE_ACCOUNT_BOUNDS_H
#define STORE_ACCOUNT_BOUNDS_H

#include "store/store.h"

struct db_connection;

int count_account_channels(struct db_connection *connection, int64_t account, int64_t *ret,
                           struct error *error) MUST_CHECK;
/* Those that are not revoked. */
int count_account_keys(struct db_connection *connection, int64_t account, int64_t *ret,
                       struct error *error) MUST_CHECK;
/* Live ones that were asked for on the UTC day of at_us. */
int count_certifications_of_day(struct db_connection *connection, int64_t account, int64_t at_us,
                                int64_t *ret, struct error *error) MUST_CHECK;

/* ERR_FULL when the account has as many as it may have. */
int check_account_channels(struct db_connection *connection, int64_t account, int64_t general,
                           struct error *error) MUST_CHECK;
int check_account_keys(struct db_connection *connection, int64_t account, int64_t general,
                       struct error *error) MUST_CHECK;
/* ERR_RATE_LIMITED, with retry_after_seconds until the next day. */
int check_certifications_of_day(struct db_connection *connection, int64_t account, int64_t general,
                                int64_t at_us, struct error *error) MUST_CHECK;

#endif
