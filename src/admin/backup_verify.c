/* Verification of a backup: reads it back. */
#include <limits.h>
#include <stdio.h>

#include "admin/backup_chain.h"
#include "admin/backup_manifest.h"
#include "admin/backup_objects.h"
#include "admin/backup_series.h"

int backup_verify(const char *directory, const char *siblings, const char *store_url,
                  bool with_objects, struct backup_facts *ret, struct error *error)
{
	char path[PATH_MAX];
	int64_t objects = 0;
	BACKUP_CHAIN_AUTO struct backup_chain chain = {0};
	if (strlen(directory) > BACKUP_DIRECTORY_MAX)
		return error_set(error, ERR_USAGE, MSG_ADMIN_DIRECTORY_ABSOLUTE, NULL);
	struct backup_facts facts = {0};
	int result = backup_read_manifest(directory, &facts, error);
	if (result)
		return result;
	snprintf(path, sizeof path, "%s/%s", directory, facts.store_file);
	result = backup_check_store_file(path, &facts, error);
	if (!result)
		result = backup_chain_find(directory, siblings, &facts, &chain, error);
	if (!result && facts.pages.page_size)
		result = db_check_page_chain(store_url, &chain.pages, error);
	if (!result && with_objects && facts.has_content_list)
		result = backup_check_objects(directory, &facts, &objects, error);
	if (!result)
		*ret = facts;
	return result;
}
