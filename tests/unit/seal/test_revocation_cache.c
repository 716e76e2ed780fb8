#include "support.h"

#include "base/clock.h"
#include "seal/revocation_cache.h"
#include "seal/revocation_client.h"

#define HOUR_US (3600 * US_PER_SECOND)

static const struct revocation_request list = {.url = "http://a.example/"};
static int64_t monotonic_us;
int64_t __wrap_clock_monotonic_us(void);

int64_t __wrap_clock_monotonic_us(void)
{
	return monotonic_us;
}

static enum revocation_cache_state get(struct revocation_cache *cache,
                                       const struct revocation_request *question, int64_t time_us,
                                       int64_t now_us)
{
	BUF_AUTO struct buf out = {.limit = REVOCATION_CACHE_BYTES_MAX};

	enum revocation_cache_state kept = revocation_cache_get(cache, question, time_us, now_us, &out);
	assert_true((out.size > 0) == (kept != REVOCATION_CACHE_MISS));
	return kept;
}

TEST_CASE(test_made_in_advance)
{
	struct revocation_cache *cache = revocation_cache_create();
	struct revocation_facts facts = {.issued_us = 0, .next_us = 64 * HOUR_US};
	struct revocation_request other = {.url = list.url, .request = {"x", 1}};

	revocation_cache_put(cache, &list, slice_of("list"), &facts, HOUR_US);
	assert_int_equal(get(cache, &other, 0, HOUR_US), REVOCATION_CACHE_MISS);
	assert_int_equal(get(cache, &list, 0, 60 * HOUR_US), REVOCATION_CACHE_FRESH);
	assert_int_equal(get(cache, &list, 1, 2 * HOUR_US), REVOCATION_CACHE_FRESH);
	/* One thirty-second of its lifetime after it was received. */
	assert_int_equal(get(cache, &list, 1, 3 * HOUR_US - 1), REVOCATION_CACHE_FRESH);
	assert_int_equal(get(cache, &list, 1, 3 * HOUR_US), REVOCATION_CACHE_OLDER);
	assert_int_equal(get(cache, &list, 1, 64 * HOUR_US - 1), REVOCATION_CACHE_OLDER);
	assert_int_equal(get(cache, &list, 0, 64 * HOUR_US), REVOCATION_CACHE_MISS);
	assert_int_equal(get(cache, &list, 0, HOUR_US - 1), REVOCATION_CACHE_FRESH);
	assert_int_equal(get(cache, &list, 0, HOUR_US - 2 * US_PER_SECOND), REVOCATION_CACHE_MISS);
	/* A minute at least. */
	facts.issued_us = HOUR_US - 20 * US_PER_SECOND;
	facts.next_us = HOUR_US + 600 * US_PER_SECOND;
	revocation_cache_put(cache, &list, slice_of("list"), &facts, HOUR_US);
	assert_int_equal(get(cache, &list, HOUR_US, HOUR_US + 60 * US_PER_SECOND - 1),
	                 REVOCATION_CACHE_FRESH);
	assert_int_equal(get(cache, &list, HOUR_US, HOUR_US + 60 * US_PER_SECOND),
	                 REVOCATION_CACHE_OLDER);
	revocation_cache_free(cache);
}

TEST_CASE(test_made_when_asked)
{
	struct revocation_cache *cache = revocation_cache_create();
	struct revocation_facts facts = {.issued_us = 0, .next_us = 64 * HOUR_US};

	revocation_cache_put(cache, &list, slice_of("answer"), &facts, US_PER_SECOND);
	assert_int_equal(get(cache, &list, 0, US_PER_SECOND), REVOCATION_CACHE_FRESH);
	assert_int_equal(get(cache, &list, 1, US_PER_SECOND), REVOCATION_CACHE_OLDER);
	/* Without an end it is not used later. */
	facts.next_us = TIME_NONE;
	revocation_cache_put(cache, &list, slice_of("answer"), &facts, US_PER_SECOND);
	assert_int_equal(get(cache, &list, 0, US_PER_SECOND), REVOCATION_CACHE_MISS);
	revocation_cache_free(cache);
}

/* The least recently used object is evicted; both bytes and objects are limited. */
TEST_CASE(test_bounds)
{
	struct revocation_cache *cache = revocation_cache_create();
	struct revocation_facts facts = {.issued_us = 0, .next_us = HOUR_US};
	struct revocation_request question = list;
	size_t big = REVOCATION_CACHE_BYTES_MAX - 2;
	char *block = calloc(1, REVOCATION_CACHE_BYTES_MAX + 1);

	for (unsigned i = 0; i <= REVOCATION_CACHE_ENTRIES_MAX; i++) {
		question.request = slice_make(&i, sizeof i);
		revocation_cache_put(cache, &question, slice_of("x"), &facts, 0);
		unsigned first = 0;
		question.request = slice_make(&first, sizeof first);
		assert_int_equal(get(cache, &question, 0, 0), REVOCATION_CACHE_FRESH);
	}
	unsigned second = 1;
	question.request = slice_make(&second, sizeof second);
	assert_int_equal(get(cache, &question, 0, 0), REVOCATION_CACHE_MISS);
	second = 2;
	assert_int_equal(get(cache, &question, 0, 0), REVOCATION_CACHE_FRESH);
	revocation_cache_put(cache, &list, slice_make(block, big), &facts, 0);
	assert_int_equal(get(cache, &list, 0, 0), REVOCATION_CACHE_FRESH);
	assert_int_equal(get(cache, &question, 0, 0), REVOCATION_CACHE_FRESH);
	second = 3;
	assert_int_equal(get(cache, &question, 0, 0), REVOCATION_CACHE_MISS);
	/* Larger than the whole cache: the existing entries are kept. */
	question.request = slice_of("large");
	revocation_cache_put(cache, &question, slice_make(block, REVOCATION_CACHE_BYTES_MAX + 1),
	                     &facts, 0);
	assert_int_equal(get(cache, &question, 0, 0), REVOCATION_CACHE_MISS);
	assert_int_equal(get(cache, &list, 0, 0), REVOCATION_CACHE_FRESH);
	free(block);
	revocation_cache_free(cache);
}

TEST_CASE(test_places)
{
	struct revocation_cache *cache = revocation_cache_create();
	char reason[REVOCATION_CAUSE_SIZE];
	char url[64];

	monotonic_us = HOUR_US;
	assert_false(revocation_cache_is_in_backoff(cache, "u", reason));
	revocation_cache_note_failure(cache, "u", "first");
	revocation_cache_note_failure(cache, "u", "second");
	assert_true(revocation_cache_is_in_backoff(cache, "u", reason));
	assert_string_equal(reason, "second");
	assert_false(revocation_cache_is_in_backoff(cache, "v", reason));
	monotonic_us += 5 * US_PER_SECOND;
	assert_false(revocation_cache_is_in_backoff(cache, "u", reason));
	revocation_cache_note_failure(cache, "u", "third");
	monotonic_us += 10 * US_PER_SECOND - 1;
	assert_true(revocation_cache_is_in_backoff(cache, "u", reason));
	revocation_cache_note_success(cache, "u");
	assert_false(revocation_cache_is_in_backoff(cache, "u", reason));
	for (int i = 0; i < 3 * REVOCATION_CACHE_ENTRIES_MAX; i++) {
		snprintf(url, sizeof url, "%d", i);
		revocation_cache_note_failure(cache, url, "many");
		assert_true(revocation_cache_is_in_backoff(cache, url, reason));
	}
	revocation_cache_free(cache);
}

TEST_MAIN(NULL, NULL)
