#include "tools/receipt_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/json.h"

#define NUMBERS_MAX 999999 /* renamed files; far more than a disk of receipts has */

static int number_path(const char *path, unsigned number, char out[PATH_MAX], struct error *error)
{
	if (snprintf(out, PATH_MAX, "%s.%u", path, number) >= PATH_MAX)
		return error_cause(error, ERR_IO, "path too long: %s", path);
	return 0;
}

/* Splits a path into the directory and the name in it. */
static const char *split_path(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		snprintf(folder, PATH_MAX, ".");
	else
		snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return slash ? slash + 1 : path;
}

/* Returns the number at the end of "NAME.NUMBER"; 0: not a renamed file of that name. */
static unsigned number_of(const char *entry, const char *name)
{
	size_t size = strlen(name);
	const char *digits = entry + size + 1;
	if (strncmp(entry, name, size) != 0 || entry[size] != '.' || *digits < '1' || *digits > '9' ||
	    digits[strspn(digits, "0123456789")] || strlen(digits) > 6)
		return 0;
	return (unsigned)strtoul(digits, NULL, 10);
}

/* Finds the highest number of the renamed files; 0: there are none. Older ones may have been moved
 * elsewhere, so that numbers can be missing. */
static int last_number(const char *path, unsigned *ret_number, struct error *error)
{
	char folder[PATH_MAX];
	const char *name = split_path(path, folder);
	const struct dirent *entry;
	unsigned number;
	DIR *directory = opendir(folder);
	if (!directory)
		return file_fail(error, "open", folder);
	*ret_number = 0;
	while ((entry = readdir(directory)))
		if ((number = number_of(entry->d_name, name)) > *ret_number)
			*ret_number = number;
	closedir(directory);
	return 0;
}

static int sync_folder(const char *path, struct error *error)
{
	char folder[PATH_MAX];
	(void)split_path(path, folder);
	return durable_sync(folder, error);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ---- rotation ---- */

/* Adds the name before it removes the other one: a link replaces nothing. */
static int rotate(const char *path, struct error *error)
{
	char name[PATH_MAX];
	unsigned number = 0;
	int result = last_number(path, &number, error);
	do {
		if (!result)
			result = number_path(path, ++number, name, error);
		if (result)
			return result;
		if (number > NUMBERS_MAX)
			return error_cause(error, ERR_IO, "too many files %s.NUMBER", path);
		if (link(path, name) == 0)
			break;
		if (errno != EEXIST)
			return file_fail(error, "rename", path);
	} while (true);
	result = sync_folder(path, error);
	if (!result && unlink(path) != 0)
		result = file_fail(error, "rename", path);
	return result ? result : sync_folder(path, error);
}

/* Returns whether the path still names the open file. Ends a rotation that a crash interrupted
 * between its two steps. */
static int check_current(int file, const char *path, bool *ret_current, struct error *error)
{
	char name[PATH_MAX];
	struct stat open_file, named, renamed;
	unsigned number = 0;
	*ret_current = false;
	if (fstat(file, &open_file) != 0)
		return file_fail(error, "open", path);
	if (stat(path, &named) != 0)
		return errno == ENOENT ? 0 : file_fail(error, "open", path);
	if (!is_same(&open_file, &named))
		return 0;
	*ret_current = true;
	if (open_file.st_nlink == 1)
		return 0;
	int result = last_number(path, &number, error);
	if (!result && number)
		result = number_path(path, number, name, error);
	if (result || !number || stat(name, &renamed) != 0 || !is_same(&open_file, &renamed))
		return result;
	*ret_current = false;
	return unlink(path) == 0 ? sync_folder(path, error) : file_fail(error, "rename", path);
}

/* ---- repair ---- */

static bool is_receipt(struct slice line)
{
	ARENA_AUTO struct arena arena;
	struct json *json;
	struct slice id;
	arena_init(&arena, 8 * RECEIPT_LINE_MAX);
	return json_parse(&arena, line, NULL, &json, NULL) == 0 && json_get_text(json, "event_id", &id);
}

static int keep_torn(const char *path, struct slice torn, struct error *error)
{
	char name[PATH_MAX];
	snprintf(name, sizeof name, "%s.torn", path);
	DESCRIPTOR_AUTO int file = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || !file_write_all(file, torn) || !file_write_all(file, slice_of("\n")) ||
	    !durable_sync_open(file))
		return file_fail(error, "write", name);
	return 0;
}

/* Completes or removes a last line without its end. */
static int repair(int file, const char *path, off_t *size, struct error *error)
{
	BUF_AUTO struct buf tail;
	size_t wanted = *size < (off_t)RECEIPT_LINE_MAX ? (size_t)*size : RECEIPT_LINE_MAX;
	buf_init(&tail, RECEIPT_LINE_MAX + 1);
	char *data = buf_extend(&tail, wanted);
	if (!data)
		return ERR_NO_MEMORY;
	if (!file_read_at(file, data, wanted, (uint64_t)*size - wanted))
		return file_fail(error, "read", path);
	const char *feed = memrchr(data, '\n', wanted);
	size_t whole = feed ? (size_t)(feed - data) + 1 : 0;
	struct slice torn = slice_make(data + whole, wanted - whole);
	if (torn.size == RECEIPT_LINE_MAX)
		return error_cause(error, ERR_IO, "%s is not a file of receipts", path);
	if (is_receipt(torn)) {
		if (!file_write_all(file, slice_of("\n")))
			return file_fail(error, "write", path);
		*size += 1;
		return 0;
	}
	int result = keep_torn(path, torn, error);
	*size -= (off_t)torn.size;
	if (!result && ftruncate(file, *size) != 0)
		result = file_fail(error, "write", path);
	return result;
}

/* ---- append ---- */

/* Writes the line to the locked file, or nothing of it. `*ret_done` stays false if the file has to
 * be opened again: it was renamed by another process, or now by this one. */
static int append_to(int file, const char *path, struct slice line, bool *ret_done,
                     struct error *error)
{
	bool current;
	struct stat facts;
	char last = '\n';
	int result = check_current(file, path, &current, error);
	if (result || !current)
		return result;
	if (fstat(file, &facts) != 0)
		return file_fail(error, "read", path);
	off_t size = facts.st_size;
	if (size && !file_read_at(file, &last, 1, (uint64_t)size - 1))
		return file_fail(error, "read", path);
	if (last != '\n')
		result = repair(file, path, &size, error);
	if (result)
		return result;
	if (size && (size_t)size + line.size > RECEIPT_FILE_MAX)
		return rotate(path, error);
	if (!file_write_all(file, line) || !durable_sync_open(file)) {
		result = file_fail(error, "write", path);
		int ignored = ftruncate(file, size); /* else the next write repairs it */
		(void)ignored;
		return result;
	}
	*ret_done = true;
	return size ? 0 : sync_folder(path, error);
}

int receipt_file_append(const char *path, struct slice receipt, struct error *error)
{
	BUF_AUTO struct buf line;
	bool done = false;
	int result = 0;
	buf_init(&line, RECEIPT_LINE_MAX);
	buf_add_slice(&line, receipt);
	buf_add_byte(&line, '\n');
	if (buf_check(&line))
		return ERR_NO_MEMORY;
	while (!result && !done) {
		DESCRIPTOR_AUTO int file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		if (file < 0 || flock(file, LOCK_EX) != 0)
			return file_fail(error, "open", path);
		result = append_to(file, path, buf_slice(&line), &done, error);
	}
	return result;
}

/* ---- read ---- */

static int read_lines(const char *path, bool with_torn,
                      int (*take)(void *context, struct slice line, struct error *error),
                      void *context, struct error *error)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size;
	int result = file ? 0 : file_fail(error, "open", path);
	while (!result && (size = getline(&line, &capacity, file)) > 0) {
		if ((size_t)size > RECEIPT_LINE_MAX)
			result = error_cause(error, ERR_IO, "%s has a line of over %zu bytes", path,
			                     RECEIPT_LINE_MAX);
		else if (line[size - 1] != '\n' &&
		         (with_torn || is_receipt(slice_make(line, (size_t)size))))
			result = take(context, slice_make(line, (size_t)size), error);
		else if (line[size - 1] == '\n' && size > 1)
			result = take(context, slice_make(line, (size_t)size - 1), error);
	}
	if (!result && ferror(file))
		result = file_fail(error, "read", path);
	free(line);
	if (file)
		fclose(file);
	return result;
}

int receipt_file_read(const char *path, bool with_torn,
                      int (*take)(void *context, struct slice line, struct error *error),
                      void *context, struct error *error)
{
	char name[PATH_MAX];
	unsigned last = 0;
	struct stat facts;
	int result = last_number(path, &last, error);
	for (unsigned number = 1; number <= last && !result; number++) {
		result = number_path(path, number, name, error);
		if (!result && stat(name, &facts) == 0)
			result = read_lines(name, with_torn, take, context, error);
	}
	/* Between the rotation and the next receipt there is none. */
	if (!result && (last == 0 || stat(path, &facts) == 0))
		result = read_lines(path, with_torn, take, context, error);
	return result;
}
