/* Whether a user is still authorized for the operation in progress. Private to src/store. */
#ifndef STORE_PEOPLE_AUTHORIZATION_H
#define STORE_PEOPLE_AUTHORIZATION_H

#include "db/db.h"
#include "store/audit/audit_log.h"

/* Checks the authorization in the transaction of the operation. Locks no row, so that removing
 * rights does not wait for the operation. Returns ERR_FORBIDDEN when the session has ended or the
 * role differs, and ERR_PASSKEY when the account now requires a passkey. */
int authorization_check(struct db_connection *connection,
                        const struct audit_authorization *authorization, struct error *error)
	MUST_CHECK;

#endif
