#include "witness/witness_refusals.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/json.h"

#define FOLDER "refused"
#define NAME_HASH_SIZE 8 /* bytes of a hash in a name */
#define DOCUMENT_MAX ((size_t)2 << 20)

const char *witness_refusal_text(enum witness_refusal_kind kind)
{
	return kind == WITNESS_FORK ? "fork" : "unproven";
}

int witness_refusals_prepare(const char *directory, struct error *error)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/" FOLDER, directory);
	return durable_make_directory(path, error);
}

/* Writes what the names of a log's files of this kind begin with. */
static void write_prefix(const struct witness_refusal *refusal, char prefix[40])
{
	const char *origin = refusal->checkpoint->origin;
	const struct sha256 hash = sha256_of(origin, strlen(origin));
	char text[2 * NAME_HASH_SIZE + 1];
	hex_encode(hash.bytes, NAME_HASH_SIZE, text);
	snprintf(prefix, 40, "%s-%s-", text, witness_refusal_text(refusal->kind));
}

static int count_files(const char *directory, const char *prefix, size_t *ret, struct error *error)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/" FOLDER, directory);
	DIR *folder = opendir(path);
	if (!folder)
		return file_fail(error, "open", path);
	*ret = 0;
	for (const struct dirent *entry; (entry = readdir(folder));)
		*ret += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(folder);
	return OK;
}

static int write_document(const struct witness_refusal *refusal, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_time(&writer, "at", refusal->at_us);
	json_text(&writer, "kind", witness_refusal_text(refusal->kind));
	if (refusal->known.size > 0)
		json_slice(&writer, "known", refusal->known);
	else
		json_null(&writer, "known");
	json_text(&writer, "origin", refusal->checkpoint->origin);
	json_slice(&writer, "request", refusal->request);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
	return buf_check(out);
}

int witness_refusals_keep(const char *directory, const struct witness_refusal *refusal,
                          char name[WITNESS_REFUSAL_NAME_SIZE], bool *ret_new, struct error *error)
{
	char prefix[40], root[2 * NAME_HASH_SIZE + 1], path[PATH_MAX];
	size_t count = 0;
	write_prefix(refusal, prefix);
	hex_encode(refusal->checkpoint->root.bytes, NAME_HASH_SIZE, root);
	snprintf(name, WITNESS_REFUSAL_NAME_SIZE, FOLDER "/%s%" PRIu64 "-%s.json", prefix,
	         refusal->checkpoint->size, root);
	snprintf(path, sizeof path, "%s/%s", directory, name);
	*ret_new = false;
	if (access(path, F_OK) == 0)
		return OK;
	int result = count_files(directory, prefix, &count, error);
	if (!result && count >= WITNESS_REFUSALS_MAX)
		result = error_cause(error, ERR_FULL, "%d are kept already", WITNESS_REFUSALS_MAX);
	BUF_AUTO struct buf document;
	buf_init(&document, DOCUMENT_MAX);
	if (!result)
		result = write_document(refusal, &document);
	if (!result)
		result = durable_replace(path, 0600, buf_slice(&document), error);
	*ret_new = !result;
	return result;
}
