#include "admin/backup_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/backup_manifest.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/log.h"
#include "store/check/inspect.h"

#define COPY_CHUNK ((size_t)256 * 1024)
#define LINE_MAX_SIZE (2 * SHA256_SIZE + CONTENT_NAME_MAX + 16)
#define PREFIX "  content/" /* between digest and name */
#define LINES_MAX ((size_t)64 * 1024)
#define PROGRESS_US (10 * US_PER_SECOND)

struct objects {
	struct content_store *from, *to;
	const char *directory, *previous;
	bool reads_all;
	struct backup_facts *facts;
	int list; /* content.sha256 */
	char list_path[PATH_MAX];
	struct buf lines; /* of the list, not written yet */
	char *chunk;
	int64_t reported_us;
	struct error *error;
};

/* An object that is being saved: the digest and size of its stored form. */
struct saved {
	const char *name;
	bool is_known; /* digest and size are those of the row, not of the stored object */
	struct sha256 digest;
	int64_t size;
};

static int path_of(const char *directory, const char *name, char path[PATH_MAX],
                   struct error *error)
{
	int size = snprintf(path, PATH_MAX, "%s/content/%s", directory, name);
	return size < PATH_MAX ? OK : error_cause(error, ERR_IO, "the path of %s is too long", name);
}

static int read_object(struct objects *objects, struct content_reader *reader,
                       struct content_writer *writer, int64_t *ret_size, struct sha256 *ret)
{
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return ERR_NO_MEMORY;
	int result = OK;
	int64_t got = 0;
	*ret_size = 0;
	while (!result &&
	       (got = content_read(reader, objects->chunk, COPY_CHUNK, objects->error)) > 0) {
		digest_add(digest, objects->chunk, (size_t)got);
		*ret_size += got;
		if (writer)
			result = content_write(writer, objects->chunk, (size_t)got, objects->error);
	}
	*ret = digest_end(digest);
	return result ? result : got < 0 ? (int)got : OK;
}

/* Gets digest and size of a stored object whose row has those of a composite document. */
static int measure(struct objects *objects, struct saved *object)
{
	struct content_reader *reader;
	uint64_t size;
	int result = content_read_begin(objects->from, object->name, 0, &reader, &size, objects->error);
	if (result)
		return result;
	result = read_object(objects, reader, NULL, &object->size, &object->digest);
	content_read_end(reader);
	return result;
}

static int digest_path(const char *path, int64_t *ret_size, struct sha256 *ret, struct error *error)
{
	struct stat facts;
	uint64_t size = 0;
	DESCRIPTOR_AUTO int file = file_open_to_read(path, O_NOFOLLOW, &facts);
	if (file < 0 || !S_ISREG(facts.st_mode))
		return file_fail(error, "opening", path);
	posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
	int result = file_digest(file, path, &size, ret, error);
	*ret_size = (int64_t)size;
	return result;
}

/* Returns whether the previous backup's copy can be used. */
static bool is_usable(const struct objects *objects, const struct saved *object, const char *path)
{
	struct stat facts;
	if (lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size != object->size)
		return false;
	if (!objects->reads_all && object->is_known)
		return true;
	struct error ignored = {0};
	struct sha256 digest;
	int64_t size;
	if (!digest_path(path, &size, &digest, &ignored) && sha256_equal(&digest, &object->digest))
		return true;
	log_warning("backup_object_damaged", "object", object->name, "path", path);
	return false;
}

/* Returns 1 if the object was linked, and 0 if it must be copied. */
static int link_object(struct objects *objects, struct saved *object)
{
	char path[PATH_MAX];
	if (!objects->previous)
		return 0;
	int result = path_of(objects->previous, object->name, path, objects->error);
	if (result)
		return result;
	if (access(path, F_OK) != 0)
		return 0;
	if (!object->is_known)
		result = measure(objects, object);
	if (result || !is_usable(objects, object, path))
		return result;
	result = content_put_file(objects->to, path, object->name, objects->error);
	return result ? result : 1;
}

/* Compares the copy with the digest of what was written. */
static int read_back(const struct objects *objects, const struct saved *object)
{
	char path[PATH_MAX];
	int64_t size;
	struct sha256 digest;
	int result = path_of(objects->directory, object->name, path, objects->error);
	if (!result)
		result = digest_path(path, &size, &digest, objects->error);
	if (!result && !sha256_equal(&digest, &object->digest))
		result =
			error_cause(objects->error, ERR_CORRUPT, "%s does not match what was written", path);
	return result;
}

static int note_missing(struct objects *objects, const char *event, const char *name)
{
	log_error(event, "object", name);
	objects->facts->content_missing++;
	error_clear(objects->error);
	return OK;
}

/* Returns 1 if the object was copied, and 0 if it is missing or damaged. */
static int copy_object(struct objects *objects, struct saved *object)
{
	struct content_reader *reader;
	struct content_writer *writer;
	uint64_t whole;
	int64_t size = 0;
	struct sha256 digest;
	int result =
		content_read_begin(objects->from, object->name, 0, &reader, &whole, objects->error);
	if (result == ERR_NOT_FOUND)
		return note_missing(objects, "object_missing", object->name);
	if (result)
		return result;
	result = content_write_begin(objects->to, &writer, objects->error);
	if (result) {
		content_read_end(reader);
		return result;
	}
	result = read_object(objects, reader, writer, &size, &digest);
	content_read_end(reader);
	bool damaged = !result && object->is_known &&
	               (size != object->size || !sha256_equal(&digest, &object->digest));
	if (result || damaged) {
		content_write_abort(writer);
		return result ? result : note_missing(objects, "object_damaged", object->name);
	}
	object->digest = digest;
	object->size = size;
	result = content_write_commit(writer, object->name, objects->error);
	if (!result)
		result = read_back(objects, object);
	return result ? result : 1;
}

/* Writes the lines of the list that are in memory, if they have at least `size` bytes. */
static int write_lines(struct objects *objects, size_t size)
{
	int result = buf_check(&objects->lines);
	if (result || objects->lines.size < size)
		return result;
	if (!file_write_all(objects->list, buf_slice(&objects->lines)))
		return file_fail(objects->error, "writing", objects->list_path);
	buf_clear(&objects->lines);
	return OK;
}

static void report_progress(struct objects *objects)
{
	char count[24];
	int64_t now_us = clock_monotonic_us();
	if (now_us - objects->reported_us < PROGRESS_US)
		return;
	objects->reported_us = now_us;
	snprintf(count, sizeof count, "%lld", (long long)objects->facts->content_objects);
	log_info("backup_continued", "directory", objects->directory, "objects", count);
}

static int save_object(void *context, const struct named_object *row)
{
	struct objects *objects = context;
	struct saved object = {.name = row->name,
	                       .is_known = !row->shared || !*row->shared,
	                       .digest = row->sha256,
	                       .size = row->size_bytes};
	int linked = link_object(objects, &object);
	if (linked == ERR_NOT_FOUND)
		return note_missing(objects, "object_missing", object.name);
	int result = linked ? linked : copy_object(objects, &object);
	if (result <= 0)
		return result;
	buf_add_hex(&objects->lines, object.digest.bytes, SHA256_SIZE);
	buf_add_text(&objects->lines, PREFIX);
	buf_add_text(&objects->lines, object.name);
	buf_add_byte(&objects->lines, '\n');
	result = write_lines(objects, LINES_MAX / 2);
	if (result)
		return result;
	objects->facts->content_objects++;
	objects->facts->content_linked += linked == 1;
	objects->facts->content_bytes += object.size;
	report_progress(objects);
	return OK;
}

static int save_all(struct store *store, struct objects *objects)
{
	int result = store_list_objects(store, OBJECTS_OF_EVENTS, save_object, objects, objects->error);
	return result ? result
	              : store_list_objects(store, OBJECTS_ISSUED, save_object, objects, objects->error);
}

static int open_list(struct objects *objects)
{
	snprintf(objects->list_path, PATH_MAX, "%s/" BACKUP_CONTENT_LIST, objects->directory);
	objects->list =
		open(objects->list_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return objects->list < 0 ? file_fail(objects->error, "creating", objects->list_path) : OK;
}

static int finish_list(struct objects *objects)
{
	int64_t size;
	int result = write_lines(objects, 0);
	if (!result && !durable_sync_open(objects->list))
		result = file_fail(objects->error, "syncing", objects->list_path);
	if (!result)
		result = backup_digest_file(objects->list_path, &size, &objects->facts->content_list_sha256,
		                            objects->error);
	objects->facts->has_content_list = !result;
	return result;
}

int backup_copy_objects(struct store *store, struct content_store *content, const char *directory,
                        const char *previous, bool reads_all, struct backup_facts *facts,
                        struct error *error)
{
	char url[PATH_MAX];
	struct error own = {0};
	struct objects objects = {.from = content,
	                          .directory = directory,
	                          .previous = previous,
	                          .reads_all = reads_all,
	                          .facts = facts,
	                          .list = -1,
	                          .reported_us = clock_monotonic_us(),
	                          .error = error ? error : &own};
	facts->content_objects = facts->content_missing = facts->content_bytes = 0;
	facts->content_linked = 0;
	snprintf(url, sizeof url, "file:%s/content", directory);
	int result = content_open(url, true, &objects.to, objects.error);
	if (result)
		return result;
	buf_init(&objects.lines, LINES_MAX);
	objects.chunk = malloc(COPY_CHUNK);
	result = objects.chunk ? open_list(&objects) : ERR_NO_MEMORY;
	if (!result)
		result = save_all(store, &objects);
	if (!result)
		result = finish_list(&objects);
	descriptor_close(&objects.list);
	buf_free(&objects.lines);
	free(objects.chunk);
	content_close(objects.to);
	return result;
}

/* ---- checking ---- */

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

static int check_line(const char *directory, char *line, struct error *error)
{
	char path[PATH_MAX];
	int64_t size;
	struct sha256 expected, found;
	const char *name = split_line(line, &expected);
	if (!name)
		return error_cause(error, ERR_CORRUPT, "%s/" BACKUP_CONTENT_LIST " is damaged", directory);
	int result = path_of(directory, name, path, error);
	if (!result && access(path, F_OK) != 0 && errno == ENOENT)
		result = error_cause(error, ERR_CORRUPT, "%s is missing", path);
	if (!result)
		result = digest_path(path, &size, &found, error);
	if (!result && !sha256_equal(&found, &expected))
		result = error_cause(error, ERR_CORRUPT, "%s does not match its digest", path);
	return result;
}

int backup_check_objects(const char *directory, const struct backup_facts *facts,
                         int64_t *ret_objects, struct error *error)
{
	char path[PATH_MAX], line[LINE_MAX_SIZE];
	int64_t size;
	struct sha256 digest;
	FILE *list;
	*ret_objects = 0;
	snprintf(path, sizeof path, "%s/" BACKUP_CONTENT_LIST, directory);
	list = fopen(path, "re");
	if (!list)
		return file_fail(error, "opening", path);
	int result = backup_digest_file(path, &size, &digest, error);
	if (!result && !sha256_equal(&digest, &facts->content_list_sha256))
		result = error_cause(error, ERR_CORRUPT, "%s does not match its manifest", path);
	while (!result && fgets(line, sizeof line, list)) {
		result = check_line(directory, line, error);
		*ret_objects += !result;
	}
	if (!result && ferror(list))
		result = file_fail(error, "reading", path);
	fclose(list);
	if (!result && *ret_objects != facts->content_objects)
		result = error_cause(error, ERR_CORRUPT, "%s lists %lld objects instead of %lld", path,
		                     (long long)*ret_objects, (long long)facts->content_objects);
	return result;
}
