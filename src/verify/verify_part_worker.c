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
	const struct part_worker *worker = context;
	return atomic_load(&worker->cancelled) ? ERR_UNAVAILABLE : 0;
}

static void note_checked(struct part_worker *worker, size_t count)
{
	pthread_mutex_lock(&worker->mutex);
	assert(count >= worker->checked && count <= worker->run.input_count);
	worker->checked = count;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->mutex);
}

static void *check(void *argument)
{
	struct part_worker *worker = argument;
	int status = 0;
	struct run *run = &worker->run;
	for (size_t i = 0; i < run->input_count && !status && !verify_is_stopped(run); i++) {
		if (run->inputs[i].kind == INPUT_PART && !run->inputs[i].unread)
			status = verify_check_input(run, &run->inputs[i], verify_part);
		note_checked(worker, i + 1);
	}
	worker->status = status;
	note_checked(worker, worker->run.input_count);
	return NULL;
}

/* ---- the caller's thread ---- */

static void part_worker_free(struct part_worker *worker)
{
	arena_free(&worker->result.arena);
	arena_free(&worker->run.arena);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->mutex);
	free(worker);
}

bool verify_part_worker_begin(struct run *run)
{
	assert(!run->worker);
	bool any = false;
	for (size_t i = 0; i < run->input_count; i++)
		any |= run->inputs[i].kind == INPUT_PART;
	struct part_worker *worker =
		any && run->options && run->options->use_threads ? calloc(1, sizeof *worker) : NULL;
	if (!worker)
		return false;
	worker->options = *run->options;
	worker->options.progress = check_cancelled;
	worker->options.progress_context = worker;
	worker->run = (struct run){
		.result = &worker->result,
		.options = &worker->options,
		.inputs = run->inputs,
		.input_count = run->input_count,
	};
	worker->last_before = run->result->last;
	arena_init(&worker->result.arena, RESULT_ARENA_MAX);
	arena_init(&worker->run.arena, RUN_ARENA_MAX);
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_cond_init(&worker->changed, NULL);
	if (pthread_create(&worker->thread, NULL, check, worker) != 0) {
		part_worker_free(worker);
		return false;
	}
	run->worker = worker;
	return true;
}

static bool wait_briefly(struct part_worker *worker, size_t place)
{
	const int64_t until_us = clock_monotonic_us() + WAIT_US;
	pthread_mutex_lock(&worker->mutex);
	if (worker->checked <= place)
		(void)thread_wait_until(&worker->changed, &worker->mutex, until_us);
	bool checked = worker->checked > place;
	pthread_mutex_unlock(&worker->mutex);
	return checked;
}

int verify_part_worker_wait(struct run *run, const struct input *input)
{
	size_t place = (size_t)(input - run->inputs);
	assert(input >= run->inputs && place < run->input_count);
	int result = 0;
	while (run->worker && !result && !wait_briefly(run->worker, place))
		result = verify_progress(run, input->path, run->progress_done, run->progress_total);
	return result;
}

/* Inserts the findings of the thread at their position, up to the limit of stored findings. */
static int merge(struct verify_result *to, const struct part_worker *worker)
{
	const struct verify_result *from = &worker->result;
	struct verify_finding **at = worker->last_before ? &worker->last_before->next : &to->first;
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
	struct part_worker *worker = run->worker;
	if (!worker)
		return status;
	for (size_t i = run->input_count; i > 0 && !status; i--)
		if (run->inputs[i - 1].kind == INPUT_PART)
			status = verify_part_worker_wait(run, &run->inputs[i - 1]);
	atomic_store(&worker->cancelled, status != 0);
	pthread_join(worker->thread, NULL);
	assert(worker->checked == run->input_count);
	run->worker = NULL;
	if (!status)
		status = worker->status;
	if (!status)
		status = merge(run->result, worker);
	run->part_arena = worker->run.arena; /* memory of the inputs' members */
	worker->run.arena = (struct arena){0};
	part_worker_free(worker);
	return status;
}
