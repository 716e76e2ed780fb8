/* Which certificate signs, the state of the others, and which roots timestamps led to. */
#include "testing.h"
#include "sample.h"
#include "store/evidence/public_keys.h"
#include "store/evidence/signer_records.h"
#include "store/evidence/timestamp_root_records.h"

static struct sample sample;
static struct error error;

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 100000);
	return 0;
}

static struct signer_candidate candidate(const char *name, bool development)
{
	return (struct signer_candidate){sha256_of(name, strlen(name)), development, slice_of(name)};
}

static int join(const char *name, bool development)
{
	struct signer_candidate one = candidate(name, development);
	size_t index = 9;
	int result = store_join_signers(sample.store, &one, 1, &index, &error);
	if (!result)
		assert_int_equal(index, 0);
	return result;
}

static void assert_in_force(const char *name)
{
	struct sha256 found, wanted = sha256_of(name ? name : "", name ? strlen(name) : 0);
	bool any = false;
	assert_int_equal(store_get_signer(sample.store, &found, &any, &error), OK);
	assert_int_equal(any, name != NULL);
	if (name)
		assert_true(sha256_equal(&found, &wanted));
}

/* "name:reason name:reason …", "-" for the one in force. */
static void assert_history(const char *wanted)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct signer_record *items;
	size_t count;
	char found[512] = "";
	assert_int_equal(store_list_signers(sample.store, &arena, &items, &count, &error), OK);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(items[i].number, i + 1);
		assert_int_equal(items[i].used_until_us == TIME_NONE, items[i].reason == NULL);
		strcat(strcat(found, i ? " " : ""), items[i].certificates);
		strcat(strcat(found, ":"), items[i].reason ? items[i].reason : "-");
	}
	assert_string_equal(found, wanted);
}

TEST_CASE(test_the_first_comes_into_force_and_others_are_refused)
{
	assert_in_force(NULL);
	assert_int_equal(join("one", false), OK);
	assert_int_equal(join("one", false), OK);
	assert_int_equal(join("two", false), ERR_REFUSED);
	assert_int_equal(join("made", true), ERR_REFUSED);
	assert_in_force("one");
	assert_history("one:-");
}

TEST_CASE(test_of_two_the_one_in_force_is_taken)
{
	struct signer_candidate both[] = {candidate("two", false), candidate("one", false)};
	size_t index = 9;
	assert_int_equal(join("one", false), OK);
	assert_int_equal(store_join_signers(sample.store, both, 2, &index, &error), OK);
	assert_int_equal(index, 1);
}

TEST_CASE(test_what_was_ended_never_comes_back)
{
	assert_int_equal(store_end_signer(sample.store, slice_of("early"), &error), ERR_REFUSED);
	assert_int_equal(join("one", false), OK);
	assert_int_equal(store_end_signer(sample.store, slice_of("lost"), &error), OK);
	assert_in_force(NULL);
	assert_int_equal(join("one", false), ERR_REFUSED);
	assert_int_equal(join("made", true), ERR_REFUSED);
	struct signer_candidate both[] = {candidate("one", false), candidate("two", false)};
	size_t index = 9;
	assert_int_equal(store_join_signers(sample.store, both, 2, &index, &error), OK);
	assert_int_equal(index, 1);
	assert_history("one:lost two:-");
}

TEST_CASE(test_one_replaces_the_one_that_it_was_meant_for)
{
	struct signer_candidate two = candidate("two", false), three = candidate("three", false);
	struct sha256 one = sha256_of("one", 3);
	struct slice reason = slice_of("yearly");
	assert_int_equal(join("one", false), OK);
	assert_int_equal(store_replace_signer(sample.store, &two, &one, reason, &error), OK);
	assert_int_equal(store_replace_signer(sample.store, &two, &one, reason, &error), OK);
	assert_int_equal(store_replace_signer(sample.store, &three, &one, reason, &error), OK);
	assert_in_force("two");
	struct signer_candidate former = candidate("one", false), made = candidate("made", true);
	assert_int_equal(store_replace_signer(sample.store, &former, NULL, reason, &error),
	                 ERR_REFUSED);
	assert_int_equal(store_replace_signer(sample.store, &made, NULL, reason, &error), ERR_REFUSED);
	assert_history("one:yearly two:-");
}

/* This store is a file, which has no other node. */
TEST_CASE(test_a_development_key_takes_anothers_place_where_no_other_node_can_be)
{
	assert_int_equal(join("made", true), OK);
	assert_int_equal(join("again", true), OK);
	assert_in_force("again");
	assert_int_equal(join("made", true), ERR_REFUSED);
	assert_in_force("again");
	assert_history("made:its files were missing again:-");
	assert_int_equal(join("one", false), ERR_REFUSED);
	assert_int_equal(store_end_signer(sample.store, slice_of("live"), &error), OK);
	assert_int_equal(join("one", false), OK);
	assert_int_equal(join("made", true), ERR_REFUSED);
	assert_in_force("one");
}

TEST_CASE(test_roots_of_timestamps_stay)
{
	static const char *const roots[] = {"first", "second", "first"};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	const char **items;
	size_t count;
	for (size_t i = 0; i < 3; i++) {
		struct sha256 sha256 = sha256_of(roots[i], strlen(roots[i]));
		assert_int_equal(
			store_add_timestamp_root(sample.store, &sha256, slice_of(roots[i]), &error), OK);
	}
	assert_int_equal(store_list_timestamp_roots(sample.store, &arena, &items, &count, &error), OK);
	assert_int_equal(count, 2);
	bool in_order = strcmp(items[0], "first") == 0;
	assert_string_equal(items[in_order ? 0 : 1], "first");
	assert_string_equal(items[in_order ? 1 : 0], "second");
}

static void fill(const char *head, const char *values, int count)
{
	char sql[512];
	snprintf(sql, sizeof sql,
	         "WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers"
	         " WHERE n < %d) INSERT INTO %s SELECT %s FROM numbers",
	         count, head, values);
	sample_change(&sample, sql);
}

static size_t count_signers(void)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	struct signer_record *items;
	size_t count;
	assert_int_equal(store_list_signers(sample.store, &arena, &items, &count, &error), OK);
	return count;
}

TEST_CASE(test_the_last_signer_comes_into_force_and_is_the_last)
{
	struct signer_candidate last = candidate("last", false), beyond = candidate("beyond", false);
	assert_int_equal(join("first", false), OK);
	fill("signers (number, sha256, development, certificates, used_from, used_until)",
	     "n, randomblob(32), 0, 'one', 1, 2", SIGNERS_MAX - 1);
	assert_int_equal(store_replace_signer(sample.store, &last, NULL, slice_of("why"), &error), OK);
	assert_in_force("last");
	assert_int_equal(count_signers(), SIGNERS_MAX);
	assert_int_equal(store_replace_signer(sample.store, &beyond, NULL, slice_of("why"), &error),
	                 ERR_FULL);
	assert_non_null(strstr(error.english, "1000"));
	assert_in_force("last"); /* it had not ended */
	assert_int_equal(join("last", false), OK);
	assert_int_equal(store_end_signer(sample.store, slice_of("why"), &error), OK);
	assert_int_equal(join("beyond", false), ERR_FULL);
	assert_int_equal(count_signers(), SIGNERS_MAX);
}

static int add_root(const char *name)
{
	struct sha256 sha256 = sha256_of(name, strlen(name));
	return store_add_timestamp_root(sample.store, &sha256, slice_of(name), &error);
}

TEST_CASE(test_the_last_root_of_timestamps_is_kept_and_is_the_last)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	const char **items;
	size_t count;
	assert_int_equal(add_root("first"), OK);
	fill("timestamp_roots (sha256, certificate, first_used)", "randomblob(32), 'one', 1",
	     TIMESTAMP_ROOTS_MAX - 1);
	assert_int_equal(add_root("last"), OK);
	assert_int_equal(add_root("beyond"), ERR_FULL);
	assert_non_null(strstr(error.cause, "1000"));
	assert_int_equal(add_root("last"), OK); /* it exists */
	assert_int_equal(store_list_timestamp_roots(sample.store, &arena, &items, &count, &error), OK);
	assert_int_equal(count, TIMESTAMP_ROOTS_MAX);
}

static size_t list_keys(struct arena *arena, enum public_key_kind kind, struct public_key **ret)
{
	size_t count;
	assert_int_equal(store_list_public_keys(sample.store, kind, arena, ret, &count, &error), OK);
	return count;
}

TEST_CASE(test_public_keys_are_listed_once_by_kind)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct public_key *items;
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_RECEIPT, "one", &error), OK);
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_LOG, "one", &error), OK);
	assert_int_equal(list_keys(&arena, PUBLIC_KEY_RECEIPT, &items), 1);
	const int64_t used_from_us = items[0].used_from_us;
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_RECEIPT, "one", &error), OK);
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_RECEIPT, "two", &error), OK);
	assert_int_equal(list_keys(&arena, PUBLIC_KEY_RECEIPT, &items), 2);
	assert_string_equal(items[0].key, "one");
	assert_int_equal(items[0].used_from_us, used_from_us);
	assert_int_equal(items[0].used_until_us, TIME_NONE);
	assert_string_equal(items[1].key, "two");
	assert_true(items[1].used_from_us >= used_from_us);
	assert_int_equal(list_keys(&arena, PUBLIC_KEY_LOG, &items), 1);
	/* A key of the log has no proof. */
	assert_int_equal(store_put_key_proof(sample.store, "one", "signature", "digest", &error), OK);
	assert_int_equal(store_put_key_proof(sample.store, "none", "signature", "digest", &error),
	                 ERR_NOT_FOUND);
	assert_int_equal(list_keys(&arena, PUBLIC_KEY_LOG, &items), 1);
	assert_null(items[0].proof);
	assert_int_equal(list_keys(&arena, PUBLIC_KEY_RECEIPT, &items), 2);
	assert_string_equal(items[0].proof, "signature");
	assert_string_equal(items[0].proof_of, "digest");
	assert_null(items[1].proof);
}

TEST_CASE(test_the_last_public_key_is_the_last)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct public_key *items;
	fill("public_keys (kind, key, used_from)", "'receipt', n, 1", PUBLIC_KEYS_MAX);
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_RECEIPT, "last", &error), OK);
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_RECEIPT, "beyond", &error),
	                 ERR_FULL);
	assert_non_null(strstr(error.cause, "1000"));
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_RECEIPT, "last", &error), OK);
	assert_int_equal(store_add_public_key(sample.store, PUBLIC_KEY_LOG, "log", &error), OK);
	assert_int_equal(list_keys(&arena, PUBLIC_KEY_RECEIPT, &items), PUBLIC_KEYS_MAX);
}

TEST_MAIN_EACH(set_up, sample_tear_down)
