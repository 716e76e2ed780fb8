/* Locking of endpoints for changes, and the matching of their notice types. Private to
 * src/store. */
#ifndef STORE_ENDPOINT_H
#define STORE_ENDPOINT_H

#include "db/db.h"

struct locked_endpoint {
	int64_t account;
	int64_t endpoint;
	bool disabled;
};
/* Locks the endpoint's row until the end of the transaction. Returns ERR_NOT_FOUND with its
 * identifier when it does not exist. */
int lock_endpoint_by_id(struct db_connection *connection, struct slice endpoint_id,
                        struct locked_endpoint *ret, struct error *error) MUST_CHECK;
/* Makes the endpoint due at due_us or earlier. */
int make_endpoint_due(struct db_connection *connection, const struct locked_endpoint *locked,
                      int64_t due_us, struct error *error) MUST_CHECK;

/* The types of which notice_type_is_opt_in is true, in SQL. */
#define OPT_IN_TYPES "('event.sealed', 'certification.evidence_ready')"
/* SQL condition: an endpoint with these `types` receives notices of `type`. Type names are fixed,
 * so that '_', a wildcard of LIKE, matches no other name. */
#define WANTS(types, type)                                                                         \
	"((" types " IS NULL AND " type " NOT IN " OPT_IN_TYPES ") OR " types " LIKE '%,' || " type    \
	" || ',%')"

/* SQL expression: when the first waiting delivery of endpoint $2 of account $1 is due. Uses one
 * index lookup for each of its two parts. */
#define FIRST_DUE                                                                                  \
	"(SELECT MIN(first) FROM (SELECT MIN(next_attempt_at) AS first FROM webhook_deliveries"        \
	" WHERE account = $1 AND endpoint = $2 AND status = 'waiting' AND replayed = 0"                \
	" UNION ALL SELECT MIN(next_attempt_at) AS first FROM webhook_deliveries"                      \
	" WHERE account = $1 AND endpoint = $2 AND status = 'waiting' AND replayed = 1) AS firsts)"

#endif
