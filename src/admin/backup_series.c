#include "admin/backup_series.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin/backup_chain.h"
#include "admin/backup_manifest.h"
#include "admin/backup_objects.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/log.h"
#include "store/nodes/store_state.h"

#define PARTIAL ".partial"
#define REMOVING ".removing"
#define FULL "-full"
#define INCREMENTAL "-incremental"
#define LOCK_FILE ".lock"
#define NUMBER_MAX INT64_C(999999999999)
#define PATH_SIZE (PATH_MAX + BACKUP_NAME_SIZE)
#define DIRECTORY_MAX (BACKUP_DIRECTORY_MAX - BACKUP_NAME_SIZE - 16)

/* ---- names ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);
	return size > end_size && strcmp(text + size - end_size, end) == 0;
}

/* Returns the number of a complete backup's name; 0: it is another name. */
static int64_t number_of(const char *name)
{
	char *end;
	errno = 0;
	int64_t number = strtoll(name, &end, 10);
	bool valid = name[0] >= '0' && name[0] <= '9' && *end == '-' && !errno && number > 0 &&
	             number <= NUMBER_MAX && strlen(name) < BACKUP_NAME_SIZE &&
	             (ends_with(name, FULL) || ends_with(name, INCREMENTAL));
	return valid ? number : 0;
}

static void make_name(int64_t number, int64_t now_us, bool incremental, char name[BACKUP_NAME_SIZE])
{
	char text[32];
	struct tm parts;
	time_t seconds = (time_t)(now_us / US_PER_SECOND);
	gmtime_r(&seconds, &parts);
	strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
	snprintf(name, BACKUP_NAME_SIZE, "%06" PRId64 "-%s%s", number, text,
	         incremental ? INCREMENTAL : FULL);
}

/* ---- listing ---- */

void backup_series_free(struct series_list *list)
{
	free(list->items);
	*list = (struct series_list){0};
}

static int compare_entries(const void *a, const void *b)
{
	const struct series_entry *one = a, *other = b;
	return one->number < other->number ? -1 : one->number > other->number;
}

/* Returns whether the manifest is missing or invalid. A manifest that cannot be read now may name a
 * base, which the rotation must not remove. */
static bool is_useless(const char *directory, int result)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "%s/backup.json", directory);
	return result == ERR_CORRUPT || result == ERR_VALIDATION ||
	       (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR));
}

static int add_entry(struct series_list *list, const char *directory, const char *name,
                     struct error *error)
{
	char path[PATH_MAX];
	struct series_entry entry = {.number = number_of(name)};
	snprintf(path, sizeof path, "%s/%s", directory, name);
	snprintf(entry.name, sizeof entry.name, "%s", name);
	int result = backup_read_manifest(path, &entry.facts, error);
	if (result && is_useless(path, result)) {
		if (entry.number >= number_of(list->unreadable))
			snprintf(list->unreadable, sizeof list->unreadable, "%s", name);
		error_clear(error);
		return OK;
	}
	if (result)
		return result;
	struct series_entry *items = realloc(list->items, (list->count + 1) * sizeof *items);
	if (!items)
		return ERR_NO_MEMORY;
	items[list->count++] = entry;
	list->items = items;
	return OK;
}

int backup_series_list(const char *directory, struct series_list *ret, struct error *error)
{
	struct series_list list = {0};
	if (*directory != '/' || strlen(directory) > DIRECTORY_MAX)
		return error_set(error, ERR_USAGE, MSG_ADMIN_DIRECTORY_ABSOLUTE, NULL);
	DIR *open = opendir(directory);
	if (!open)
		return file_fail(error, "opening", directory);
	int result = OK;
	while (!result) {
		errno = 0;
		struct dirent *entry = readdir(open);
		if (!entry) {
			result = errno ? file_fail(error, "reading", directory) : OK;
			break;
		}
		if (number_of(entry->d_name))
			result = add_entry(&list, directory, entry->d_name, error);
	}
	closedir(open);
	if (result) {
		backup_series_free(&list);
		return result;
	}
	if (list.count)
		qsort(list.items, list.count, sizeof *list.items, compare_entries);
	*ret = list;
	return OK;
}

int backup_series_newest(const char *directory, char ret_path[PATH_MAX], struct error *error)
{
	struct series_list list = {0};
	int result = backup_series_list(directory, &list, error);
	if (result)
		return result;
	const struct series_entry *newest = list.count ? &list.items[list.count - 1] : NULL;
	if (number_of(list.unreadable) > (newest ? newest->number : 0))
		result =
			error_cause(error, ERR_CORRUPT,
		                "%s/%s has no valid manifest; specify the directory of an older backup",
		                directory, list.unreadable);
	else if (!newest)
		result = error_cause(error, ERR_NOT_FOUND, "%s has no complete backup", directory);
	else
		snprintf(ret_path, PATH_MAX, "%s/%s", directory, newest->name);
	backup_series_free(&list);
	return result;
}

/* ---- removal ---- */

/* Removes what interrupted backups and rotations left. */
static int remove_leftovers(const char *directory, struct error *error)
{
	DIR *open = opendir(directory);
	if (!open)
		return file_fail(error, "opening", directory);
	int result = OK;
	for (struct dirent *entry; !result && (entry = readdir(open));) {
		char path[PATH_MAX];
		if (!ends_with(entry->d_name, PARTIAL) && !ends_with(entry->d_name, REMOVING))
			continue;
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) < (int)sizeof path)
			result = file_remove_tree(path, error);
	}
	closedir(open);
	return result;
}

/* Takes the backup's name away durably before anything of it is removed. */
static int remove_backup(const char *directory, const char *name, struct error *error)
{
	char path[PATH_MAX], removing[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	snprintf(removing, sizeof removing, "%s/%s" REMOVING, directory, name);
	if (rename(path, removing) != 0)
		return file_fail(error, "renaming", path);
	int result = durable_sync(directory, error);
	return result ? result : file_remove_tree(removing, error);
}

static size_t find_entry(const struct series_list *list, const char *name)
{
	size_t i = 0;
	while (i < list->count && strcmp(list->items[i].name, name) != 0)
		i++;
	return i;
}

static bool is_whole(const struct backup_facts *facts)
{
	return facts->content_objects >= 0 && facts->content_missing == 0;
}

/* Marks the backups to keep: the newest, the newest that has all objects, and their bases. */
static void mark_kept(const struct series_list *list, int64_t keep, bool *kept)
{
	bool has_whole = false;
	for (size_t i = list->count; i-- > 0;) {
		bool newest_whole = !has_whole && is_whole(&list->items[i].facts);
		kept[i] |= newest_whole || (int64_t)(list->count - i) <= keep;
		has_whole |= newest_whole;
		size_t base =
			*list->items[i].facts.base ? find_entry(list, list->items[i].facts.base) : list->count;
		if (kept[i] && base < list->count)
			kept[base] = true;
	}
}

/* Removes the others, the newest first, so that no increment is ever without its base. */
static int rotate(const struct backup_series *series, int64_t *ret_removed, struct error *error)
{
	struct series_list list = {0};
	int result = backup_series_list(series->directory, &list, error);
	bool *kept = calloc(list.count + 1, sizeof *kept);
	if (!result && !kept)
		result = ERR_NO_MEMORY;
	if (!result)
		mark_kept(&list, series->keep, kept);
	for (size_t i = list.count; !result && i-- > 0;) {
		if (kept[i])
			continue;
		result = remove_backup(series->directory, list.items[i].name, error);
		*ret_removed += !result;
	}
	free(kept);
	backup_series_free(&list);
	return result;
}

/* ---- the next backup ---- */

struct making {
	struct store *store;
	struct content_store *content;
	const struct backup_series *series;
	const struct series_entry *previous; /* NULL: the series has no usable backup */
	const struct series_entry *linked;   /* whose objects are shared; NULL: none */
	int64_t number, now_us;
	bool incremental;
	char name[BACKUP_NAME_SIZE], partial[PATH_MAX];
	struct error *error;
};

/* Returns the number of backups in the chain of an entry. */
static int64_t chain_length(const struct series_list *list, const struct series_entry *entry)
{
	int64_t length = 1;
	const char *base = entry->facts.base;
	for (; *base && length < BACKUP_CHAIN_MAX; length++) {
		size_t found = find_entry(list, base);
		if (found == list->count)
			return INT64_MAX; /* a base is missing */
		base = list->items[found].facts.base;
	}
	return length;
}

/* Rotation would remove the other installation's backups, and `--latest` would restore them. */
static int refuse_other_installation(const struct making *making, const struct series_list *list)
{
	char own[INSTALLATION_SIZE];
	int result = store_get_installation(making->store, own, making->error);
	for (size_t i = 0; !result && i < list->count; i++) {
		const char *owner = list->items[i].facts.installation;
		if (*owner && strcmp(owner, own) != 0)
			result = error_set(making->error, ERR_REFUSED, MSG_ADMIN_BACKUP_OTHER,
			                   making->series->directory, list->items[i].name, NULL);
	}
	return result;
}

/* Objects are shared with the newest backup that lists them, because a later one may exclude the
 * content. */
static void choose_kind(struct making *making, const struct series_list *list)
{
	for (size_t i = list->count; !making->linked && i-- > 0;)
		if (list->items[i].facts.has_content_list)
			making->linked = &list->items[i];
	if (!list->count)
		return;
	making->previous = &list->items[list->count - 1];
	const struct backup_facts *last = &making->previous->facts;
	making->incremental = store_has_page_backups(making->store) && last->pages.page_size &&
	                      chain_length(list, making->previous) < making->series->full_every;
}

static int copy_pages(const struct making *making, struct backup_facts *facts)
{
	char path[PATH_SIZE], list[PATH_SIZE], before[PATH_MAX] = "";
	if (making->incremental)
		snprintf(before, sizeof before, "%s/%s/" BACKUP_PAGES_FILE, making->series->directory,
		         making->previous->name);
	snprintf(path, sizeof path, "%s/%s", making->partial, facts->store_file);
	snprintf(list, sizeof list, "%s/" BACKUP_PAGES_FILE, making->partial);
	struct db_page_target target = {.path = path, .list_path = list};
	if (making->incremental) {
		target.before = before;
		target.base = making->previous->facts.pages;
		snprintf(facts->base, sizeof facts->base, "%s", making->previous->name);
	}
	return store_backup_pages(making->store, &target, &facts->pages, making->error);
}

static int copy_store(const struct making *making, struct backup_facts *facts)
{
	char path[PATH_SIZE];
	int result = store_get_installation(making->store, facts->installation, making->error);
	if (result)
		return result;
	snprintf(facts->store_file, sizeof facts->store_file, "%s",
	         making->incremental ? BACKUP_INCREMENT_FILE : store_backup_name(making->store));
	snprintf(path, sizeof path, "%s/%s", making->partial, facts->store_file);
	if (store_has_page_backups(making->store))
		result = copy_pages(making, facts);
	else
		result = store_backup(making->store, path, making->error);
	if (!result && chmod(path, 0600) != 0)
		result = file_fail(making->error, "restricting", path);
	if (!result)
		result = durable_sync(path, making->error);
	return result
	           ? result
	           : backup_digest_file(path, &facts->store_bytes, &facts->store_sha256, making->error);
}

/* Makes and verifies the backup under its partial name. */
static int make_partial(struct making *making, struct backup_facts *ret)
{
	char previous[PATH_MAX] = "";
	struct backup_facts facts = {.created_at_us = making->now_us, .content_objects = -1};
	make_name(making->number, making->now_us, making->incremental, making->name);
	snprintf(making->partial, sizeof making->partial, "%s/%s" PARTIAL, making->series->directory,
	         making->name);
	int result = file_remove_tree(making->partial, making->error);
	if (!result)
		result = durable_make_directory(making->partial, making->error);
	if (!result)
		result = copy_store(making, &facts);
	if (making->linked)
		snprintf(previous, sizeof previous, "%s/%s", making->series->directory,
		         making->linked->name);
	/* Rows are only added, so the present store references all objects that its copy references. */
	if (!result && making->content)
		result = backup_copy_objects(making->store, making->content, making->partial,
		                             making->linked ? previous : NULL, !making->incremental, &facts,
		                             making->error);
	if (!result)
		result = backup_write_manifest(making->partial, &facts, making->error);
	if (!result)
		result = backup_verify(making->partial, making->series->directory,
		                       making->series->store_url, !making->incremental, ret, making->error);
	return result;
}

/* Damaged, missing and unreadable parts of earlier backups, and another page size, do not prevent a
 * complete backup. */
static int make_or_make_complete(struct making *making, struct backup_facts *ret)
{
	int result = make_partial(making, ret);
	bool again = making->incremental && result && result != ERR_NO_SPACE && result != ERR_NO_MEMORY;
	if (again) {
		log_warning("backup_chain_damaged", "directory", making->series->directory, "cause",
		            error_reason(making->error, result));
		struct error ignored = {0};
		(void)!file_remove_tree(making->partial, &ignored);
		error_clear(making->error);
		making->incremental = false;
		result = make_partial(making, ret);
	}
	if (result) {
		struct error ignored = {0};
		(void)!file_remove_tree(making->partial, &ignored);
	}
	return result;
}

static int publish(const struct making *making, struct series_backup *ret)
{
	snprintf(ret->path, sizeof ret->path, "%s/%s", making->series->directory, making->name);
	if (rename(making->partial, ret->path) != 0)
		return file_fail(making->error, "renaming", making->partial);
	return durable_sync(making->series->directory, making->error);
}

static int add(struct making *making, struct series_backup *ret)
{
	struct series_list list = {0};
	int result = remove_leftovers(making->series->directory, making->error);
	if (!result)
		result = backup_series_list(making->series->directory, &list, making->error);
	if (!result)
		result = refuse_other_installation(making, &list);
	if (result) {
		backup_series_free(&list);
		return result;
	}
	making->number = list.count ? list.items[list.count - 1].number + 1 : 1;
	if (number_of(list.unreadable) >= making->number)
		making->number = number_of(list.unreadable) + 1;
	choose_kind(making, &list);
	result = make_or_make_complete(making, &ret->facts);
	if (!result)
		result = publish(making, ret);
	ret->incremental = making->incremental;
	backup_series_free(&list);
	return result;
}

int backup_series_add(struct store *store, struct content_store *content,
                      const struct backup_series *series, int64_t now_us, struct series_backup *ret,
                      struct error *error)
{
	char lock_path[PATH_MAX];
	struct error own = {0};
	struct making making = {.store = store,
	                        .content = content,
	                        .series = series,
	                        .now_us = now_us,
	                        .error = error ? error : &own};
	if (!*series->directory)
		return error_set(error, ERR_USAGE, MSG_ADMIN_NO_BACKUP_DIRECTORY, NULL);
	if (*series->directory != '/' || strlen(series->directory) > DIRECTORY_MAX)
		return error_set(error, ERR_USAGE, MSG_ADMIN_DIRECTORY_ABSOLUTE, NULL);
	*ret = (struct series_backup){0};
	DESCRIPTOR_AUTO int lock = -1;
	snprintf(lock_path, sizeof lock_path, "%s/" LOCK_FILE, series->directory);
	int result = durable_make_directory(series->directory, making.error);
	if (!result)
		result = file_lock(lock_path, &lock, making.error);
	if (!result)
		result = add(&making, ret);
	if (result)
		return result;
	backup_note(store, &ret->facts);
	struct error why = {0};
	int rotated = rotate(series, &ret->removed, &why);
	ret->rotation_failed = rotated != OK;
	if (rotated)
		log_error("backup_rotation_failed", "directory", series->directory, "cause",
		          error_reason(&why, rotated));
	return OK;
}
