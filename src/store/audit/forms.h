/* The store's own: what was done with a form already (struct act_form of store/audit/acts.h).
 * Whoever writes excludes other writers, so a look at the beginning of a transaction is enough; of
 * those that do not, which are made on the primary alone, the row's key lets one pass. */
#ifndef STORE_AUDIT_FORMS_H
#define STORE_AUDIT_FORMS_H

#include "store/audit/acts.h"

/* In the act's transaction: before anything is changed, and with the act's row. ERR_CONFLICT and
 * `repeated`: it was sent before. */
int form_check(struct db_connection *connection, int64_t account, struct act_form *form,
               struct error *error) MUST_CHECK;
int form_keep(struct db_connection *connection, int64_t account, struct act_form *form,
              const char *act_id, struct error *error) MUST_CHECK;
/* Takes it for what is done in another transaction, before that; form_keep then adds the act. */
int form_claim(struct db_connection *connection, int64_t account, struct act_form *form,
               struct error *error) MUST_CHECK;

#endif
