/* Rounds that are staged: wherever a sealer dies, the next one continues, and in the end each event
 * is proven once by one unbroken history. */
#include <inttypes.h>

#include "testing.h"
#include "office.h"
#include "evidence/check_segment.h"
#include "evidence/seal_round.h"
#include "evidence/stored_segment.h"
#include "seal/timestamp.h"
#include "store/nodes/unverified_clock.h"
#include "store/store_internal.h"

#define CHANNELS 7
#define STEPS 160

static struct office office;
static struct sample channels[CHANNELS];
static int64_t registered[CHANNELS];
static struct error error;
static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % bound;
}

static int set_up(void **state)
{
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	channels[0] = office.sample;
	for (size_t i = 1; i < CHANNELS; i++) {
		sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
		channels[i] = office.sample;
	}
	memset(registered, 0, sizeof registered);
	return 0;
}

static void register_in(size_t i, int64_t count)
{
	channels[i].references = office.sample.references;
	channels[i].now_us = clock_now_us() - 10 * US_PER_SECOND;
	sample_register(&channels[i], MODE_LIVE, count);
	office.sample.references = channels[i].references;
	registered[i] += count;
}

/* A new sealer each time, with small limits: only the store connects one with the next. */
static struct sealing new_sealer(void)
{
	struct sealing sealing;
	assert_int_equal(sealing_init(&sealing, &office.service), OK);
	sealing.block_segments = 3;
	sealing.small_block_segments = 1;
	sealing.round_blocks = 4;
	sealing_begin_pass(&sealing);
	return sealing;
}

static size_t stage_one(void)
{
	struct sealing sealing = new_sealer();
	struct unsealed_chain chains[CHANNELS];
	size_t count, taken, segments = 0;
	bool backlog;
	assert_int_equal(
		store_list_unsealed(office.service.store, 0, 0, CHANNELS, chains, &count, &error), OK);
	if (count > 0)
		assert_int_equal(seal_stage(&sealing, chains, count, &taken, &segments, &backlog, &error),
		                 OK);
	sealing_free(&sealing);
	return segments;
}

/* Registrations wait for the writer, so blocks are shorter while registrations arrive. */
TEST_CASE(blocks_are_small_beside_registrations)
{
	for (size_t i = 0; i < 3; i++)
		register_in(i, 1);
	atomic_fetch_add(&office.service.counters.registered, 1);
	assert_int_equal(stage_one(), 1);
	atomic_store(&office.service.counters.registered, 0);
	assert_int_equal(stage_one(), 2);
}

static void close_staged(void)
{
	struct sealing sealing = new_sealer();
	assert_int_equal(seal_close(&sealing, &error), OK);
	sealing_free(&sealing);
}

static void seal_all(void)
{
	while (stage_one() > 0)
		;
	close_staged();
}

static struct staged_round staged_now(void)
{
	struct staged_round staged;
	assert_int_equal(store_get_staged_round(office.service.store, &staged, &error), OK);
	return staged;
}

static int64_t sealed_of(size_t i)
{
	struct chain_head head;
	assert_int_equal(store_get_chain(office.service.store, channels[i].account,
	                                 channels[i].live_chain, &head, &error),
	                 OK);
	assert_int_equal(head.last_sequence, registered[i]);
	return head.sealed_sequence;
}

/* A sealed event has its segment and its time; a staged event is as pending as the rest. */
static void expect_pending_behind(size_t i, int64_t sealed)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	for (int64_t sequence = 1; sequence <= registered[i]; sequence++) {
		struct event event;
		struct segment_record segment;
		arena_reset(&arena);
		assert_int_equal(store_get_event(office.service.store, channels[i].account,
		                                 channels[i].live_chain, sequence, &arena, &event, &error),
		                 OK);
		assert_int_equal(event.segment_id[0] != '\0', sequence <= sealed);
		assert_int_equal(event.sealed_at_us != TIME_NONE, sequence <= sealed);
		assert_int_equal(store_find_segment(office.service.store, channels[i].account,
		                                    channels[i].live_chain, sequence, &arena, &segment,
		                                    &error),
		                 sequence <= sealed ? OK : ERR_NOT_FOUND);
	}
}

static void expect_proof(const struct segment_record *segment, int64_t sequence)
{
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	struct tree_proof proof;
	struct round_record round;
	struct sha256 chain_hash;
	struct timestamp_facts facts;
	struct store *store = office.service.store;
	assert_int_equal(stored_segment_prove(store, segment, sequence, &proof, &error), OK);
	assert_int_equal(store_get_round(store, segment->round, &arena, &round, &error), OK);
	assert_int_equal(store_get_chain_hash(store, segment->account, segment->chain, sequence,
	                                      &chain_hash, &error),
	                 OK);
	assert_true(sha256_equal(&proof.leaf, &chain_hash));
	struct sha256 root = tree_proof_root(&proof);
	assert_true(sha256_equal(&root, &round.root));
	assert_int_equal(
		timestamp_verify_token(round.token, &root, slice_make(NULL, 0), &facts, &error), OK);
}

/* Its document names the token of the previous round, whichever chains that round sealed. */
static void expect_previous_token(const struct segment_record *segment)
{
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	struct seal_document document;
	struct round_record before;
	assert_int_equal(stored_segment_document(segment, &arena, &document, &error), OK);
	assert_int_equal(document.previous_token_hash != NULL, segment->round > 1);
	if (segment->round == 1)
		return;
	assert_int_equal(
		store_get_round(office.service.store, segment->round - 1, &arena, &before, &error), OK);
	assert_true(sha256_equal(document.previous_token_hash, &before.token_hash));
}

static void expect_unbroken(size_t i)
{
	struct checked_segment before = {0};
	int64_t next = 1;
	for (int64_t number = 1;; number++) {
		ARENA_AUTO struct arena arena = {.limit = 4 << 20};
		struct segment_record segment;
		int result = store_get_segment(office.service.store, channels[i].account,
		                               channels[i].live_chain, number, &arena, &segment, &error);
		if (result == ERR_NOT_FOUND)
			break;
		assert_int_equal(result, OK);
		assert_int_equal(segment.first_sequence, next);
		next = segment.last_sequence + 1;
		error.cause[0] = '\0';
		if (check_segment(office.service.store, channels[i].account, channels[i].live_chain, number,
		                  &before, &error) != OK)
			fail_msg("%s", error.cause);
		expect_previous_token(&segment);
		for (int64_t sequence = segment.first_sequence; sequence <= segment.last_sequence;
		     sequence++)
			expect_proof(&segment, sequence);
	}
	assert_int_equal(next, registered[i] + 1);
}

static void step(void)
{
	switch (random_below(8)) {
	case 0:
	case 1:
	case 2: register_in(random_below(CHANNELS), 1 + random_below(4)); break;
	case 3:
	case 4:
	case 5:
		if (staged_now().blocks < 4)
			assert_in_range(stage_one(), 0, 3);
		break;
	case 6: close_staged(); break;
	case 7: /* a clock that was ahead is corrected */
		if (staged_now().blocks > 0)
			assert_int_equal(store_unstage_block(office.service.store, staged_now().round,
			                                     staged_now().blocks - 1, &error),
			                 OK);
		break;
	}
}

TEST_CASE(whatever_a_sealer_dies_between)
{
	for (random_state = 1; random_state < 5; random_state++) {
		uint64_t seed = random_state;
		for (int i = 0; i < STEPS; i++) {
			step();
			size_t channel = random_below(CHANNELS);
			expect_pending_behind(channel, sealed_of(channel));
		}
		while (staged_now().blocks > 0 || stage_one() > 0)
			if (staged_now().blocks == 4 || random_below(2))
				close_staged();
		for (size_t i = 0; i < CHANNELS; i++) {
			assert_int_equal(sealed_of(i), registered[i]);
			expect_pending_behind(i, registered[i]);
			expect_unbroken(i);
		}
		random_state = seed;
	}
}

/* One timestamp for any number of blocks, none of which counts before the round. */
TEST_CASE(many_blocks_make_one_round)
{
	for (size_t i = 0; i < CHANNELS; i++)
		register_in(i, 3);
	size_t segments = 0;
	struct sealing sealing = new_sealer();
	bool staged, full;
	for (size_t made; (made = stage_one()) > 0; segments += made) {
		assert_int_equal(sealing_get_capacity(&sealing, &staged, &full, &error), OK);
		assert_true(staged);
		for (size_t i = 0; i < CHANNELS; i++)
			assert_int_equal(sealed_of(i), 0);
	}
	assert_int_equal(segments, CHANNELS);
	assert_int_equal(staged_now().blocks, 3);
	assert_false(full);
	sealing_free(&sealing);
	close_staged();
	int64_t last;
	struct sha256 token_hash;
	assert_int_equal(store_last_round(office.service.store, &last, &token_hash, &error), OK);
	assert_int_equal(last, 1);
	for (size_t i = 0; i < CHANNELS; i++)
		expect_unbroken(i);
	close_staged(); /* nothing remains */
	assert_int_equal(store_last_round(office.service.store, &last, &token_hash, &error), OK);
	assert_int_equal(last, 1);
}

/* A round with more blocks than the maximum could not be closed. */
TEST_CASE(a_full_round_takes_no_more)
{
	struct unsealed_chain chain;
	struct sealing sealing = new_sealer();
	size_t count, taken, segments;
	bool backlog = false, staged, full;
	for (int i = 0; i < 4; i++) {
		register_in(0, 1);
		assert_int_equal(stage_one(), 1);
	}
	assert_int_equal(sealing_get_capacity(&sealing, &staged, &full, &error), OK);
	assert_true(full);
	register_in(0, 1);
	assert_int_equal(store_list_unsealed(office.service.store, 0, 0, 1, &chain, &count, &error),
	                 OK);
	assert_int_equal(seal_stage(&sealing, &chain, 1, &taken, &segments, &backlog, &error), OK);
	assert_int_equal(taken, 0);
	assert_int_equal(segments, 0);
	assert_int_equal(staged_now().blocks, 4);
	sealing_free(&sealing);
	close_staged();
	assert_int_equal(sealed_of(0), 4);
	assert_int_equal(stage_one(), 1);
	close_staged();
	expect_unbroken(0);
}

/* No two segments of a chain have the same identifier, however many there are. */
TEST_CASE(a_segments_whole_number_is_in_its_identifier)
{
	static char sql[256];
	register_in(0, 1);
	assert_int_equal(stage_one(), 1);
	close_staged();
	snprintf(sql, sizeof sql,
	         "UPDATE chains SET sealed_segment = 4294967295 WHERE sealed_segment = 1;"
	         "UPDATE segments SET number = 4294967295 WHERE chain = %" PRId64,
	         channels[0].live_chain);
	sample_change(&channels[0], sql);
	register_in(0, 1);
	assert_int_equal(stage_one(), 1);
	close_staged();
	struct event event;
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	assert_int_equal(store_get_event(office.service.store, channels[0].account,
	                                 channels[0].live_chain, 2, &arena, &event, &error),
	                 OK);
	const char *number = strrchr(event.segment_id, 'n');
	assert_non_null(number);
	assert_string_equal(number, "n4294967296");
}

/* Events that were received in the future of a wrong clock are taken back once the clock is right,
 * with all that was staged after them and nothing before. */
TEST_CASE(what_no_authority_will_date_is_taken_back)
{
	struct round_block block = {.round = 1, .number = 1, .events = 2};
	struct segment_record segment = {.segment_id = "seg_future"};
	struct unsealed_chain chain;
	size_t count, failed;
	register_in(0, 2);
	assert_int_equal(stage_one(), 1);
	register_in(0, 2);
	assert_int_equal(store_list_unsealed(office.service.store, 0, 0, 1, &chain, &count, &error),
	                 OK);
	segment.account = chain.account;
	segment.chain = chain.chain;
	segment.number = 2;
	segment.previous_seal_hash = chain.seal_hash;
	segment.first_sequence = 3;
	segment.last_sequence = 4;
	segment.document = slice_of("{}");
	segment.nodes = slice_of("n");
	block.latest_received_at_us = clock_now_us() + US_PER_DAY;
	assert_int_equal(store_stage_block(office.service.store, &block, &segment, 1, &failed, &error),
	                 OK);
	close_staged();
	assert_int_equal(sealed_of(0), 2);
	assert_int_equal(stage_one(), 1);
	close_staged();
	assert_int_equal(sealed_of(0), 4);
	expect_unbroken(0);
}

static void register_at(size_t i, int64_t now_us)
{
	channels[i].references = office.sample.references;
	channels[i].now_us = now_us - 1000; /* the clock that it sets */
	sample_register(&channels[i], MODE_LIVE, 1);
	office.sample.references = channels[i].references;
	registered[i]++;
}

static void expect_clock_source(size_t i, int64_t number, const char *source)
{
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	struct segment_record segment;
	struct seal_document document;
	assert_int_equal(store_get_segment(office.service.store, channels[i].account,
	                                   channels[i].live_chain, number, &arena, &segment, &error),
	                 OK);
	assert_int_equal(stored_segment_document(&segment, &arena, &document, &error), OK);
	assert_string_equal(document.clock.source, source);
	expect_unbroken(i);
}

/* On each segment that may have such events and on no other, and only while such an event is
 * pending. */
TEST_CASE(seals_tell_of_a_clock_that_was_not_compared)
{
	struct store *store = office.service.store;
	struct unverified_clock unverified_clock;
	int64_t begin_us = clock_now_us() - 10 * US_PER_SECOND;
	int64_t until_us = begin_us + US_PER_SECOND;
	register_at(0, begin_us);
	seal_all();
	assert_int_equal(store_begin_unverified_clock(store, &error), OK);
	register_at(0, begin_us);
	register_at(1, begin_us);
	seal_all();
	expect_clock_source(0, 1, "ntp_adjtime");
	expect_clock_source(0, 2, SEAL_CLOCK_UNVERIFIED);
	expect_clock_source(1, 1, SEAL_CLOCK_UNVERIFIED);

	register_at(0, begin_us + 1);
	register_at(1, until_us);
	register_at(1, until_us + US_PER_SECOND);
	register_at(2, until_us + US_PER_SECOND);
	assert_int_equal(store_end_unverified_clock(store, until_us, &error), OK);
	seal_all();
	expect_clock_source(0, 3, SEAL_CLOCK_UNVERIFIED);
	expect_clock_source(1, 2, SEAL_CLOCK_UNVERIFIED);
	expect_clock_source(2, 1, "ntp_adjtime");

	register_at(0, until_us + US_PER_SECOND);
	assert_int_equal(store_get_unverified_clock(store, &unverified_clock, &error), OK);
	assert_true(unverified_clock.is && !unverified_clock.is_open &&
	            unverified_clock.until_us == until_us);
	seal_all();
	expect_clock_source(0, 4, "ntp_adjtime");
	assert_int_equal(store_get_unverified_clock(store, &unverified_clock, &error), OK);
	assert_false(unverified_clock.is);
}

TEST_CASE(a_time_without_comparison_begins_and_ends)
{
	struct store *store = office.service.store;
	struct unverified_clock found;
	assert_int_equal(store_end_unverified_clock(store, 5, &error), OK);
	assert_int_equal(store_get_unverified_clock(store, &found, &error), OK);
	assert_false(found.is || found.is_open);
	for (int64_t until_us = 7; until_us < 9; until_us++) {
		for (int i = 0; i < 2; i++) {
			assert_int_equal(store_begin_unverified_clock(store, &error), OK);
			assert_int_equal(store_get_unverified_clock(store, &found, &error), OK);
			assert_true(found.is && found.is_open);
		}
		assert_int_equal(store_forget_unverified_clock(store, until_us - 1, &error), OK);
		assert_int_equal(store_end_unverified_clock(store, until_us, &error), OK);
		assert_int_equal(store_end_unverified_clock(store, 20, &error), OK);
		assert_int_equal(store_forget_unverified_clock(store, 20, &error), OK);
		assert_int_equal(store_get_unverified_clock(store, &found, &error), OK);
		assert_true(found.is && !found.is_open && found.until_us == until_us);
	}
}

/* The damage is reported, and the block and all later ones are staged again from the stored
 * events. */
static void expect_taken_back(const char *damage, int64_t block)
{
	char cause[64];
	int64_t before;
	struct sha256 token_hash;
	assert_int_equal(store_last_round(office.service.store, &before, &token_hash, &error), OK);
	for (size_t i = 0; i < 3; i++) {
		register_in(i, 2);
		assert_int_equal(stage_one(), 1);
	}
	sample_change(&office.sample, damage);
	assert_int_equal(staged_now().blocks, 3);
	struct sealing sealing = new_sealer();
	assert_int_equal(seal_close(&sealing, &error), ERR_CORRUPT);
	snprintf(cause, sizeof cause, "block %" PRId64 " is damaged", block);
	assert_non_null(strstr(error.cause, cause));
	sealing_free(&sealing);
	assert_int_equal(staged_now().blocks, block);
	while (stage_one() > 0)
		;
	close_staged();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sealed_of(i), registered[i]);
		expect_unbroken(i);
	}
	int64_t after;
	assert_int_equal(store_last_round(office.service.store, &after, &token_hash, &error), OK);
	assert_int_equal(after, before + 1);
}

TEST_CASE(a_damaged_block_does_not_stop_sealing)
{
	expect_taken_back("UPDATE round_blocks SET roots = x'00' WHERE block = 1", 1);
}

static bool is_logged(size_t i)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct event event;
	assert_int_equal(store_get_event(office.service.store, channels[i].account,
	                                 channels[i].live_chain, registered[i], &arena, &event, &error),
	                 OK);
	return event.is_logged;
}

/* Receipts promise an entry for each event that was not sealed when the log began. */
TEST_CASE(what_was_staged_without_entries_is_staged_again)
{
	for (size_t i = 0; i < 3; i++) {
		register_in(i, 2);
		assert_int_equal(stage_one(), 1);
		if (i == 1)
			sample_change(&office.sample,
			              "UPDATE round_blocks SET log_first = NULL, log_entries = NULL");
	}
	assert_int_equal(staged_now().unlogged, 3);
	close_staged();
	assert_int_equal(staged_now().blocks, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sealed_of(i), 0);
		assert_false(is_logged(i));
	}
	seal_all();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(sealed_of(i), registered[i]);
		expect_unbroken(i);
		assert_true(is_logged(i));
	}
	sample_change(&office.sample, "UPDATE seal_rounds SET log_size = NULL, log_root = NULL");
	assert_false(is_logged(0));
}

TEST_CASE(a_lost_block_does_not_stop_sealing)
{
	static const char of_the_next[] =
		"DELETE FROM round_blocks WHERE round > (SELECT COALESCE(MAX(round), 0) FROM seal_rounds)";
	char damage[200];
	for (int block = 0; block < 3; block++) {
		snprintf(damage, sizeof damage, "%s AND block = %d", of_the_next, block);
		expect_taken_back(damage, block);
	}
	expect_taken_back(of_the_next, 0);
}

/* So that none of its rounds is written again in the place of a lost one. */
TEST_CASE(a_lost_round_is_told)
{
	struct staged_round staged;
	register_in(0, 1);
	assert_int_equal(stage_one(), 1);
	close_staged();
	sample_change(&office.sample, "DELETE FROM seal_rounds");
	assert_int_equal(store_get_staged_round(office.service.store, &staged, &error), ERR_CORRUPT);
	assert_string_equal(error.cause, "round 2 is staged, but the last round is 0");
}

/* Two nodes seal at the same time: a timestamp must not seem to cover what its node has not
 * seen. */
TEST_CASE(a_block_that_comes_between_keeps_the_round_from_being_written)
{
	register_in(0, 3);
	assert_int_equal(stage_one(), 1);
	struct staged_round seen = staged_now();
	register_in(1, 3);
	assert_int_equal(stage_one(), 1);
	struct sha256 root = sha256_of("root", 4);
	struct round_record round = {.round = seen.round,
	                             .root = root,
	                             .authority = "a",
	                             .kind = "development",
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t"),
	                             .blocks = slice_make(&root, sizeof root)};
	assert_int_equal(store_write_round(office.service.store, &round, &error), ERR_REFUSED);
	assert_int_equal(sealed_of(0), 0);
	/* No block is added to a written round, taken back from it, or added out of order. */
	struct segment_record segment = {.account = channels[2].account};
	size_t failed;
	struct round_block block = {.round = seen.round, .number = seen.blocks};
	assert_int_equal(store_stage_block(office.service.store, &block, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	assert_int_equal(failed, 1);
	assert_int_equal(store_unstage_block(office.service.store, seen.round, 0, &error), ERR_REFUSED);
	close_staged();
	assert_int_equal(sealed_of(0), 3);
	block.number = 2;
	assert_int_equal(store_stage_block(office.service.store, &block, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	assert_int_equal(store_unstage_block(office.service.store, seen.round, 1, &error), ERR_REFUSED);
	expect_unbroken(0);
	expect_unbroken(1);
}

/* The same for a block that a node with another clock has replaced. */
TEST_CASE(a_block_that_was_replaced_keeps_the_round_from_being_written)
{
	register_in(0, 3);
	assert_int_equal(stage_one(), 1);
	struct staged_round seen = staged_now();
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct round_record round = {.round = seen.round,
	                             .root = sha256_of("root", 4),
	                             .authority = "a",
	                             .kind = "development",
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t"),
	                             .staged_changes = seen.changes};
	int64_t events;
	assert_int_equal(store_read_block(office.service.store, seen.round, 0, &arena, &round.blocks,
	                                  &events, &error),
	                 OK);
	assert_int_equal(store_unstage_block(office.service.store, seen.round, 0, &error), OK);
	register_in(0, 1);
	assert_int_equal(stage_one(), 1);
	assert_int_equal(staged_now().blocks, seen.blocks);
	assert_int_equal(store_write_round(office.service.store, &round, &error), ERR_REFUSED);
	assert_int_equal(sealed_of(0), 0);
	close_staged();
	expect_unbroken(0);
}

/* While no authority answers nothing is lost, and the staged round comes first. */
TEST_CASE(a_round_waits_for_its_authority)
{
	register_in(0, 3);
	assert_int_equal(stage_one(), 1);
	office_break_authority(&office);
	struct sealing sealing = new_sealer();
	assert_int_equal(seal_close(&sealing, &error), ERR_AUTHORITY);
	sealing_free(&sealing);
	assert_int_equal(sealed_of(0), 0);
	assert_int_equal(staged_now().blocks, 1);
	office_restore_authority(&office);
	close_staged();
	expect_unbroken(0);
}

/* Chains that a certification waits for are listed until they are staged; then their round is
 * awaited. */
TEST_CASE(what_certifications_wait_for_is_known)
{
	struct unsealed_chain chains[CHANNELS];
	size_t count;
	bool awaited;
	char id[ID_SIZE];
	for (size_t i = 0; i < CHANNELS; i++)
		register_in(i, 3);
	assert_int_equal(store_list_wanted(office.service.store, CHANNELS, chains, &count, &error), OK);
	assert_int_equal(count, 0);
	office.sample = channels[5];
	office_use_channel(&office);
	office_request(&office, MODE_LIVE, 1, 2, id);
	office_request(&office, MODE_LIVE, 1, 3, id);
	assert_int_equal(store_list_wanted(office.service.store, CHANNELS, chains, &count, &error), OK);
	assert_int_equal(count, 1);
	assert_int_equal(chains[0].chain, channels[5].live_chain);
	assert_int_equal(store_round_is_awaited(office.service.store, &awaited, &error), OK);
	assert_false(awaited);
	struct sealing sealing = new_sealer();
	size_t taken, segments;
	bool backlog = false;
	assert_int_equal(seal_stage(&sealing, chains, count, &taken, &segments, &backlog, &error), OK);
	sealing_free(&sealing);
	assert_int_equal(store_list_wanted(office.service.store, CHANNELS, chains, &count, &error), OK);
	assert_int_equal(count, 0);
	assert_int_equal(store_round_is_awaited(office.service.store, &awaited, &error), OK);
	assert_true(awaited);
	close_staged();
	assert_int_equal(store_round_is_awaited(office.service.store, &awaited, &error), OK);
	assert_false(awaited);
	assert_int_equal(sealed_of(5), 3);
	assert_int_equal(sealed_of(4), 0);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
