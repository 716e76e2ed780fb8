/* The texts of keys, and how long the result of a look-up is cached. Random bytes and the clock
 * come from the test. */
#include "testing.h"
#include "base/digest.h"
#include "sample.h"
#include "service/key_uses.h"
#include "service/keys.h"

#define DIGITS "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define BODY_SIZE 36
#define FAILURE_LIFE_US US_PER_SECOND

/* The last six digits are the CRC-32 of the rest, computed by another implementation. */
#define LIVE_KEY "svc_live_0123456789ABCDEFGHIJKLMNOPQRST3MpION"
#define TEST_KEY "svc_test_0123456789abcdefghijklmnopqrst1raLXb"
#define UNKNOWN_KEY TEST_KEY

static bool chance_is_scripted;
static uint8_t next_byte;

void __real_random_bytes(void *data, size_t size);
void __wrap_random_bytes(void *data, size_t size);

/* Returns each byte value in turn. */
void __wrap_random_bytes(void *data, size_t size)
{
	if (!chance_is_scripted)
		__real_random_bytes(data, size);
	else
		for (size_t i = 0; i < size; i++)
			((uint8_t *)data)[i] = next_byte++;
}

/* ---- texts ---- */

static bool is_good(const char *key)
{
	return key_well_formed("svc", slice_of(key));
}

TEST_CASE_WITH(generated_keys_are_well_formed, NULL, NULL)
{
	char live[KEY_TEXT_MAX], test[KEY_TEXT_MAX], again[KEY_TEXT_MAX];
	key_generate("svc", MODE_LIVE, live);
	key_generate("svc", MODE_TEST, test);
	key_generate("svc", MODE_LIVE, again);
	assert_memory_equal(live, "svc_live_", 9);
	assert_memory_equal(test, "svc_test_", 9);
	assert_int_equal(strlen(live), 9 + BODY_SIZE);
	assert_true(is_good(live));
	assert_true(is_good(test));
	assert_string_not_equal(live, again);
	assert_memory_not_equal(live + 9, test + 9, 30);
	char longest[KEY_TEXT_MAX];
	key_generate("abcdefghij", MODE_LIVE, longest);
	assert_true(key_well_formed("abcdefghij", slice_of(longest)));
}

/* Thirty times every byte gives 248 keys, because eight of the 256 values are above the largest
 * multiple of 62. */
TEST_CASE_WITH(no_digit_is_likelier_than_others, NULL, NULL)
{
	int counts[256] = {0};
	chance_is_scripted = true;
	next_byte = 0;
	for (int i = 0; i < 248; i++) {
		char key[KEY_TEXT_MAX];
		key_generate("svc", MODE_LIVE, key);
		for (size_t digit = 0; digit < 30; digit++)
			counts[(uint8_t)key[9 + digit]]++;
	}
	chance_is_scripted = false;
	for (const char *digit = DIGITS; *digit; digit++)
		assert_int_equal(counts[(uint8_t)*digit], 120);
}

TEST_CASE_WITH(known_keys_stay_well_formed, NULL, NULL)
{
	assert_true(is_good(LIVE_KEY));
	assert_true(is_good(TEST_KEY));
}

/* Any replaced character, and any two exchanged neighbours. */
TEST_CASE_WITH(a_typo_is_found, NULL, NULL)
{
	char typo[] = LIVE_KEY;
	for (size_t i = 0; typo[i]; i++) {
		char right = typo[i];
		for (int other = 1; other < 256; other++) {
			typo[i] = (char)other;
			assert_int_equal(is_good(typo), typo[i] == right);
		}
		typo[i] = right;
		if (typo[i + 1] && typo[i + 1] != right) {
			typo[i] = typo[i + 1];
			typo[i + 1] = right;
			assert_false(is_good(typo));
			typo[i + 1] = typo[i];
			typo[i] = right;
		}
	}
	assert_true(is_good(typo));
}

/* Their checksums are correct. */
TEST_CASE_WITH(other_shapes_are_no_keys, NULL, NULL)
{
	static const char *const others[] = {
		"svc_live_0123456789ABCDEFGHIJKLMNOPQR-T07AS9n", /* not a digit */
		"svc_prod_0123456789ABCDEFGHIJKLMNOPQRST2KtMNF", /* not a mode */
		"svd_live_0123456789ABCDEFGHIJKLMNOPQRST2PiyYi", /* of another service */
		"svc_live_0123456789ABCDEFGHIJKLMNOPQRS1iw3oK",  /* too short */
		"svc_test_0123456789ABCDEFGHIJKLMNOPQRS1WN3ik",
		"svc_live_0123456789ABCDEFGHIJKLMNOPQRSTU34bXS5", /* too long */
		"svc_test_0123456789ABCDEFGHIJKLMNOPQRSTU0pScy3",
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(is_good(others[i]));
	assert_true(key_well_formed("svd", slice_of(others[2])));
	static const char with_nul[] = "svc_live_0123456789ABCDEFGHIJKLMNOPQR\0T0hgbCa";
	assert_false(key_well_formed("svc", slice_make(with_nul, sizeof with_nul - 1)));
	char longer[2 * KEY_TEXT_MAX];
	memset(longer, '0', sizeof longer);
	for (size_t size = 0; size <= sizeof longer; size++)
		assert_false(key_well_formed("svc", slice_make(longer, size)));
}

/* ---- the cache ---- */

static struct sample sample;
static struct settings settings = {.service_prefix = "svc"};
static struct service service;
static struct error error;
static char key_id[ID_SIZE];

static int64_t now_us;
static int looked_up;
static int store_result;         /* not OK: returned by look-ups */
static int64_t look_up_takes_us; /* duration of each one */
static bool forgets_meanwhile;
static bool store_is_full; /* every hash is a key, of the account in its first bytes */

int64_t __wrap_clock_monotonic_us(void);
int __real_store_find_key(struct store *store, const struct sha256 *key_hash,
                          struct key_identity *ret, struct error *why);
int __wrap_store_find_key(struct store *store, const struct sha256 *key_hash,
                          struct key_identity *ret, struct error *why);

int64_t __wrap_clock_monotonic_us(void)
{
	return now_us;
}

int __wrap_store_find_key(struct store *store, const struct sha256 *key_hash,
                          struct key_identity *ret, struct error *why)
{
	looked_up++;
	now_us += look_up_takes_us;
	if (store_result)
		return error_cause(why, store_result, "a fault of the test");
	if (store_is_full) {
		*ret = (struct key_identity){0};
		memcpy(&ret->account, key_hash->bytes, sizeof ret->account);
		return OK;
	}
	int result = __real_store_find_key(store, key_hash, ret, why);
	if (forgets_meanwhile)
		service_clear_key_cache(&service);
	return result;
}

static int note_result; /* of recording the last uses; OK: they are recorded */

int __real_store_note_key_uses(struct store *store, const struct key_use *uses, size_t count,
                               struct error *failure);
int __wrap_store_note_key_uses(struct store *store, const struct key_use *uses, size_t count,
                               struct error *failure);
int __wrap_store_note_key_uses(struct store *store, const struct key_use *uses, size_t count,
                               struct error *failure)
{
	return note_result ? note_result : __real_store_note_key_uses(store, uses, count, failure);
}

static int set_up(void **state)
{
	now_us = 1000 * US_PER_SECOND;
	looked_up = 0;
	store_result = OK;
	look_up_takes_us = 0;
	forgets_meanwhile = store_is_full = false;
	sample_open(&sample, MODALITY_HASH_ONLY, 0);
	sample_add_key(&sample, MODE_LIVE, LIVE_KEY, key_id);
	service = (struct service){.settings = &settings, .store = sample.store};
	service.keys = key_cache_make();
	service.key_uses = key_uses_make();
	assert_non_null(service.keys);
	assert_non_null(service.key_uses);
	note_result = OK;
	return 0;
}

static int tear_down(void **state)
{
	key_cache_free(service.keys);
	key_uses_free(service.key_uses);
	sample_close(&sample);
	return 0;
}

static bool is_known(const char *key, int *ret_result, struct key_lookup_query *ret_question)
{
	struct key_identity identity;
	return service_find_cached_key(&service, slice_of(key), ret_question, ret_result, &identity,
	                               &error);
}

static int look_up(const char *key)
{
	struct sha256 hash = sha256_of(key, strlen(key));
	struct key_identity identity;
	return service_find_key(&service, &hash, &identity, &error);
}

/* The result is cached until that time, exclusive. */
static void is_known_until(const char *key, int expected, int64_t end_us)
{
	struct key_lookup_query question;
	int result = -1;
	now_us = end_us - 1;
	assert_true(is_known(key, &result, &question));
	assert_int_equal(result, expected);
	now_us = end_us;
	assert_false(is_known(key, &result, &question));
}

static int64_t last_used(void)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct key_list list;
	assert_int_equal(store_list_keys(sample.store, slice_of(""), slice_of(sample.channel_id),
	                                 slice_of(""), 10, &arena, &list, &error),
	                 OK);
	assert_int_equal(list.count, 1);
	return list.items[0].last_used_at_us;
}

TEST_CASE(its_last_use_is_written_down)
{
	int64_t before_us = clock_now_us();
	assert_int_equal(service_write_key_uses(&service, &error), OK);
	assert_true(last_used() == TIME_NONE);
	assert_int_equal(look_up(LIVE_KEY), OK);
	note_result = ERR_UNAVAILABLE;
	assert_int_equal(service_write_key_uses(&service, &error), ERR_UNAVAILABLE);
	assert_true(last_used() == TIME_NONE);
	note_result = OK; /* it was not recorded before */
	assert_int_equal(service_write_key_uses(&service, &error), OK);
	int64_t used_us = last_used();
	assert_true(used_us >= before_us && used_us <= clock_now_us());
	int64_t revoked_us;
	assert_int_equal(
		store_revoke_key(sample.store, slice_of(key_id), NULL, before_us, &revoked_us, &error), OK);
	assert_int_equal(look_up(LIVE_KEY), ERR_REVOKED_KEY);
	assert_int_equal(service_write_key_uses(&service, &error), OK);
	assert_int_equal(last_used(), used_us);
}

/* In whatever order the nodes record it. */
TEST_CASE(the_latest_use_stays)
{
	struct key_identity identity;
	struct sha256 hash = sha256_of(LIVE_KEY, strlen(LIVE_KEY));
	assert_int_equal(service_find_key(&service, &hash, &identity, &error), OK);
	static const int64_t times[][2] = {{50, 50}, {40, 50}, {60, 60}, {59, 60}};
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		struct key_use use = {identity.account, identity.key, times[i][0]};
		assert_int_equal(store_note_key_uses(sample.store, &use, 1, &error), OK);
		assert_int_equal(last_used(), times[i][1]);
	}
}

#define MANY (KEY_USES_MAX + 1000)

TEST_CASE(uses_are_gathered_by_key)
{
	struct key_uses *uses = key_uses_make();
	size_t count;
	struct key_use *taken = key_uses_take(uses, &count);
	assert_int_equal(count, 0);
	free(taken);
	for (int64_t at_us = 1; at_us <= 3; at_us++)
		for (int64_t key = 5000; key > 0; key--)
			key_uses_note(uses, &(struct key_use){1 + key % 2, key, key % 3 ? at_us : 4 - at_us});
	taken = key_uses_take(uses, &count);
	assert_int_equal(count, 5000);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(taken[i].at_us, 3);
		assert_int_equal(taken[i].account, 1 + taken[i].key % 2);
		assert_true(i == 0 || taken[i - 1].account < taken[i].account ||
		            (taken[i - 1].account == taken[i].account && taken[i - 1].key < taken[i].key));
	}
	free(taken);
	for (int64_t key = 1; key <= (int64_t)MANY; key++)
		key_uses_note(uses, &(struct key_use){1, key, 1});
	taken = key_uses_take(uses, &count);
	assert_int_equal(count, KEY_USES_MAX);
	free(taken);
	key_uses_free(uses);
}

TEST_CASE(a_typo_costs_no_look_up)
{
	struct key_lookup_query question;
	int result = OK;
	assert_true(is_known("svc_live_nonsense", &result, &question));
	assert_int_equal(result, ERR_INVALID_KEY);
	assert_int_equal(looked_up, 0);
}

TEST_CASE(a_key_is_known_for_two_seconds)
{
	struct key_lookup_query question;
	struct key_identity identity = {0};
	struct sha256 hash = sha256_of(LIVE_KEY, strlen(LIVE_KEY));
	int result;
	assert_false(is_known(LIVE_KEY, &result, &question));
	assert_true(sha256_equal(&question.key_hash, &hash));
	assert_false(question.familiar);
	assert_int_equal(looked_up, 0);

	assert_int_equal(service_find_key(&service, &hash, &identity, &error), OK);
	assert_string_equal(identity.key_id, key_id);
	memset(&identity, 0, sizeof identity);
	assert_true(service_find_cached_key(&service, slice_of(LIVE_KEY), &question, &result, &identity,
	                                    &error));
	assert_int_equal(result, OK);
	assert_string_equal(identity.key_id, key_id);
	assert_int_equal(identity.chain, sample.live_chain);
	assert_int_equal(looked_up, 1);
	is_known_until(LIVE_KEY, OK, now_us + KEY_LIFE_US);
	assert_false(is_known(LIVE_KEY, &result, &question));
	assert_true(question.familiar);
}

/* The result may be as old as the beginning of the look-up. */
TEST_CASE(its_life_begins_with_the_look_up)
{
	int64_t begun_us = now_us;
	look_up_takes_us = KEY_LIFE_US / 2;
	assert_int_equal(look_up(LIVE_KEY), OK);
	is_known_until(LIVE_KEY, OK, begun_us + KEY_LIFE_US);
}

TEST_CASE(nobodys_key_is_remembered_too)
{
	struct key_lookup_query question;
	int result;
	assert_int_equal(look_up(UNKNOWN_KEY), ERR_INVALID_KEY);
	is_known_until(UNKNOWN_KEY, ERR_INVALID_KEY, now_us + KEY_LIFE_US);
	assert_false(is_known(UNKNOWN_KEY, &result, &question));
	assert_false(question.familiar);
	assert_int_equal(looked_up, 1);
}

/* From the end of the look-up, when its waiters get the result; the key remains as familiar as it
 * was. */
TEST_CASE(a_failure_is_known_for_a_second)
{
	struct key_lookup_query question;
	int result;
	assert_int_equal(look_up(LIVE_KEY), OK);
	store_result = ERR_UNAVAILABLE;
	look_up_takes_us = 3 * US_PER_SECOND;
	assert_int_equal(look_up(LIVE_KEY), ERR_UNAVAILABLE);
	assert_int_equal(look_up(UNKNOWN_KEY), ERR_UNAVAILABLE);
	is_known_until(UNKNOWN_KEY, ERR_UNAVAILABLE, now_us + FAILURE_LIFE_US);
	assert_false(is_known(UNKNOWN_KEY, &result, &question));
	assert_false(question.familiar);
	assert_false(is_known(LIVE_KEY, &result, &question));
	assert_true(question.familiar);
}

TEST_CASE(revoked_and_disabled_ones_say_whose_they_are)
{
	struct sha256 hash = sha256_of(LIVE_KEY, strlen(LIVE_KEY));
	struct key_lookup_query question;
	int64_t revoked_at_us;
	int result;
	struct account_change change = ACCOUNT_UNCHANGED;
	change.disabled = true;
	assert_int_equal(store_change_account(sample.store, slice_of(sample.account_id), &change,
	                                      sample.now_us, &error),
	                 OK);
	struct key_identity identity = {0};
	assert_int_equal(service_find_key(&service, &hash, &identity, &error), ERR_ACCOUNT_DISABLED);
	assert_string_equal(identity.key_id, key_id);
	assert_int_equal(store_revoke_key(sample.store, slice_of(key_id), NULL, sample.now_us,
	                                  &revoked_at_us, &error),
	                 OK);
	for (int cached = 0; cached < 2; cached++) {
		memset(&identity, 0, sizeof identity);
		if (cached)
			assert_true(service_find_cached_key(&service, slice_of(LIVE_KEY), &question, &result,
			                                    &identity, &error));
		else
			result = service_find_key(&service, &hash, &identity, &error);
		assert_int_equal(result, ERR_REVOKED_KEY);
		assert_string_equal(identity.key_id, key_id);
	}
}

TEST_CASE(reading_goes_on_while_an_account_is_suspended)
{
	struct account_change change = ACCOUNT_UNCHANGED;
	change.suspended = true;
	assert_int_equal(store_change_account(sample.store, slice_of(sample.account_id), &change,
	                                      sample.now_us, &error),
	                 OK);
	assert_int_equal(look_up(LIVE_KEY), OK);
}

TEST_CASE(what_is_forgotten_is_looked_up_again)
{
	struct key_lookup_query before, after;
	int result;
	now_us = KEY_LIFE_US / 2; /* the machine has just started */
	assert_false(is_known(LIVE_KEY, &result, &before));
	assert_int_equal(look_up(LIVE_KEY), OK);
	service_clear_key_cache(&service);
	assert_false(is_known(LIVE_KEY, &result, &after));
	assert_true(after.generation > before.generation);
	assert_true(after.familiar);
}

/* A result that was read before the cache was cleared is not stored after it. */
TEST_CASE(what_is_forgotten_meanwhile_is_not_kept)
{
	struct key_lookup_query question;
	int result;
	forgets_meanwhile = true;
	assert_int_equal(look_up(LIVE_KEY), OK);
	assert_false(is_known(LIVE_KEY, &result, &question));
}

/* The cache is small and keys are many: none is ever taken for another. */
TEST_CASE(keys_that_share_a_place_are_told_apart)
{
	enum { OTHERS = 100000 };
	struct key_lookup_query question;
	struct key_identity identity = {0};
	struct sha256 hash = sha256_of(LIVE_KEY, strlen(LIVE_KEY));
	int result;
	store_is_full = true;
	assert_int_equal(look_up(LIVE_KEY), OK);
	assert_true(is_known(LIVE_KEY, &result, &question));
	for (int i = 0; i < OTHERS; i++) {
		struct sha256 other = sha256_of(&i, sizeof i);
		assert_int_equal(service_find_key(&service, &other, &identity, &error), OK);
		assert_memory_equal(&identity.account, other.bytes, sizeof identity.account);
	}
	assert_false(is_known(LIVE_KEY, &result, &question));
	assert_false(question.familiar);
	assert_int_equal(service_find_key(&service, &hash, &identity, &error), OK);
	assert_memory_equal(&identity.account, hash.bytes, sizeof identity.account);
}

/* There are many channels, each with a key in use: nearly all keys are cached at a time. */
TEST_CASE(ten_thousand_are_known)
{
	enum { KEYS = 10000 };
	static char keys[KEYS][KEY_TEXT_MAX];
	struct key_lookup_query question;
	int result, known = 0;
	store_is_full = true;
	for (int i = 0; i < KEYS; i++) {
		key_generate("svc", MODE_LIVE, keys[i]);
		assert_int_equal(look_up(keys[i]), OK);
	}
	for (int i = 0; i < KEYS; i++)
		known += is_known(keys[i], &result, &question);
	assert_in_range(known, KEYS - KEYS / 25, KEYS);
}

TEST_MAIN_EACH(set_up, tear_down)
