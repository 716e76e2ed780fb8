#include "archive/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "archive/archive_lines.h"
#include "archive/zip_shape.h"
#include "base/durable.h"
#include "base/file.h"
#include "seal/evidence_record.h"

#define PIECE ((size_t)64 * 1024)
#define FACTS_MAX ((size_t)16 << 20)

struct document {
	const char *path, *name;
	struct zip_identity identity;
	struct digest digests[DIGEST_ALGORITHM_COUNT];
};

struct making {
	const struct bundle *bundle;
	struct buf der;
	struct evidence_record *record;
	struct document *documents; /* in the order of their names */
	struct arena arena;
	struct bundled *bundled;
	struct error *error;
};

bool bundle_names_collide(struct slice a, struct slice b)
{
	return a.size == b.size && strncasecmp(a.data, b.data, a.size) == 0;
}

/* The container's own, and the devices of Windows, whatever follows behind a dot. */
static bool is_reserved(struct slice name)
{
	static const char *const own[] = {"mimetype", "META-INF"};
	static const char *const devices[] = {"CON", "PRN", "AUX", "NUL"};
	static const char *const numbered[] = {"COM", "LPT"};
	const char *dot = memchr(name.data, '.', name.size);
	struct slice stem = slice_make(name.data, dot ? (size_t)(dot - name.data) : name.size);
	bool numbers = stem.size == 4 && stem.data[3] >= '0' && stem.data[3] <= '9';
	bool reserved = false;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		reserved |= bundle_names_collide(name, slice_of(own[i]));
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		reserved |= bundle_names_collide(stem, slice_of(devices[i]));
	for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++)
		reserved |= numbers && strncasecmp(stem.data, numbered[i], 3) == 0;
	return reserved;
}

/* A leading '-' is an option to many programs, a leading '.' hides the file, and Windows drops a
 * '.' at the end. */
bool bundle_name_allowed(struct slice name)
{
	return zip_name_allowed(name) && !memchr(name.data, '/', name.size) && name.data[0] != '-' &&
	       name.data[0] != '.' && name.data[name.size - 1] != '.' && !is_reserved(name);
}

/* ---- what goes in ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct document *)a)->name, ((const struct document *)b)->name);
}

static int check_collisions(const struct making *making)
{
	for (size_t i = 1; i < making->bundle->file_count; i++)
		for (size_t j = 0; j < i; j++) {
			const char *name = making->documents[i].name, *other = making->documents[j].name;
			if (bundle_names_collide(slice_of(name), slice_of(other)))
				return error_cause(making->error, ERR_USAGE, "two files are named %s and %s", other,
				                   name);
		}
	return OK;
}

static int name_documents(struct making *making)
{
	const struct bundle *bundle = making->bundle;
	if (bundle->file_count < BUNDLE_FILES_LEAST || bundle->file_count > BUNDLE_FILES_MAX)
		return error_cause(making->error, ERR_USAGE, "a container holds %d to %d files",
		                   BUNDLE_FILES_LEAST, BUNDLE_FILES_MAX);
	making->documents = calloc(bundle->file_count, sizeof *making->documents);
	if (!making->documents)
		return error_cause(making->error, ERR_NO_MEMORY, "the documents");
	for (size_t i = 0; i < bundle->file_count; i++) {
		struct document *document = &making->documents[i];
		const char *slash = strrchr(bundle->files[i], '/');
		document->path = bundle->files[i];
		document->name = slash ? slash + 1 : document->path;
		if (!bundle_name_allowed(slice_of(document->name)))
			return error_cause(making->error, ERR_USAGE, "%s: its name cannot stand in a container",
			                   document->path);
	}
	qsort(making->documents, bundle->file_count, sizeof *making->documents, compare_names);
	return check_collisions(making);
}

static int open_document(const struct document *document, struct stat *ret_facts, int *ret_file,
                         struct error *error)
{
	*ret_file = file_open_to_read(document->path, 0, ret_facts);
	if (*ret_file < 0)
		return file_fail(error, "opening", document->path);
	return S_ISREG(ret_facts->st_mode)
	           ? OK
	           : error_cause(error, ERR_IO, "%s is no regular file", document->path);
}

/* By SHA-256, which the manifest has, and by each algorithm that the record needs. */
static int digest_document(const struct making *making, struct document *document)
{
	struct stat facts;
	uint64_t size;
	DESCRIPTOR_AUTO int file = -1;
	int result = open_document(document, &facts, &file, making->error);
	if (result)
		return result;
	document->identity = zip_identity(&facts);
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT && !result; i++) {
		enum digest_algorithm algorithm = (enum digest_algorithm)i;
		if (algorithm != DIGEST_SHA256 && !evidence_record_uses(making->record, algorithm))
			continue;
		if (lseek(file, 0, SEEK_SET) != 0)
			return file_fail(making->error, "reading", document->path);
		result = file_digest_by(algorithm, file, document->path, &size, &document->digests[i],
		                        making->error);
	}
	return result;
}

/* How many of the files are that one. */
static size_t count_same(const struct making *making, const struct document *document)
{
	const struct digest *sought = &document->digests[DIGEST_SHA256];
	size_t count = 0;
	for (size_t i = 0; i < making->bundle->file_count; i++)
		count += digest_equal(&making->documents[i].digests[DIGEST_SHA256], sought);
	return count;
}

/* When all are digested. */
static int check_document(const struct making *making, const struct document *document)
{
	struct evidence_question question = {.at_us = clock_now_us()};
	struct evidence_facts facts;
	struct arena arena;
	size_t covered = evidence_record_covers(making->record, document->digests);
	size_t given = count_same(making, document);
	if (covered == 0)
		return error_cause(making->error, ERR_INVALID_EVIDENCE,
		                   "the evidence record does not cover %s", document->path);
	if (covered != given)
		return error_cause(making->error, ERR_INVALID_EVIDENCE,
		                   "%zu of the files are the same as %s, and the evidence record covers "
		                   "%zu such files",
		                   given, document->path, covered);
	arena_init(&arena, FACTS_MAX);
	int result = evidence_record_verify(making->record, document->digests, &question, &arena,
	                                    &facts, making->error);
	arena_free(&arena);
	if (!result) {
		making->bundled->exists_since_us = facts.exists_since_us;
		making->bundled->valid_until_us = facts.valid_until_us;
	}
	return result;
}

static int read_record(struct making *making)
{
	const char *path = making->bundle->record;
	int result = file_read_whole(path, &making->der, making->error);
	if (result && making->der.full)
		return error_cause(making->error, ERR_INVALID_EVIDENCE,
		                   "%s is larger than any evidence record", path);
	if (!result)
		result = evidence_record_parse(buf_slice(&making->der), &making->record, making->error);
	if (result)
		return result;
	size_t covered = evidence_record_group(making->record);
	if (covered != making->bundle->file_count)
		return error_cause(making->error, ERR_INVALID_EVIDENCE,
		                   "the evidence record covers %zu files, and %zu were given", covered,
		                   making->bundle->file_count);
	return OK;
}

/* ---- the container ---- */

static int copy_document(const struct making *making, const struct document *document,
                         struct zip_writer *zip, struct buf *manifest)
{
	struct archive_file listed = {.path = document->name};
	char piece[PIECE];
	struct stat facts;
	DESCRIPTOR_AUTO int file = -1;
	int result = open_document(document, &facts, &file, making->error);
	if (!result)
		result = zip_entry_begin(zip, document->name, making->error);
	for (ssize_t size = 1; size > 0 && !result;) {
		size = read(file, piece, sizeof piece);
		if (size > 0)
			result = zip_entry_write(zip, piece, (size_t)size, making->error);
		else if (size < 0)
			result = file_fail(making->error, "reading", document->path);
	}
	if (!result)
		result = zip_entry_end(zip, &listed.sum, making->error);
	if (result)
		return result;
	struct digest found = digest_of_sha256(&listed.sum.sha256);
	if (!digest_equal(&found, &document->digests[DIGEST_SHA256]))
		return error_cause(making->error, ERR_IO, "%s changed while it was read", document->path);
	archive_asic_file(&listed, manifest);
	return OK;
}

static int write_entries(struct making *making, struct zip_writer *zip)
{
	BUF_AUTO struct buf manifest;
	buf_init(&manifest, BUNDLE_MANIFEST_MAX);
	archive_asic_begin_record(BUNDLE_RECORD_NAME, &manifest);
	int result = zip_add(zip, "mimetype", slice_of(ARCHIVE_MIMETYPE), NULL, making->error);
	for (size_t i = 0; i < making->bundle->file_count && !result; i++)
		result = copy_document(making, &making->documents[i], zip, &manifest);
	archive_asic_end(&manifest);
	if (!result && buf_check(&manifest))
		result = error_cause(making->error, ERR_NO_MEMORY, "the container's manifest");
	if (!result)
		result = zip_add(zip, BUNDLE_MANIFEST_NAME, buf_slice(&manifest), NULL, making->error);
	if (!result)
		result = zip_add(zip, BUNDLE_RECORD_NAME, buf_slice(&making->der), NULL, making->error);
	return result ? result : zip_finish(zip, &making->bundled->sum, making->error);
}

/* By way of "OUTPUT.partial". */
static int write_container(struct making *making)
{
	const char *output = making->bundle->output;
	struct zip_writer *zip = NULL;
	char *partial;
	if (asprintf(&partial, "%s.partial", output) < 0)
		return error_cause(making->error, ERR_NO_MEMORY, "the container's path");
	int result = zip_create(partial, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &zip, making->error);
	if (!result)
		result = write_entries(making, zip);
	zip_writer_free(zip);
	if (!result && rename(partial, output) != 0) {
		result = file_fail(making->error, "replacing", output);
		unlink(partial);
	}
	free(partial);
	return result;
}

int bundle_write(const struct bundle *bundle, struct bundled *ret_bundled, struct error *error)
{
	struct bundled bundled = {0};
	struct making making = {.bundle = bundle, .bundled = &bundled, .error = error};
	buf_init(&making.der, EVIDENCE_RECORD_MAX);
	int result = name_documents(&making);
	if (!result)
		result = read_record(&making);
	for (size_t i = 0; i < bundle->file_count && !result; i++)
		result = digest_document(&making, &making.documents[i]);
	for (size_t i = 0; i < bundle->file_count && !result; i++)
		result = check_document(&making, &making.documents[i]);
	if (!result)
		result = write_container(&making);
	if (!result)
		*ret_bundled = bundled;
	evidence_record_free(making.record);
	buf_free(&making.der);
	free(making.documents);
	return result;
}
