#include "base/reading.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* Of one thread at a time; kept for the next one when its thread ends. */
struct reader {
	struct reader *next;
	atomic_bool taken;
	atomic_uint_fast64_t since; /* what `replaced` was when it began; 0: it does not read */
};

static atomic_uint_fast64_t replaced = 1;
static struct reader *_Atomic readers;
static atomic_int nameless; /* who read without memory for a reader of their own */
static _Thread_local struct reader *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;

static void let_go(void *value)
{
	struct reader *reader = value;
	atomic_store(&reader->since, 0);
	atomic_store(&reader->taken, false);
}

static void make_key(void)
{
	if (pthread_key_create(&at_end, let_go) != 0)
		abort();
}

static struct reader *take_free(void)
{
	for (struct reader *at = atomic_load(&readers); at; at = at->next) {
		bool taken = false;
		if (atomic_compare_exchange_strong(&at->taken, &taken, true))
			return at;
	}
	return NULL;
}

static struct reader *find_own(void)
{
	if (own)
		return own;
	(void)pthread_once(&once, make_key);
	struct reader *reader = take_free();
	bool fresh = !reader;
	if (fresh)
		reader = calloc(1, sizeof *reader);
	if (!reader)
		return NULL;
	if (fresh) {
		atomic_init(&reader->taken, true);
		reader->next = atomic_load(&readers);
		while (!atomic_compare_exchange_weak(&readers, &reader->next, reader))
			continue;
	}
	if (pthread_setspecific(at_end, reader) != 0) {
		atomic_store(&reader->taken, false);
		return NULL;
	}
	own = reader;
	return reader;
}

/* Who looks for readers before it is stored here sees none, and has replaced the pointers already:
 * all three are in one order, and pointers are read after it. */
void reading_begin(void)
{
	struct reader *reader = find_own();
	if (!reader) {
		atomic_fetch_add(&nameless, 1);
		return;
	}
	assert(atomic_load_explicit(&reader->since, memory_order_relaxed) == 0);
	atomic_store(&reader->since, atomic_load(&replaced));
}

void reading_end(void)
{
	if (own && atomic_load_explicit(&own->since, memory_order_relaxed))
		atomic_store_explicit(&own->since, 0, memory_order_release);
	else
		atomic_fetch_sub(&nameless, 1);
}

uint64_t reading_replaced(void)
{
	return atomic_fetch_add(&replaced, 1) + 1;
}

bool reading_is_over(uint64_t number)
{
	if (atomic_load(&nameless) > 0)
		return false;
	for (struct reader *at = atomic_load(&readers); at; at = at->next) {
		uint64_t since = atomic_load(&at->since);
		if (since && since < number)
			return false;
	}
	return true;
}
