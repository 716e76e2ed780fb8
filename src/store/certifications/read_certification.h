/* Reading rows of `certifications`. Private to src/store. */
#ifndef STORE_READ_CERTIFICATION_H
#define STORE_READ_CERTIFICATION_H

#include "store/certifications/certifications.h"
#include "store/transaction.h"

#define CERTIFICATIONS                                                                             \
	"SELECT c.account, c.channel, c.chain, c.certification, c.key, c.certification_id,"            \
	" h.channel_id, c.status, c.progress_permille, c.requested_at, c.completed_at, c.language,"    \
	" c.range_from, c.range_to, c.range_seq_from, c.range_seq_to, c.first_sequence,"               \
	" c.last_sequence, c.config_versions, c.fee, c.verification_code, c.incident_id, c.attempts,"  \
	" c.last_error, c.next_attempt_at, c.own_failures,"                                            \
	" CASE WHEN c.lease IS NULL THEN 0 ELSE 1 END, c.fails, c.seal_history FROM certifications c"  \
	" JOIN channels h ON h.account = c.account AND h.channel = c.channel"
#define CERTIFICATION_NEXT_ATTEMPT 24 /* column of next_attempt_at */

/* The columns above, as a struct certification. */
extern const struct row_type certification_type;
/* Steps once, reads the row and ends the query. Returns ERR_NOT_FOUND when there is no row. */
int read_certification(struct row *row, struct certification *ret, struct error *error) MUST_CHECK;

/* Reads whether the object is a complete document of the account (issued_files.c). */
int object_is_own(struct db_connection *connection, int64_t account, const char *object,
                  bool *ret_own, struct error *error) MUST_CHECK;

#endif
