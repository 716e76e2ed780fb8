/* The store's own: endpoints while they are changed, and what their types say. */
#ifndef STORE_ENDPOINT_H
#define STORE_ENDPOINT_H

#include "db/db.h"

struct locked_endpoint {
	int64_t account;
	int64_t endpoint;
	bool disabled;
};
/* Locks the endpoint's row to the end of the transaction. ERR_NOT_FOUND names it. */
int lock_endpoint_by_id(struct db_connection *connection, struct slice endpoint_id,
                        struct locked_endpoint *ret, struct error *error) MUST_CHECK;
/* Makes it due at due_us unless it is earlier. */
int make_endpoint_due(struct db_connection *connection, const struct locked_endpoint *locked,
                      int64_t due_us, struct error *error) MUST_CHECK;

/* Whether the endpoint whose types are in `types` wants what is of `type`. The types are known
 * names, so that '_' in them, which stands for any character, finds no other. */
#define WANTS(types, type) "(" types " IS NULL OR " types " LIKE '%,' || " type " || ',%')"

/* When the first waiting delivery of endpoint $2 of account $1 is due: one look at the index for
 * each of its two parts. */
#define FIRST_DUE                                                                                  \
	"(SELECT MIN(first) FROM (SELECT MIN(next_attempt_at) AS first FROM webhook_deliveries"        \
	" WHERE account = $1 AND endpoint = $2 AND status = 'waiting' AND replayed = 0"                \
	" UNION ALL SELECT MIN(next_attempt_at) AS first FROM webhook_deliveries"                      \
	" WHERE account = $1 AND endpoint = $2 AND status = 'waiting' AND replayed = 1) AS firsts)"

#endif
