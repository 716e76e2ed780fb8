#include "admin/backup_object_list.h"

#include <fcntl.h>
#include <stdio.h>

#include "admin/backup_manifest.h"
#include "base/durable.h"
#include "base/file.h"

#define LINE_MAX_SIZE (2 * SHA256_SIZE + CONTENT_NAME_MAX + 16)
#define PREFIX "  content/" /* between digest and name */
#define LINES_MAX ((size_t)64 * 1024)

/* ---- writing ---- */

int object_list_open(struct object_list *list, const char *directory, const char *name,
                     struct error *error)
{
	buf_init(&list->lines, LINES_MAX);
	snprintf(list->path, sizeof list->path, "%s/%s", directory, name);
	list->file = open(list->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return list->file < 0 ? file_fail(error, "creating", list->path) : OK;
}

/* Writes the lines that are in memory, if they have at least `size` bytes. */
static int write_lines(struct object_list *list, size_t size, struct error *error)
{
	int result = buf_check(&list->lines);
	if (result || list->lines.size < size)
		return result;
	if (!file_write_all(list->file, buf_slice(&list->lines)))
		return file_fail(error, "writing", list->path);
	buf_clear(&list->lines);
	return OK;
}

int object_list_add(struct object_list *list, const char *name, const struct sha256 *digest,
                    struct error *error)
{
	buf_add_hex(&list->lines, digest->bytes, SHA256_SIZE);
	buf_add_text(&list->lines, PREFIX);
	buf_add_text(&list->lines, name);
	buf_add_byte(&list->lines, '\n');
	return write_lines(list, LINES_MAX / 2, error);
}

int object_list_finish(struct object_list *list, struct sha256 *ret_digest, struct error *error)
{
	int64_t size;
	int result = write_lines(list, 0, error);
	if (!result && !durable_sync_open(list->file))
		result = file_fail(error, "syncing", list->path);
	return result ? result : backup_digest_file(list->path, &size, ret_digest, error);
}

void object_list_close(struct object_list *list)
{
	descriptor_close(&list->file);
	buf_free(&list->lines);
}

/* ---- reading ---- */

/* Splits a line of the list. Returns NULL if it is not valid. */
static const char *split_line(char *line, struct sha256 *ret_digest)
{
	size_t size = strlen(line), start = 2 * SHA256_SIZE + strlen(PREFIX);
	if (size <= start || line[size - 1] != '\n' ||
	    strncmp(line + 2 * SHA256_SIZE, PREFIX, strlen(PREFIX)) != 0)
		return NULL;
	line[size - 1] = '\0';
	const char *name = line + start;
	bool valid =
		*name != '/' && !strstr(name, "..") &&
		hex_decode(slice_make(line, (size_t)2 * SHA256_SIZE), ret_digest->bytes, SHA256_SIZE);
	return valid ? name : NULL;
}

/* `skips`: ignores lines that are not valid. */
static int read_lines(FILE *list, const char *path, bool skips, object_list_visitor each,
                      void *context, int64_t *ret_count, struct error *error)
{
	char line[LINE_MAX_SIZE];
	struct sha256 digest;
	int result = OK;
	while (!result && fgets(line, sizeof line, list)) {
		const char *name = split_line(line, &digest);
		if (!name && skips)
			continue;
		result = name ? each(context, name, &digest, error)
		              : error_cause(error, ERR_CORRUPT, "%s is damaged", path);
		*ret_count += !result;
	}
	return !result && ferror(list) ? file_fail(error, "reading", path) : result;
}

int object_list_check(const char *directory, const char *name, const struct sha256 *expected,
                      struct error *error)
{
	char path[PATH_MAX];
	int64_t size;
	struct sha256 digest;
	snprintf(path, sizeof path, "%s/%s", directory, name);
	int result = backup_digest_file(path, &size, &digest, error);
	if (!result && !sha256_equal(&digest, expected))
		result = error_cause(error, ERR_CORRUPT, "%s does not match its manifest", path);
	return result;
}

int object_list_read(const char *directory, const char *name, const struct sha256 *expected,
                     object_list_visitor each, void *context, int64_t *ret_count,
                     struct error *error)
{
	char path[PATH_MAX];
	*ret_count = 0;
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *list = fopen(path, "re");
	if (!list)
		return file_fail(error, "opening", path);
	int result = expected ? object_list_check(directory, name, expected, error) : OK;
	if (!result)
		result = read_lines(list, path, !expected, each, context, ret_count, error);
	fclose(list);
	return result;
}
