/* The user of the installed service, to whom root gives the files that commands make for it. */
#ifndef CLI_SERVICE_USER_H
#define CLI_SERVICE_USER_H

#include <sys/types.h>

#include "base/error.h"

#define SERVICE_USER "constancia"

struct service_user {
	bool is_given; /* this process is root, and the user exists */
	uid_t user;
	gid_t group;
};

struct service_user service_user_find(void);
/* Gives a file or directory to the user and its group; with `readable`, only to its group, so that
 * root stays the owner. Does nothing unless `is_given`. */
int service_user_own(const struct service_user *owner, const char *path, bool readable,
                     struct error *error) MUST_CHECK;

#endif
