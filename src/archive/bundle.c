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

struct builder {
	const struct bundle *bundle;
	struct buf der;
	struct evidence_record *record;
	struct document *documents; /* sorted by name */
	struct arena arena;
	struct bundled *bundled;
	struct error *error;
};

bool bundle_names_collide(struct slice a, struct slice b)
{
	return a.size == b.size && strncasecmp(a.data, b.data, a.size) == 0;
}

/* Returns whether a name is one of the container's own or a Windows device name, with any suffix
 * after a dot. */
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

/* Many programs treat a leading '-' as an option. A leading '.' hides the file. Windows drops a
 * trailing '.'. */
bool bundle_name_allowed(struct slice name)
{
	return zip_name_allowed(name) && !memchr(name.data, '/', name.size) && name.data[0] != '-' &&
	       name.data[0] != '.' && name.data[name.size - 1] != '.' && !is_reserved(name);
}

/* ---- documents ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct document *)a)->name, ((const struct document *)b)->name);
}

static int check_collisions(const struct builder *builder)
{
	for (size_t i = 1; i < builder->bundle->file_count; i++)
		for (size_t j = 0; j < i; j++) {
			const char *name = builder->documents[i].name, *other = builder->documents[j].name;
			if (bundle_names_collide(slice_of(name), slice_of(other)))
				return error_cause(builder->error, ERR_USAGE, "two files are named %s and %s",
				                   other, name);
		}
	return OK;
}

static int name_documents(struct builder *builder)
{
	const struct bundle *bundle = builder->bundle;
	if (bundle->file_count < BUNDLE_FILES_LEAST || bundle->file_count > BUNDLE_FILES_MAX)
		return error_cause(builder->error, ERR_USAGE, "a container has %d to %d files",
		                   BUNDLE_FILES_LEAST, BUNDLE_FILES_MAX);
	builder->documents = calloc(bundle->file_count, sizeof *builder->documents);
	if (!builder->documents)
		return error_cause(builder->error, ERR_NO_MEMORY, "reading the documents");
	for (size_t i = 0; i < bundle->file_count; i++) {
		struct document *document = &builder->documents[i];
		const char *slash = strrchr(bundle->files[i], '/');
		document->path = bundle->files[i];
		document->name = slash ? slash + 1 : document->path;
		if (!bundle_name_allowed(slice_of(document->name)))
			return error_cause(builder->error, ERR_USAGE,
			                   "%s: this file name is not allowed in a container", document->path);
	}
	qsort(builder->documents, bundle->file_count, sizeof *builder->documents, compare_names);
	return check_collisions(builder);
}

static int open_document(const struct document *document, struct stat *ret_facts, int *ret_file,
                         struct error *error)
{
	*ret_file = file_open_to_read(document->path, 0, ret_facts);
	if (*ret_file < 0)
		return file_fail(error, "opening", document->path);
	return S_ISREG(ret_facts->st_mode)
	           ? OK
	           : error_cause(error, ERR_IO, "%s is not a regular file", document->path);
}

/* Computes the digests: SHA-256 for the manifest, and each algorithm that the record needs. */
static int digest_document(const struct builder *builder, struct document *document)
{
	struct stat facts;
	uint64_t size;
	DESCRIPTOR_AUTO int file = -1;
	int result = open_document(document, &facts, &file, builder->error);
	if (result)
		return result;
	document->identity = zip_identity(&facts);
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT && !result; i++) {
		enum digest_algorithm algorithm = (enum digest_algorithm)i;
		if (algorithm != DIGEST_SHA256 && !evidence_record_uses_digest(builder->record, algorithm))
			continue;
		if (lseek(file, 0, SEEK_SET) != 0)
			return file_fail(builder->error, "reading", document->path);
		result = file_digest_by(algorithm, file, document->path, &size, &document->digests[i],
		                        builder->error);
	}
	return result;
}

/* Counts the files with the same content. */
static size_t count_same(const struct builder *builder, const struct document *document)
{
	const struct digest *sought = &document->digests[DIGEST_SHA256];
	size_t count = 0;
	for (size_t i = 0; i < builder->bundle->file_count; i++)
		count += digest_equal(&builder->documents[i].digests[DIGEST_SHA256], sought);
	return count;
}

/* Checks a document after all were digested. */
static int check_document(const struct builder *builder, const struct document *document)
{
	struct evidence_query question = {.at_us = clock_now_us()};
	struct evidence_facts facts;
	struct arena arena;
	size_t covered = evidence_record_covers(builder->record, document->digests);
	size_t given = count_same(builder, document);
	if (covered == 0)
		return error_cause(builder->error, ERR_INVALID_EVIDENCE,
		                   "the evidence record does not cover %s", document->path);
	if (covered != given)
		return error_cause(builder->error, ERR_INVALID_EVIDENCE,
		                   "%zu of the files are identical to %s, but the evidence record covers "
		                   "%zu such files",
		                   given, document->path, covered);
	arena_init(&arena, FACTS_MAX);
	int result = evidence_record_verify(builder->record, document->digests, &question, &arena,
	                                    &facts, builder->error);
	arena_free(&arena);
	if (!result) {
		builder->bundled->exists_since_us = facts.exists_since_us;
		builder->bundled->valid_until_us = facts.valid_until_us;
	}
	return result;
}

static int read_record(struct builder *builder)
{
	const char *path = builder->bundle->record;
	int result = file_read_whole(path, &builder->der, builder->error);
	if (result && builder->der.full)
		return error_cause(builder->error, ERR_INVALID_EVIDENCE,
		                   "%s is too large for an evidence record", path);
	if (!result)
		result = evidence_record_parse(buf_slice(&builder->der), &builder->record, builder->error);
	if (result)
		return result;
	size_t covered = evidence_record_group_size(builder->record);
	if (covered != builder->bundle->file_count)
		return error_cause(builder->error, ERR_INVALID_EVIDENCE,
		                   "the evidence record covers %zu files, but %zu were given", covered,
		                   builder->bundle->file_count);
	return OK;
}

/* ---- the container ---- */

static int copy_document(const struct builder *builder, const struct document *document,
                         struct zip_writer *zip, struct buf *manifest)
{
	struct archive_file listed = {.path = document->name};
	char piece[PIECE];
	struct stat facts;
	DESCRIPTOR_AUTO int file = -1;
	int result = open_document(document, &facts, &file, builder->error);
	if (!result)
		result = zip_entry_begin(zip, document->name, builder->error);
	for (ssize_t size = 1; size > 0 && !result;) {
		size = read(file, piece, sizeof piece);
		if (size > 0)
			result = zip_entry_write(zip, piece, (size_t)size, builder->error);
		else if (size < 0)
			result = file_fail(builder->error, "reading", document->path);
	}
	if (!result)
		result = zip_entry_end(zip, &listed.sum, builder->error);
	if (result)
		return result;
	struct digest found = digest_of_sha256(&listed.sum.sha256);
	if (!digest_equal(&found, &document->digests[DIGEST_SHA256]))
		return error_cause(builder->error, ERR_IO, "%s changed while it was read", document->path);
	archive_asic_file(&listed, manifest);
	return OK;
}

static int write_entries(struct builder *builder, struct zip_writer *zip)
{
	BUF_AUTO struct buf manifest;
	buf_init(&manifest, BUNDLE_MANIFEST_MAX);
	archive_asic_record_begin(BUNDLE_RECORD_NAME, &manifest);
	int result = zip_add(zip, "mimetype", slice_of(ARCHIVE_MIMETYPE), NULL, builder->error);
	for (size_t i = 0; i < builder->bundle->file_count && !result; i++)
		result = copy_document(builder, &builder->documents[i], zip, &manifest);
	archive_asic_end(&manifest);
	if (!result && buf_check(&manifest))
		result = error_cause(builder->error, ERR_NO_MEMORY, "the container's manifest");
	if (!result)
		result = zip_add(zip, BUNDLE_MANIFEST_NAME, buf_slice(&manifest), NULL, builder->error);
	if (!result)
		result = zip_add(zip, BUNDLE_RECORD_NAME, buf_slice(&builder->der), NULL, builder->error);
	return result ? result : zip_finish(zip, &builder->bundled->sum, builder->error);
}

/* Writes "OUTPUT.partial" and renames it. */
static int write_container(struct builder *builder)
{
	const char *output = builder->bundle->output;
	struct zip_writer *zip = NULL;
	char *partial;
	if (asprintf(&partial, "%s.partial", output) < 0)
		return error_cause(builder->error, ERR_NO_MEMORY, "the container's path");
	int result = zip_create(partial, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &zip, builder->error);
	if (!result)
		result = write_entries(builder, zip);
	zip_writer_free(zip);
	if (!result && rename(partial, output) != 0) {
		result = file_fail(builder->error, "replacing", output);
		unlink(partial);
	}
	free(partial);
	return result;
}

int bundle_write(const struct bundle *bundle, struct bundled *ret_bundled, struct error *error)
{
	struct bundled bundled = {0};
	struct builder builder = {.bundle = bundle, .bundled = &bundled, .error = error};
	buf_init(&builder.der, EVIDENCE_RECORD_MAX);
	int result = name_documents(&builder);
	if (!result)
		result = read_record(&builder);
	for (size_t i = 0; i < bundle->file_count && !result; i++)
		result = digest_document(&builder, &builder.documents[i]);
	for (size_t i = 0; i < bundle->file_count && !result; i++)
		result = check_document(&builder, &builder.documents[i]);
	if (!result)
		result = write_container(&builder);
	if (!result)
		*ret_bundled = bundled;
	evidence_record_free(builder.record);
	buf_free(&builder.der);
	free(builder.documents);
	return result;
}
