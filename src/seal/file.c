#include "seal/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static int failed(struct error *error, const char *path)
{
	return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
}

int file_read(const char *path, struct buf *out, struct error *error)
{
	char block[4096];
	size_t total = 0;
	ssize_t size;

	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return failed(error, path);
	while ((size = read(file, block, sizeof block)) > 0 && total <= PEM_FILE_MAX) {
		total += (size_t)size;
		buf_add(out, block, (size_t)size);
	}
	int result = size < 0 ? failed(error, path) : 0;
	close(file);
	if (result == 0 && total > PEM_FILE_MAX)
		return error_cause(error, ERR_IO, "%s: over %d bytes", path, PEM_FILE_MAX);
	return result == 0 ? buf_check(out) : result;
}

static bool write_all(int file, struct slice content)
{
	while (content.size > 0) {
		ssize_t size = write(file, content.data, content.size);
		if (size <= 0)
			return false;
		content = slice_make(content.data + size, content.size - (size_t)size);
	}
	return true;
}

static bool sync_directory(const char *path)
{
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool synced = directory >= 0 && fsync(directory) == 0;

	if (directory >= 0)
		close(directory);
	return synced;
}

int file_replace(const char *directory, const char *name, struct slice content, struct error *error)
{
	char path[PATH_MAX];
	char aside[PATH_MAX];

	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path ||
	    (size_t)snprintf(aside, sizeof aside, "%s/%s.new", directory, name) >= sizeof aside)
		return error_cause(error, ERR_IO, "path too long");
	unlink(aside); /* left by an interrupted start */
	int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return failed(error, aside);
	bool written = write_all(file, content) && fsync(file) == 0;
	if (close(file) != 0 || !written || rename(aside, path) != 0 || !sync_directory(directory))
		return failed(error, path);
	return 0;
}
