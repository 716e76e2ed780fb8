/* The receipts of a batch: one signature over the tree of the statements. The signer is replaced.
 */
#include "testing.h"
#include "base/log.h"
#include "ledger/receipt_statement.h"
#include "seal/receipt_signer.h"
#include "service/batch_receipts.h"

#define ORIGIN "log.example/segments"
#define RECEIVED_US INT64_C(1767268800000001)
#define PROMISE_US (600 * US_PER_SECOND)
#define LANE 3

static struct {
	size_t begun, ended, logged;
	struct sha256 root; /* of the last request */
	bool answers;
	int64_t now_us;
} seen;

int64_t __wrap_clock_now_us(void);
void __wrap_receipt_signer_begin(struct receipt_signer *signer, unsigned lane,
                                 const struct sha256 *root);
bool __wrap_receipt_signer_end(struct receipt_signer *signer, unsigned lane,
                               uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE]);
const uint8_t *__wrap_receipt_signer_key(const struct receipt_signer *signer);
void __wrap_log_write(enum log_level level, const char *event, ...);

int64_t __wrap_clock_now_us(void)
{
	return seen.now_us;
}

void __wrap_receipt_signer_begin(struct receipt_signer *signer, unsigned lane,
                                 const struct sha256 *root)
{
	assert_int_equal(lane, LANE);
	seen.begun++;
	seen.root = *root;
}

bool __wrap_receipt_signer_end(struct receipt_signer *signer, unsigned lane,
                               uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE])
{
	assert_int_equal(lane, LANE);
	seen.ended++;
	memcpy(ret_signature, seen.root.bytes, SHA256_SIZE); /* as good as one */
	memset(ret_signature + SHA256_SIZE, 's', RECEIPT_SIGNATURE_SIZE - SHA256_SIZE);
	return seen.answers;
}

const uint8_t *__wrap_receipt_signer_key(const struct receipt_signer *signer)
{
	static const uint8_t key[RECEIPT_KEY_SIZE] = "the key that signs all receipts";
	return key;
}

void __wrap_log_write(enum log_level level, const char *event, ...)
{
	assert_string_equal(event, "receipts_unsigned");
	seen.logged++;
}

static struct settings settings;
static struct service service;
static struct batch_receipts receipts;
static struct arena arena;
static struct event events[BATCH_TREE_LEAVES_MAX];
static struct registration items[BATCH_TREE_LEAVES_MAX], *listed[BATCH_TREE_LEAVES_MAX];

static int set_up(void **state)
{
	memset(&seen, 0, sizeof seen);
	memset(&service, 0, sizeof service);
	seen.answers = true;
	seen.now_us = RECEIVED_US;
	settings = (struct settings){.seal_promise = PROMISE_US};
	service.settings = &settings;
	service.receipt_signer = (struct receipt_signer *)&service; /* never read */
	strcpy(service.log_origin, ORIGIN);
	batch_receipts_init(&receipts, &service, LANE);
	arena_init(&arena, (size_t)4 << 20);
	for (size_t i = 0; i < BATCH_TREE_LEAVES_MAX; i++) {
		events[i] = (struct event){.channel_id = "chn_1",
		                           .declaration = {.hash_algorithm = HASH_SHA256},
		                           .sequence = (int64_t)i + 1,
		                           .received_at_us = RECEIVED_US + (int64_t)i,
		                           .sealed_at_us = TIME_NONE,
		                           .mode = i % 5 == 4 ? MODE_TEST : MODE_LIVE};
		items[i] = (struct registration){.event = &events[i], .arena = &arena};
		listed[i] = &items[i];
	}
	return 0;
}

static int tear_down(void **state)
{
	batch_receipts_free(&receipts);
	arena_free(&arena);
	return 0;
}

static struct registration_batch batch_of(size_t count)
{
	return (struct registration_batch){.items = listed, .count = count};
}

static void refuse(size_t index)
{
	items[index].result = ERR_CONFLICT;
	items[index].event = NULL;
}

static struct sha256 leaf_of(const struct event *event, int64_t seal_by_us)
{
	BUF_AUTO struct buf statement = {.limit = RECEIPT_STATEMENT_MAX};
	const struct receipt_facts facts = {.channel_id = event->channel_id,
	                                    .chain = event->mode,
	                                    .sequence = event->sequence,
	                                    .declaration = &event->declaration,
	                                    .received_at_us = event->received_at_us,
	                                    .chain_hash = event->chain_hash,
	                                    .origin = ORIGIN,
	                                    .seal_by_us = seal_by_us};
	receipt_statement(&facts, &statement);
	return merkle_leaf(buf_slice(&statement));
}

static void assert_receipt(const struct registration *item, int64_t index, int64_t size)
{
	const struct receipt_signature *given = item->receipt;
	assert_non_null(given);
	bool test = item->event->mode == MODE_TEST;
	assert_int_equal(given->seal_by_us,
	                 test ? TIME_NONE : item->event->received_at_us + PROMISE_US);
	assert_string_equal(given->origin, ORIGIN);
	assert_int_equal(given->index, index);
	assert_int_equal(given->tree_size, size);
	assert_memory_equal(given->signature, seen.root.bytes, SHA256_SIZE);
	assert_memory_equal(given->key, "the key that signs all receipts", RECEIPT_KEY_SIZE);
	struct merkle_path path = {.count = given->path_count};
	memcpy(path.hashes, given->path, sizeof given->path);
	const struct sha256 leaf = leaf_of(item->event, given->seal_by_us);
	assert_true(merkle_is_included(&leaf, (uint64_t)index, (uint64_t)size, &path, &seen.root));
}

TEST_CASE(each_event_has_a_leaf_and_a_refusal_has_none)
{
	static const size_t sizes[] = {1, 2, 3, 7, 64, 1023, BATCH_TREE_LEAVES_MAX};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct registration_batch batch = batch_of(sizes[i]);
		batch_receipts_begin(&receipts, &batch);
		batch_receipts_end(&receipts, &batch);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_receipt(&items[k], (int64_t)k, (int64_t)sizes[i]);
		arena_reset(&arena);
	}
	struct registration_batch batch = batch_of(6);
	for (size_t i = 0; i < 6; i++)
		items[i].receipt = NULL;
	refuse(0);
	refuse(3);
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	assert_null(items[0].receipt);
	assert_null(items[3].receipt);
	assert_receipt(&items[1], 0, 4);
	assert_receipt(&items[5], 3, 4);
	assert_int_equal(service.counters.receipts_unsigned, 0);
}

/* The transaction was rolled back and begun again, with other outcomes and another promise. */
TEST_CASE(a_retried_batch_is_signed_as_it_was_committed)
{
	struct registration_batch batch = batch_of(3);
	batch_receipts_begin(&receipts, &batch);
	const struct sha256 first = seen.root;
	events[0].chain_hash.bytes[0] = 1;
	refuse(1);
	batch_receipts_begin(&receipts, &batch);
	assert_int_equal(seen.begun, 2);
	assert_false(sha256_equal(&first, &seen.root));
	settings.seal_promise = 1; /* reloaded */
	batch_receipts_end(&receipts, &batch);
	assert_receipt(&items[0], 0, 2);
	assert_null(items[1].receipt);
	assert_receipt(&items[2], 1, 2);
}

TEST_CASE(a_promise_is_no_shorter_than_two_rounds)
{
	struct registration_batch batch = batch_of(1);
	settings.seal_interval = PROMISE_US;
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	assert_int_equal(items[0].receipt->seal_by_us, RECEIVED_US + 2 * PROMISE_US);
}

TEST_CASE(a_batch_of_refusals_asks_for_nothing)
{
	struct registration_batch batch = batch_of(2);
	refuse(0);
	refuse(1);
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	assert_int_equal(seen.begun + seen.ended, 0);
	assert_int_equal(service.counters.receipts_unsigned, 0);
}

TEST_CASE(without_a_signature_receipts_are_null_and_counted)
{
	struct registration_batch batch = batch_of(3);
	seen.answers = false;
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	for (size_t i = 0; i < 3; i++)
		assert_null(items[i].receipt);
	assert_int_equal(service.counters.receipts_unsigned, 3);
	assert_int_equal(seen.logged, 1);
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	assert_int_equal(service.counters.receipts_unsigned, 6);
	assert_int_equal(seen.logged, 1); /* once a minute */
}

TEST_CASE(without_memory_some_receipts_are_null)
{
	struct registration_batch batch = batch_of(200);
	arena_free(&arena);
	arena_init(&arena, 65536);
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	size_t missing = 0;
	for (size_t i = 0; i < 200; i++) {
		missing += !items[i].receipt;
		if (items[i].receipt)
			assert_receipt(&items[i], (int64_t)i, 200);
	}
	assert_in_range(missing, 1, 199);
	assert_int_equal(service.counters.receipts_unsigned, missing);
}

TEST_CASE(turned_off_nothing_is_asked_or_counted)
{
	struct registration_batch batch = batch_of(3);
	service.receipt_signer = NULL;
	batch_receipts_begin(&receipts, &batch);
	batch_receipts_end(&receipts, &batch);
	assert_null(items[0].receipt);
	assert_int_equal(seen.begun + seen.ended + seen.logged, 0);
	assert_int_equal(service.counters.receipts_unsigned, 0);
}

/* What was promised with another setting may be in the past. */
TEST_CASE(a_replay_promises_what_is_possible)
{
	const struct registration_batch batch = batch_of(6);
	items[0].replayed = true; /* and its promise can be kept */
	events[0].received_at_us = RECEIVED_US + 260 * US_PER_SECOND;
	settings.seal_promise = 60 * US_PER_SECOND;
	settings.seal_interval = 20 * US_PER_SECOND;
	seen.now_us = RECEIVED_US + 300 * US_PER_SECOND;
	for (size_t i = 1; i < 6; i++)
		items[i].replayed = true;
	events[2].sealed_at_us = RECEIVED_US + 200 * US_PER_SECOND;
	events[3].sealed_at_us = RECEIVED_US + 10 * US_PER_SECOND;
	events[2].is_logged = events[3].is_logged = true;
	events[5].sealed_at_us = events[2].sealed_at_us; /* before the log began */
	batch_receipts_begin(&receipts, &batch);
	seen.now_us += 7 * US_PER_SECOND; /* the commit */
	batch_receipts_end(&receipts, &batch);
	const int64_t expected[] = {events[0].received_at_us + settings.seal_promise,
	                            RECEIVED_US + 340 * US_PER_SECOND,
	                            events[2].sealed_at_us,
	                            events[3].received_at_us + settings.seal_promise,
	                            TIME_NONE,
	                            TIME_NONE};
	for (size_t i = 0; i < 6; i++) {
		const struct receipt_signature *given = items[i].receipt;
		struct merkle_path path = {.count = given->path_count};
		memcpy(path.hashes, given->path, sizeof given->path);
		const struct sha256 leaf = leaf_of(&events[i], expected[i]);
		assert_int_equal(given->seal_by_us, expected[i]);
		assert_true(merkle_is_included(&leaf, i, 6, &path, &seen.root));
	}
}

TEST_MAIN_EACH(set_up, tear_down)
