/* The index of digests (store/events/digest_index.h), on a SQLite file or on databases of a server:
 *     contract-digests [postgresql://… postgresql://…]
 * Random histories of registrations, steps of the index, faults at any of its statements and
 * restarts are compared with a list of all events. */
#include <pthread.h>

#include "testing.h"
#include "faults.h"
#include "registering.h"
#include "sample.h"
#include "store/events/digest_index.h"
#include "store/events/digest_runs.h"

#define STEPS 300
#define CHAINS 3
#define EVENTS_MAX 4096
#define DIGESTS 40
#define SIZES                                                                                      \
	"digests_gathered=20,digests_of_chain=20,digest_block=3,digests_merged=4,digests_deleted=5,"   \
	"digests_scanned_directly=1"

static const char *server_url;

struct history {
	struct sample sample;
	struct arena arena;
	int64_t channels[CHAINS]; /* their live chains are used */
	int digests[CHAINS][EVENTS_MAX];
	int64_t counts[CHAINS];
	int64_t references;
};

static void make_digest(int number, uint8_t digest[SHA256_SIZE])
{
	struct sha256 sum = sha256_of(&number, sizeof number);
	memcpy(digest, sum.bytes, SHA256_SIZE);
}

static int begin(void **state)
{
	struct history *history = calloc(1, sizeof *history);
	arena_init(&history->arena, (size_t)64 << 20);
	setenv("TORTURE_SIZES", SIZES, 1);
	sample_create_store(&history->sample, server_url);
	sample_fill(&history->sample, history->sample.store, MODALITY_HASH_ONLY, 1000000);
	for (int i = 0; i < CHAINS; i++) {
		if (i > 0)
			sample_add_channel(&history->sample, MODALITY_HASH_ONLY);
		history->channels[i] = history->sample.channel;
	}
	*state = history;
	return 0;
}

static int end(void **state)
{
	struct history *history = *state;
	sample_close(&history->sample);
	arena_free(&history->arena);
	free(history);
	unsetenv("TORTURE_SIZES");
	return 0;
}

static void register_events(struct history *history, int chain, const int *digests, size_t count)
{
	struct registration items[64] = {0}, *list[64];
	char references[64][32];
	assert_true(count <= 64);
	for (size_t i = 0; i < count; i++) {
		snprintf(references[i], sizeof references[i], "ref-%lld", (long long)++history->references);
		items[i] = (struct registration){
			.account = history->sample.account,
			.channel = history->channels[chain],
			.chain = history->channels[chain] * 2,
			.key = 1,
			.declaration = {.modality = MODALITY_HASH_ONLY,
		                    .client_ref = slice_of(references[i]),
		                    .occurred_at_us = TIME_NONE},
			.content_bytes = -1,
			.arena = &history->arena,
		};
		make_digest(digests[i], items[i].declaration.hash);
		list[i] = &items[i];
		history->digests[chain][history->counts[chain]++] = digests[i];
	}
	history->sample.now_us += 1000;
	assert_int_equal(
		register_items(history->sample.store, list, count, history->sample.now_us, NULL), OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(items[i].result, OK);
	arena_free(&history->arena);
	arena_init(&history->arena, (size_t)64 << 20);
}

static int look_up(struct history *history, int chain, int digest, int64_t first, int64_t last,
                   enum list_order order, size_t max, int64_t *ret, size_t *ret_count)
{
	uint8_t bytes[SHA256_SIZE];
	make_digest(digest, bytes);
	const struct digest_lookup lookup = {
		.account = history->sample.account,
		.chain = history->channels[chain] * 2,
		.digest = bytes,
		.digest_size = SHA256_SIZE,
		.first = first,
		.last = last,
		.order = order,
		.max = max,
	};
	return store_find_digest(history->sample.store, &lookup, ret, ret_count, NULL);
}

static void assert_found(struct history *history, int chain, int digest, int64_t first,
                         int64_t last, enum list_order order, size_t max)
{
	int64_t found[EVENTS_MAX];
	size_t count = 0, expected = 0;
	assert_int_equal(look_up(history, chain, digest, first, last, order, max, found, &count), OK);
	for (int64_t i = 0; i < history->counts[chain] && expected < max; i++) {
		int64_t sequence = order == ORDER_ASCENDING ? i + 1 : history->counts[chain] - i;
		if (sequence < first || sequence > last || history->digests[chain][sequence - 1] != digest)
			continue;
		assert_true(expected < count);
		assert_int_equal(found[expected++], sequence);
	}
	assert_int_equal(count, expected);
}

static void assert_some_found(struct history *history)
{
	int chain = rand() % CHAINS;
	int64_t count = history->counts[chain];
	int64_t first = rand() % 3 ? 1 : 1 + rand() % (count + 1);
	int64_t last = rand() % 3 ? EVENT_SEQUENCE_MAX : first + rand() % (count + 1);
	assert_found(history, chain, rand() % (DIGESTS + 2), first, last,
	             rand() % 2 ? ORDER_ASCENDING : ORDER_DESCENDING,
	             rand() % 2 ? EVENTS_MAX : 1 + (size_t)rand() % 5);
}

static void reopen(struct history *history)
{
	store_close(history->sample.store);
	assert_int_equal(
		store_open(&(struct db_options){.url = history->sample.url}, &history->sample.store, NULL),
		OK);
}

static bool index_once(struct history *history)
{
	struct digest_progress progress;
	assert_int_equal(store_index_digests(history->sample.store, &progress, NULL), OK);
	assert_false(progress.was_damaged);
	return progress.worked;
}

static void index_all(struct history *history)
{
	for (int i = 0; i < 10000; i++)
		if (!index_once(history))
			return;
	fail_msg("the index never has everything");
}

/* A step that fails anywhere has no effect, or all of it. */
static void index_with_fault(struct history *history)
{
	static const enum fault faults[] = {FAULT_STATEMENT, FAULT_COMMIT, FAULT_COMMIT_ANSWER};
	struct digest_progress progress;
	fault_set(faults[rand() % 3], 1 + rand() % 12);
	int result = store_index_digests(history->sample.store, &progress, NULL);
	bool happened = fault_take();
	assert_true(happened || result == OK);
	assert_false(progress.was_damaged);
	reopen(history);
}

static void take_step(struct history *history)
{
	int digests[64], chain = rand() % 2 ? 0 : rand() % CHAINS;
	size_t count = 1 + (size_t)rand() % 30;
	switch (rand() % 8) {
	case 0:
	case 1:
	case 2:
		for (size_t i = 0; i < count; i++)
			digests[i] = rand() % 4 ? rand() % DIGESTS : 1000 + rand();
		if (history->counts[chain] + 64 < EVENTS_MAX)
			register_events(history, chain, digests, count);
		break;
	case 3:
	case 4: (void)index_once(history); break;
	case 5: index_with_fault(history); break;
	case 6: reopen(history); break;
	case 7: index_all(history); break;
	}
	assert_some_found(history);
}

TEST_CASE(lookups_agree_with_a_list_of_all_events)
{
	struct history *history = *state;
	for (int i = 0; i < STEPS; i++)
		take_step(history);
	index_all(history);
	for (int chain = 0; chain < CHAINS; chain++)
		for (int digest = 0; digest < DIGESTS + 2; digest++) {
			assert_found(history, chain, digest, 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING,
			             EVENTS_MAX);
			assert_found(history, chain, digest, 1, EVENT_SEQUENCE_MAX, ORDER_DESCENDING, 3);
		}
	assert_true(sample_number(&history->sample, "SELECT MAX(level) FROM digest_runs") > 0);
	assert_int_equal(sample_check(&history->sample), 0);
}

/* One digest fills many blocks of several runs, and is paged in both orders. */
TEST_CASE(equal_digests_are_paged)
{
	struct history *history = *state;
	int digests[64] = {0};
	for (int i = 0; i < 12; i++) {
		register_events(history, 0, digests, 64);
		(void)index_once(history);
	}
	index_all(history);
	register_events(history, 0, digests, 3);
	for (int64_t past = 0; past <= history->counts[0]; past += 37) {
		assert_found(history, 0, 0, past + 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING, 40);
		assert_found(history, 0, 0, 1, past, ORDER_DESCENDING, 40);
	}
}

static int count_event(void *context, const struct event *event)
{
	(*(int64_t *)context)++;
	return 0;
}

/* The work of one list is bounded also when many events have the digest and none passes. */
TEST_CASE(lists_by_digest_end_early)
{
	struct history *history = *state;
	int digests[64] = {0};
	uint8_t bytes[SHA256_SIZE];
	make_digest(0, bytes);
	for (int i = 0; i < 40; i++)
		register_events(history, 0, digests, 64);
	index_all(history);
	int64_t stopped_at = 0, listed = 0, pages = 0, past = 0;
	do {
		stopped_at = 0;
		const struct event_filter filter = {
			.from_us = TIME_NONE,
			.to_us = TIME_NONE,
			.status = STATUS_UNPAID,
			.past = past,
			.digest = slice_make((const char *)bytes, sizeof bytes),
			.ret_stopped_at = &stopped_at,
		};
		assert_int_equal(store_list_events(history->sample.store, history->sample.account,
		                                   history->channels[0] * 2, &filter, 10, false,
		                                   count_event, &listed, NULL),
		                 OK);
		assert_true(stopped_at == 0 || stopped_at > past);
		past = stopped_at;
		pages++;
	} while (stopped_at);
	assert_int_equal(listed, 0);
	assert_true(pages > 1);
}

/* Too many events that the index lacks are not scanned, and are never "none". */
TEST_CASE(a_long_tail_is_refused)
{
	struct history *history = *state;
	int64_t found[8];
	size_t count = 0;
	int digests[64] = {0};
	register_events(history, 0, digests, 64);
	register_events(history, 1, digests, 4);
	setenv("TORTURE_SIZES", SIZES ",digests_scanned=50", 1);
	assert_int_equal(
		look_up(history, 0, 7, 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING, 8, found, &count),
		ERR_UNAVAILABLE);
	/* Other chains do not suffer from it. */
	assert_found(history, 1, 0, 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING, 8);
	assert_found(history, 1, 7, 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING, 8);
	index_all(history);
	assert_found(history, 0, 7, 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING, 8);
	setenv("TORTURE_SIZES", SIZES, 1);
}

static void *index_along(void *context)
{
	struct store *store = context;
	struct digest_progress progress;
	struct error error;
	for (int i = 0; i < 400; i++) {
		int result = store_index_digests(store, &progress, &error);
		if (result || progress.was_damaged)
			return strdup(progress.was_damaged ? progress.damage : error_reason(&error, result));
	}
	return NULL;
}

/* Several nodes may take steps at the same time: on a server. */
TEST_CASE(concurrent_steps_do_no_harm)
{
	struct history *history = *state;
	struct store *stores[3];
	pthread_t threads[3];
	if (!server_url)
		return;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			store_open(&(struct db_options){.url = history->sample.url}, &stores[i], NULL), OK);
		assert_int_equal(pthread_create(&threads[i], NULL, index_along, stores[i]), 0);
	}
	for (int i = 0; i < 60; i++) {
		int digests[64];
		for (int at = 0; at < 64; at++)
			digests[at] = rand() % DIGESTS;
		register_events(history, i % 2, digests, 64);
		assert_some_found(history);
	}
	for (int i = 0; i < 3; i++) {
		void *problem;
		pthread_join(threads[i], &problem);
		if (problem)
			fail_msg("%s", (char *)problem);
		store_close(stores[i]);
	}
	index_all(history);
	for (int digest = 0; digest < DIGESTS; digest++)
		assert_found(history, 0, digest, 1, EVENT_SEQUENCE_MAX, ORDER_ASCENDING, EVENTS_MAX);
	assert_int_equal(sample_check(&history->sample), 0);
}

/* J.-P. Aumasson, D. J. Bernstein, "SipHash", test vectors of the reference implementation. */
TEST_CASE(hashes_are_sip_hashes)
{
	uint8_t bytes[24];
	for (int i = 0; i < 24; i++)
		bytes[i] = (uint8_t)i;
	struct digest_key key;
	int64_t chain;
	memcpy(key.words, bytes, sizeof key.words);
	memcpy(&chain, bytes, sizeof chain);
	assert_true(digest_hash(&key, chain, "", 0) == UINT64_C(0x93f5f5799a932462) >> 16);
	assert_true(digest_hash(&key, chain, bytes + 8, 8) == UINT64_C(0x3f2acc7f57c29bdb) >> 16);
}

int main(int argc, char **argv)
{
	server_url = argc > 2 ? argv[1] : NULL;
	srand((unsigned)test_seed());
	return tests_run(NULL, NULL, begin, end);
}
