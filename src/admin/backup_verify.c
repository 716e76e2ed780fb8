/* Verification of a backup: reads it back. */
#include <limits.h>

#include "admin/backup_chain.h"
#include "admin/backup_manifest.h"
#include "admin/backup_objects.h"
#include "admin/backup_series.h"

int backup_verify(const char *directory, const char *siblings, const char *store_url,
                  bool with_objects, struct backup_facts *ret, struct error *error)
{
	char path[PATH_MAX];
	BACKUP_CHAIN_AUTO struct backup_chain chain = {0};
	struct backup_facts facts = {0};
	int result = backup_open(directory, siblings, &facts, path, &chain, error);
	if (!result)
		result = backup_check_store_file(path, &facts, error);
	if (!result && facts.pages.page_size)
		result = db_check_page_chain(store_url, &chain.pages, error);
	if (!result && with_objects && facts.has_content_list)
		result = backup_check_objects(directory, &facts, error);
	if (!result)
		*ret = facts;
	return result;
}
