#include "http/key_lookup.h"

#include <assert.h>
#include <stdlib.h>

#include "http/http_internal.h"

#define LOOKUPS_MAX 512 /* limit for all loops */

struct key_lookup {
	struct task task;
	struct loop_item item;
	struct loop *loop;
	struct key_lookup *previous, *next; /* in the loop's list */
	struct exchange *waiting;           /* linked by next_waiting */
	int64_t started_us;
	struct key_lookup_query question;
	/* Owned by the worker until it returns the lookup. */
	int result;
	struct key_identity key;
	struct error error;
};

static void look_up(struct task *task)
{
	struct key_lookup *lookup = (struct key_lookup *)task;
	struct service *service = lookup->loop->server->service;
	lookup->result =
		service_find_key(service, &lookup->question.key_hash, &lookup->key, &lookup->error);
	loop_post(lookup->loop, &lookup->item);
}

static void resume(struct exchange *exchange)
{
	exchange->lookup = NULL;
	exchange->next_waiting = NULL;
	loop_resume(exchange);
	exchange->step = STEP_KEY;
}

static void take(struct loop_item *item)
{
	struct key_lookup *lookup =
		(struct key_lookup *)((char *)item - offsetof(struct key_lookup, item));
	struct loop *loop = lookup->loop;
	*(lookup->previous ? &lookup->previous->next : &loop->lookups) = lookup->next;
	if (lookup->next)
		lookup->next->previous = lookup->previous;
	int count = atomic_fetch_sub(&loop->server->lookup_count, 1);
	assert(count > 0);
	while (lookup->waiting) {
		struct exchange *exchange = lookup->waiting;
		lookup->waiting = exchange->next_waiting;
		assert(exchange->waiting && exchange->lookup == lookup);
		assert(sha256_equal(&exchange->question.key_hash, &lookup->question.key_hash));
		exchange->lookup_result = lookup->result;
		exchange->key = lookup->key;
		exchange->error = lookup->error;
		resume(exchange);
	}
	free(lookup);
}

void key_lookup_abort(struct exchange *exchange)
{
	struct exchange **at = &exchange->lookup->waiting;
	while (*at != exchange)
		at = &(*at)->next_waiting;
	*at = exchange->next_waiting;
	exchange->lookup_result = error_cause(&exchange->error, ERR_UNAVAILABLE,
	                                      "http.deadline passed before the key lookup completed");
	resume(exchange);
}

/* Returns the newest lookup of the key, starting at `from`. */
static struct key_lookup *find(struct key_lookup *from, const struct sha256 *key_hash)
{
	struct key_lookup *lookup = from;
	while (lookup && !sha256_equal(&lookup->question.key_hash, key_hash))
		lookup = lookup->next;
	return lookup;
}

/* Returns whether a lookup can be shared. Its result may be as old as its start, and is valid only
 * as long as a cache entry. */
static bool may_share(const struct key_lookup *lookup, const struct key_lookup_query *question,
                      int64_t now_us)
{
	return lookup->question.generation == question->generation &&
	       now_us - lookup->started_us < KEY_LIFE_US;
}

static struct key_lookup *start(struct loop *loop, const struct key_lookup_query *question,
                                int64_t now_us)
{
	struct http_server *server = loop->server;
	bool many = atomic_fetch_add(&server->lookup_count, 1) >= LOOKUPS_MAX;
	struct key_lookup *lookup = many ? NULL : calloc(1, sizeof *lookup);
	if (!lookup) {
		atomic_fetch_sub(&server->lookup_count, 1);
		return NULL;
	}
	lookup->task.run = look_up;
	lookup->item.take = take;
	lookup->loop = loop;
	lookup->started_us = now_us;
	lookup->question = *question;
	if (!worker_submit(server->workers[LANE_KEYS], &lookup->task)) {
		atomic_fetch_sub(&server->lookup_count, 1);
		free(lookup);
		return NULL;
	}
	loop->out++;
	lookup->next = loop->lookups;
	if (loop->lookups)
		loop->lookups->previous = lookup;
	loop->lookups = lookup;
	return lookup;
}

int key_lookup_begin(struct exchange *exchange, struct error *error)
{
	struct loop *loop = exchange->loop;
	const struct key_lookup_query *question = &exchange->question;
	int64_t now_us = clock_monotonic_us();
	struct key_lookup *lookup = find(loop->lookups, &question->key_hash);
	for (struct key_lookup *old = lookup; old; old = find(old->next, &question->key_hash)) {
		/* Requests that waited this long have reached their deadline, and so would this one. */
		if (now_us - old->started_us > loop->deadline_us)
			return error_cause(error, ERR_UNAVAILABLE,
			                   "a lookup of the same key has not completed");
	}
	if (!lookup || !may_share(lookup, question, now_us))
		lookup = start(loop, question, now_us);
	if (!lookup)
		return error_cause(error, ERR_UNAVAILABLE, "too many key lookups are in progress");
	assert(!exchange->lookup && sha256_equal(&lookup->question.key_hash, &question->key_hash));
	exchange->lookup = lookup;
	exchange->next_waiting = lookup->waiting;
	lookup->waiting = exchange;
	loop_suspend(exchange);
	return 0;
}
