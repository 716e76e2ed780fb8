/* Checks files that only an evidence record covers. Anyone can get such a record for any file: it
 * proves since when the file existed, but not its origin. */
#include <assert.h>
#include <stdlib.h>

#include "verify/verify_check.h"

#define EVENT_ARENA_MAX ((size_t)4 << 20)

static int compare_digests(const struct sha256 *a, const struct sha256 *b)
{
	return memcmp(a->bytes, b->bytes, SHA256_SIZE);
}

static int compare_others(const void *a, const void *b)
{
	const struct input *const *x = a, *const *y = b;
	return compare_digests(&(*x)->sum.sha256, &(*y)->sum.sha256);
}

int verify_existence_plan(struct run *run)
{
	size_t count = 0;
	for (size_t i = 0; i < run->input_count; i++)
		count += run->inputs[i].kind == INPUT_UNKNOWN && !run->inputs[i].unread;
	if (count == 0)
		return 0;
	run->others = calloc(count, sizeof(struct input *));
	if (!run->others)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < run->input_count; i++)
		if (run->inputs[i].kind == INPUT_UNKNOWN && !run->inputs[i].unread)
			run->others[run->other_count++] = &run->inputs[i];
	assert(run->other_count == count);
	qsort(run->others, run->other_count, sizeof(struct input *), compare_others);
	return 0;
}

void verify_existence_event(struct run *run, const struct sha256 *chain_hash)
{
	size_t low = 0, high = run->other_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_digests(&run->others[middle]->sum.sha256, chain_hash) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < run->other_count && sha256_equal(&run->others[low]->sum.sha256, chain_hash); low++)
		run->others[low]->recorded = true;
}

/* Determines whether a file has the form of an event record. */
static int recognize_event(const struct input *input, bool *ret_event)
{
	BUF_AUTO struct buf text, canonical;
	ARENA_AUTO struct arena arena;
	struct event_facts event;
	struct error error = {0};
	*ret_event = false;
	if (input->sum.size_bytes > ARCHIVE_LINE_MAX)
		return 0;
	buf_init(&text, ARCHIVE_LINE_MAX + 1);
	buf_init(&canonical, ARCHIVE_LINE_MAX + 1);
	arena_init(&arena, EVENT_ARENA_MAX);
	int result = verify_load_input(input, &text, &error);
	if (!result)
		result = archive_read_event(&arena, buf_slice(&text), &event, &error);
	if (!result) {
		event_record(&event, &canonical);
		result = verify_canonical(buf_slice(&text), &canonical, &error);
	}
	*ret_event = !result;
	return result == ERR_NO_MEMORY ? result : 0;
}

static int record_existence(struct run *run, const struct input *input)
{
	struct verify_result *result = run->result;
	char since[TIME_TEXT_SIZE];
	bool is_event;
	int status = recognize_event(input, &is_event);
	if (status)
		return status;
	time_format(input->covered_since_us, since);
	if (is_event)
		verify_add(run, VERIFY_UNESTABLISHED, input->path, "", FINDING_RECORD_EVENT_ONLY, since);
	else
		verify_add(run, VERIFY_UNESTABLISHED, input->path, "", FINDING_RECORD_FILE_ONLY, since);
	if (result->existence_only++ > 0)
		return 0;
	char *shown = arena_text(&result->arena, input->path);
	if (!shown)
		return ERR_NO_MEMORY;
	verify_make_visible(shown);
	result->existence = (struct verify_existence){shown, input->covered_since_us, is_event};
	return 0;
}

static void record_not_covered(struct run *run, const struct input *input)
{
	bool record_given = false, record_unread = false;
	for (size_t i = 0; i < run->input_count; i++) {
		record_given |= run->inputs[i].kind == INPUT_RECORD;
		record_unread |= run->inputs[i].kind == INPUT_RECORD && run->inputs[i].unread;
	}
	if (record_given && !record_unread)
		verify_add(run, VERIFY_WRONG, input->path, "", FINDING_RECORD_NOT_COVERING);
	else
		verify_add(run, VERIFY_UNCHECKED, input->path, "", FINDING_FILE_KIND_UNKNOWN);
}

int verify_existence_conclude(struct run *run)
{
	int result = 0;
	for (size_t i = 0; i < run->input_count && !result; i++) {
		const struct input *input = &run->inputs[i];
		if (input->kind != INPUT_UNKNOWN || input->unread)
			continue;
		if (!input->covered)
			record_not_covered(run, input);
		else if (input->covered_since_us != TIME_NONE && !input->recorded)
			result = record_existence(run, input);
	}
	return result;
}
