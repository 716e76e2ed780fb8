#include "admin/backup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/backup_manifest.h"
#include "admin/backup_objects.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/log.h"
#include "db/db.h"
#include "store/nodes/store_state.h"

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

/* ---- backup ---- */

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
		result = backup_copy_objects(store, content, directory, NULL, true, &facts, error);
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
