/* Driver file: stores objects as files below a directory.
 *
 * An object is written under .incoming, synced and renamed to its name, and its directory is
 * synced. A new directory is created and its parent synced under one lock. So no object is put into
 * a directory that a power failure could remove. An existing directory may have been created by a
 * process that was killed before the sync, so each directory with subdirectories is synced once
 * before its first use. Existing objects need no sync: an object has its name only after a sync,
 * and a retry writes a fresh object.
 *
 * Every path is walked by directory descriptors and follows no symbolic links. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/durable.h"
#include "base/file.h"
#include "content/content_driver.h"

#define INCOMING ".incoming"
#define INCOMING_NAME_SIZE 33
#define SETTLED_MAX 64 /* far more than the number of areas */
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct file_store {
	struct content_store base;
	int root;
	int incoming;
	pthread_mutex_t making; /* held while a path is walked for writing */
	/* Protected by it: paths of directories whose entries are durable. Restarts when full. */
	char settled[SETTLED_MAX][CONTENT_NAME_MAX];
	size_t settled_count;
};

struct file_writer {
	struct content_writer base;
	int descriptor;
	off_t size, written_out;
	char name[INCOMING_NAME_SIZE]; /* empty after the rename */
};

struct file_reader {
	struct content_reader base;
	int descriptor;
};

static int fail(struct error *error, const char *what, int number)
{
	int result = number == ENOENT || number == ENOTDIR ? ERR_NOT_FOUND : file_code(number);
	return error_cause(error, result, "content: %s: %s", what, strerrordesc_np(number));
}

static bool is_settled(const struct file_store *store, const char *path)
{
	for (size_t i = 0; i < store->settled_count; i++)
		if (strcmp(store->settled[i], path) == 0)
			return true;
	return false;
}

static void note_settled(struct file_store *store, const char *path)
{
	if (is_settled(store, path))
		return;
	if (store->settled_count == SETTLED_MAX)
		store->settled_count = 0;
	snprintf(store->settled[store->settled_count++], CONTENT_NAME_MAX, "%s", path);
}

/* Creates a directory durably below another. Returns -1 and sets errno. */
static int make_directory(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -1;
	if (durable_sync_open(parent))
		return openat(parent, name, DIRECTORY_FLAGS);
	/* An empty directory that may not be durable must not remain. */
	int number = errno;
	unlinkat(parent, name, AT_REMOVEDIR);
	errno = number;
	return -1;
}

/* Opens a directory below another, whose path is `parent_path`, for writing: creates it if missing
 * and makes it durable. Returns -1 and sets errno. */
static int open_to_write(struct file_store *store, int parent, const char *parent_path,
                         const char *name)
{
	DESCRIPTOR_AUTO int found = openat(parent, name, DIRECTORY_FLAGS);
	if (found < 0 && errno != ENOENT)
		return -1;
	if (found >= 0 && !is_settled(store, parent_path) && !durable_sync_open(parent))
		return -1;
	int descriptor = found >= 0 ? descriptor_take(&found) : make_directory(parent, name);
	if (descriptor >= 0)
		note_settled(store, parent_path);
	return descriptor;
}

/* Opens the directory of an object and gets the last part of its name. Returns -1 and sets
 * errno. */
static int walk(struct file_store *store, const char *name, bool make, const char **ret_last)
{
	DESCRIPTOR_AUTO int at = -1;
	const char *part = name;
	for (const char *slash; (slash = strchr(part, '/')); part = slash + 1) {
		char text[CONTENT_NAME_MAX], path[CONTENT_NAME_MAX];
		snprintf(text, sizeof text, "%.*s", (int)(slash - part), part);
		snprintf(path, sizeof path, "%.*s", (int)(part - name), name);
		int parent = at < 0 ? store->root : at;
		int next =
			make ? open_to_write(store, parent, path, text) : openat(parent, text, DIRECTORY_FLAGS);
		if (next < 0)
			return -1;
		if (at >= 0)
			close(at);
		at = next;
	}
	*ret_last = part;
	return at >= 0 ? descriptor_take(&at) : fcntl(store->root, F_DUPFD_CLOEXEC, 0);
}

/* A missing or inaccessible directory is a wrong setting; any other error is reported as such. */
static int cannot_open(const char *place, struct error *error)
{
	int result = errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EPERM ||
	                     errno == EROFS || errno == ELOOP || errno == ENAMETOOLONG
	                 ? ERR_VALIDATION
	                 : file_code(errno);
	return error_set(error, result, MSG_CONTENT_DIRECTORY, place, strerrordesc_np(errno), NULL);
}

static int open_root(const struct content_options *options, const char *place, int *ret_root,
                     struct error *error)
{
	errno = EIO;
	if (options->create ? durable_make_directory(place, error) : durable_sync_above(place, error))
		return cannot_open(place, error);
	/* The configured path may be a symbolic link; entries below it may not. */
	*ret_root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_root < 0 ? cannot_open(place, error) : OK;
}

static int file_open(const struct content_options *options, const char *place,
                     struct content_store **ret_store, struct error *error)
{
	DESCRIPTOR_AUTO int root = -1;
	int result = open_root(options, place, &root, error);
	if (result)
		return result;
	DESCRIPTOR_AUTO int incoming = make_directory(root, INCOMING);
	if (incoming < 0)
		return cannot_open(place, error);
	struct file_store *store = calloc(1, sizeof *store);
	if (!store)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a store");
	store->base.driver = &content_file_driver;
	store->root = descriptor_take(&root);
	store->incoming = descriptor_take(&incoming);
	note_settled(store, "");
	pthread_mutex_init(&store->making, NULL);
	*ret_store = &store->base;
	return 0;
}

static void file_close(struct content_store *base)
{
	struct file_store *store = (struct file_store *)base;
	close(store->root);
	close(store->incoming);
	pthread_mutex_destroy(&store->making);
	free(store);
}

static int file_write_begin(struct content_store *base, struct content_writer **ret_writer,
                            struct error *error)
{
	struct file_store *store = (struct file_store *)base;
	struct file_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a writer");
	uint8_t bytes[(INCOMING_NAME_SIZE - 1) / 2];
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, writer->name);
	writer->base.store = base;
	writer->descriptor = openat(store->incoming, writer->name,
	                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->descriptor < 0) {
		int number = errno;
		free(writer);
		return fail(error, "creating a file", number == ENOENT ? EIO : number);
	}
	*ret_writer = &writer->base;
	return 0;
}

static int file_write(struct content_writer *base, const void *data, size_t size,
                      struct error *error)
{
	struct file_writer *writer = (struct file_writer *)base;
	if (!file_write_all(writer->descriptor, slice_make(data, size)))
		return fail(error, "writing", errno);
	writer->size += (off_t)size;
	off_t more = writer->size - writer->written_out;
	if (more < DURABLE_CHUNK)
		return OK;
	if (!durable_write_out(writer->descriptor, writer->written_out, more))
		return fail(error, "writing out", errno);
	writer->written_out = writer->size;
	return OK;
}

/* Opens the directory for a new object and gets the last part of its name. Returns -1 and sets
 * errno. */
static int open_place(struct file_store *store, const char *name, const char **ret_last)
{
	pthread_mutex_lock(&store->making);
	int directory = walk(store, name, true, ret_last);
	int number = errno;
	pthread_mutex_unlock(&store->making);
	errno = number;
	return directory;
}

static int file_write_commit(struct content_writer *base, const char *name, struct error *error)
{
	struct file_writer *writer = (struct file_writer *)base;
	struct file_store *store = (struct file_store *)base->store;
	if (!durable_sync_open(writer->descriptor))
		return fail(error, "syncing a file", errno);
	const char *last = NULL;
	DESCRIPTOR_AUTO int directory = open_place(store, name, &last);
	if (directory < 0)
		return fail(error, "creating a directory", errno == ENOTDIR ? EIO : errno);
	if (renameat(store->incoming, writer->name, directory, last) < 0)
		return fail(error, "renaming", errno == ENOENT ? EIO : errno);
	writer->name[0] = '\0';
	if (!durable_sync_open(directory))
		return fail(error, "syncing a directory", errno);
	return 0;
}

static void file_write_abort(struct content_writer *base)
{
	struct file_writer *writer = (struct file_writer *)base;
	struct file_store *store = (struct file_store *)base->store;
	close(writer->descriptor);
	if (writer->name[0])
		unlinkat(store->incoming, writer->name, 0);
	free(writer);
}

/* Returns whether linking is impossible but copying may succeed: another file system, no support
 * for links, name in use, or no /proc. */
static bool keeps_from_linking(int number)
{
	return number == EXDEV || number == EPERM || number == EMLINK || number == EEXIST ||
	       number == ENOENT || number == EOPNOTSUPP;
}

static int file_link(struct content_store *base, int descriptor, const char *name,
                     struct error *error)
{
	struct file_store *store = (struct file_store *)base;
	char path[64];
	const char *last = NULL;
	struct stat status;
	if (fstat(descriptor, &status) < 0)
		return fail(error, "checking a file", errno);
	if (!S_ISREG(status.st_mode) || (status.st_mode & 07777) != 0600 || status.st_uid != geteuid())
		return ERR_REFUSED;
	/* The object's time must be that of its name. */
	if (futimens(descriptor, NULL) < 0 || !durable_sync_open(descriptor))
		return fail(error, "syncing a file", errno);
	DESCRIPTOR_AUTO int directory = open_place(store, name, &last);
	if (directory < 0)
		return fail(error, "creating a directory", errno == ENOTDIR ? EIO : errno);
	snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
	if (linkat(AT_FDCWD, path, directory, last, AT_SYMLINK_FOLLOW) < 0)
		return keeps_from_linking(errno) ? ERR_REFUSED : fail(error, "linking", errno);
	if (!durable_sync_open(directory))
		return fail(error, "syncing a directory", errno);
	return 0;
}

/* Opens a regular file for reading and gets its size. Returns -1 and sets errno. */
static int open_object(struct file_store *store, const char *name, uint64_t *ret_size)
{
	const char *last = NULL;
	DESCRIPTOR_AUTO int directory = walk(store, name, false, &last);
	if (directory < 0)
		return -1;
	/* O_NONBLOCK prevents blocking if the entry is not a regular file. */
	DESCRIPTOR_AUTO int object =
		openat(directory, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	if (object < 0 || fstat(object, &status) < 0)
		return -1;
	if (!S_ISREG(status.st_mode)) {
		errno = ENOENT;
		return -1;
	}
	*ret_size = (uint64_t)status.st_size;
	return descriptor_take(&object);
}

static int file_read_begin(struct content_store *base, const char *name, uint64_t offset,
                           struct content_reader **ret_reader, uint64_t *ret_size,
                           struct error *error)
{
	uint64_t size = 0;
	DESCRIPTOR_AUTO int object = open_object((struct file_store *)base, name, &size);
	if (object < 0)
		return fail(error, "opening an object", errno);
	if (lseek(object, (off_t)(offset < size ? offset : size), SEEK_SET) < 0)
		return fail(error, "reading an object", errno);
	struct file_reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a reader");
	reader->base.store = base;
	reader->descriptor = descriptor_take(&object);
	*ret_reader = &reader->base;
	*ret_size = size;
	return 0;
}

static int64_t file_read(struct content_reader *base, void *data, size_t size, struct error *error)
{
	struct file_reader *reader = (struct file_reader *)base;
	ssize_t result;
	do
		result = read(reader->descriptor, data, size);
	while (result < 0 && errno == EINTR);
	return result < 0 ? fail(error, "reading an object", errno) : result;
}

/* Reads only from the page cache; content_read waits for the disk. */
static size_t file_read_now(struct content_reader *base, void *data, size_t size)
{
	struct file_reader *reader = (struct file_reader *)base;
	struct iovec whole = {data, size};
	ssize_t got = preadv2(reader->descriptor, &whole, 1, -1, RWF_NOWAIT);
	return got > 0 ? (size_t)got : 0;
}

static void file_read_end(struct content_reader *base)
{
	struct file_reader *reader = (struct file_reader *)base;
	close(reader->descriptor);
	free(reader);
}

static int file_read_descriptor(struct content_store *base, const char *name, uint64_t *ret_size)
{
	return open_object((struct file_store *)base, name, ret_size);
}

/* Not synced: if a power failure undoes a deletion, the next sweep finds the object again. */
static int file_delete(struct content_store *base, const char *name, struct error *error)
{
	const char *last = NULL;
	DESCRIPTOR_AUTO int directory = walk((struct file_store *)base, name, false, &last);
	if (directory >= 0 && unlinkat(directory, last, 0) == 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	return fail(error, "deleting an object", errno);
}

/* ---- listing and sweeping ---- */

struct listing {
	const struct content_range *range;
	int (*visit)(void *context, const char *name);
	void *context;
	struct error *error;
};

static int list_directory(const struct listing *listing, int descriptor, const char *prefix);

static bool is_in_range(const struct content_range *range, const struct stat *status)
{
	int64_t changed_us = status->st_mtim.tv_sec * US_PER_SECOND + status->st_mtim.tv_nsec / 1000;
	return S_ISREG(status->st_mode) && changed_us >= range->since_us &&
	       changed_us < range->before_us;
}

static int list_entry(const struct listing *listing, int directory, const char *prefix,
                      const char *entry)
{
	char name[CONTENT_NAME_MAX + NAME_MAX];
	snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "/" : "", entry);
	struct stat status;
	if (!content_name_valid(name))
		return 0; /* not created by this program */
	if (fstatat(directory, entry, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(listing->error, "checking an object", errno);
	if (S_ISDIR(status.st_mode)) {
		int below = openat(directory, entry, DIRECTORY_FLAGS);
		return below < 0 ? fail(listing->error, "opening a directory", errno)
		                 : list_directory(listing, below, name);
	}
	return is_in_range(listing->range, &status) ? listing->visit(listing->context, name) : 0;
}

/* Calls `each` for every entry until a result is not 0. Closes the descriptor. */
static int each_entry(int descriptor, const struct listing *listing, const char *prefix,
                      int (*each)(const struct listing *listing, int directory, const char *prefix,
                                  const char *entry))
{
	DIR *directory = fdopendir(descriptor);
	if (!directory) {
		int number = errno;
		close(descriptor);
		return fail(listing->error, "listing a directory", number);
	}
	int result = 0;
	while (!result) {
		errno = 0;
		const struct dirent *entry = readdir(directory);
		if (!entry) {
			if (errno)
				result = fail(listing->error, "listing a directory", errno);
			break;
		}
		result = each(listing, descriptor, prefix, entry->d_name);
	}
	closedir(directory);
	return result;
}

/* The number of parts of a name bounds the depth. */
static int list_directory(const struct listing *listing, int descriptor, const char *prefix)
{
	return each_entry(descriptor, listing, prefix, list_entry);
}

static int file_list(struct content_store *base, const struct content_range *range,
                     int (*visit)(void *context, const char *name), void *context,
                     struct error *error)
{
	struct file_store *store = (struct file_store *)base;
	struct listing listing = {range, visit, context, error};
	/* A listing needs its own descriptor because it has a position. */
	int directory = openat(store->root, *range->area ? range->area : ".", DIRECTORY_FLAGS);
	if (directory < 0)
		return *range->area && errno == ENOENT ? 0 : fail(error, "opening a directory", errno);
	return list_directory(&listing, directory, range->area);
}

/* Removes only files that file_write_begin may have created. */
static int remove_leftover(const struct listing *listing, int directory, const char *prefix,
                           const char *entry)
{
	(void)prefix;
	struct stat status;
	if (strlen(entry) != INCOMING_NAME_SIZE - 1 ||
	    strspn(entry, "0123456789abcdef") != INCOMING_NAME_SIZE - 1)
		return 0;
	if (fstatat(directory, entry, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(listing->error, "checking a leftover file", errno);
	if (!is_in_range(listing->range, &status))
		return 0;
	if (unlinkat(directory, entry, 0) < 0 && errno != ENOENT)
		return fail(listing->error, "removing a leftover file", errno);
	return 0;
}

static int file_tidy(struct content_store *base, const struct content_range *range,
                     int (*visit)(void *context, const char *name), void *context,
                     struct error *error)
{
	struct file_store *store = (struct file_store *)base;
	struct listing listing = {range, visit, context, error};
	int incoming = openat(store->incoming, ".", DIRECTORY_FLAGS);
	if (incoming < 0)
		return fail(error, "opening a directory", errno);
	return each_entry(incoming, &listing, "", remove_leftover);
}

/* On a shared directory the file server sets the times. */
static int file_now_us(struct content_store *base, int64_t *ret_now_us, struct error *error)
{
	struct content_writer *writer;
	struct stat status;
	int result = file_write_begin(base, &writer, error);
	if (result)
		return result;
	if (fstat(((struct file_writer *)writer)->descriptor, &status) < 0)
		result = fail(error, "reading a file's time", errno);
	file_write_abort(writer);
	if (!result)
		*ret_now_us = status.st_mtim.tv_sec * US_PER_SECOND + status.st_mtim.tv_nsec / 1000;
	return result;
}

const struct content_driver content_file_driver = {
	.scheme = "file:",
	.open = file_open,
	.close = file_close,
	.write_begin = file_write_begin,
	.write = file_write,
	.write_commit = file_write_commit,
	.write_abort = file_write_abort,
	.link = file_link,
	.read_begin = file_read_begin,
	.read = file_read,
	.read_now = file_read_now,
	.read_end = file_read_end,
	.read_descriptor = file_read_descriptor,
	.delete = file_delete,
	.now_us = file_now_us,
	.list = file_list,
	.tidy = file_tidy,
};
