#include "cli/service_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static void set_name(struct service_user *owner, const struct passwd *entry)
{
	if (entry && strlen(entry->pw_name) < sizeof owner->name)
		snprintf(owner->name, sizeof owner->name, "%s", entry->pw_name);
}

struct service_user service_user_find(void)
{
	struct service_user found = {0};
	const struct passwd *entry = geteuid() == 0 ? getpwnam(SERVICE_USER) : NULL;
	if (entry)
		found = (struct service_user){true, entry->pw_uid, entry->pw_gid, ""};
	set_name(&found, entry);
	return found;
}

struct service_user service_user_of(const char *data_directory)
{
	struct stat facts;
	struct service_user found = {0};
	if (stat(data_directory, &facts) != 0 || facts.st_uid == 0)
		return found;
	found = (struct service_user){geteuid() == 0, facts.st_uid, facts.st_gid, ""};
	set_name(&found, getpwuid(facts.st_uid));
	return found;
}

int service_user_become(const struct service_user *owner, struct error *error)
{
	if (!owner->is_given)
		return OK;
	int result = *owner->name ? initgroups(owner->name, owner->group) : setgroups(0, NULL);
	if (result == 0 && setgid(owner->group) == 0 && setuid(owner->user) == 0)
		return OK;
	return error_cause(error, ERR_IO, "acting as the owner of the data directory: %s",
	                   strerror(errno));
}

int service_user_own(const struct service_user *owner, const char *path, bool readable,
                     struct error *error)
{
	if (!owner->is_given)
		return OK;
	return chown(path, readable ? (uid_t)-1 : owner->user, owner->group) == 0
	           ? OK
	           : file_fail(error, "changing the owner of", path);
}
