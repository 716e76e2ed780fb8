#include "seal/revocation_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/schedule.h"
#include "base/tuned.h"
#include "seal/revocation_client.h"

#define BACKOFF_FIRST_US (5 * US_PER_SECOND)
#define BACKOFF_MAX_US (300 * US_PER_SECOND)
/* Data that was at most this old on arrival is produced on request. Other data is produced in
 * advance: its source is not asked again before 1/REST_SHARE of its lifetime, and at least
 * REST_MIN_US, have passed. */
#define MADE_ON_REQUEST_US (10 * US_PER_SECOND)
#define REST_SHARE 32
#define REST_MIN_US (60 * US_PER_SECOND)

struct entry {
	struct sha256 question;
	struct buf der; /* empty: free entry */
	int64_t issued_us, next_us, came_us;
	int64_t used; /* sequence number of the last use */
};

struct source {
	struct sha256 url;
	int64_t failures;    /* consecutive failures; 0: free entry */
	int64_t next_try_us; /* monotonic */
	char reason[REVOCATION_CAUSE_SIZE];
};

struct revocation_cache {
	pthread_mutex_t mutex;
	int64_t uses;
	size_t size_bytes;
	size_t room; /* number of entries, and of sources, that are used */
	struct entry entries[REVOCATION_CACHE_ENTRIES_MAX];
	struct source sources[REVOCATION_CACHE_ENTRIES_MAX];
};

struct revocation_cache *revocation_cache_create(void)
{
	struct revocation_cache *cache = calloc(1, sizeof *cache);

	if (cache) {
		pthread_mutex_init(&cache->mutex, NULL);
		cache->room = (size_t)tuned_up_to("revocation_cache", REVOCATION_CACHE_ENTRIES_MAX);
	}
	return cache;
}

void revocation_cache_free(struct revocation_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->room; i++)
		buf_free(&cache->entries[i].der);
	pthread_mutex_destroy(&cache->mutex);
	free(cache);
}

/* ---- data ---- */

static struct sha256 name_of(const struct revocation_request *question)
{
	struct sha256 parts[2] = {sha256_of(question->url, strlen(question->url)),
	                          sha256_of(question->request.data, question->request.size)};

	return sha256_of(parts, sizeof parts);
}

static struct entry *find(struct revocation_cache *cache, const struct sha256 *question)
{
	for (size_t i = 0; i < cache->room; i++)
		if (cache->entries[i].der.size > 0 && sha256_equal(&cache->entries[i].question, question))
			return &cache->entries[i];
	return NULL;
}

static void drop(struct revocation_cache *cache, struct entry *entry)
{
	cache->size_bytes -= entry->der.size;
	buf_free(&entry->der);
	*entry = (struct entry){0};
}

static struct entry *least_recently_used(struct revocation_cache *cache)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < cache->room; i++) {
		struct entry *entry = &cache->entries[i];
		if (entry->der.size > 0 && (!oldest || entry->used < oldest->used))
			oldest = entry;
	}
	return oldest;
}

static struct entry *find_room(struct revocation_cache *cache, size_t size)
{
	struct entry *oldest;

	while (cache->size_bytes + size > REVOCATION_CACHE_BYTES_MAX &&
	       (oldest = least_recently_used(cache)))
		drop(cache, oldest);
	for (size_t i = 0; i < cache->room; i++)
		if (cache->entries[i].der.size == 0)
			return &cache->entries[i];
	oldest = least_recently_used(cache);
	drop(cache, oldest);
	return oldest;
}

static enum revocation_cache_state state_of(const struct entry *entry, int64_t time_us,
                                            int64_t now_us)
{
	/* After the clock was set back the age is unknown. A small difference between threads is
	 * tolerated. */
	if (entry->next_us == TIME_NONE || now_us >= entry->next_us ||
	    now_us < entry->came_us - US_PER_SECOND)
		return REVOCATION_CACHE_MISS;
	if (entry->issued_us >= time_us)
		return REVOCATION_CACHE_FRESH;
	if (entry->came_us - entry->issued_us <= MADE_ON_REQUEST_US)
		return REVOCATION_CACHE_OLDER;
	int64_t rest_us = (entry->next_us - entry->issued_us) / REST_SHARE;
	if (rest_us < REST_MIN_US)
		rest_us = REST_MIN_US;
	return now_us < entry->came_us + rest_us ? REVOCATION_CACHE_FRESH : REVOCATION_CACHE_OLDER;
}

enum revocation_cache_state revocation_cache_get(struct revocation_cache *cache,
                                                 const struct revocation_request *question,
                                                 int64_t time_us, int64_t now_us, struct buf *out)
{
	struct sha256 name = name_of(question);
	enum revocation_cache_state kept = REVOCATION_CACHE_MISS;

	pthread_mutex_lock(&cache->mutex);
	struct entry *entry = find(cache, &name);
	if (entry)
		kept = state_of(entry, time_us, now_us);
	if (kept != REVOCATION_CACHE_MISS) {
		entry->used = ++cache->uses;
		buf_add_slice(out, buf_slice(&entry->der));
	}
	pthread_mutex_unlock(&cache->mutex);
	return buf_check(out) == 0 ? kept : REVOCATION_CACHE_MISS;
}

void revocation_cache_put(struct revocation_cache *cache, const struct revocation_request *question,
                          struct slice der, const struct revocation_facts *facts, int64_t now_us)
{
	struct sha256 name = name_of(question);
	struct buf copy;

	buf_init(&copy, REVOCATION_CACHE_BYTES_MAX);
	buf_add_slice(&copy, der);
	if (der.size == 0 || buf_check(&copy) != 0) {
		buf_free(&copy);
		return;
	}
	buf_fit(&copy);
	pthread_mutex_lock(&cache->mutex);
	struct entry *entry = find(cache, &name);
	if (entry)
		drop(cache, entry);
	entry = find_room(cache, der.size);
	*entry = (struct entry){.question = name,
	                        .der = copy,
	                        .issued_us = facts->issued_us,
	                        .next_us = facts->next_us,
	                        .came_us = now_us,
	                        .used = ++cache->uses};
	cache->size_bytes += der.size;
	pthread_mutex_unlock(&cache->mutex);
}

/* ---- sources ---- */

static struct source *find_source(struct revocation_cache *cache, const struct sha256 *url)
{
	for (size_t i = 0; i < cache->room; i++)
		if (cache->sources[i].failures > 0 && sha256_equal(&cache->sources[i].url, url))
			return &cache->sources[i];
	return NULL;
}

/* Evicts the source whose back-off ends first. */
static struct source *add_source(struct revocation_cache *cache, const struct sha256 *url)
{
	struct source *chosen = &cache->sources[0];

	for (size_t i = 0; i < cache->room && chosen->failures > 0; i++)
		if (cache->sources[i].failures == 0 || cache->sources[i].next_try_us < chosen->next_try_us)
			chosen = &cache->sources[i];
	*chosen = (struct source){.url = *url};
	return chosen;
}

bool revocation_cache_is_in_backoff(struct revocation_cache *cache, const char *url,
                                    char reason[REVOCATION_CAUSE_SIZE])
{
	struct sha256 name = sha256_of(url, strlen(url));

	pthread_mutex_lock(&cache->mutex);
	const struct source *source = find_source(cache, &name);
	bool backing_off = source && clock_monotonic_us() < source->next_try_us;
	if (backing_off)
		memcpy(reason, source->reason, REVOCATION_CAUSE_SIZE);
	pthread_mutex_unlock(&cache->mutex);
	return backing_off;
}

/* Of several concurrent failures only the first extends the back-off. */
void revocation_cache_note_failure(struct revocation_cache *cache, const char *url,
                                   const char *reason)
{
	struct sha256 name = sha256_of(url, strlen(url));
	int64_t now_us = clock_monotonic_us();

	pthread_mutex_lock(&cache->mutex);
	struct source *source = find_source(cache, &name);
	if (!source)
		source = add_source(cache, &name);
	if (source->next_try_us <= now_us)
		source->next_try_us =
			now_us + backoff_us(++source->failures, BACKOFF_FIRST_US, BACKOFF_MAX_US);
	snprintf(source->reason, sizeof source->reason, "%s", reason);
	pthread_mutex_unlock(&cache->mutex);
}

void revocation_cache_note_success(struct revocation_cache *cache, const char *url)
{
	struct sha256 name = sha256_of(url, strlen(url));

	pthread_mutex_lock(&cache->mutex);
	struct source *source = find_source(cache, &name);
	if (source)
		*source = (struct source){0};
	pthread_mutex_unlock(&cache->mutex);
}
