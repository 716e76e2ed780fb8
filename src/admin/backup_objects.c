#include "admin/backup_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/backup_object_list.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/log.h"
#include "content/composite.h"
#include "store/check/inspect.h"

#define PROGRESS_US (10 * US_PER_SECOND)

struct objects {
	struct content_store *from, *to;
	struct content_store *before; /* the objects of the previous backup; NULL: none */
	const char *directory, *previous;
	bool reads_all;
	struct backup_facts *facts;
	struct object_list list, missing;
	char *chunk;
	int64_t reported_us;
	struct error *error;
};

/* An object that is being saved: the digest and size of its stored form. */
struct saved {
	const struct named_object *row;
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

int backup_read_object(struct content_reader *reader, struct content_writer *writer, char *chunk,
                       int64_t *ret_size, struct sha256 *ret_digest, struct error *error)
{
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return ERR_NO_MEMORY;
	int result = OK;
	int64_t got = 0;
	*ret_size = 0;
	while (!result && (got = content_read(reader, chunk, BACKUP_CHUNK, error)) > 0) {
		digest_add(digest, chunk, (size_t)got);
		*ret_size += got;
		if (writer)
			result = content_write(writer, chunk, (size_t)got, error);
	}
	*ret_digest = digest_end(digest);
	return result ? result : got < 0 ? (int)got : OK;
}

static int read_object(struct objects *objects, struct content_reader *reader,
                       struct content_writer *writer, int64_t *ret_size, struct sha256 *ret)
{
	return backup_read_object(reader, writer, objects->chunk, ret_size, ret, objects->error);
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

/* Finds out whether the content store lost the object: it is not there, or has another size. A
 * remote store is not asked for an object whose size is known, because that would take a request
 * for each. Digest and size of a part of a composite document are those of the stored object. */
static int ask_source(struct objects *objects, struct saved *object, bool *ret_lost)
{
	struct content_reader *reader;
	uint64_t size = 0;
	int result = OK;
	*ret_lost = false;
	if (!object->is_known) {
		result = measure(objects, object);
	} else if (!content_is_remote(objects->from)) {
		result = content_read_begin(objects->from, object->name, 0, &reader, &size, objects->error);
		if (!result)
			content_read_end(reader);
		*ret_lost = !result && (int64_t)size != object->size;
	}
	if (result != ERR_NOT_FOUND)
		return result;
	error_clear(objects->error);
	*ret_lost = true;
	return OK;
}

/* Returns whether the previous backup's copy is the object of that size and digest. `reads`: the
 * size does not suffice. */
static bool is_same(const struct saved *object, const char *path, bool reads)
{
	struct stat facts;
	if (lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size != object->size)
		return false;
	struct error ignored = {0};
	struct sha256 digest;
	int64_t size;
	return !reads ||
	       (!digest_path(path, &size, &digest, &ignored) && sha256_equal(&digest, &object->digest));
}

/* Returns whether a composite document is right when it is read from the previous backup, and gets
 * the digest and size of the part at `path`. */
static bool is_document_right(struct objects *objects, struct saved *object, const char *path)
{
	const struct named_object *row = object->row;
	struct content_parts parts = {row->name, row->shared, row->pieces};
	struct content_reader *reader;
	struct sha256 digest;
	struct error ignored = {0};
	uint64_t whole;
	int64_t size = 0;
	if (!objects->before ||
	    content_parts_read(objects->before, &parts, 0, &reader, &whole, &ignored))
		return false;
	int result = read_object(objects, reader, NULL, &size, &digest);
	content_read_end(reader);
	error_clear(objects->error);
	return !result && size == row->size_bytes && sha256_equal(&digest, &row->sha256) &&
	       !digest_path(path, &object->size, &object->digest, &ignored);
}

/* Chooses between the previous backup's copy and the content store. Returns whether the former is
 * to be used. `lost`: the content store does not have the object; set if its object is damaged. */
static bool is_usable(struct objects *objects, struct saved *object, const char *path, bool *lost)
{
	bool known = object->is_known;
	if (*lost ? known && is_same(object, path, true)
	          : is_same(object, path, objects->reads_all || !known))
		return true;
	if (known || !is_document_right(objects, object, path))
		return false;
	*lost = true;
	return true;
}

/* Returns 1 if the object was linked, and 0 if it must be copied. */
static int link_object(struct objects *objects, struct saved *object)
{
	char path[PATH_MAX];
	bool gone, lost;
	if (!objects->previous)
		return 0;
	int result = path_of(objects->previous, object->name, path, objects->error);
	if (result)
		return result;
	if (access(path, F_OK) != 0)
		return 0;
	result = ask_source(objects, object, &gone);
	if (result)
		return result;
	lost = gone;
	if (!is_usable(objects, object, path, &lost)) {
		log_warning("backup_object_damaged", "object", object->name, "path", path);
		return 0;
	}
	result = content_put_file(objects->to, path, object->name, objects->error);
	if (result)
		return result;
	if (lost)
		log_error(gone ? "object_missing" : "object_damaged", "object", object->name, "taken_from",
		          path);
	objects->facts->content_lost += lost;
	return 1;
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

/* Adds the object to the list of those that the backup does not have. */
static int note_missing(struct objects *objects, const char *event, const struct saved *object)
{
	error_clear(objects->error);
	log_error(event, "object", object->name);
	objects->facts->content_missing++;
	int result = OK;
	if (objects->missing.file < 0)
		result = object_list_open(&objects->missing, objects->directory, BACKUP_MISSING_LIST,
		                          objects->error);
	return result ? result
	              : object_list_add(&objects->missing, object->name, &object->row->sha256,
	                                objects->error);
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
		return note_missing(objects, "object_missing", object);
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
		return result ? result : note_missing(objects, "object_damaged", object);
	}
	object->digest = digest;
	object->size = size;
	result = content_write_commit(writer, object->name, objects->error);
	if (!result)
		result = read_back(objects, object);
	return result ? result : 1;
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
	struct saved object = {.row = row,
	                       .name = row->name,
	                       .is_known = !row->shared || !*row->shared,
	                       .digest = row->sha256,
	                       .size = row->size_bytes};
	int linked = link_object(objects, &object);
	int result = linked ? linked : copy_object(objects, &object);
	if (result <= 0)
		return result;
	result = object_list_add(&objects->list, object.name, &object.digest, objects->error);
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
	struct backup_facts *facts = objects->facts;
	int result = store_list_objects(store, OBJECTS_OF_EVENTS, save_object, objects, objects->error);
	if (!result)
		result = store_list_objects(store, OBJECTS_ISSUED, save_object, objects, objects->error);
	if (!result)
		result = object_list_finish(&objects->list, &facts->content_list_sha256, objects->error);
	facts->has_content_list = !result;
	if (result || objects->missing.file < 0)
		return result;
	result = object_list_finish(&objects->missing, &facts->missing_list_sha256, objects->error);
	facts->has_missing_list = !result;
	return result;
}

static int open_places(struct objects *objects)
{
	char url[PATH_MAX];
	snprintf(url, sizeof url, "file:%s/content", objects->directory);
	int result = content_open(url, true, &objects->to, objects->error);
	if (!result)
		result = object_list_open(&objects->list, objects->directory, BACKUP_CONTENT_LIST,
		                          objects->error);
	struct error ignored = {0};
	if (!result && objects->previous &&
	    snprintf(url, sizeof url, "file:%s/content", objects->previous) < (int)sizeof url &&
	    content_open(url, false, &objects->before, &ignored))
		objects->before = NULL;
	return result;
}

int backup_copy_objects(struct store *store, struct content_store *content, const char *directory,
                        const char *previous, bool reads_all, struct backup_facts *facts,
                        struct error *error)
{
	struct error own = {0};
	struct objects objects = {.from = content,
	                          .directory = directory,
	                          .previous = previous,
	                          .reads_all = reads_all,
	                          .facts = facts,
	                          .list.file = -1,
	                          .missing.file = -1,
	                          .chunk = malloc(BACKUP_CHUNK),
	                          .reported_us = clock_monotonic_us(),
	                          .error = error ? error : &own};
	facts->content_objects = facts->content_missing = facts->content_bytes = 0;
	facts->content_linked = facts->content_lost = 0;
	int result = objects.chunk ? open_places(&objects) : ERR_NO_MEMORY;
	if (!result)
		result = save_all(store, &objects);
	object_list_close(&objects.list);
	object_list_close(&objects.missing);
	free(objects.chunk);
	if (objects.before)
		content_close(objects.before);
	if (objects.to)
		content_close(objects.to);
	return result;
}

/* ---- checking ---- */

static int check_object(void *context, const char *name, const struct sha256 *expected,
                        struct error *error)
{
	char path[PATH_MAX];
	int64_t size;
	struct sha256 found;
	int result = path_of(context, name, path, error);
	if (!result && access(path, F_OK) != 0 && errno == ENOENT)
		result = error_cause(error, ERR_CORRUPT, "%s is missing", path);
	if (!result)
		result = digest_path(path, &size, &found, error);
	if (!result && !sha256_equal(&found, expected))
		result = error_cause(error, ERR_CORRUPT, "%s does not match its digest", path);
	return result;
}

static int ignore_object(void *context, const char *name, const struct sha256 *digest,
                         struct error *error)
{
	(void)context, (void)name, (void)digest, (void)error;
	return OK;
}

int backup_check_objects(const char *directory, const struct backup_facts *facts,
                         struct error *error)
{
	char place[PATH_MAX];
	int64_t objects = 0, missing = 0;
	snprintf(place, sizeof place, "%s", directory);
	int result = object_list_read(directory, BACKUP_CONTENT_LIST, &facts->content_list_sha256,
	                              check_object, place, &objects, error);
	if (!result && facts->has_missing_list)
		result = object_list_read(directory, BACKUP_MISSING_LIST, &facts->missing_list_sha256,
		                          ignore_object, NULL, &missing, error);
	if (!result && objects != facts->content_objects)
		result = error_cause(error, ERR_CORRUPT,
		                     "%s/" BACKUP_CONTENT_LIST " lists %lld objects instead of %lld",
		                     directory, (long long)objects, (long long)facts->content_objects);
	return result;
}
