#include "base/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"

#define COPY_PORTION ((size_t)8 << 20)
#define REWRITE_PORTION ((size_t)64 << 10)
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* ---- syncs ---- */

/* Removes a nonexistent extended attribute. It changes nothing but starts a journal transaction. */
bool durable_has_working_journal(int descriptor)
{
	int result;
	do
		result = fremovexattr(descriptor, "user.constancia.none");
	while (result != 0 && errno == EINTR);
	/* The file system may not support such attributes, or this process may not change them. */
	return result == 0 || errno == ENODATA || errno == ENOTSUP || errno == ENOSYS ||
	       errno == EPERM || errno == EACCES;
}

bool durable_sync_open(int descriptor)
{
	return fsync(descriptor) == 0 && durable_has_working_journal(descriptor);
}

bool durable_sync_data(int descriptor)
{
	return fdatasync(descriptor) == 0 && durable_has_working_journal(descriptor);
}

static bool write_range(int descriptor, off_t offset, off_t size, unsigned flags)
{
	int result;
	do
		result = sync_file_range(descriptor, offset, size, flags);
	while (result != 0 && errno == EINTR);
	return result == 0 || errno == ENOSYS; /* unsupported: the following sync writes everything */
}

bool durable_begin_write_out(int descriptor, off_t offset, off_t size)
{
	return write_range(descriptor, offset, size, SYNC_FILE_RANGE_WRITE);
}

bool durable_write_out(int descriptor, off_t offset, off_t size)
{
	return write_range(descriptor, offset, size,
	                   SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
	                       SYNC_FILE_RANGE_WAIT_AFTER);
}

/* ---- names ---- */

/* Copies the parent directory of `path`. */
static void parent_of(const char *path, char parent[PATH_MAX])
{
	snprintf(parent, PATH_MAX, "%s", path);
	size_t size = strlen(parent);
	while (size > 1 && parent[size - 1] == '/')
		parent[--size] = '\0';
	char *slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0';
	else
		memcpy(parent, ".", sizeof ".");
}

/* Opens the parent directory; *ret_above is -1 at the root of the file system or where it is not
 * readable. Returns false and sets errno. */
static bool open_above(int directory, int *ret_above)
{
	struct stat here, above;
	DESCRIPTOR_AUTO int next = openat(directory, "..", DIRECTORY_FLAGS);
	*ret_above = -1;
	if (next < 0)
		return errno == EACCES;
	if (fstat(directory, &here) != 0 || fstat(next, &above) != 0)
		return false;
	if (here.st_dev == above.st_dev && here.st_ino != above.st_ino)
		*ret_above = descriptor_take(&next);
	return true;
}

/* Returns whether the failed sync concerns a directory on which `path` is mounted, in a file system
 * that is read-only or has no sync. This process did not create that name, and it cannot be
 * lost. */
static bool is_mounted_on(int directory, const char *path)
{
	struct stat here, below;
	return (errno == EINVAL || errno == EROFS) && fstat(directory, &here) == 0 &&
	       stat(path, &below) == 0 && here.st_dev != below.st_dev;
}

/* Checks the journal at `path` or, if it is a file, at its directory. A mount point of the same
 * file system may be read-only. A file is not opened, because closing it would release SQLite's
 * locks on it (fcntl(2)). */
static int check_journal_at(const char *path, struct error *error)
{
	DESCRIPTOR_AUTO int descriptor = open(path, DIRECTORY_FLAGS);
	if (descriptor < 0 && errno == ENOTDIR) {
		char parent[PATH_MAX];
		parent_of(path, parent);
		descriptor = open(parent, DIRECTORY_FLAGS);
	}
	if (descriptor < 0 ? errno != EACCES : !durable_has_working_journal(descriptor))
		return file_fail(error, "syncing above", path);
	return OK;
}

int durable_sync_above(const char *path, struct error *error)
{
	char parent[PATH_MAX];
	parent_of(path, parent);
	int directory = open(parent, DIRECTORY_FLAGS);
	if (directory < 0)
		return errno == EACCES ? OK : file_fail(error, "opening", parent);
	int result = OK;
	while (directory >= 0 && !result) {
		int above = -1;
		bool synced = fsync(directory) == 0 || is_mounted_on(directory, path);
		if (!synced || !open_above(directory, &above))
			result = file_fail(error, "syncing above", path);
		close(directory);
		directory = above;
	}
	return result ? result : check_journal_at(path, error);
}

int durable_make_directory(const char *path, struct error *error)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return file_fail(error, "making", path);
	return durable_sync_above(path, error);
}

int durable_make_parent(const char *path, struct error *error)
{
	char parent[PATH_MAX];
	parent_of(path, parent);
	return durable_make_directory(parent, error);
}

/* ---- contents ---- */

int durable_sync(const char *path, struct error *error)
{
	DESCRIPTOR_AUTO int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || !durable_sync_open(descriptor))
		return file_fail(error, "syncing", path);
	return OK;
}

/* Returns false and sets errno. */
static bool rewrite(int file, uint64_t size_max)
{
	char portion[REWRITE_PORTION];
	for (uint64_t at = 0; at < size_max;) {
		uint64_t left = size_max - at;
		ssize_t size =
			pread(file, portion, left < sizeof portion ? left : sizeof portion, (off_t)at);
		if (size == 0)
			break;
		ssize_t written = size < 0 ? -1 : pwrite(file, portion, (size_t)size, (off_t)at);
		if (written < 0 && errno != EINTR)
			return false;
		at += written > 0 ? (uint64_t)written : 0;
	}
	return durable_sync_open(file);
}

int durable_rewrite(const char *path, uint64_t size_max, struct error *error)
{
	DESCRIPTOR_AUTO int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (file < 0)
		return errno == ENOENT ? OK : file_fail(error, "opening", path);
	bool written = rewrite(file, size_max);
	if (!written && !rewrite(file, size_max))
		return file_fail(error, "writing again", path);
	return OK;
}

int durable_replace(const char *path, mode_t mode, struct slice content, struct error *error)
{
	char partial[PATH_MAX];
	if (snprintf(partial, sizeof partial, "%s.partial", path) >= (int)sizeof partial) {
		errno = ENAMETOOLONG;
		return file_fail(error, "writing", path);
	}
	(void)unlink(partial);
	DESCRIPTOR_AUTO int file = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0 || !file_write_all(file, content) || fchmod(file, mode) != 0 ||
	    !durable_sync_open(file) || rename(partial, path) != 0) {
		int result = file_fail(error, "writing", path);
		if (file >= 0)
			(void)unlink(partial);
		return result;
	}
	return durable_sync_above(path, error);
}

int durable_copy(const char *from, const char *to, struct error *error)
{
	DESCRIPTOR_AUTO int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return file_fail(error, "opening", from);
	DESCRIPTOR_AUTO int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return file_fail(error, "creating", to);
	ssize_t copied;
	do
		copied = sendfile(out, in, NULL, COPY_PORTION);
	while (copied > 0 || (copied < 0 && errno == EINTR));
	if (copied < 0 || !durable_sync_open(out))
		return file_fail(error, "writing", to);
	return OK;
}
