/* Limits on what an account may own, checked in the transaction that would add one more. Private to
 * src/store. `general` is the default from the settings; 0 means no limit. A limit of the account
 * itself takes precedence. The caller holds the lock of the account's row, so that the count cannot
 * change. */
#ifndef STORE_ACCOUNT_BOUNDS_H
#define STORE_ACCOUNT_BOUNDS_H

#include "store/store.h"

struct db_connection;

int count_account_channels(struct db_connection *connection, int64_t account, int64_t *ret,
                           struct error *error) MUST_CHECK;
/* Counts the keys that are not revoked. */
int count_account_keys(struct db_connection *connection, int64_t account, int64_t *ret,
                       struct error *error) MUST_CHECK;
/* Counts the live certifications that were requested on the UTC day of at_us. */
int count_certifications_of_day(struct db_connection *connection, int64_t account, int64_t at_us,
                                int64_t *ret, struct error *error) MUST_CHECK;

/* Returns ERR_FULL when the account has reached its limit. */
int check_account_channels(struct db_connection *connection, int64_t account, int64_t general,
                           struct error *error) MUST_CHECK;
int check_account_keys(struct db_connection *connection, int64_t account, int64_t general,
                       struct error *error) MUST_CHECK;
/* Returns ERR_RATE_LIMITED when the limit is reached, with retry_after_seconds until the next UTC
 * day. */
int check_certifications_of_day(struct db_connection *connection, int64_t account, int64_t general,
                                int64_t at_us, struct error *error) MUST_CHECK;

#endif
