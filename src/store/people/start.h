/* The store's own: how a session begins, whatever it is begun by. */
#ifndef STORE_PEOPLE_START_H
#define STORE_PEOPLE_START_H

#include "db/db.h"
#include "store/people/people.h"

/* In the caller's transaction. ERR_NOT_FOUND: the user has no account. */
int session_begin(struct db_connection *connection, const char *user_id, bool by_passkey,
                  const struct session_start *start, struct error *error) MUST_CHECK;

#endif
