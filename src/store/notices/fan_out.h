/* Queues notices for the endpoints of their account, in the transaction that writes the notices.
 * Private to src/store. */
#ifndef STORE_FAN_OUT_H
#define STORE_FAN_OUT_H

#include "db/db.h"
#include "store/notices/webhooks.h"

#define WEBHOOK_TYPES_SIZE 320 /* ",type,type," with every type, and NUL */

struct fan_out {
	int64_t account;
	int64_t due_us;
	size_t count; /* of enabled endpoints */
	struct {
		int64_t endpoint;
		int64_t next_at_us;             /* INT64_MAX: no delivery waits */
		char types[WEBHOOK_TYPES_SIZE]; /* empty: every type that is not opt-in */
	} endpoints[WEBHOOKS_MAX];
};
/* Reads and locks the account's enabled endpoints in ascending order, which is the lock order for
 * endpoints. */
int fan_out_open(struct db_connection *connection, int64_t account, int64_t now_us,
                 struct fan_out *ret, struct error *error) MUST_CHECK;
/* Returns whether any of these endpoints receives notices of the type. */
bool fan_out_is_wanted(const struct fan_out *out, const char *type);
int fan_out_notice(struct db_connection *connection, struct fan_out *out, int64_t notice,
                   const char *type, struct error *error) MUST_CHECK;

#endif
