#include "admin/backup_chain.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/backup_manifest.h"

void backup_chain_free(struct backup_chain *chain)
{
	for (size_t i = 0; chain->increments && i < BACKUP_CHAIN_MAX; i++)
		free(chain->increments[i]);
	free(chain->increments);
	free(chain->database);
	free(chain->list);
	*chain = (struct backup_chain){0};
}

static char *join(const char *directory, const char *name)
{
	char *path = NULL;
	return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/* Reads the manifest of the base and checks that it precedes `facts`. */
static int read_base(const char *directory, const struct backup_facts *facts,
                     struct backup_facts *ret, struct error *error)
{
	struct error why = {0};
	*ret = (struct backup_facts){0};
	int result = backup_read_manifest(directory, ret, &why);
	if (result)
		return error_cause(error, ERR_CORRUPT, "the base %s of an incremental backup: %s",
		                   directory, error_reason(&why, result));
	if (!ret->pages.page_size || ret->pages.page_size != facts->pages.page_size ||
	    strcmp(ret->installation, facts->installation) != 0)
		return error_cause(error, ERR_CORRUPT, "%s is not the base of that backup", directory);
	return OK;
}

static void turn(char **items, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		char *kept = items[i];
		items[i] = items[count - 1 - i];
		items[count - 1 - i] = kept;
	}
}

/* Follows the bases from the newest to the complete copy. */
static int follow(const char *directory, const char *siblings, const struct backup_facts *facts,
                  struct backup_chain *chain, struct error *error)
{
	char at[PATH_MAX];
	struct backup_facts here = *facts, base;
	snprintf(at, sizeof at, "%s", directory);
	size_t count = 0;
	for (; *here.base; here = base, count++) {
		if (count == BACKUP_CHAIN_MAX)
			return error_cause(error, ERR_CORRUPT, "%s has too many bases", directory);
		chain->increments[count] = join(at, here.store_file);
		if (!chain->increments[count])
			return ERR_NO_MEMORY;
		if (snprintf(at, sizeof at, "%s/%s", siblings, here.base) >= (int)sizeof at)
			return error_cause(error, ERR_CORRUPT, "the path of %s is too long", here.base);
		int result = read_base(at, &here, &base, error);
		if (result)
			return result;
	}
	turn(chain->increments, count);
	chain->pages.count = count;
	chain->pages.increments = (const char *const *)chain->increments;
	chain->database = join(at, here.store_file);
	return chain->database ? OK : ERR_NO_MEMORY;
}

int backup_chain_find(const char *directory, const char *siblings, const struct backup_facts *facts,
                      struct backup_chain *ret, struct error *error)
{
	char above[PATH_MAX];
	*ret = (struct backup_chain){0};
	snprintf(above, sizeof above, "%s", siblings ? siblings : directory);
	if (!siblings) {
		char *slash = strrchr(above, '/');
		snprintf(slash ? slash : above, sizeof above - (size_t)(slash ? slash - above : 0), "%s",
		         slash ? "" : ".");
	}
	if (*facts->base) {
		ret->increments = calloc(BACKUP_CHAIN_MAX, sizeof *ret->increments);
		if (!ret->increments)
			return ERR_NO_MEMORY;
	}
	int result = OK;
	if (ret->increments)
		result = follow(directory, above, facts, ret, error);
	else
		ret->database = join(directory, facts->store_file);
	ret->list = join(directory, BACKUP_PAGES_FILE);
	if (!result && (!ret->list || !ret->database))
		result = ERR_NO_MEMORY;
	ret->pages.database = ret->database;
	ret->pages.list_path = ret->list;
	ret->pages.pages = facts->pages;
	if (result)
		backup_chain_free(ret);
	return result;
}

int backup_open(const char *directory, const char *siblings, struct backup_facts *ret_facts,
                char ret_path[PATH_MAX], struct backup_chain *ret_chain, struct error *error)
{
	if (strlen(directory) > BACKUP_DIRECTORY_MAX)
		return error_set(error, ERR_USAGE, MSG_ADMIN_DIRECTORY_ABSOLUTE, NULL);
	int result = backup_read_manifest(directory, ret_facts, error);
	if (!result)
		result = backup_chain_find(directory, siblings, ret_facts, ret_chain, error);
	if (!result)
		snprintf(ret_path, PATH_MAX, "%s/%s", directory, ret_facts->store_file);
	return result;
}
