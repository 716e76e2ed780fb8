/* The user of the service, as whom root acts or to whom it gives the files that commands make. */
#ifndef CLI_SERVICE_USER_H
#define CLI_SERVICE_USER_H

#include <sys/types.h>

#include "base/error.h"

#define SERVICE_USER "constancia"
#define SERVICE_USER_NAME_SIZE 64

struct service_user {
	bool is_given; /* this process is root, and the user exists */
	uid_t user;
	gid_t group;
	char name[SERVICE_USER_NAME_SIZE]; /* empty: it has none */
};

/* Returns the user of the installed service. */
struct service_user service_user_find(void);
/* Returns the owner of the data directory, unless that is root or the directory does not exist. */
struct service_user service_user_of(const char *data_directory);
/* Acts as the user from now on, so that the service can read what this process writes. Does nothing
 * unless `is_given`. */
int service_user_become(const struct service_user *owner, struct error *error) MUST_CHECK;
/* Gives a file or directory to the user and its group; with `readable`, only to its group, so that
 * root stays the owner. Does nothing unless `is_given`. */
int service_user_own(const struct service_user *owner, const char *path, bool readable,
                     struct error *error) MUST_CHECK;

#endif
