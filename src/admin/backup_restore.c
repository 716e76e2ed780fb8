/* Restore of a backup (admin/backup.h). */
#include <limits.h>
#include <stdio.h>

#include "admin/backup.h"
#include "admin/backup_chain.h"
#include "admin/backup_manifest.h"
#include "admin/backup_object_list.h"
#include "admin/backup_objects.h"
#include "base/clock.h"
#include "content/content.h"
#include "db/db.h"
#include "store/nodes/read_only_copy.h"

#define STEPS_MAX ((size_t)64 * 1024) /* names of the schema steps */

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

/* Creates the directory into which the operator copies the objects of a backup without content. */
static int make_content_directory(const struct content_options *content, struct error *error)
{
	struct content_store *made;
	if (content_url_is_remote(content->url))
		return OK;
	int result = content_open_with(content, &made, error);
	if (!result)
		content_close(made);
	return result;
}

int backup_restore(const char *directory, const struct db_options *store,
                   const struct content_options *content, bool live, struct act *moved,
                   struct skipped_objects *skipped, struct backup_facts *ret, struct error *error)
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
		result = backup_restore_objects(directory, content, &facts, skipped, error);
	else if (!result)
		result = make_content_directory(content, error);
	if (!result)
		result = restore_store(store, path, &chain, live, &facts, error);
	if (!result)
		result = store_migrate(store, false, moved, &steps, NULL, error);
	if (!result)
		*ret = facts;
	return result;
}

/* ---- missing objects ---- */

struct missing_search {
	const struct slice *names;
	size_t count;
	bool *known;
};

static int find_missing(void *context, const char *name, const struct sha256 *digest,
                        struct error *error)
{
	struct missing_search *search = context;
	(void)digest, (void)error;
	for (size_t i = 0; i < search->count; i++)
		search->known[i] |= slice_is(search->names[i], name);
	return OK;
}

int backup_find_missing(const char *directory, const struct backup_facts *facts,
                        const struct slice *names, size_t count, bool *known, struct error *error)
{
	int64_t listed = 0;
	struct missing_search search = {names, count, known};
	memset(known, 0, count * sizeof *known);
	if (!facts->has_missing_list)
		return OK;
	return object_list_read(directory, BACKUP_MISSING_LIST, &facts->missing_list_sha256,
	                        find_missing, &search, &listed, error);
}
