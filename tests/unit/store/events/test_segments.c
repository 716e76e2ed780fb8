#include "testing.h"
#include "sample.h"
#include "store/events/segments.h"

static struct sample sample;
static struct error error;
static size_t failed; /* index of the segment that was not written */

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 100000);
	return 0;
}

static struct round_record make_round(int64_t number)
{
	return (struct round_record){
		.round = number,
		.root = sha256_of("root", 4),
		.authority = "authority",
		.kind = "development",
		.sealed_at_us = sample.now_us,
		.obtained_at_us = sample.now_us + 1,
		.request = slice_of("request"),
		.response_head = slice_of("head"),
		.token = slice_of("token"),
		.token_hash = sha256_of("token", 5),
	};
}

static struct segment_record make_segment(const struct unsealed_chain *chain, int64_t count)
{
	struct segment_record segment = {
		.account = chain->account,
		.chain = chain->chain,
		.number = chain->sealed_segment + 1,
		.first_sequence = chain->sealed_sequence + 1,
		.last_sequence = chain->sealed_sequence + count,
		.root = sha256_of("segment", 7),
		.seal_hash = sha256_of("document", 8),
		.previous_seal_hash = sha256_of("document", 8),
		.document = slice_of("document"),
		.nodes = slice_of("0123456789abcdef0123456789abcdef"),
	};
	snprintf(segment.segment_id, ID_SIZE, "seg_%lld_%lld", (long long)segment.chain,
	         (long long)segment.number);
	return segment;
}

static size_t list(struct unsealed_chain *chains, size_t limit)
{
	size_t count;
	assert_int_equal(store_list_unsealed(sample.store, 0, 0, limit, chains, &count, &error), OK);
	return count;
}

/* Only live chains with unsealed events are listed, and only while they have some. */
TEST_CASE(test_unsealed)
{
	struct unsealed_chain chains[4];
	assert_int_equal(list(chains, 4), 0);
	sample_register(&sample, MODE_TEST, 2);
	assert_int_equal(list(chains, 4), 0);
	sample_register(&sample, MODE_LIVE, 3);
	sample_register(&sample, MODE_LIVE, 4);
	assert_int_equal(list(chains, 4), 1);
	assert_int_equal(chains[0].chain, sample.live_chain);
	assert_string_equal(chains[0].channel_id, sample.channel_id);
	assert_int_equal(chains[0].last_sequence, 7);
	assert_int_equal(chains[0].sealed_sequence, 0);

	struct round_record round = make_round(1);
	struct segment_record segment = make_segment(&chains[0], 5);
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error), OK);
	assert_int_equal(list(chains, 4), 1);
	assert_int_equal(chains[0].sealed_sequence, 5);
	assert_int_equal(chains[0].sealed_segment, 1);
	assert_true(sha256_equal(&chains[0].seal_hash, &segment.seal_hash));

	round = make_round(2);
	segment = make_segment(&chains[0], 2);
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error), OK);
	assert_int_equal(list(chains, 4), 0);
	sample_register(&sample, MODE_LIVE, 1);
	assert_int_equal(list(chains, 4), 1);

	/* The list continues after a pair of chain and account. */
	sample_add_channel(&sample, MODALITY_HASH_ONLY);
	sample_register(&sample, MODE_LIVE, 1);
	assert_int_equal(list(chains, 1), 1);
	size_t count;
	assert_int_equal(store_list_unsealed(sample.store, chains[0].account, chains[0].chain, 4,
	                                     chains, &count, &error),
	                 OK);
	assert_int_equal(count, 1);
	assert_int_equal(chains[0].chain, sample.live_chain);
}

/* Appends a document; the second one ends the reading if `context` says so. */
struct listed {
	char text[64];
	int count, end_at;
};

static int list_document(void *context, struct slice document)
{
	struct listed *listed = context;
	size_t used = strlen(listed->text);
	snprintf(listed->text + used, sizeof listed->text - used, "%.*s;", (int)document.size,
	         document.data);
	return ++listed->count == listed->end_at ? ERR_USAGE : OK;
}

/* Seal documents are read in order, and a missing one is detected. */
static void check_documents(void)
{
	const struct {
		int64_t first, last;
		int end_at, result;
		const char *text;
	} cases[] = {
		{1, 2, 0, OK, "document;document;"}, {2, 2, 0, OK, "document;"},   {3, 2, 0, OK, ""},
		{1, 2, 1, ERR_USAGE, "document;"},   {1, 3, 0, ERR_CORRUPT, NULL},
	};
	int64_t bytes;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct listed listed = {.end_at = cases[i].end_at};
		assert_int_equal(store_read_seals(sample.store, sample.account, sample.live_chain,
		                                  cases[i].first, cases[i].last, list_document, &listed,
		                                  &error),
		                 cases[i].result);
		if (cases[i].text)
			assert_string_equal(listed.text, cases[i].text);
		assert_int_equal(store_measure_seals(sample.store, sample.account, sample.live_chain,
		                                     cases[i].first, cases[i].last, &bytes, &error),
		                 OK);
		assert_int_equal(bytes, cases[i].first > 2 ? 0 : 8 * (cases[i].first == 1 ? 2 : 1));
	}
}

/* A written round is read back, and the timestamps of the events follow from it. */
TEST_CASE(test_read_back)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	sample_register(&sample, MODE_LIVE, 10);
	struct unsealed_chain chain;
	assert_int_equal(list(&chain, 1), 1);
	struct segment_record segments[2] = {make_segment(&chain, 4)};
	chain.sealed_sequence = 4;
	chain.sealed_segment = 1;
	segments[1] = make_segment(&chain, 3);
	struct round_record round = make_round(1);
	assert_int_equal(sample_write_round(&sample, &round, segments, 2, &failed, &error), OK);

	struct segment_record segment;
	assert_int_equal(store_find_segment(sample.store, sample.account, sample.live_chain, 4, &arena,
	                                    &segment, &error),
	                 OK);
	assert_int_equal(segment.number, 1);
	assert_int_equal(store_find_segment(sample.store, sample.account, sample.live_chain, 5, &arena,
	                                    &segment, &error),
	                 OK);
	assert_string_equal(segment.segment_id, segments[1].segment_id);
	assert_int_equal(segment.first_sequence, 5);
	assert_int_equal(segment.last_sequence, 7);
	assert_int_equal(segment.round, 1);
	assert_true(sha256_equal(&segment.root, &segments[1].root));
	assert_true(slice_is(segment.document, "document"));
	assert_true(slice_equal(segment.nodes, segments[1].nodes));
	assert_int_equal(segment.path.size, 0);
	assert_int_equal(store_find_segment(sample.store, sample.account, sample.live_chain, 8, &arena,
	                                    &segment, &error),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_get_segment(sample.store, sample.account, sample.live_chain, 3, &arena,
	                                   &segment, &error),
	                 ERR_NOT_FOUND);

	int64_t rounds[3] = {0};
	assert_int_equal(store_read_segment_rounds(sample.store, sample.account, sample.live_chain, 1,
	                                           2, rounds, NULL, &error),
	                 OK);
	assert_true(rounds[0] == 1 && rounds[1] == 1);
	assert_int_equal(store_read_segment_rounds(sample.store, sample.account, sample.live_chain, 1,
	                                           3, rounds, NULL, &error),
	                 ERR_CORRUPT);
	check_documents();

	struct round_record read;
	assert_int_equal(store_get_round(sample.store, 1, &arena, &read, &error), OK);
	assert_true(sha256_equal(&read.root, &round.root));
	assert_string_equal(read.authority, "authority");
	assert_string_equal(read.kind, "development");
	assert_int_equal(read.sealed_at_us, round.sealed_at_us);
	assert_true(slice_is(read.request, "request"));
	assert_true(slice_is(read.response_head, "head"));
	assert_true(slice_is(read.token, "token"));
	assert_true(sha256_equal(&read.token_hash, &round.token_hash));
	int64_t last;
	struct sha256 token_hash;
	assert_int_equal(store_last_round(sample.store, &last, &token_hash, &error), OK);
	assert_int_equal(last, 1);
	assert_true(sha256_equal(&token_hash, &round.token_hash));

	struct event event;
	assert_int_equal(
		store_get_event(sample.store, sample.account, sample.live_chain, 7, &arena, &event, &error),
		OK);
	assert_string_equal(event.segment_id, segments[1].segment_id);
	assert_int_equal(event.sealed_at_us, round.sealed_at_us);
	assert_int_equal(
		store_get_event(sample.store, sample.account, sample.live_chain, 8, &arena, &event, &error),
		OK);
	assert_string_equal(event.segment_id, "");
}

/* Only one of two sealers writes; the other leaves nothing. */
TEST_CASE(test_fence)
{
	sample_register(&sample, MODE_LIVE, 6);
	struct unsealed_chain chain;
	assert_int_equal(list(&chain, 1), 1);
	struct round_record round = make_round(1);
	struct segment_record segment = make_segment(&chain, 3);
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error), OK);
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	round.round = 3;
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	round.round = 2; /* the next round, but with a segment that exists already */
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	assert_int_equal(list(&chain, 1), 1);
	segment = make_segment(&chain, 4); /* more events than the chain has */
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	int64_t last;
	struct sha256 token_hash;
	assert_int_equal(store_last_round(sample.store, &last, &token_hash, &error), OK);
	assert_int_equal(last, 1);
	segment = make_segment(&chain, 3);
	segment.previous_seal_hash = sha256_of("another", 7); /* of a segment that was taken back */
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error),
	                 ERR_REFUSED);
	segment = make_segment(&chain, 3);
	assert_int_equal(sample_write_round(&sample, &round, &segment, 1, &failed, &error), OK);
}

TEST_CASE(test_chain_hashes)
{
	sample_register(&sample, MODE_LIVE, 3);
	struct sha256 hashes[4];
	assert_int_equal(store_read_chain_hashes(sample.store, sample.account, sample.live_chain, 0, 3,
	                                         hashes, &error),
	                 OK);
	for (int64_t i = 0; i < 4; i++) {
		struct sha256 hash;
		assert_int_equal(
			store_get_chain_hash(sample.store, sample.account, sample.live_chain, i, &hash, &error),
			OK);
		assert_true(sha256_equal(&hash, &hashes[i]));
	}
	assert_int_equal(store_read_chain_hashes(sample.store, sample.account, sample.live_chain, 2, 4,
	                                         hashes, &error),
	                 ERR_CORRUPT);
}

TEST_MAIN_EACH(set_up, sample_tear_down)
