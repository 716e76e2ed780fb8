#include "base/epoch.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* Belongs to one thread at a time, and is reused by another when that thread ends. */
struct reader {
	struct reader *next;
	atomic_bool taken;
	atomic_uint_fast64_t since; /* value of `replaced` at the start of the read section; 0: none */
};

static atomic_uint_fast64_t replaced = 1;
static struct reader *_Atomic readers;
static atomic_int unregistered; /* number of readers without a record, for lack of memory */
static _Thread_local struct reader *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;

static void release(void *value)
{
	struct reader *reader = value;
	atomic_store(&reader->since, 0);
	atomic_store(&reader->taken, false);
}

static void make_key(void)
{
	if (pthread_key_create(&exit_key, release) != 0)
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
	if (pthread_setspecific(exit_key, reader) != 0) {
		atomic_store(&reader->taken, false);
		return NULL;
	}
	own = reader;
	return reader;
}

/* A writer that scans the readers before this store sees none, but has already replaced the
 * pointers. All three operations are sequentially consistent, and the reader loads the pointers
 * after the store. */
void epoch_enter(void)
{
	struct reader *reader = find_own();
	if (!reader) {
		atomic_fetch_add(&unregistered, 1);
		return;
	}
	assert(atomic_load_explicit(&reader->since, memory_order_relaxed) == 0);
	atomic_store(&reader->since, atomic_load(&replaced));
}

void epoch_leave(void)
{
	if (own && atomic_load_explicit(&own->since, memory_order_relaxed))
		atomic_store_explicit(&own->since, 0, memory_order_release);
	else
		atomic_fetch_sub(&unregistered, 1);
}

uint64_t epoch_advance(void)
{
	return atomic_fetch_add(&replaced, 1) + 1;
}

bool epoch_is_over(uint64_t number)
{
	if (atomic_load(&unregistered) > 0)
		return false;
	for (struct reader *at = atomic_load(&readers); at; at = at->next) {
		uint64_t since = atomic_load(&at->since);
		if (since && since < number)
			return false;
	}
	return true;
}
