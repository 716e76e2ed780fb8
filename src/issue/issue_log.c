#include "issue/issue_log.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "evidence/log_publisher.h"
#include "store/events/segments.h"
#include "store/tlog/log_records.h"
#include "tlog/merkle.h"

#define SEGMENTS_AT_ONCE 256
#define CHECKPOINT_MEMORY_MAX ((size_t)512 << 10)
#define SIGNING_WAIT_US (5 * US_PER_SECOND) /* for a checkpoint, besides the witnesses */
#define POLL_NS 50000000

struct log_work {
	struct issue_job *issue;
	struct archive *archive;
	int64_t first, last; /* numbers of the segments */
	/* Rounds and places of some of them, from `read_first` on. */
	int64_t read_first;
	size_t read_count;
	int64_t rounds[SEGMENTS_AT_ONCE], places[SEGMENTS_AT_ONCE];
	char origin[NOTE_NAME_MAX + 1];
	struct arena newest_arena;
	struct log_checkpoint newest;
	/* The sizes of the checkpoints in the archive, ascending. Segments refer to the first one that
	 * covers them. */
	uint64_t *sizes;
	size_t count, room;
	int64_t logged; /* segments */
	struct tile_reader reader;
	struct error *error;
};

/* ---- reading ---- */

static int read_tile(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                     struct error *error)
{
	return store_read_log_tile(context, id, ret_hashes, error);
}

static struct merkle_source tree_of(struct log_work *work, const struct tile_store *tiles,
                                    uint64_t size)
{
	return tile_reader_init(&work->reader, tiles, size);
}

/* Makes sure that a segment is among those read. */
static int read_segments(struct log_work *work, int64_t number)
{
	const struct certification *certification = work->issue->certification;
	if (number >= work->read_first && number < work->read_first + (int64_t)work->read_count)
		return OK;
	int64_t last =
		number + SEGMENTS_AT_ONCE - 1 < work->last ? number + SEGMENTS_AT_ONCE - 1 : work->last;
	work->read_count = 0;
	int result = store_read_segment_rounds(work->issue->service->store, certification->account,
	                                       certification->chain, number, last, work->rounds,
	                                       work->places, work->error);
	work->read_first = number;
	work->read_count = result ? 0 : (size_t)(last - number + 1);
	return result;
}

/* Finds the index of a segment's entry; *ret_logged false: the segment is older than the log. */
static int find_entry(struct log_work *work, int64_t number, bool *ret_logged, uint64_t *ret_index)
{
	*ret_logged = false;
	int result = read_segments(work, number);
	if (result)
		return result;
	size_t at = (size_t)(number - work->read_first);
	result = store_find_log_index(work->issue->service->store, work->rounds[at], work->places[at],
	                              ret_index, work->error);
	*ret_logged = !result;
	return result == ERR_NOT_FOUND ? OK : result;
}

/* The same; *ret_logged false: no checkpoint has it. */
static int find_index(struct log_work *work, int64_t number, bool *ret_logged, uint64_t *ret_index)
{
	int result = find_entry(work, number, ret_logged, ret_index);
	*ret_logged = *ret_logged && *ret_index < work->newest.size;
	return result;
}

/* ---- checkpoints ---- */

static int note_size(struct log_work *work, uint64_t size)
{
	assert(work->count == 0 || work->sizes[work->count - 1] < size);
	if (work->count == work->room) {
		size_t room = work->room ? 2 * work->room : 64;
		uint64_t *sizes = reallocarray(work->sizes, room, sizeof *sizes);
		if (!sizes)
			return ERR_NO_MEMORY;
		work->sizes = sizes;
		work->room = room;
	}
	work->sizes[work->count++] = size;
	return OK;
}

/* Finds the first checkpoint with that entry that the quorum has cosigned; otherwise the newest. */
static int find_covering(struct log_work *work, uint64_t index, struct arena *arena,
                         struct log_checkpoint *ret)
{
	const struct service *service = work->issue->service;
	int result =
		store_find_covering_checkpoint(service->store, work->origin, index,
	                                   service->settings->log_quorum, arena, ret, work->error);
	if (result == ERR_NOT_FOUND || (!result && ret->size > work->newest.size)) {
		*ret = work->newest;
		return OK;
	}
	return result;
}

/* Chooses the checkpoints. */
static int choose(struct log_work *work)
{
	int result = OK;
	for (int64_t number = work->first; number <= work->last && !result; number++) {
		bool logged;
		uint64_t index;
		result = find_index(work, number, &logged, &index);
		if (result || !logged || (work->count > 0 && index < work->sizes[work->count - 1]))
			continue;
		ARENA_AUTO struct arena arena;
		struct log_checkpoint covering;
		arena_init(&arena, CHECKPOINT_MEMORY_MAX);
		result = find_covering(work, index, &arena, &covering);
		if (!result)
			result = note_size(work, covering.size);
		if (!result)
			result = issue_progress(work->issue, 1, 1);
	}
	if (!result && work->count > 0 && work->sizes[work->count - 1] < work->newest.size)
		result = note_size(work, work->newest.size);
	return result;
}

static int add_checkpoint(struct log_work *work, size_t place)
{
	const struct tile_store tiles = {.read = read_tile, .context = work->issue->service->store};
	uint64_t size = work->sizes[place];
	struct merkle_path consistency = {0};
	struct log_checkpoint checkpoint;
	BUF_AUTO struct buf note;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CHECKPOINT_MEMORY_MAX);
	buf_init(&note, 2 * NOTE_SIZE_MAX);
	/* It was found by its first entry before, with as many cosignatures or fewer. */
	int result = store_find_covering_checkpoint(work->issue->service->store, work->origin, size - 1,
	                                            0, &arena, &checkpoint, work->error);
	if (!result && checkpoint.size != size)
		result = error_cause(work->error, ERR_CORRUPT, "a checkpoint of the log is missing");
	if (!result && place + 1 < work->count) {
		const struct merkle_source source = tree_of(work, &tiles, work->sizes[place + 1]);
		result = merkle_prove_consistency(&source, size, work->sizes[place + 1], &consistency,
		                                  work->error);
	}
	if (result)
		return result;
	buf_add_slice(&note, checkpoint.note);
	if (note_add_readable(checkpoint.cosignatures, &note))
		return ERR_NO_MEMORY;
	const struct archive_checkpoint given = {note.data, &consistency};
	return archive_add_checkpoint(work->archive, &given, work->error);
}

/* ---- places ---- */

static int add_places(struct log_work *work)
{
	const struct tile_store tiles = {.read = read_tile, .context = work->issue->service->store};
	size_t place = 0;
	uint64_t opened = 0;
	struct merkle_source source = {0};
	int result = OK;
	for (int64_t number = work->first; number <= work->last && !result; number++) {
		struct merkle_path path = {0};
		struct archive_log_place given = {.path = &path};
		bool logged;
		result = find_index(work, number, &logged, &given.index);
		work->logged += !result && logged;
		if (!result && logged) {
			while (given.index >= work->sizes[place])
				place++;
			assert(place < work->count);
			given.size = work->sizes[place];
			if (given.size != opened)
				source = tree_of(work, &tiles, given.size);
			opened = given.size;
			result = merkle_prove_inclusion(&source, given.index, given.size, &path, work->error);
		}
		if (!result)
			result = archive_add_log_place(work->archive, &given, work->error);
		if (!result)
			result = issue_progress(work->issue, 1, 1);
	}
	return result;
}

/* Lists the configured witnesses that cosigned the newest checkpoint. */
static int list_witnesses(struct log_work *work, struct report_witness *rows, size_t *ret_count)
{
	struct log_witness witnesses[LOG_WITNESSES_MAX];
	struct note note;
	size_t count = 0;
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	arena_init(&arena, CHECKPOINT_MEMORY_MAX);
	buf_init(&text, 2 * NOTE_SIZE_MAX);
	buf_add_slice(&text, work->newest.note);
	buf_add_slice(&text, work->newest.cosignatures);
	*ret_count = 0;
	int result = buf_check(&text);
	if (!result)
		result = note_parse(&arena, buf_slice(&text), &note, work->error);
	if (!result)
		result = log_witnesses_parse(work->issue->service->settings->log_witnesses, witnesses,
		                             &count, work->error);
	for (size_t i = 0; i < count && !result; i++) {
		int64_t time_us;
		if (note_verify(&note, &witnesses[i].key, &time_us) != NOTE_SIGNED)
			continue;
		const char *name = arena_text(work->issue->arena, witnesses[i].key.name);
		result = name ? OK : ERR_NO_MEMORY;
		rows[(*ret_count)++] = (struct report_witness){name, time_us};
	}
	return result;
}

/* Keeps what the reports say of the log. */
static int describe(struct log_work *work)
{
	struct arena *arena = work->issue->arena;
	struct report_witness *rows = arena_alloc(arena, LOG_WITNESSES_MAX * sizeof *rows);
	const char *origin = arena_text(arena, work->origin);
	size_t count = 0;
	int result = rows && origin ? list_witnesses(work, rows, &count) : ERR_NO_MEMORY;
	if (!result)
		work->issue->log = (struct report_log){.origin = origin,
		                                       .entries = (int64_t)work->newest.size,
		                                       .segments = work->logged,
		                                       .witnesses = rows,
		                                       .witness_rows = count};
	return result;
}

static int read_newest(struct log_work *work)
{
	arena_reset(&work->newest_arena);
	int result =
		store_get_newest_checkpoint(work->issue->service->store, work->origin, CHECKPOINT_FINAL,
	                                &work->newest_arena, &work->newest, work->error);
	if (result == ERR_NOT_FOUND)
		work->newest = (struct log_checkpoint){0};
	return result == ERR_NOT_FOUND ? OK : result;
}

/* Waits for a checkpoint that has the last segment, which may have been sealed a moment ago: the
 * present checkpoint may wait for witnesses, and then the next one. If there is none in time, the
 * archive does without, and while nothing is published it does not wait at all. */
static int await_newest(struct log_work *work)
{
	const struct service *service = work->issue->service;
	const int64_t bound_us = 2 * service->settings->log_witness_timeout + SIGNING_WAIT_US;
	const int64_t waited_us = atomic_load(&service->counters.log_waiting_seconds) * US_PER_SECOND;
	const int64_t until_us = clock_monotonic_us() + (waited_us > bound_us ? 0 : bound_us);
	bool logged;
	uint64_t index = 0;
	int result = find_entry(work, work->last, &logged, &index);
	if (!result)
		result = read_newest(work);
	while (!result && logged && index >= work->newest.size && clock_monotonic_us() <= until_us) {
		nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
		result = issue_progress(work->issue, 1, 1);
		if (!result)
			result = read_newest(work);
	}
	return result;
}

static int add_log(struct log_work *work)
{
	memcpy(work->origin, work->issue->service->log_origin, sizeof work->origin);
	int result = await_newest(work);
	if (!result && work->newest.size == 0)
		return OK;
	if (!result)
		result = choose(work);
	for (size_t i = 0; i < work->count && !result; i++)
		result = add_checkpoint(work, i);
	if (result || work->count == 0)
		return result;
	result = add_places(work);
	return result ? result : describe(work);
}

int issue_add_log(struct issue_job *issue, struct archive *archive, int64_t first_segment,
                  int64_t last_segment, struct error *error)
{
	struct log_work *work = calloc(1, sizeof *work);
	if (!work)
		return ERR_NO_MEMORY;
	work->issue = issue;
	work->archive = archive;
	work->first = first_segment;
	work->last = last_segment;
	work->error = error;
	arena_init(&work->newest_arena, CHECKPOINT_MEMORY_MAX);
	int result = add_log(work);
	arena_free(&work->newest_arena);
	free(work->sizes);
	free(work);
	return result;
}
