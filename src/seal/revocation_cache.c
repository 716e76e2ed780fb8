#include "seal/revocation_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/schedule.h"
#include "seal/revocation_client.h"

#define BACKOFF_FIRST_US (5 * US_PER_SECOND)
#define BACKOFF_MAX_US (300 * US_PER_SECOND)
/* What was no older than this when it came is made when asked for. Other data is made in advance:
 * its place is not asked again before a part of the data's life, and this long. */
#define MADE_WHEN_ASKED_US (10 * US_PER_SECOND)
#define REST_SHARE 32
#define REST_MIN_US (60 * US_PER_SECOND)

struct entry {
	struct sha256 question;
	struct buf der; /* empty: the entry is free */
	int64_t issued_us, next_us, came_us;
	int64_t used; /* in order */
};

struct place {
	struct sha256 url;
	int64_t failures;    /* in a row; 0: the place is free */
	int64_t next_try_us; /* monotonic */
	char reason[REVOCATION_CAUSE_SIZE];
};

struct revocation_cache {
	pthread_mutex_t mutex;
	int64_t uses;
	size_t size_bytes;
	struct entry entries[REVOCATION_KEPT_MAX];
	struct place places[REVOCATION_KEPT_MAX];
};

struct revocation_cache *revocation_cache_create(void)
{
	struct revocation_cache *cache = calloc(1, sizeof *cache);

	if (cache)
		pthread_mutex_init(&cache->mutex, NULL);
	return cache;
}

void revocation_cache_free(struct revocation_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < REVOCATION_KEPT_MAX; i++)
		buf_free(&cache->entries[i].der);
	pthread_mutex_destroy(&cache->mutex);
	free(cache);
}

/* ---- data ---- */

static struct sha256 name_of(const struct revocation_question *question)
{
	struct sha256 parts[2] = {sha256_of(question->url, strlen(question->url)),
	                          sha256_of(question->request.data, question->request.size)};

	return sha256_of(parts, sizeof parts);
}

static struct entry *find(struct revocation_cache *cache, const struct sha256 *question)
{
	for (size_t i = 0; i < REVOCATION_KEPT_MAX; i++)
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

static struct entry *longest_unused(struct revocation_cache *cache)
{
	struct entry *longest = NULL;

	for (size_t i = 0; i < REVOCATION_KEPT_MAX; i++) {
		struct entry *entry = &cache->entries[i];
		if (entry->der.size > 0 && (!longest || entry->used < longest->used))
			longest = entry;
	}
	return longest;
}

static struct entry *find_room(struct revocation_cache *cache, size_t size)
{
	struct entry *longest;

	while (cache->size_bytes + size > REVOCATION_KEPT_BYTES_MAX &&
	       (longest = longest_unused(cache)))
		drop(cache, longest);
	for (size_t i = 0; i < REVOCATION_KEPT_MAX; i++)
		if (cache->entries[i].der.size == 0)
			return &cache->entries[i];
	longest = longest_unused(cache);
	drop(cache, longest);
	return longest;
}

static enum revocation_kept state_of(const struct entry *entry, int64_t time_us, int64_t now_us)
{
	/* A clock that was set back does not know how long it was; of another thread it may be a little
	 * behind. */
	if (entry->next_us == TIME_NONE || now_us >= entry->next_us ||
	    now_us < entry->came_us - US_PER_SECOND)
		return REVOCATION_KEPT_NOTHING;
	if (entry->issued_us >= time_us)
		return REVOCATION_KEPT_FRESH;
	if (entry->came_us - entry->issued_us <= MADE_WHEN_ASKED_US)
		return REVOCATION_KEPT_OLDER;
	int64_t rest_us = (entry->next_us - entry->issued_us) / REST_SHARE;
	if (rest_us < REST_MIN_US)
		rest_us = REST_MIN_US;
	return now_us < entry->came_us + rest_us ? REVOCATION_KEPT_FRESH : REVOCATION_KEPT_OLDER;
}

enum revocation_kept revocation_cache_get(struct revocation_cache *cache,
                                          const struct revocation_question *question,
                                          int64_t time_us, int64_t now_us, struct buf *out)
{
	struct sha256 name = name_of(question);
	enum revocation_kept kept = REVOCATION_KEPT_NOTHING;

	pthread_mutex_lock(&cache->mutex);
	struct entry *entry = find(cache, &name);
	if (entry)
		kept = state_of(entry, time_us, now_us);
	if (kept != REVOCATION_KEPT_NOTHING) {
		entry->used = ++cache->uses;
		buf_add_slice(out, buf_slice(&entry->der));
	}
	pthread_mutex_unlock(&cache->mutex);
	return buf_check(out) == 0 ? kept : REVOCATION_KEPT_NOTHING;
}

void revocation_cache_put(struct revocation_cache *cache,
                          const struct revocation_question *question, struct slice der,
                          const struct revocation_facts *facts, int64_t now_us)
{
	struct sha256 name = name_of(question);
	struct buf copy;

	buf_init(&copy, REVOCATION_KEPT_BYTES_MAX);
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

/* ---- places ---- */

static struct place *find_place(struct revocation_cache *cache, const struct sha256 *url)
{
	for (size_t i = 0; i < REVOCATION_KEPT_MAX; i++)
		if (cache->places[i].failures > 0 && sha256_equal(&cache->places[i].url, url))
			return &cache->places[i];
	return NULL;
}

/* The one that may be asked again soonest makes room. */
static struct place *add_place(struct revocation_cache *cache, const struct sha256 *url)
{
	struct place *chosen = &cache->places[0];

	for (size_t i = 0; i < REVOCATION_KEPT_MAX && chosen->failures > 0; i++)
		if (cache->places[i].failures == 0 || cache->places[i].next_try_us < chosen->next_try_us)
			chosen = &cache->places[i];
	*chosen = (struct place){.url = *url};
	return chosen;
}

bool revocation_cache_is_left_alone(struct revocation_cache *cache, const char *url,
                                    char reason[REVOCATION_CAUSE_SIZE])
{
	struct sha256 name = sha256_of(url, strlen(url));

	pthread_mutex_lock(&cache->mutex);
	const struct place *place = find_place(cache, &name);
	bool alone = place && clock_monotonic_us() < place->next_try_us;
	if (alone)
		memcpy(reason, place->reason, REVOCATION_CAUSE_SIZE);
	pthread_mutex_unlock(&cache->mutex);
	return alone;
}

/* Of several failures side by side the first lengthens the wait, and the others do not. */
void revocation_cache_note_failure(struct revocation_cache *cache, const char *url,
                                   const char *reason)
{
	struct sha256 name = sha256_of(url, strlen(url));
	int64_t now_us = clock_monotonic_us();

	pthread_mutex_lock(&cache->mutex);
	struct place *place = find_place(cache, &name);
	if (!place)
		place = add_place(cache, &name);
	if (place->next_try_us <= now_us)
		place->next_try_us =
			now_us + backoff_us(++place->failures, BACKOFF_FIRST_US, BACKOFF_MAX_US);
	snprintf(place->reason, sizeof place->reason, "%s", reason);
	pthread_mutex_unlock(&cache->mutex);
}

void revocation_cache_note_success(struct revocation_cache *cache, const char *url)
{
	struct sha256 name = sha256_of(url, strlen(url));

	pthread_mutex_lock(&cache->mutex);
	struct place *place = find_place(cache, &name);
	if (place)
		*place = (struct place){0};
	pthread_mutex_unlock(&cache->mutex);
}
