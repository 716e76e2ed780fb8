/* The container of documents with their evidence record (bundle.h): its own shape, and then each
 * of its files as if it had been given separately. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "proof/bundle.h"
#include "proof/verify_check.h"

#define PIECE ((size_t)64 * 1024)
#define PATH_SIZE 32 /* "/proc/self/fd/N" */

struct opening {
	struct run *run;
	size_t place; /* of the container among the inputs, which may move */
	struct zip_reader *zip;
	uint32_t count;
	struct buf manifest; /* as it has to be */
};

static const char *path_of(const struct opening *opening)
{
	return opening->run->inputs[opening->place].path;
}

static char *name_of(const struct zip_entry *entry, char to[ZIP_NAME_MAX + 1])
{
	memcpy(to, entry->name.data, entry->name.size);
	to[entry->name.size] = 0;
	return to;
}

static int invalid(struct error *error, const char *name, const char *words)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s: %s", name, words);
}

static bool collides(const struct opening *opening, uint32_t index)
{
	bool found = false;
	for (uint32_t i = 1; i < index; i++)
		found |=
			bundle_names_collide(zip_at(opening->zip, i)->name, zip_at(opening->zip, index)->name);
	return found;
}

static int check_names(const struct opening *opening, struct error *error)
{
	char name[ZIP_NAME_MAX + 1], before[ZIP_NAME_MAX + 1] = "";
	uint32_t end = opening->count - 2;
	if (!slice_is(zip_at(opening->zip, 0)->name, "mimetype"))
		return invalid(error, "mimetype", "it is not the first entry");
	if (!slice_is(zip_at(opening->zip, end)->name, BUNDLE_MANIFEST_NAME) ||
	    !slice_is(zip_at(opening->zip, end + 1)->name, BUNDLE_RECORD_NAME))
		return invalid(error, BUNDLE_MANIFEST_NAME, "it and the record are not the last entries");
	for (uint32_t i = 1; i < end; i++) {
		const struct zip_entry *entry = zip_at(opening->zip, i);
		name_of(entry, name);
		if (!bundle_name_allowed(entry->name) || strcmp(before, name) >= 0 || collides(opening, i))
			return invalid(error, name, "such a name does not belong there");
		name_of(entry, before);
	}
	return OK;
}

/* Compares an entry with the only text that it may have. */
static int check_text(const struct opening *opening, uint32_t index, struct slice wanted,
                      struct error *error)
{
	char name[ZIP_NAME_MAX + 1];
	struct zip_sum sum;
	BUF_AUTO struct buf text;
	const struct zip_entry *entry = zip_at(opening->zip, index);
	buf_init(&text, BUNDLE_MANIFEST_MAX);
	int result = zip_entry_sum(opening->zip, entry, &sum, error);
	if (!result)
		result = zip_entry_load(opening->zip, entry, BUNDLE_MANIFEST_MAX - 1, &text, error);
	if (!result && !slice_equal(buf_slice(&text), wanted))
		result = invalid(error, name_of(entry, name),
		                 "it is not as this format wants it for these files");
	return result;
}

/* ---- unpacking ---- */

static int open_unnamed(int *ret_file, struct error *error)
{
	const char *directory = getenv("TMPDIR");
	*ret_file = file_open_unnamed(directory && *directory ? directory : "/var/tmp");
	return *ret_file >= 0
	           ? OK
	           : error_cause(error, ERR_IO,
	                         "it is a container, whose files cannot be unpacked here (%s): take it "
	                         "apart, and have them checked together",
	                         strerror(errno));
}

static int unpack(const struct opening *opening, const struct zip_entry *entry, int file,
                  struct zip_sum *ret_sum, struct error *error)
{
	char piece[PIECE];
	struct digest_stream *digest = digest_begin();
	int result = digest ? OK : error_cause(error, ERR_NO_MEMORY, "unpacking");
	for (uint64_t at = 0; at < entry->size && !result;) {
		size_t size = entry->size - at < PIECE ? (size_t)(entry->size - at) : PIECE;
		result = zip_read(opening->zip, entry, at, piece, size, error);
		if (!result && !file_write_all(file, slice_make(piece, size)))
			result = error_cause(error, ERR_IO, "it cannot be unpacked: %s", strerror(errno));
		if (!result)
			digest_add(digest, piece, size);
		at += size;
	}
	if (result) {
		digest_cancel(digest);
		return result;
	}
	struct sha256 unpacked = digest_end(digest);
	result = zip_entry_sum(opening->zip, entry, ret_sum, error);
	if (!result && !sha256_equal(&ret_sum->sha256, &unpacked))
		result = error_cause(error, ERR_IO, "it was changed while it was being checked");
	return result;
}

/* One more input, which stands in the container. */
static int add_input(struct opening *opening, const struct zip_entry *entry, int *file)
{
	struct run *run = opening->run;
	char name[ZIP_NAME_MAX + 1];
	struct input *inputs = realloc(run->inputs, (run->input_count + 1) * sizeof *run->inputs);
	if (!inputs)
		return ERR_NO_MEMORY;
	run->inputs = inputs;
	const char *path =
		arena_printf(&run->result->arena, "%s/%s", path_of(opening), name_of(entry, name));
	const char *opened = arena_printf(&run->arena, "/proc/self/fd/%d", *file);
	if (!path || !opened)
		return ERR_NO_MEMORY;
	inputs[run->input_count] = verify_input(path);
	inputs[run->input_count].file = opened;
	inputs[run->input_count].unpacked = *file;
	inputs[run->input_count].container = opening->place + 1;
	inputs[run->input_count].is_containers_record = slice_is(entry->name, BUNDLE_RECORD_NAME);
	run->input_count++;
	*file = -1;
	return OK;
}

static int unpack_entry(struct opening *opening, uint32_t index, struct zip_sum *ret_sum,
                        struct error *error)
{
	const struct zip_entry *entry = zip_at(opening->zip, index);
	DESCRIPTOR_AUTO int file = -1;
	int result = open_unnamed(&file, error);
	if (!result)
		result = unpack(opening, entry, file, ret_sum, error);
	return result ? result : add_input(opening, entry, &file);
}

static int unpack_all(struct opening *opening, struct error *error)
{
	char name[ZIP_NAME_MAX + 1];
	uint32_t end = opening->count - 2;
	struct buf *manifest = &opening->manifest;
	struct archive_file listed = {.path = name};
	archive_asic_begin_record(BUNDLE_RECORD_NAME, manifest);
	int result = check_text(opening, 0, slice_of(ARCHIVE_MIMETYPE), error);
	for (uint32_t i = 1; i < end && !result; i++) {
		result = unpack_entry(opening, i, &listed.sum, error);
		name_of(zip_at(opening->zip, i), name);
		if (!result)
			archive_asic_file(&listed, manifest);
	}
	archive_asic_end(manifest);
	if (!result)
		result = unpack_entry(opening, end + 1, &listed.sum, error);
	if (!result && buf_check(manifest))
		result = ERR_NO_MEMORY;
	return result ? result : check_text(opening, end, buf_slice(manifest), error);
}

int verify_bundle(struct run *run, size_t place)
{
	struct opening opening = {.run = run, .place = place};
	struct error error = {0};
	if (run->inputs[place].container) {
		verify_add(run, VERIFY_WRONG, run->inputs[place].path, "",
		           "it is a container within another one");
		return OK;
	}
	buf_init(&opening.manifest, BUNDLE_MANIFEST_MAX);
	int result = verify_open_zip(&run->inputs[place], &opening.zip, &error);
	if (!result) {
		opening.count = zip_count(opening.zip);
		if (opening.count < BUNDLE_FILES_LEAST + 3 || opening.count > BUNDLE_FILES_MAX + 3)
			result = error_cause(&error, ERR_INVALID_EVIDENCE, "a container of %u entries",
			                     opening.count);
	}
	if (!result)
		result = check_names(&opening, &error);
	if (!result)
		result = unpack_all(&opening, &error);
	zip_reader_free(opening.zip);
	buf_free(&opening.manifest);
	return result < 0 ? verify_add_error(run, run->inputs[place].path, "", result, &error) : OK;
}
