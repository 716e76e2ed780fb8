#include "http/memory.h"

#include <assert.h>

#include "http/http_internal.h"

#define MIB ((int64_t)1024 * 1024)
#define SHARE 4 /* an owner may use at most this fraction */
#define LARGE (2 * BODY_SLACK)

/* Maximum memory for one request with a JSON body. */
#define REQUEST_MAX (BODY_HELD_MAX + EVENT_CANONICAL_MAX + 1 + ANSWER_RESERVE)

static_assert(BODY_HELD_MAX >= CHUNK_HELD_MAX, "a chunk fits into the buffer for a body");
static_assert(MEMORY_CHECK < BUDGET_KINDS, "every kind has a counter");

/* Returns the limit for a request of `size`. Large requests leave an eighth free, so that small
 * ones are served while large ones wait. */
static int64_t memory_for(const struct http_server *server, size_t size)
{
	int64_t all = server->service->settings->http_body_memory * MIB;
	return size > LARGE ? all - all / 8 : all;
}

static int64_t larger(int64_t a, size_t b)
{
	return a > (int64_t)b ? a : (int64_t)b;
}

/* Returns the limit of one owner: always sufficient for one chunk of a form. */
static int64_t plain_share_for(const struct http_server *server, size_t size)
{
	return larger(memory_for(server, size) / SHARE, CHUNK_HELD_MAX);
}

/* Returns the limit of one owner for a request that then has `size`: sufficient for any JSON body
 * if the owner has no other request. */
static int64_t share_for(const struct http_server *server, size_t size)
{
	return larger(plain_share_for(server, size), size < REQUEST_MAX ? size : REQUEST_MAX);
}

size_t memory_largest(const struct http_server *server)
{
	return (size_t)plain_share_for(server, SIZE_MAX);
}

static _Atomic int64_t *held_for(struct metrics *metrics, unsigned kind)
{
	switch ((enum memory_kind)kind) {
	case MEMORY_BODY: return &metrics->body_bytes;
	case MEMORY_ARENA: return &metrics->arena_bytes;
	case MEMORY_ANSWER: return &metrics->answer_bytes;
	case MEMORY_CHECK: break;
	}
	return &metrics->check_bytes;
}

static void count_refused(struct http_server *server)
{
	atomic_fetch_add_explicit(&server->metrics.body_memory_refused, 1, memory_order_relaxed);
}

static bool take(struct budget *budget, unsigned kind, size_t size)
{
	struct memory *memory = (struct memory *)budget;
	struct http_server *server = memory->server;
	int64_t more = (int64_t)size;
	size_t whole = budget->granted + size;
	pthread_mutex_lock(&server->bodies_lock);
	bool fits = server->held + more <= memory_for(server, whole) &&
	            share_take(server->bodies, memory->owner, more, share_for(server, whole)) == 0;
	if (fits)
		server->held += more;
	pthread_mutex_unlock(&server->bodies_lock);
	if (fits)
		atomic_fetch_add_explicit(held_for(&server->metrics, kind), more, memory_order_relaxed);
	else
		count_refused(server);
	return fits;
}

static void give(struct budget *budget, unsigned kind, size_t size)
{
	struct memory *memory = (struct memory *)budget;
	struct http_server *server = memory->server;
	pthread_mutex_lock(&server->bodies_lock);
	share_release(server->bodies, memory->owner, (int64_t)size);
	server->held -= (int64_t)size;
	assert(server->held >= 0);
	pthread_mutex_unlock(&server->bodies_lock);
	atomic_fetch_sub_explicit(held_for(&server->metrics, kind), (int64_t)size,
	                          memory_order_relaxed);
}

static const struct budget_source source = {take, give};

void memory_init(struct memory *memory, struct http_server *server, size_t allowance)
{
	*memory =
		(struct memory){.budget = {.source = &source, .allowance = allowance}, .server = server};
}

void memory_set_owner(struct memory *memory, uint64_t owner)
{
	struct http_server *server = memory->server;
	int64_t granted = (int64_t)memory->budget.granted;
	if (!granted || memory->owner == owner) {
		memory->owner = owner;
		return;
	}
	pthread_mutex_lock(&server->bodies_lock);
	int64_t share = share_for(server, memory->budget.granted);
	if (share_take(server->bodies, owner, granted, share) == 0) {
		share_release(server->bodies, memory->owner, granted);
		memory->owner = owner;
	}
	pthread_mutex_unlock(&server->bodies_lock);
}

bool memory_is_available(struct memory *memory, size_t size)
{
	const struct budget *budget = &memory->budget;
	struct http_server *server = memory->server;
	assert(budget->held <= budget->allowance + budget->granted);
	size_t room = budget->allowance + budget->granted - budget->held;
	if (size <= room)
		return true;
	int64_t more = (int64_t)(size - room);
	size_t whole = budget->granted + (size - room);
	pthread_mutex_lock(&server->bodies_lock);
	int64_t all = server->held + more;
	int64_t own = share_held(server->bodies, memory->owner) + more;
	pthread_mutex_unlock(&server->bodies_lock);
	bool fits = all <= memory_for(server, whole) && own <= share_for(server, whole);
	if (!fits)
		count_refused(server);
	return fits;
}
