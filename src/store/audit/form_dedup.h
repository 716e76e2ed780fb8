/* Form deduplication: which forms (struct submitted_form of store/audit/audit_log.h) have already
 * been submitted. Private to src/store. A writer excludes other writers, so a read at the beginning
 * of its transaction is sufficient. Local transactions on the primary do not exclude each other;
 * for them the primary key of the row admits one. */
#ifndef STORE_AUDIT_FORM_DEDUP_H
#define STORE_AUDIT_FORM_DEDUP_H

#include "store/audit/audit_log.h"

/* form_check reads, before any change, whether the form was submitted before; form_keep records it
 * with the audit record. Both run in the transaction of the operation. They return ERR_CONFLICT and
 * set `repeated` when the form was submitted before. */
int form_check(struct db_connection *connection, int64_t account, struct submitted_form *form,
               struct error *error) MUST_CHECK;
int form_keep(struct db_connection *connection, int64_t account, struct submitted_form *form,
              const char *act_id, struct error *error) MUST_CHECK;
/* Records the form before an operation that is done in another transaction. A later form_keep adds
 * the audit record. */
int form_claim(struct db_connection *connection, int64_t account, struct submitted_form *form,
               struct error *error) MUST_CHECK;

#endif
