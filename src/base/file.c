#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_PORTION ((size_t)16 << 10)
#define DIGEST_PORTION ((size_t)64 << 10)

void descriptor_close(const int *descriptor)
{
	int number = errno;
	if (*descriptor >= 0)
		close(*descriptor);
	errno = number;
}

int descriptor_take(int *descriptor)
{
	int taken = *descriptor;
	*descriptor = -1;
	return taken;
}

void file_allow_many(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int file_code(int number)
{
	return number == ENOSPC || number == EDQUOT || number == EFBIG ? ERR_NO_SPACE : ERR_IO;
}

int file_fail(struct error *error, const char *what, const char *path)
{
	return error_cause(error, file_code(errno), "%s %s: %s", what, path, strerrordesc_np(errno));
}

/* ---- contents ---- */

int file_open_to_read(const char *path, int flags, struct stat *ret_facts)
{
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
	return file >= 0 && fstat(file, ret_facts) == 0 ? descriptor_take(&file) : -1;
}

static ssize_t read_some(int file, void *data, size_t size)
{
	ssize_t got;
	do
		got = read(file, data, size);
	while (got < 0 && errno == EINTR);
	return got;
}

int file_read_whole(const char *path, struct buf *out, struct error *error)
{
	char portion[READ_PORTION];
	ssize_t size;
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return file_fail(error, "opening", path);
	while ((size = read_some(file, portion, sizeof portion)) > 0 && !out->failed)
		buf_add(out, portion, (size_t)size);
	int result = size < 0 ? file_fail(error, "reading", path) : OK;
	explicit_bzero(portion, sizeof portion); /* it may have been a key */
	if (!result && out->full)
		return error_cause(error, ERR_IO, "%s: over %zu bytes", path, out->limit);
	return result ? result : buf_check(out);
}

/* On a file system without O_TMPFILE the file has a name for a moment. */
int file_open_unnamed(const char *directory)
{
	int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return file;
	char path[PATH_MAX];
	if ((size_t)snprintf(path, sizeof path, "%s/.unnamed-XXXXXX", directory) >= sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	DESCRIPTOR_AUTO int named = mkostemp(path, O_CLOEXEC);
	/* A file that cannot be unlinked would be left behind. */
	return named >= 0 && unlink(path) == 0 ? descriptor_take(&named) : -1;
}

/* A NULL `stop` never stops. */
static int digest_until(const atomic_bool *stop, enum digest_algorithm algorithm, int file,
                        const char *path, uint64_t *ret_size_bytes, struct digest *ret_digest,
                        struct error *error)
{
	char portion[DIGEST_PORTION];
	uint64_t size_bytes = 0;
	ssize_t size;
	bool stopped = false;
	struct digest_stream *digest = digest_begin_by(algorithm);
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "digesting %s", path);
	while (!stopped && (size = read_some(file, portion, sizeof portion)) > 0) {
		stopped = stop && atomic_load(stop);
		digest_add(digest, portion, (size_t)size);
		size_bytes += (uint64_t)size;
	}
	if (stopped || size < 0) {
		int result = stopped ? error_cause(error, ERR_UNAVAILABLE, "digesting %s: stopped", path)
		                     : file_fail(error, "reading", path);
		digest_cancel(digest);
		return result;
	}
	*ret_size_bytes = size_bytes;
	*ret_digest = digest_end_by(digest);
	return OK;
}

int file_digest_by(enum digest_algorithm algorithm, int file, const char *path,
                   uint64_t *ret_size_bytes, struct digest *ret_digest, struct error *error)
{
	return digest_until(NULL, algorithm, file, path, ret_size_bytes, ret_digest, error);
}

int file_digest_until(const atomic_bool *stop, int file, const char *path, uint64_t *ret_size_bytes,
                      struct sha256 *ret_digest, struct error *error)
{
	struct digest digest;
	int result = digest_until(stop, DIGEST_SHA256, file, path, ret_size_bytes, &digest, error);
	if (!result)
		memcpy(ret_digest->bytes, digest.bytes, SHA256_SIZE);
	return result;
}

int file_digest(int file, const char *path, uint64_t *ret_size_bytes, struct sha256 *ret_digest,
                struct error *error)
{
	return file_digest_until(NULL, file, path, ret_size_bytes, ret_digest, error);
}

bool file_write_all(int file, struct slice content)
{
	while (content.size > 0) {
		ssize_t size = write(file, content.data, content.size);
		if (size < 0 && errno == EINTR)
			continue;
		if (size == 0)
			errno = ENOSPC;
		if (size <= 0)
			return false;
		content = slice_make(content.data + size, content.size - (size_t)size);
	}
	return true;
}

int file_replace(const char *path, struct slice content, struct error *error)
{
	char partial[PATH_MAX];
	if (snprintf(partial, sizeof partial, "%s.partial", path) >= (int)sizeof partial) {
		errno = ENAMETOOLONG;
		return file_fail(error, "writing", path);
	}
	(void)unlink(partial);
	DESCRIPTOR_AUTO int file = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0 || !file_write_all(file, content) || rename(partial, path) != 0)
		return file_fail(error, "writing", path);
	return OK;
}

bool file_write_at(int file, struct slice content, uint64_t offset)
{
	while (content.size > 0) {
		ssize_t size = pwrite(file, content.data, content.size, (off_t)offset);
		if (size < 0 && errno == EINTR)
			continue;
		if (size == 0)
			errno = ENOSPC;
		if (size <= 0)
			return false;
		content = slice_make(content.data + size, content.size - (size_t)size);
		offset += (uint64_t)size;
	}
	return true;
}

bool file_read_at(int file, void *data, size_t size, uint64_t offset)
{
	char *to = data;
	while (size > 0) {
		ssize_t got = pread(file, to, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = 0;
		if (got <= 0)
			return false;
		to += got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return true;
}

/* ---- locks ---- */

int file_lock(const char *path, int *ret_file, struct error *error)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	DESCRIPTOR_AUTO int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file < 0)
		return error_cause(error, ERR_IO, "open %s: %s", path, strerrordesc_np(errno));
	if (fcntl(file, F_OFD_SETLK, &lock) != 0)
		return error_cause(error, ERR_UNAVAILABLE, "lock %s: %s", path, strerrordesc_np(errno));
	*ret_file = descriptor_take(&file);
	return OK;
}

bool file_is_locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return file >= 0 && fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- removal ---- */

static int remove_content(int directory, const char *path, struct error *error);

static int remove_entry(int parent, const char *name, const char *path, struct error *error)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return OK;
	if (errno != EISDIR && errno != EPERM)
		return error_cause(error, ERR_IO, "unlink %s in %s: %s", name, path,
		                   strerrordesc_np(errno));
	int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return error_cause(error, ERR_IO, "open %s in %s: %s", name, path, strerrordesc_np(errno));
	int result = remove_content(directory, path, error);
	if (!result && unlinkat(parent, name, AT_REMOVEDIR) != 0)
		result =
			error_cause(error, ERR_IO, "rmdir %s in %s: %s", name, path, strerrordesc_np(errno));
	return result;
}

/* Closes `directory`. */
static int remove_content(int directory, const char *path, struct error *error)
{
	DIR *entries = fdopendir(directory);
	if (!entries) {
		descriptor_close(&directory);
		return error_cause(error, ERR_IO, "open %s: %s", path, strerrordesc_np(errno));
	}
	int result = OK;
	const struct dirent *entry;
	while (!result && (entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = remove_entry(dirfd(entries), entry->d_name, path, error);
	closedir(entries);
	return result;
}

int file_remove_tree(const char *path, struct error *error)
{
	return remove_entry(AT_FDCWD, path, path, error);
}
