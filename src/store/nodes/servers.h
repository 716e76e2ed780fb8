/* Checks the server of the address for settings that make the speed of registrations uneven. No
 * guarantee depends on them. */
#ifndef STORE_NODES_SERVERS_H
#define STORE_NODES_SERVERS_H

#include "db/db.h"

/* Receives a sentence with a problem and its remedy. */
typedef void servers_found(void *context, const char *sentence);
int servers_check_pace(struct db *db, servers_found *found, void *context, struct error *error)
	MUST_CHECK;

#endif
