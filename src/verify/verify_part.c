/* Checks of a content part. */
#include <assert.h>
#include <inttypes.h>

#include "verify/verify_check.h"

#define FINDINGS_MAX 100 /* findings after which the check of a part ends */

struct part_check {
	struct run *run;
	struct input *input;
	struct zip_reader *zip;
	struct line_stream *index;
	struct arena arena;
	struct buf scratch;
	int64_t last_sequence;
};

static int read_head(struct part_check *check, struct error *error)
{
	const struct zip_entry *entry = zip_find(check->zip, PART_HEAD_NAME);
	if (!entry || entry != zip_at(check->zip, 0))
		return finding_fail(error, FINDING_PART_HEAD_MISPLACED);
	BUF_AUTO struct buf text;
	buf_init(&text, PART_INDEX_LINE_MAX);
	struct zip_sum sum;
	int result = zip_entry_sum(check->zip, entry, &sum, error);
	if (!result)
		result = zip_entry_load(check->zip, entry, PART_INDEX_LINE_MAX, &text, error);
	struct part_head head;
	if (!result)
		result = archive_read_part_head(&check->run->arena, buf_slice(&text), &head, error);
	if (result < 0)
		return result;
	buf_clear(&check->scratch);
	part_head_write(&head, &check->scratch);
	result = verify_canonical(buf_slice(&text), &check->scratch, error);
	if (!result) {
		check->input->head = head;
		check->input->described = true;
	}
	return result;
}

/* Compares a line of the index with the entry at the same position. */
static int check_entry(struct part_check *check, struct slice line, const struct zip_entry *entry,
                       struct error *error)
{
	assert(entry);
	struct part_entry facts;
	arena_reset(&check->arena);
	int result = archive_read_part_line(&check->arena, line, &facts, error);
	if (result < 0)
		return result;
	buf_clear(&check->scratch);
	part_index_line(&facts, &check->scratch);
	result = verify_canonical(line, &check->scratch, error);
	if (result < 0)
		return result;
	if (facts.sequence <= check->last_sequence)
		return finding_fail(error, FINDING_PART_NOT_ASCENDING, facts.sequence);
	check->last_sequence = facts.sequence;
	char name[ZIP_NAME_MAX + 1];
	part_entry_name(&facts, name);
	if (!slice_is(entry->name, name))
		return finding_fail(error, FINDING_PART_ENTRY_NAME, name, (int)entry->name.size,
		                    entry->name.data);
	struct zip_sum sum;
	result = zip_entry_sum(check->zip, entry, &sum, error);
	if (!result && !sha256_equal(&sum.sha256, &facts.hash))
		result = finding_fail(error, FINDING_PART_ENTRY_DIGEST, name);
	return result;
}

static int check_entries(struct part_check *check)
{
	struct run *run = check->run;
	const char *path = check->input->path;
	uint32_t count = zip_count(check->zip), entry = 1, bad = 0;
	struct slice line;
	for (;;) {
		struct error error = {0};
		int result = line_stream_next(check->index, &line, &error);
		if (!result)
			break;
		bool broken = result < 0;
		if (!broken && entry + 1 >= count)
			result = finding_fail(&error, FINDING_PART_LINE_WITHOUT_ENTRY);
		else if (!broken)
			result = check_entry(check, line, zip_at(check->zip, entry), &error);
		if (result < 0) {
			const char *where = line_stream_where(check->index);
			if (broken)
				result = finding_set_step(&error, FINDING_LINES_DAMAGED, result);
			int fatal = verify_add_error(run, path, where, FINDING_PART_MALFORMED, result, &error);
			if (fatal < 0)
				return fatal;
			if (broken || ++bad >= FINDINGS_MAX)
				return 0;
		}
		run->result->checked.files++;
		result = verify_progress(run, path, entry, count);
		if (result < 0)
			return result;
		entry++;
	}
	if (entry + 1 != count)
		verify_add(run, VERIFY_WRONG, path, PART_INDEX_NAME, FINDING_PART_LINE_COUNT, entry - 1,
		           count - 2);
	return 0;
}

static int check_index(struct part_check *check)
{
	const struct zip_entry *entry = zip_find(check->zip, PART_INDEX_NAME);
	struct error error = {0};
	struct zip_sum sum;
	int result = 0;
	if (zip_count(check->zip) < 3 || entry != zip_at(check->zip, zip_count(check->zip) - 1))
		result = finding_fail(&error, FINDING_PART_INDEX_MISPLACED);
	if (!result)
		result = zip_entry_sum(check->zip, entry, &sum, &error);
	if (!result)
		result = line_stream_open_plain(check->zip, entry, &check->index, &error);
	if (result < 0)
		return verify_add_error(check->run, check->input->path, PART_INDEX_NAME,
		                        FINDING_PART_MALFORMED, result, &error);
	result = check_entries(check);
	line_stream_free(check->index);
	return result;
}

int verify_part(struct run *run, struct input *input)
{
	struct part_check check = {.run = run, .input = input};
	struct error error = {0};
	run->result->checked.parts++;
	if (input->sum.size_bytes > PART_BYTES_MAX) {
		verify_add(run, VERIFY_WRONG, input->path, "", FINDING_PART_TOO_LARGE,
		           (unsigned long long)PART_BYTES_MAX);
		return 0;
	}
	int result = verify_open_zip(input, &check.zip, &error);
	if (result < 0)
		return verify_add_error(run, input->path, "", FINDING_PART_MALFORMED, result, &error);
	if (zip_count(check.zip) > PART_ENTRIES_MAX)
		verify_add(run, VERIFY_WRONG, input->path, "", FINDING_PART_ENTRY_COUNT, PART_ENTRIES_MAX);
	arena_init(&check.arena, 1 << 20);
	buf_init(&check.scratch, PART_INDEX_LINE_MAX);
	result = read_head(&check, &error);
	if (result < 0)
		result = verify_add_error(run, input->path, PART_HEAD_NAME, FINDING_PART_MALFORMED, result,
		                          &error);
	if (!result)
		result = check_index(&check);
	arena_free(&check.arena);
	buf_free(&check.scratch);
	zip_reader_free(check.zip);
	return result;
}
