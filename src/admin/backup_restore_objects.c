/* Restore of the objects of a backup. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/backup_object_list.h"
#include "admin/backup_objects.h"
#include "base/log.h"

struct restoring {
	struct content_store *from, *to;
	struct skipped_objects *skipped;
	bool skips; /* the operator accepts that objects are skipped */
	char *chunk;
	int64_t copied;
};

/* Objects are immutable, so one of the same size is the same object, and preferable to a copy from
 * a backup. */
static int is_there(struct content_store *content, const char *name, uint64_t size, bool *ret_there,
                    struct error *error)
{
	struct content_reader *reader = NULL;
	uint64_t size_there = 0;
	int result = content_read_begin(content, name, 0, &reader, &size_there, error);
	*ret_there = !result && size_there == size;
	if (!result)
		content_read_end(reader);
	return result == ERR_NOT_FOUND ? OK : result;
}

/* Returns whether the place already has the object with this digest. */
static int has_right(const struct restoring *restoring, const char *name,
                     const struct sha256 *expected, bool *ret_right, struct error *error)
{
	struct content_reader *reader;
	struct sha256 found;
	uint64_t whole;
	int64_t size;
	int result = content_read_begin(restoring->to, name, 0, &reader, &whole, error);
	*ret_right = false;
	if (result == ERR_NOT_FOUND || result == ERR_INTERNAL) /* not even a name */
		return OK;
	if (result)
		return result;
	result = backup_read_object(reader, NULL, restoring->chunk, &size, &found, error);
	content_read_end(reader);
	*ret_right = !result && sha256_equal(&found, expected);
	return result;
}

static void note_skipped(struct restoring *restoring, const char *event, const char *name)
{
	struct skipped_objects *skipped = restoring->skipped;
	log_error(event, "object", name);
	if (skipped->count < SKIPPED_NAMES_MAX)
		snprintf(skipped->names[skipped->count], CONTENT_NAME_MAX, "%s", name);
	skipped->count++;
}

/* Leaves out an object that is damaged or missing in the backup, unless the place has it. */
static int skip_object(struct restoring *restoring, const char *event, const char *name,
                       const struct sha256 *expected, struct error *error)
{
	bool right;
	error_clear(error);
	int result = has_right(restoring, name, expected, &right, error);
	if (!result && !right)
		note_skipped(restoring, event, name);
	return result;
}

/* Copies an object. *ret_right is false if it does not have the digest; then nothing is stored. */
static int copy_checked(struct restoring *restoring, struct content_reader *reader,
                        const char *name, const struct sha256 *expected, bool *ret_right,
                        struct error *error)
{
	struct content_writer *writer;
	struct sha256 found;
	int64_t size;
	int result = content_write_begin(restoring->to, &writer, error);
	if (result)
		return result;
	result = backup_read_object(reader, writer, restoring->chunk, &size, &found, error);
	*ret_right = !result && (!expected || sha256_equal(&found, expected));
	if (*ret_right)
		return content_write_commit(writer, name, error);
	content_write_abort(writer);
	return result;
}

static int restore_object(void *context, const char *name, const struct sha256 *expected,
                          struct error *error)
{
	struct restoring *restoring = context;
	struct content_reader *reader;
	uint64_t size;
	bool there = false, right = true;
	int result = content_read_begin(restoring->from, name, 0, &reader, &size, error);
	if (expected && (result == ERR_NOT_FOUND || (result == ERR_INTERNAL && restoring->skips)))
		return skip_object(restoring, "backup_object_missing", name, expected, error);
	if (result)
		return result;
	result = is_there(restoring->to, name, size, &there, error);
	if (!result && !there)
		result = copy_checked(restoring, reader, name, expected, &right, error);
	content_read_end(reader);
	if (!result && !right)
		return skip_object(restoring, "backup_object_damaged", name, expected, error);
	restoring->copied += !result;
	return result;
}

struct unlisted {
	struct restoring *restoring;
	struct error *error;
};

static int restore_unlisted(void *context, const char *name)
{
	struct unlisted *unlisted = context;
	if (strcmp(name, CONTENT_MARKER) == 0)
		return OK; /* the marker belongs to the store that the copy was served from */
	return restore_object(unlisted->restoring, name, NULL, unlisted->error);
}

/* Restores the objects of the list. Of a damaged list, the lines whose objects have their digests
 * are right. */
static int restore_listed(const char *directory, const struct backup_facts *facts,
                          struct restoring *restoring, struct error *error)
{
	int64_t listed = 0;
	const struct sha256 *digest = &facts->content_list_sha256;
	int result = object_list_check(directory, BACKUP_CONTENT_LIST, digest, error);
	if (result == ERR_CORRUPT && restoring->skips) {
		error_clear(error);
		note_skipped(restoring, "backup_list_damaged", BACKUP_CONTENT_LIST);
		digest = NULL;
		result = OK;
	}
	if (!result)
		result = object_list_read(directory, BACKUP_CONTENT_LIST, digest, restore_object, restoring,
		                          &listed, error);
	if (!result && !digest && listed < facts->content_objects)
		restoring->skipped->count += facts->content_objects - listed;
	else if (!result && listed != facts->content_objects)
		result = error_cause(error, ERR_CORRUPT,
		                     "%s/" BACKUP_CONTENT_LIST " lists %lld objects instead of %lld",
		                     directory, (long long)listed, (long long)facts->content_objects);
	return result;
}

static int restore_all(const char *directory, const struct backup_facts *facts,
                       struct restoring *restoring, struct error *error)
{
	struct unlisted unlisted = {restoring, error};
	struct content_range all = {.area = "", .since_us = INT64_MIN, .before_us = INT64_MAX};
	if (facts->has_content_list)
		return restore_listed(directory, facts, restoring, error);
	int result = content_list(restoring->from, &all, restore_unlisted, &unlisted, error);
	if (!result && restoring->copied < facts->content_objects)
		result = error_cause(error, ERR_CORRUPT,
		                     "the backup contains %lld objects instead of the %lld in its manifest",
		                     (long long)restoring->copied, (long long)facts->content_objects);
	return result;
}

static int open_and_restore(const char *directory, const struct content_options *content,
                            const struct backup_facts *facts, struct restoring *restoring,
                            struct error *error)
{
	char url[PATH_MAX];
	snprintf(url, sizeof url, "file:%s/content", directory);
	int result = content_open(url, false, &restoring->from, error)
		?: content_open_with(content, &restoring->to, error)
		?: content_check_claim(restoring->to, facts->installation, error)
		?: restore_all(directory, facts, restoring, error);
	if (restoring->to)
		content_close(restoring->to);
	if (restoring->from)
		content_close(restoring->from);
	return result;
}

int backup_restore_objects(const char *directory, const struct content_options *content,
                           const struct backup_facts *facts, struct skipped_objects *skipped,
                           struct error *error)
{
	struct skipped_objects *found = skipped ? skipped : calloc(1, sizeof *found);
	struct restoring restoring = {
		.skipped = found, .skips = skipped != NULL, .chunk = malloc(BACKUP_CHUNK)};
	int result = found && restoring.chunk ? OK : ERR_NO_MEMORY;
	if (!result)
		result = open_and_restore(directory, content, facts, &restoring, error);
	if (!result && !skipped && found->count)
		result = error_cause(error, ERR_CORRUPT,
		                     "%lld of the backup's objects are damaged or missing, the first is %s;"
		                     " --skip-damaged restores the others",
		                     (long long)found->count, found->names[0]);
	free(restoring.chunk);
	if (!skipped)
		free(found);
	return result;
}
