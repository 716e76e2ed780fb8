/* Preloaded into a service: records which parts of its files would survive a power failure, so that
 * forgetful.py can restore exactly those. Files below FORGETFUL_ROOT are tracked in
 * FORGETFUL_STATE:
 *
 *   KEY.dirty    a byte per page of 4 KiB: 1 if written since the last sync
 *   KEY.image    the file as of its successful syncs
 *   KEY.entries  a directory as of its last successful sync: its path, then lines NAME\tKEY\tTYPE
 *
 * A failed sync behaves as in the kernel: the pages become clean, and later syncs skip them.
 * FORGETFUL_STATE/plan contains the fault to inject, in one line:
 *
 *   fail N PART   the Nth sync of a path that contains PART returns EIO; the plan is then removed
 *   lie N PART    that sync returns success without effect: the file system has failed, and returns
 *                 EIO for operations that need a journal
 *   kill N PART   the process is killed before that sync
 *   full 1 PART   writes to such a file return ENOSPC until the plan is removed
 *
 * A PART that ends with $ matches the end of the path. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGE 4096
#define KEY_SIZE 64

static const char *root, *state;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool gave_up;

__attribute__((constructor)) static void prepare(void)
{
	root = getenv("FORGETFUL_ROOT");
	state = getenv("FORGETFUL_STATE");
	if (!root || !state)
		abort();
}

static bool path_of(int descriptor, char path[PATH_MAX])
{
	char link[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	ssize_t size = root ? readlink(link, path, PATH_MAX - 1) : -1;
	if (size < 0)
		return false;
	path[size] = '\0';
	return strncmp(path, root, strlen(root)) == 0;
}

/* Returns false if there is no such file. */
static bool find_key_at(int directory, const char *name, char key[KEY_SIZE])
{
	struct statx status;
	if (statx(directory, name, AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH),
	          STATX_INO | STATX_BTIME, &status) != 0)
		return false;
	snprintf(key, KEY_SIZE, "%llu-%lld.%09u", (unsigned long long)status.stx_ino,
	         (long long)status.stx_btime.tv_sec, status.stx_btime.tv_nsec);
	return true;
}

static void key_of(int descriptor, char key[KEY_SIZE])
{
	if (!find_key_at(descriptor, "", key))
		abort();
}

static int open_state(const char *key, const char *kind)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s.%s", state, key, kind);
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		abort();
	return file;
}

static void put(int file, const void *data, size_t size, off_t at)
{
	if (syscall(SYS_pwrite64, file, data, size, at) != (ssize_t)size)
		abort();
}

/* ---- the plan ---- */

/* Returns whether `what` is is_planned for this path and due now. */
static bool is_planned(const char *what, const char *path)
{
	char place[PATH_MAX], text[PATH_MAX + 32] = "", kind[8] = "", part[PATH_MAX] = "";
	char whole[PATH_MAX + 1];
	int number = 0;
	snprintf(place, sizeof place, "%s/plan", state);
	snprintf(whole, sizeof whole, "%s$", path);
	int file = open(place, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return false;
	ssize_t size = pread(file, text, sizeof text - 1, 0);
	bool meant = size > 0 && sscanf(text, "%7s %d %4095s", kind, &number, part) == 3 &&
	             strcmp(kind, what) == 0 && strstr(whole, part);
	if (meant && strcmp(kind, "full") != 0) {
		if (number == 1)
			unlink(place);
		size = snprintf(text, sizeof text, "%s %d %s", kind, number - 1, part);
		if (syscall(SYS_ftruncate, file, 0) != 0)
			abort();
		put(file, text, (size_t)size, 0);
	}
	close(file);
	return meant && number == 1;
}

/* ---- durable state ---- */

static void mark(int descriptor, off_t at, size_t size)
{
	static const char ones[PAGE] = {[0 ... PAGE - 1] = 1};
	char key[KEY_SIZE];
	key_of(descriptor, key);
	int dirty = open_state(key, "dirty");
	off_t first = at / PAGE, end = (at + (off_t)size + PAGE - 1) / PAGE;
	for (off_t page = first; page < end; page += PAGE)
		put(dirty, ones, (size_t)(end - page < PAGE ? end - page : PAGE), page);
	close(dirty);
}

static void record_file_sync(int descriptor, bool good)
{
	char key[KEY_SIZE], link[64], page[PAGE];
	key_of(descriptor, key);
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	/* Closing another descriptor of the file would drop its locks; used only if unavoidable. */
	bool unreadable = (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_WRONLY;
	int file = unreadable ? open(link, O_RDONLY | O_CLOEXEC) : descriptor;
	int dirty = open_state(key, "dirty"), image = -1;
	struct stat status;
	if (file < 0 || fstat(file, &status) != 0)
		abort();
	if (good)
		image = open_state(key, "image");
	char is_dirty;
	for (off_t at = 0; good && pread(dirty, &is_dirty, 1, at) == 1; at++) {
		ssize_t size = is_dirty ? pread(file, page, PAGE, at * PAGE) : 0;
		if (size > 0)
			put(image, page, (size_t)size, at * PAGE);
	}
	if (good && syscall(SYS_ftruncate, image, status.st_size) != 0)
		abort();
	if (syscall(SYS_ftruncate, dirty, 0) != 0)
		abort();
	if (unreadable)
		close(file);
	close(dirty);
	if (image >= 0)
		close(image);
}

static void record_directory_sync(int descriptor, const char *path)
{
	char key[KEY_SIZE], name[PATH_MAX], partial[PATH_MAX + 32];
	key_of(descriptor, key);
	snprintf(name, sizeof name, "%s/%s.entries", state, key);
	/* Several processes may sync it at the same time. */
	snprintf(partial, sizeof partial, "%s.%d.partial", name, getpid());
	FILE *out = fopen(partial, "we");
	DIR *directory = opendir(path);
	if (!out || !directory)
		abort();
	fprintf(out, "%s\n", path);
	for (struct dirent *entry; (entry = readdir(directory));) {
		struct stat status;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !find_key_at(dirfd(directory), entry->d_name, key))
			continue; /* removed meanwhile */
		fprintf(out, "%s\t%s\t%c\n", entry->d_name, key,
		        S_ISDIR(status.st_mode)   ? 'd'
		        : S_ISREG(status.st_mode) ? 'f'
		                                  : 'o');
	}
	closedir(directory);
	if (fclose(out) != 0 || rename(partial, name) != 0)
		abort();
}

static int sync_one(int descriptor)
{
	char path[PATH_MAX];
	struct stat status;
	if (!path_of(descriptor, path) || fstat(descriptor, &status) != 0)
		return 0;
	pthread_mutex_lock(&mutex);
	if (is_planned("kill", path))
		kill(getpid(), SIGKILL);
	bool lie = is_planned("lie", path);
	bool fail = is_planned("fail", path);
	bool good = !lie && !fail;
	gave_up = gave_up || lie;
	if (S_ISREG(status.st_mode))
		record_file_sync(descriptor, good);
	else if (S_ISDIR(status.st_mode) && good)
		record_directory_sync(descriptor, path);
	pthread_mutex_unlock(&mutex);
	if (!fail)
		return 0;
	errno = EIO;
	return -1;
}

/* ---- the calls ---- */

int fsync(int descriptor)
{
	return sync_one(descriptor);
}

int fdatasync(int descriptor)
{
	return sync_one(descriptor);
}

/* The only call by which the service checks the journal. */
int fremovexattr(int descriptor, const char *name)
{
	pthread_mutex_lock(&mutex);
	errno = gave_up ? EIO : ENODATA;
	pthread_mutex_unlock(&mutex);
	return -1;
}

static ssize_t note_write(int descriptor, ssize_t written, off_t at)
{
	int number = errno;
	char path[PATH_MAX];
	struct stat status;
	if (written > 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
	    path_of(descriptor, path)) {
		pthread_mutex_lock(&mutex);
		mark(descriptor, at, (size_t)written);
		pthread_mutex_unlock(&mutex);
	}
	errno = number;
	return written;
}

static bool is_full(int descriptor)
{
	char path[PATH_MAX];
	struct stat status;
	if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || !path_of(descriptor, path) ||
	    !is_planned("full", path))
		return false;
	errno = ENOSPC;
	return true;
}

ssize_t write(int descriptor, const void *data, size_t size)
{
	if (is_full(descriptor))
		return -1;
	ssize_t written = syscall(SYS_write, descriptor, data, size);
	off_t end = written > 0 ? lseek(descriptor, 0, SEEK_CUR) : 0;
	return note_write(descriptor, written, end - written);
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at)
{
	if (is_full(descriptor))
		return -1;
	return note_write(descriptor, syscall(SYS_pwrite64, descriptor, data, size, at), at);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at)
{
	return pwrite64(descriptor, data, size, at);
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t size)
{
	if (is_full(out))
		return -1;
	ssize_t written = syscall(SYS_sendfile, out, in, offset, size);
	off_t end = written > 0 ? lseek(out, 0, SEEK_CUR) : 0;
	return note_write(out, written, end - written);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t size)
{
	return sendfile64(out, in, offset, size);
}
