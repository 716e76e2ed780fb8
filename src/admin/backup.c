#include "admin/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/backup_chain.h"
#include "admin/backup_manifest.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "db/db.h"
#include "store/check/inspect.h"
#include "store/nodes/read_only_copy.h"
#include "store/nodes/store_state.h"

#define COPY_CHUNK ((size_t)256 * 1024)
#define STEPS_MAX ((size_t)64 * 1024) /* names of the schema steps */

/* ---- files ---- */

static int prepare_directory(const char *path, struct error *error)
{
	if (*path != '/' || strlen(path) > BACKUP_DIRECTORY_MAX)
		return error_set(error, ERR_USAGE, MSG_ADMIN_DIRECTORY_ABSOLUTE, NULL);
	int result = durable_make_directory(path, error);
	if (result)
		return result;
	DIR *directory = opendir(path);
	if (!directory)
		return file_fail(error, "opening", path);
	bool empty = true;
	for (struct dirent *entry; empty && (entry = readdir(directory));)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	closedir(directory);
	if (!empty)
		return error_set(error, ERR_REFUSED, MSG_ADMIN_DIRECTORY_NOT_EMPTY, path, NULL);
	return OK;
}

int backup_digest_file(const char *path, int64_t *ret_bytes, struct sha256 *ret_digest,
                       struct error *error)
{
	uint64_t bytes = 0;
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return file_fail(error, "opening", path);
	int result = file_digest(file, path, &bytes, ret_digest, error);
	if (!result)
		*ret_bytes = (int64_t)bytes;
	return result;
}

/* ---- objects ---- */

struct object_copy {
	struct content_store *from;
	struct content_store *to;
	struct backup_facts *facts;
	char *chunk;
	struct error *error;
	bool keeps; /* keep existing objects */
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

static int copy_object(void *context, const char *name)
{
	if (strcmp(name, CONTENT_MARKER) == 0)
		return OK; /* the marker belongs to the store that the copy was served from */
	struct object_copy *copy = context;
	struct content_reader *reader;
	struct content_writer *writer;
	uint64_t size;
	int result = content_read_begin(copy->from, name, 0, &reader, &size, copy->error);
	if (result == ERR_NOT_FOUND) {
		log_error("object_missing", "object", name);
		copy->facts->content_missing++;
		return OK;
	}
	if (result)
		return result;
	bool there = false;
	result = copy->keeps ? is_there(copy->to, name, size, &there, copy->error) : OK;
	if (!result && !there)
		result = content_write_begin(copy->to, &writer, copy->error);
	if (result || there) {
		content_read_end(reader);
		copy->facts->content_objects += there;
		copy->facts->content_bytes += there ? (int64_t)size : 0;
		return result;
	}
	int64_t got = 0, bytes = 0;
	while (!result && (got = content_read(reader, copy->chunk, COPY_CHUNK, copy->error)) > 0) {
		result = content_write(writer, copy->chunk, (size_t)got, copy->error);
		bytes += got;
	}
	if (!result && got < 0)
		result = (int)got;
	content_read_end(reader);
	if (result) {
		content_write_abort(writer);
		return result;
	}
	copy->facts->content_objects++;
	copy->facts->content_bytes += bytes;
	return content_write_commit(writer, name, copy->error);
}

static int copy_named_object(void *context, const struct named_object *object)
{
	return copy_object(context, object->name);
}

/* Copies the objects that `store` references, or all objects (NULL). */
static int copy_objects(struct store *store, struct content_store *from, struct content_store *to,
                        struct backup_facts *facts, struct error *error)
{
	struct object_copy copy = {from, to, facts, malloc(COPY_CHUNK), error, .keeps = !store};
	if (!copy.chunk)
		return ERR_NO_MEMORY;
	facts->content_objects = facts->content_missing = facts->content_bytes = 0;
	int result;
	if (store) {
		result = store_list_objects(store, OBJECTS_OF_EVENTS, copy_named_object, &copy, error);
		if (!result)
			result = store_list_objects(store, OBJECTS_ISSUED, copy_named_object, &copy, error);
	} else {
		struct content_range all = {.area = "", .since_us = INT64_MIN, .before_us = INT64_MAX};
		result = content_list(from, &all, copy_object, &copy, error);
	}
	free(copy.chunk);
	return result;
}

/* ---- backup and restore ---- */

static int backup_content(struct store *store, struct content_store *content, const char *directory,
                          struct backup_facts *facts, struct error *error)
{
	char url[PATH_MAX];
	snprintf(url, sizeof url, "file:%s/content", directory);
	struct content_store *copy;
	int result = content_open(url, true, &copy, error);
	if (result)
		return result;
	result = copy_objects(store, content, copy, facts, error);
	content_close(copy);
	return result;
}

void backup_note(struct store *store, const struct backup_facts *facts)
{
	struct error error = {0};
	int result = OK;
	if (facts->content_missing)
		result =
			error_cause(&error, ERR_CORRUPT, "%lld object%s that the store references %s missing",
		                (long long)facts->content_missing, facts->content_missing == 1 ? "" : "s",
		                facts->content_missing == 1 ? "is" : "are");
	if (!result)
		result = store_note_backup(store, facts->created_at_us, &error);
	if (result)
		log_warning("backup_not_recorded", "cause", error_reason(&error, result));
}

int backup_make(struct store *store, struct content_store *content, const char *directory,
                int64_t now_us, struct backup_facts *ret, struct error *error)
{
	int result = prepare_directory(directory, error);
	if (result)
		return result;
	struct backup_facts facts = {.created_at_us = now_us, .content_objects = -1};
	char path[PATH_MAX];
	snprintf(facts.store_file, sizeof facts.store_file, "%s", store_backup_name(store));
	snprintf(path, sizeof path, "%s/%s", directory, facts.store_file);
	result = store_get_installation(store, facts.installation, error)
	             ?: store_backup(store, path, error);
	if (!result && chmod(path, 0600) != 0)
		result = file_fail(error, "restricting", path);
	if (!result)
		result = durable_sync(path, error);
	if (!result)
		result = backup_digest_file(path, &facts.store_bytes, &facts.store_sha256, error);
	/* Rows are only added, so the present store references all objects that its copy references. */
	if (!result && content)
		result = backup_content(store, content, directory, &facts, error);
	if (!result)
		result = backup_write_manifest(directory, &facts, error);
	if (!result)
		backup_note(store, &facts);
	if (!result)
		*ret = facts;
	return result;
}

int backup_check_store_file(const char *path, const struct backup_facts *facts, struct error *error)
{
	int64_t bytes;
	struct sha256 digest;
	int result = backup_digest_file(path, &bytes, &digest, error);
	if (!result && (bytes != facts->store_bytes || !sha256_equal(&digest, &facts->store_sha256)))
		result = error_cause(error, ERR_CORRUPT, "%s does not match its manifest", path);
	return result;
}

static int restore_content(const char *directory, const struct content_options *content,
                           const struct backup_facts *facts, struct error *error)
{
	char url[PATH_MAX];
	snprintf(url, sizeof url, "file:%s/content", directory);
	struct content_store *from = NULL, *to = NULL;
	struct backup_facts counted = {0};
	int result = content_open(url, false, &from, error)
		?: content_open_with(content, &to, error)
		?: content_check_claim(to, facts->installation, error)
		?: copy_objects(NULL, from, to, &counted, error);
	if (!result && counted.content_objects < facts->content_objects)
		result = error_cause(error, ERR_CORRUPT,
		                     "the backup contains %lld objects instead of the %lld in its manifest",
		                     (long long)counted.content_objects, (long long)facts->content_objects);
	if (to)
		content_close(to);
	if (from)
		content_close(from);
	return result;
}

/* Checks everything that can be wrong with the backup before anything is changed. */
static int check_backup(const char *path, const struct db_options *store,
                        const struct backup_facts *facts, const struct backup_chain *chain,
                        struct error *error)
{
	int result = db_check_vacant(store, error);
	if (result)
		return result;
	char shown[256];
	const char *wanted = db_backup_name_of(store->url);
	const char *has = chain->increments ? strrchr(chain->database, '/') + 1 : facts->store_file;
	db_shown_url(store->url, shown, sizeof shown);
	if (strcmp(has, wanted) != 0)
		return error_set(error, ERR_REFUSED, MSG_ADMIN_BACKUP_ENGINE, has, shown, wanted, NULL);
	result = backup_check_store_file(path, facts, error);
	if (!result && chain->increments)
		result = db_check_page_chain(store->url, &chain->pages, error);
	return result;
}

/* The mark is written together with the database, so that no later failure leaves a restored store
 * that sends. */
static int restore_store(const struct db_options *options, const char *path,
                         const struct backup_chain *chain, bool live,
                         const struct backup_facts *facts, struct error *error)
{
	char created[TIME_TEXT_SIZE], reason[COPY_REASON_MAX], text[COPY_MARK_SIZE];
	time_format(facts->created_at_us, created);
	snprintf(reason, sizeof reason, "restored from the backup of %s", created);
	struct db_mark mark = copy_mark(live ? NULL : reason, clock_now_us(), text);
	if (chain->increments)
		return db_restore_page_chain(options, &chain->pages, &mark, error);
	return db_restore(options, path, &mark, error);
}

int backup_restore(const char *directory, const struct db_options *store,
                   const struct content_options *content, bool live, struct act *moved,
                   struct backup_facts *ret, struct error *error)
{
	BUF_AUTO struct buf steps;
	buf_init(&steps, STEPS_MAX);
	struct backup_facts facts = {0};
	char path[PATH_MAX];
	BACKUP_CHAIN_AUTO struct backup_chain chain = {0};
	int result = backup_open(directory, NULL, &facts, path, &chain, error);
	if (!result)
		result = check_backup(path, store, &facts, &chain, error);
	if (!result && facts.content_objects >= 0)
		result = restore_content(directory, content, &facts, error);
	if (!result)
		result = restore_store(store, path, &chain, live, &facts, error);
	if (!result)
		result = store_migrate(store, false, moved, &steps, NULL, error);
	if (!result)
		*ret = facts;
	return result;
}
