#include "base/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pem.h"

#define CERTIFICATES_MAX ((size_t)4 << 20)
#define FAULT_SIZE (PATH_MAX + 256)

void setting_fault(const struct setting_check *check, const char *setting, const char *what)
{
	check->problem(check->context, setting, what);
}

void setting_warn(const struct setting_check *check, const char *setting, const char *what)
{
	check->warning(check->context, setting, what);
}

void setting_check_range(const struct setting_check *check, const char *setting, int64_t value,
                         int64_t least, int64_t most)
{
	if (value >= least && value <= most)
		return;
	char what[128];
	snprintf(what, sizeof what, "must be from %" PRId64 " to %" PRId64, least, most);
	setting_fault(check, setting, what);
}

void setting_check_duration(const struct setting_check *check, const char *setting,
                            int64_t value_us, int64_t least_us, const char *least)
{
	if (value_us >= least_us)
		return;
	char what[128];
	snprintf(what, sizeof what, "must be at least %s", least);
	setting_fault(check, setting, what);
}

/* ---- files ---- */

/* Returns the first directory of the path that this process may not enter; false: none. */
static bool find_closed_directory(const char *path, char directory[PATH_MAX])
{
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(directory, PATH_MAX, "%.*s", (int)(slash - path), path);
		if (access(directory, X_OK) != 0)
			return true;
	}
	return false;
}

static void fault_of_permission(const struct setting_check *check, const char *setting,
                                const char *path)
{
	char what[2 * FAULT_SIZE], directory[PATH_MAX];
	struct stat facts;
	unsigned long user = geteuid();
	if (find_closed_directory(path, directory))
		snprintf(what, sizeof what,
		         "%s cannot be read: the user of this process (%lu) may not enter %s", path, user,
		         directory);
	else if (stat(path, &facts) == 0)
		snprintf(what, sizeof what,
		         "%s cannot be read by the user of this process (%lu): it belongs to user %lu and "
		         "group %lu with mode %04o",
		         path, user, (unsigned long)facts.st_uid, (unsigned long)facts.st_gid,
		         (unsigned)facts.st_mode & 07777);
	else
		snprintf(what, sizeof what, "%s cannot be read: %s", path, strerror(errno));
	setting_fault(check, setting, what);
}

bool setting_check_readable(const struct setting_check *check, const char *setting,
                            const char *path)
{
	char what[FAULT_SIZE];
	struct stat facts;
	const char *reason = NULL;
	if (!*path)
		return true;
	if (stat(path, &facts) == 0 && access(path, R_OK) == 0) {
		if (S_ISREG(facts.st_mode))
			return true;
		reason = S_ISDIR(facts.st_mode) ? "it is a directory" : "it is not a regular file";
	} else if (errno == EACCES) {
		fault_of_permission(check, setting, path);
		return false;
	} else {
		reason = strerror(errno);
	}
	snprintf(what, sizeof what, "%s cannot be read: %s", path, reason);
	setting_fault(check, setting, what);
	return false;
}

void setting_check_certificates(const struct setting_check *check, const char *setting,
                                const char *path)
{
	char what[FAULT_SIZE];
	struct error error = {0};
	BUF_AUTO struct buf text;
	buf_init(&text, CERTIFICATES_MAX);
	if (!*path || !setting_check_readable(check, setting, path))
		return;
	if (file_read_whole(path, &text, &error)) {
		setting_fault(check, setting, error.cause);
		return;
	}
	const char *fault = pem_certificates_fault(buf_slice(&text));
	snprintf(what, sizeof what, "%s %s", path, fault ? fault : "");
	if (fault)
		setting_fault(check, setting, what);
}
