/* Which archives of a chain are connected to one history, by events that they have in common or by
 * seal documents. The comparison itself is in verify_points.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "verify/verify_check.h"

/* The events of a chain whose hashes an archive or a bridge contains. */
struct span {
	struct place from; /* the first event; 0: the genesis document */
	int64_t to;
	const char *path;
	const struct input *archive; /* NULL: a bridge */
};

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return verify_compare_places(x->from, y->from);
}

static bool same_chain(const struct span *a, const struct span *b)
{
	return a->from.chain == b->from.chain && strcmp(a->from.channel_id, b->from.channel_id) == 0;
}

/* Returns whether a given file that could not be used might fill a gap. */
static bool is_incomplete(const struct run *run)
{
	bool complete = true;
	for (size_t i = 0; i < run->input_count; i++) {
		const struct input *input = &run->inputs[i];
		bool is_known = input->kind != INPUT_ARCHIVE || (input->described && input->outlined);
		complete = complete && is_known && !input->unread;
	}
	for (size_t i = 0; i < run->bridge_count; i++)
		complete = complete && run->bridges[i].usable;
	return !complete;
}

/* Records a gap between two spans, across which they may be of different histories. */
static void record_gap(struct run *run, const struct span *before, const struct span *after,
                       bool has_bridge)
{
	const int64_t first = before->to + 1, last = after->from.sequence;
	if (has_bridge && is_incomplete(run))
		verify_add(run, VERIFY_UNCHECKED, after->path, "", FINDING_BRIDGE_NOT_LEADING, before->path,
		           first, last);
	else if (has_bridge)
		verify_add(run, VERIFY_WRONG, after->path, "", FINDING_BRIDGE_NOT_LEADING, before->path,
		           first, last);
	else
		verify_add(run, VERIFY_WARNING, after->path, "", FINDING_HISTORY_NOT_CONNECTED,
		           before->path, first - 1, last + 1);
}

static int note_history(struct run *run, const struct span *spans, struct verify_history *found)
{
	struct verify_result *result = run->result;
	struct verify_history *history = arena_alloc(&result->arena, sizeof *history);
	found->channel_id = arena_text(&result->arena, spans->from.channel_id);
	if (!history || !found->channel_id)
		return ERR_NO_MEMORY;
	*history = *found;
	*(result->last_history ? &result->last_history->next : &result->histories) = history;
	result->last_history = history;
	return 0;
}

/* Records bridges of a chain of which there is no archive. */
static void record_others(struct run *run, const struct span *spans, size_t count)
{
	const bool incomplete = is_incomplete(run);
	for (size_t i = 0; i < count; i++)
		if (incomplete)
			verify_add(run, VERIFY_UNCHECKED, spans[i].path, "", FINDING_BRIDGE_OF_ANOTHER,
			           spans[i].from.channel_id);
		else
			verify_add(run, VERIFY_WRONG, spans[i].path, "", FINDING_BRIDGE_OF_ANOTHER,
			           spans[i].from.channel_id);
}

/* Judges the spans of one chain, which are sorted. */
static int judge_chain(struct run *run, const struct span *spans, size_t count)
{
	const struct span *furthest = spans;
	struct verify_history history = {.is_test = spans->from.chain == MODE_TEST, .is_one = true};
	for (size_t i = 0; i < count; i++) {
		history.archives += spans[i].archive != NULL;
		history.is_one = history.is_one && !(spans[i].archive && spans[i].archive->unread);
	}
	history.bridges = count - history.archives;
	if (history.archives == 0) {
		record_others(run, spans, count);
		return 0;
	}
	for (size_t i = 1; i < count; i++) {
		bool connected = spans[i].from.sequence <= furthest->to;
		if (!connected)
			record_gap(run, furthest, &spans[i], history.bridges > 0);
		history.is_one = history.is_one && connected;
		if (spans[i].to > furthest->to)
			furthest = &spans[i];
	}
	history.is_one = history.is_one && run->result->wrong == 0;
	history.first_sequence = spans->from.sequence + 1;
	history.last_sequence = furthest->to;
	return count > 1 ? note_history(run, spans, &history) : 0;
}

static size_t list_spans(const struct run *run, struct span *spans)
{
	size_t count = 0;
	for (size_t i = 0; i < run->input_count; i++) {
		const struct input *input = &run->inputs[i];
		const struct archive_facts *facts = &input->manifest.facts;
		if (input->kind == INPUT_ARCHIVE && input->described && input->outlined)
			spans[count++] = (struct span){{facts->channel_id, facts->mode, input->hashes_from},
			                               input->hashes_to,
			                               input->path,
			                               input};
	}
	for (size_t i = 0; i < run->bridge_count; i++) {
		const struct seal_walk *walk = &run->bridges[i].walk;
		if (run->bridges[i].usable)
			spans[count++] = (struct span){{walk->channel_id, MODE_LIVE, walk->first_sequence - 1},
			                               walk->last_sequence,
			                               run->bridges[i].path,
			                               NULL};
	}
	return count;
}

int verify_connections(struct run *run)
{
	struct span *spans = calloc(run->input_count + run->bridge_count + 1, sizeof *spans);
	if (!spans)
		return ERR_NO_MEMORY;
	size_t count = list_spans(run, spans), end;
	int result = 0;
	qsort(spans, count, sizeof *spans, compare_spans);
	for (size_t i = 0; i < count && !result; i = end) {
		for (end = i + 1; end < count && same_chain(&spans[i], &spans[end]); end++)
			;
		result = judge_chain(run, &spans[i], end - i);
	}
	free(spans);
	return result;
}
