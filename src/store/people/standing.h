/* The store's own: whether who acts is still what he was when he was let in. */
#ifndef STORE_PEOPLE_STANDING_H
#define STORE_PEOPLE_STANDING_H

#include "db/db.h"
#include "store/audit/acts.h"

/* In the transaction of the act. Holds no row: taking rights away waits for no act. ERR_FORBIDDEN:
 * the session has ended, or his role is another; ERR_PASSKEY: he needs one now. */
int standing_check(struct db_connection *connection, const struct act_standing *standing,
                   struct error *error) MUST_CHECK;

#endif
