/* Loaded into the program that is tested (LD_PRELOAD).
 *
 * It passes syncfs(2) on to the file system that forgets, which FUSE does not. And it plants the
 * fault that FORGETFUL_FAULT names, which a campaign must then find:
 *
 *     sync         no sync does anything
 *     directories  syncing a directory does nothing
 *     start        what a start finds of the embedded store's log is trusted: not written
 *                  again, not checkpointed, not synced
 *     move         while the service runs, its log is checkpointed, and the file not synced
 *     journal      a file system that gave up is not noticed until it says so itself */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "syncfs.h"

static bool planted(const char *fault)
{
	const char *wanted = getenv("FORGETFUL_FAULT");
	return wanted && strcmp(wanted, fault) == 0;
}

static _Thread_local bool moving;

static bool left_out(int descriptor)
{
	struct stat status;
	return planted("sync") || (planted("move") && moving) ||
	       (planted("directories") && fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode));
}

static int call(const char *name, int descriptor)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	return next(descriptor);
}

int fsync(int descriptor)
{
	return left_out(descriptor) ? 0 : call("fsync", descriptor);
}

int fdatasync(int descriptor)
{
	return left_out(descriptor) ? 0 : call("fdatasync", descriptor);
}

/* The program asks a file system for this after each sync, and for nothing else. */
int fremovexattr(int descriptor, const char *name)
{
	if (planted("journal")) {
		errno = ENODATA;
		return -1;
	}
	int (*next)(int, const char *) = (int (*)(int, const char *))dlsym(RTLD_NEXT, "fremovexattr");
	return next(descriptor, name);
}

int syncfs(int descriptor)
{
	if (planted("sync"))
		return 0;
	int result = call("syncfs", descriptor);
	if (!result && fsetxattr(descriptor, SYNCFS_ATTRIBUTE, "", 0, 0) != 0 && errno != ENOTSUP)
		return -1;
	return result;
}

/* A start opens files in these two ways alone: to write them again, and to sync the log. */
int open(const char *path, int flags, ...)
{
	if (planted("start") && flags == (O_RDWR | O_CLOEXEC | O_NOFOLLOW)) {
		errno = ENOENT;
		return -1;
	}
	const char *ending = strrchr(path, '-');
	if (planted("start") && flags == (O_RDONLY | O_CLOEXEC) && ending &&
	    strcmp(ending, "-wal") == 0)
		path = "/";
	va_list more;
	va_start(more, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
	va_end(more);
	int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	return next(path, flags, mode);
}

/* Only a start moves the whole log and empties it. */
int sqlite3_wal_checkpoint_v2(sqlite3 *store, const char *name, int mode, int *ret_in_log,
                              int *ret_moved)
{
	if (planted("start") && mode == SQLITE_CHECKPOINT_TRUNCATE)
		return SQLITE_OK;
	int (*next)(sqlite3 *, const char *, int, int *, int *) =
		(int (*)(sqlite3 *, const char *, int, int *, int *))dlsym(RTLD_NEXT,
	                                                               "sqlite3_wal_checkpoint_v2");
	moving = mode == SQLITE_CHECKPOINT_PASSIVE;
	int result = next(store, name, mode, ret_in_log, ret_moved);
	moving = false;
	return result;
}
