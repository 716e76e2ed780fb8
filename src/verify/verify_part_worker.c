/* The concurrent check of content parts: a thread checks them while the caller's thread checks the
 * archive that lists them. The findings are the same, in the same order, as if the parts had been
 * checked first. Until verify_part_worker_wait returns for an input, only the thread may access the
 * members that it writes: `described`, `head` and `unread`. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"
#include "verify/verify_check.h"

/* The same limits as for the check of the archive. */
#define RESULT_ARENA_MAX ((size_t)16 << 20)
#define RUN_ARENA_MAX ((size_t)64 << 20)
#define WAIT_US 100000 /* interval at which cancellation is checked */

struct part_worker {
	struct run run; /* owned by the thread, except the inputs */
	struct verify_result result;
	struct verify_options options;
	struct verify_finding *last_before; /* the last finding before the parts; NULL: none */
	pthread_t thread;
	atomic_bool cancelled;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	size_t checked; /* guarded by `mutex`: all inputs before this one are checked */
	int status;     /* result of the thread, valid when all are checked */
};

/* ---- the thread ---- */

static int check_cancelled(void *context, const char *path, uint64_t done, uint64_t total)
{
	const struct part_worker *beside = context;
	return atomic_load(&beside->cancelled) ? ERR_UNAVAILABLE : 0;
}

static void note_checked(struct part_worker *beside, size_t count)
{
	pthread_mutex_lock(&beside->mutex);
	assert(count >= beside->checked && count <= beside->run.input_count);
	beside->checked = count;
	pthread_cond_signal(&beside->changed);
	pthread_mutex_unlock(&beside->mutex);
}

static void *check(void *argument)
{
	struct part_worker *beside = argument;
	int status = 0;
	struct run *run = &beside->run;
	for (size_t i = 0; i < run->input_count && !status && !verify_is_stopped(run); i++) {
		if (run->inputs[i].kind == INPUT_PART && !run->inputs[i].unread)
			status = verify_check_input(run, &run->inputs[i], verify_part);
		note_checked(beside, i + 1);
	}
	beside->status = status;
	note_checked(beside, beside->run.input_count);
	return NULL;
}

/* ---- the caller's thread ---- */

static void part_worker_free(struct part_worker *beside)
{
	arena_free(&beside->result.arena);
	arena_free(&beside->run.arena);
	pthread_cond_destroy(&beside->changed);
	pthread_mutex_destroy(&beside->mutex);
	free(beside);
}

bool verify_part_worker_begin(struct run *run)
{
	assert(!run->beside);
	bool any = false;
	for (size_t i = 0; i < run->input_count; i++)
		any |= run->inputs[i].kind == INPUT_PART;
	struct part_worker *beside =
		any && run->options && run->options->beside ? calloc(1, sizeof *beside) : NULL;
	if (!beside)
		return false;
	beside->options = *run->options;
	beside->options.progress = check_cancelled;
	beside->options.progress_context = beside;
	beside->run = (struct run){
		.result = &beside->result,
		.options = &beside->options,
		.inputs = run->inputs,
		.input_count = run->input_count,
	};
	beside->last_before = run->result->last;
	arena_init(&beside->result.arena, RESULT_ARENA_MAX);
	arena_init(&beside->run.arena, RUN_ARENA_MAX);
	pthread_mutex_init(&beside->mutex, NULL);
	pthread_cond_init(&beside->changed, NULL);
	if (pthread_create(&beside->thread, NULL, check, beside) != 0) {
		part_worker_free(beside);
		return false;
	}
	run->beside = beside;
	return true;
}

static bool wait_briefly(struct part_worker *beside, size_t place)
{
	const int64_t until_us = clock_monotonic_us() + WAIT_US;
	pthread_mutex_lock(&beside->mutex);
	if (beside->checked <= place)
		(void)thread_wait_until(&beside->changed, &beside->mutex, until_us);
	bool checked = beside->checked > place;
	pthread_mutex_unlock(&beside->mutex);
	return checked;
}

int verify_part_worker_wait(struct run *run, const struct input *input)
{
	size_t place = (size_t)(input - run->inputs);
	assert(input >= run->inputs && place < run->input_count);
	int result = 0;
	while (run->beside && !result && !wait_briefly(run->beside, place))
		result = verify_progress(run, input->path, run->progress_done, run->progress_total);
	return result;
}

/* Inserts the findings of the thread at their position, up to the limit of stored findings. */
static int merge(struct verify_result *to, const struct part_worker *beside)
{
	const struct verify_result *from = &beside->result;
	struct verify_finding **at = beside->last_before ? &beside->last_before->next : &to->first;
	for (const struct verify_finding *found = from->first; found; found = found->next) {
		struct verify_finding *copy = arena_alloc(&to->arena, sizeof *copy);
		if (!copy)
			return ERR_NO_MEMORY;
		*copy = (struct verify_finding){
			.severity = found->severity,
			.path = arena_text(&to->arena, found->path),
			.where = arena_text(&to->arena, found->where),
			.finding = found->finding,
			.what = arena_text(&to->arena, found->what),
			.what_es = arena_text(&to->arena, found->what_es),
			.detail = found->detail ? arena_text(&to->arena, found->detail) : NULL,
			.next = *at,
		};
		if (!copy->path || !copy->where || !copy->what || !copy->what_es)
			return ERR_NO_MEMORY;
		*at = copy;
		at = &copy->next;
	}
	to->wrong += from->wrong;
	to->unchecked += from->unchecked;
	to->warnings += from->warnings;
	to->checked.files += from->checked.files;
	to->checked.parts += from->checked.parts;
	to->kept = 0;
	to->last = NULL;
	for (struct verify_finding *found = to->first; found; found = found->next) {
		to->last = found;
		if (++to->kept == VERIFY_FINDINGS_MAX)
			found->next = NULL;
	}
	return 0;
}

int verify_part_worker_end(struct run *run, int status)
{
	struct part_worker *beside = run->beside;
	if (!beside)
		return status;
	for (size_t i = run->input_count; i > 0 && !status; i--)
		if (run->inputs[i - 1].kind == INPUT_PART)
			status = verify_part_worker_wait(run, &run->inputs[i - 1]);
	atomic_store(&beside->cancelled, status != 0);
	pthread_join(beside->thread, NULL);
	assert(beside->checked == run->input_count);
	run->beside = NULL;
	if (!status)
		status = beside->status;
	if (!status)
		status = merge(run->result, beside);
	run->part_arena = beside->run.arena; /* memory of the inputs' members */
	beside->run.arena = (struct arena){0};
	part_worker_free(beside);
	return status;
}
