/* The chain-head cache from batch to batch: a head is used as long as no other node has written,
 * and the results equal those of reading. */
#include <sqlite3.h>

#include "testing.h"
#include "sample.h"
#include "store/events/head_cache.h"

#define ACCOUNT 7
#define CHAIN 22
#define SLOTS 16384 /* two chains with this distance in channels share a slot */

struct fixture {
	struct sample sample;
	struct head_cache *heads;
	struct db_connection *writer;
	struct arena arena;
};
static struct error error;

static int setup(void **state)
{
	static struct fixture fixture;
	memset(&fixture, 0, sizeof fixture);
	sample_open(&fixture.sample, MODALITY_CONTENT, 1000);
	fixture.heads = head_cache_create();
	arena_init(&fixture.arena, 1 << 20);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	head_cache_free(fixture->heads);
	arena_free(&fixture->arena);
	sample_close(&fixture->sample);
	return 0;
}

/* ---- the cache ---- */

static void begin(struct fixture *fixture)
{
	fixture->writer = db_take_writer(fixture->sample.store->db);
	assert_int_equal(db_begin(fixture->writer, &error), OK);
	assert_int_equal(head_cache_begin(fixture->heads, fixture->writer, &error), OK);
}

static void write_something(struct fixture *fixture)
{
	assert_int_equal(
		db_execute(db_query(fixture->writer, "UPDATE accounts SET active_at = active_at + 1"), NULL,
	               &error),
		OK);
}

static void end(struct fixture *fixture)
{
	write_something(fixture);
	assert_int_equal(head_cache_finish(fixture->heads, fixture->writer, &error), OK);
	assert_int_equal(db_commit(fixture->writer, &error), OK);
	db_give(fixture->writer);
}

static struct loaded_chain chain_of(int64_t number)
{
	struct loaded_chain chain = {
		.ledger = {.chain = number,
	               .channel = number / 2,
	               .channel_id = "chn_0123456789abcdef",
	               .modality = MODALITY_HASH_ONLY,
	               .config_version = 3,
	               .last_sequence = number * 10,
	               .last_received_at_us = number * 100},
		.sealed = true,
		.runs = {.last = {.arrival = number, .count = 2}, .beyond = {.arrival = 1, .count = 1}},
	};
	memset(&chain.ledger.last_chain_hash, (int)number, SHA256_SIZE);
	memset(&chain.ledger.config_hash, (int)number + 1, SHA256_SIZE);
	return chain;
}

static void keep(struct fixture *fixture, int64_t number)
{
	struct loaded_chain chain = chain_of(number);
	begin(fixture);
	end(fixture);
	head_cache_put(fixture->heads, ACCOUNT, &chain);
}

static bool find(struct fixture *fixture, int64_t account, int64_t number,
                 struct loaded_chain *ret_chain)
{
	*ret_chain = (struct loaded_chain){.ledger.chain = number};
	return head_cache_find(fixture->heads, account, &fixture->arena, ret_chain);
}

/* Returns whether the next transaction finds it. */
static bool is_kept(struct fixture *fixture)
{
	struct loaded_chain chain;
	begin(fixture);
	bool found = find(fixture, ACCOUNT, CHAIN, &chain);
	db_give(fixture->writer);
	return found;
}

TEST_CASE_ON(a_head_comes_back_as_it_was, struct fixture *fixture)
{
	keep(fixture, CHAIN);
	struct loaded_chain found, kept = chain_of(CHAIN);
	begin(fixture);
	assert_true(find(fixture, ACCOUNT, CHAIN, &found));
	assert_string_equal(found.ledger.channel_id, kept.ledger.channel_id);
	found.ledger.channel_id = kept.ledger.channel_id;
	assert_memory_equal(&found, &kept, sizeof kept);
	assert_false(find(fixture, ACCOUNT + 1, CHAIN, &found));
	assert_false(find(fixture, ACCOUNT, CHAIN + 1, &found));
	assert_false(find(fixture, ACCOUNT, CHAIN + 2, &found));
	assert_false(find(fixture, ACCOUNT, CHAIN + 2 * SLOTS, &found));
	db_give(fixture->writer);
	/* Nothing was written. */
	assert_true(is_kept(fixture));
	keep(fixture, CHAIN + 2 * SLOTS);
	assert_false(is_kept(fixture));
}

/* New events wait for a seal, and the state of a failed batch is not stored. */
TEST_CASE_ON(a_head_that_moved_on_is_not_sealed, struct fixture *fixture)
{
	keep(fixture, CHAIN);
	struct loaded_chain chain = chain_of(CHAIN), found;
	struct ledger_entry entry = {0};
	chain.ledger.changed = true;
	chain.ledger.paid = &entry;
	head_cache_put(fixture->heads, ACCOUNT, &chain);
	assert_true(find(fixture, ACCOUNT, CHAIN, &found));
	assert_false(found.sealed);
	assert_false(found.ledger.changed);
	assert_null(found.ledger.paid);
}

TEST_CASE(what_anybody_wrote_makes_it_forget)
{
	struct fixture *fixture = *state;
	keep(fixture, CHAIN);
	sample_change(&fixture->sample, "UPDATE accounts SET active_at = active_at + 1");
	assert_false(is_kept(fixture));

	keep(fixture, CHAIN);
	assert_true(is_kept(fixture));
	sqlite3 *other;
	assert_int_equal(sqlite3_open(fixture->sample.url + strlen("sqlite:"), &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "UPDATE accounts SET active_at = active_at + 1", 0, 0, 0),
	                 SQLITE_OK);
	sqlite3_close(other);
	assert_false(is_kept(fixture));

	/* In the transaction itself, after the state for the next one was stored. */
	keep(fixture, CHAIN);
	begin(fixture);
	write_something(fixture);
	db_give(fixture->writer);
	assert_false(is_kept(fixture));

	keep(fixture, CHAIN);
	head_cache_clear(fixture->heads);
	assert_false(is_kept(fixture));
}

/* ---- through registrations ---- */

TEST_CASE_ON(a_chain_that_was_sealed_meanwhile_waits_again, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 3);
	sample_register(&fixture->sample, MODE_LIVE, 3);
	sample_seal(&fixture->sample);
	assert_int_equal(sample_number(&fixture->sample, "SELECT count(*) FROM unsealed_chains"), 0);
	sample_register(&fixture->sample, MODE_LIVE, 3);
	assert_int_equal(sample_number(&fixture->sample, "SELECT count(*) FROM unsealed_chains"), 1);
	sample_register(&fixture->sample, MODE_TEST, 3);
	assert_int_equal(sample_check(&fixture->sample), 0);
}

TEST_CASE_ON(a_configuration_that_changed_meanwhile_counts, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 2);
	sample_change(
		&fixture->sample,
		"INSERT INTO channel_configs SELECT account, channel, 2, sealed_at, modality, name, "
		"description, declarant, supplementary_info, config_hash FROM channel_configs");
	sample_change(&fixture->sample, "UPDATE channels SET config_version = 2");
	sample_register(&fixture->sample, MODE_LIVE, 2);
	assert_int_equal(sample_number(&fixture->sample,
	                               "SELECT count(*) FROM events_arrived WHERE config_version = 2"),
	                 2);
}

static int try_to_register(struct fixture *fixture, const char *client_ref)
{
	const struct sample *sample = &fixture->sample;
	struct registration item = {
		.account = sample->account,
		.channel = sample->channel,
		.chain = sample->live_chain,
		.key = 1,
		.declaration = {.client_ref = slice_of(client_ref),
	                    .modality = MODALITY_CONTENT,
	                    .occurred_at_us = TIME_NONE},
		.content = slice_of("{}"),
		.content_bytes = 2,
		.arena = &fixture->arena,
	};
	struct sha256 hash = sha256_of("{}", 2);
	memcpy(item.declaration.hash, hash.bytes, sizeof hash.bytes);
	struct registration *items[] = {&item};
	struct registration_batch batch = {
		.items = items,
		.count = 1,
		.clock = {.now_us = sample->now_us, .bound_us = INT64_MAX},
	};
	return store_register_batch(sample->store, 0, &batch, &error);
}

TEST_CASE_ON(of_a_batch_that_failed_nothing_is_kept, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 2);
	sample_change(&fixture->sample,
	              "CREATE TRIGGER refuse BEFORE INSERT ON credit_entries WHEN new.kind = 'events' "
	              "BEGIN SELECT RAISE(ABORT, 'refused'); END");
	assert_int_not_equal(try_to_register(fixture, "a"), OK);
	sample_change(&fixture->sample, "DROP TRIGGER refuse");
	assert_int_equal(try_to_register(fixture, "b"), OK);
	assert_int_equal(sample_number(&fixture->sample, "SELECT max(last_sequence) FROM chains"), 3);
	assert_int_equal(sample_check(&fixture->sample), 0);
}

/* Many chains, many per batch or few, and other nodes that write in between. */
TEST_CASE_ON(chains_stay_whole, struct fixture *fixture)
{
	struct sample *sample = &fixture->sample;
	struct sample channels[12];
	channels[0] = *sample;
	for (size_t i = 1; i < sizeof channels / sizeof *channels; i++) {
		sample_add_channel(sample, MODALITY_CONTENT);
		channels[i] = *sample;
	}
	for (int i = 0; i < 400; i++) {
		struct sample *one = &channels[(i * 7 + i / 5) % 12];
		one->now_us = sample->now_us = sample->now_us + 1000;
		one->references = ++sample->references * 1000;
		sample_register(one, i % 11 == 0 ? MODE_TEST : MODE_LIVE, 1 + i % 3);
		if (i % 37 == 0)
			sample_change(sample, "UPDATE accounts SET active_at = active_at + 1");
	}
	assert_int_equal(sample_number(&fixture->sample, "SELECT sum(last_sequence) FROM chains"),
	                 sample_number(&fixture->sample, "SELECT count(*) FROM events_arrived"));
	assert_int_equal(sample_check(sample), 0);
}

TEST_MAIN_EACH(setup, teardown)
