/* Checks the container of documents with their evidence record (bundle.h): its own shape, and then
 * each of its files as if it had been given separately. */
#include <stdlib.h>

#include "archive/bundle.h"
#include "verify/verify_check.h"

struct opening {
	struct run *run;
	size_t place; /* position of the container among the inputs, which may move in memory */
	struct zip_reader *zip;
	uint32_t count;
	struct buf manifest; /* the expected manifest */
};

static char *name_of(const struct zip_entry *entry, char to[ZIP_NAME_MAX + 1])
{
	memcpy(to, entry->name.data, entry->name.size);
	to[entry->name.size] = 0;
	return to;
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
		return finding_fail(error, FINDING_CONTAINER_FIRST_ENTRY, "mimetype");
	if (!slice_is(zip_at(opening->zip, end)->name, BUNDLE_MANIFEST_NAME) ||
	    !slice_is(zip_at(opening->zip, end + 1)->name, BUNDLE_RECORD_NAME))
		return finding_fail(error, FINDING_CONTAINER_LAST_ENTRIES, BUNDLE_MANIFEST_NAME);
	for (uint32_t i = 1; i < end; i++) {
		const struct zip_entry *entry = zip_at(opening->zip, i);
		name_of(entry, name);
		if (!bundle_name_allowed(entry->name) || strcmp(before, name) >= 0 || collides(opening, i))
			return finding_fail(error, FINDING_CONTAINER_ENTRY_NAME, name);
		name_of(entry, before);
	}
	return OK;
}

/* Compares an entry with its only valid content. */
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
		result = finding_fail(error, FINDING_CONTAINER_ENTRY_DIFFERS, name_of(entry, name));
	return result;
}

/* ---- its files ---- */

/* Appends an input for a file in the container. */
static int add_input(struct opening *opening, const struct zip_entry *entry,
                     const struct zip_sum *sum)
{
	struct run *run = opening->run;
	char name[ZIP_NAME_MAX + 1];
	struct input *inputs = realloc(run->inputs, (run->input_count + 1) * sizeof *run->inputs);
	if (!inputs)
		return ERR_NO_MEMORY;
	run->inputs = inputs;
	const struct input *container = &inputs[opening->place];
	const char *path =
		arena_printf(&run->result->arena, "%s/%s", container->path, name_of(entry, name));
	if (!path)
		return ERR_NO_MEMORY;
	struct input *input = &inputs[run->input_count];
	*input = verify_make_input(path, container->file);
	input->container = opening->place + 1;
	input->offset = entry->offset;
	input->sum = *sum;
	input->identity = container->identity;
	input->is_containers_record = slice_is(entry->name, BUNDLE_RECORD_NAME);
	run->input_count++;
	return 0;
}

static int take_entry(struct opening *opening, uint32_t index, struct zip_sum *ret_sum,
                      struct error *error)
{
	const struct zip_entry *entry = zip_at(opening->zip, index);
	int result = zip_entry_sum(opening->zip, entry, ret_sum, error);
	return result ? result : add_input(opening, entry, ret_sum);
}

static int take_all(struct opening *opening, struct error *error)
{
	char name[ZIP_NAME_MAX + 1];
	uint32_t end = opening->count - 2;
	struct buf *manifest = &opening->manifest;
	struct archive_file listed = {.path = name};
	archive_asic_record_begin(BUNDLE_RECORD_NAME, manifest);
	int result = check_text(opening, 0, slice_of(ARCHIVE_MIMETYPE), error);
	for (uint32_t i = 1; i < end && !result; i++) {
		result = take_entry(opening, i, &listed.sum, error);
		name_of(zip_at(opening->zip, i), name);
		if (!result)
			archive_asic_file(&listed, manifest);
	}
	archive_asic_end(manifest);
	if (!result)
		result = take_entry(opening, end + 1, &listed.sum, error);
	if (!result && buf_check(manifest))
		result = ERR_NO_MEMORY;
	return result ? result : check_text(opening, end, buf_slice(manifest), error);
}

int verify_bundle(struct run *run, size_t place)
{
	struct opening opening = {.run = run, .place = place};
	struct error error = {0};
	if (run->inputs[place].container) {
		verify_add(run, VERIFY_WRONG, run->inputs[place].path, "", FINDING_CONTAINER_NESTED);
		return OK;
	}
	buf_init(&opening.manifest, BUNDLE_MANIFEST_MAX);
	int result = verify_open_zip(&run->inputs[place], &opening.zip, &error);
	if (!result) {
		opening.count = zip_count(opening.zip);
		if (opening.count < BUNDLE_FILES_LEAST + 3 || opening.count > BUNDLE_FILES_MAX + 3)
			result = finding_fail(&error, FINDING_CONTAINER_ENTRY_COUNT, opening.count);
	}
	if (!result)
		result = check_names(&opening, &error);
	if (!result)
		result = take_all(&opening, &error);
	zip_reader_free(opening.zip);
	buf_free(&opening.manifest);
	return result < 0 ? verify_add_error(run, run->inputs[place].path, "",
	                                     FINDING_CONTAINER_MALFORMED, result, &error)
	                  : OK;
}
