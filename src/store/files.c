#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_PORTION ((size_t)8 << 20)

static int fail(struct error *error, const char *what, const char *path)
{
	return error_cause(error, errno == ENOSPC ? ERR_NO_SPACE : ERR_IO, "%s %s: %s", what, path,
	                   strerror(errno));
}

static void close_file(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
}
#define FILE_AUTO __attribute__((cleanup(close_file)))

/* False when there is nothing above it but the root or the current directory. */
static bool parent_of(const char *path, char parent[PATH_MAX])
{
	snprintf(parent, PATH_MAX, "%s", path);
	char *slash = strrchr(parent, '/');
	if (!slash)
		return false;
	slash[slash == parent] = '\0';
	return true;
}

int files_make_parent(const char *path, struct error *error)
{
	char parent[PATH_MAX];
	if (parent_of(path, parent) && mkdir(parent, 0700) != 0 && errno != EEXIST)
		return fail(error, "mkdir", parent);
	return OK;
}

int files_sync(const char *path, struct error *error)
{
	FILE_AUTO int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || fsync(descriptor) != 0)
		return fail(error, "sync of", path);
	return OK;
}

int files_sync_parent(const char *path, struct error *error)
{
	char parent[PATH_MAX];
	return files_sync(parent_of(path, parent) ? parent : ".", error);
}

int files_copy(const char *from, const char *to, struct error *error)
{
	FILE_AUTO int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return fail(error, "opening", from);
	FILE_AUTO int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return fail(error, "creating", to);
	ssize_t copied;
	do
		copied = sendfile(out, in, NULL, COPY_PORTION);
	while (copied > 0 || (copied < 0 && errno == EINTR));
	if (copied < 0 || fsync(out) != 0)
		return fail(error, "writing", to);
	return OK;
}
