#include "cli/service_user.h"

#include <pwd.h>
#include <unistd.h>

#include "base/file.h"

struct service_user service_user_find(void)
{
	struct service_user found = {0};
	const struct passwd *entry = geteuid() == 0 ? getpwnam(SERVICE_USER) : NULL;
	if (entry)
		found = (struct service_user){true, entry->pw_uid, entry->pw_gid};
	return found;
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
