/* Sealed segments are checked, and each fault in the stored data is named. The segments are real;
 * the data read of them is altered before the check. */
#include <inttypes.h>

#include "testing.h"
#include "office.h"
#include "evidence/check_segment.h"
#include "evidence/stored_segment.h"
#include "store/store_internal.h"

static struct office office;
static struct sample first,
	second; /* two channels: each has a segment in both rounds, and a staged one */

/* The values that the store returns. */
static struct {
	void (*segment)(struct segment_record *segment);
	void (*round)(struct round_record *round);
	void (*hashes)(struct sha256 *hashes, size_t count);
	int segment_result, round_result, hashes_result;
	void (*run_once)(void); /* called once, when a segment has been read */
} altered;
static int second_result = ERR_NOT_FOUND; /* result of reading a second timestamp */

int __real_store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                             struct arena *arena, struct segment_record *ret, struct error *error);
int __wrap_store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                             struct arena *arena, struct segment_record *ret, struct error *error);
int __real_store_get_round(struct store *store, int64_t round, struct arena *arena,
                           struct round_record *ret, struct error *error);
int __wrap_store_get_round(struct store *store, int64_t round, struct arena *arena,
                           struct round_record *ret, struct error *error);
int __real_store_read_chain_hashes(struct store *store, int64_t account, int64_t chain,
                                   int64_t from, int64_t to, struct sha256 *ret,
                                   struct error *error);
int __wrap_store_read_chain_hashes(struct store *store, int64_t account, int64_t chain,
                                   int64_t from, int64_t to, struct sha256 *ret,
                                   struct error *error);

int __wrap_store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                             struct arena *arena, struct segment_record *ret, struct error *error)
{
	int result = altered.segment_result;
	if (!result)
		result = __real_store_get_segment(store, account, chain, number, arena, ret, error);
	if (!result && altered.segment)
		altered.segment(ret);
	void (*run_once)(void) = altered.run_once;
	altered.run_once = NULL;
	if (run_once)
		run_once();
	return result;
}

int __wrap_store_get_round(struct store *store, int64_t round, struct arena *arena,
                           struct round_record *ret, struct error *error)
{
	int result = altered.round_result;
	if (!result)
		result = __real_store_get_round(store, round, arena, ret, error);
	if (!result && altered.round)
		altered.round(ret);
	return result;
}

int __wrap_store_read_chain_hashes(struct store *store, int64_t account, int64_t chain,
                                   int64_t from, int64_t to, struct sha256 *ret,
                                   struct error *error)
{
	int result = altered.hashes_result;
	if (!result)
		result = __real_store_read_chain_hashes(store, account, chain, from, to, ret, error);
	if (!result && altered.hashes)
		altered.hashes(ret, (size_t)(to - from + 1));
	return result;
}

/* ---- two rounds ---- */

static void register_in(struct sample *channel, int64_t count)
{
	channel->references = office.sample.references;
	sample_register(channel, MODE_LIVE, count);
	office.sample.references = channel->references;
}

static int open_group(void **state)
{
	if (office_start_signer(state) != 0)
		return -1;
	office_open(&office, MODALITY_HASH_ONLY, 1000);
	first = office.sample;
	sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
	second = office.sample;
	for (int round = 1; round <= 2; round++) {
		register_in(&first, 5);
		register_in(&second, 200);
		office_seal(&office);
	}
	register_in(&first, 5);
	register_in(&second, 200);
	office_stage(&office); /* for a third round, which is never written */
	return 0;
}

static int close_group(void **state)
{
	office_close(&office);
	return office_stop_signer(state);
}

static int set_up(void **state)
{
	memset(&altered, 0, sizeof altered);
	second_result = ERR_NOT_FOUND;
	return 0;
}

/* ---- */

static int check_of(const struct sample *channel, int64_t number, struct checked_segment *before,
                    struct error *error)
{
	*error = (struct error){0};
	return check_segment(office.service.store, channel->account, channel->live_chain, number,
	                     before, error);
}

static int check(const struct sample *channel, int64_t number, struct checked_segment *before)
{
	struct error error;
	int result = check_of(channel, number, before, &error);
	if (result)
		print_message("%s\n", error.cause);
	return result;
}

TEST_CASE(whole_ones_are_found_whole)
{
	const struct sample *channels[] = {&first, &second};
	struct checked_segment before = {0};
	for (size_t i = 0; i < 2; i++)
		for (int64_t number = 1; number <= 2; number++) {
			assert_int_equal(check(channels[i], number, &before), OK);
			assert_int_equal(before.account, channels[i]->account);
			assert_int_equal(before.chain, channels[i]->live_chain);
			assert_int_equal(before.number, number);
			assert_int_equal(before.last_round, number);
		}
	struct error error = {0};
	assert_int_equal(check_of(&first, 4, &before, &error), ERR_NOT_FOUND);
}

static void expect_fault(const struct sample *channel, int64_t number, const char *words)
{
	struct checked_segment before = {0};
	struct error error;
	assert_int_equal(check_of(channel, number, &before, &error), ERR_CORRUPT);
	assert_non_null(strstr(error.cause, words));
	assert_ptr_equal(strstr(error.cause, "segment seg_"), error.cause);
}

static void move_on_place(struct segment_record *segment)
{
	segment->place++;
}

static void move_to_another_block(struct segment_record *segment)
{
	segment->place += ROUND_BLOCK_SEGMENTS_MAX;
}

static void claim_a_later_round(struct segment_record *segment)
{
	segment->round++;
}

/* No round seals them yet; they are in the staged block of the next one. */
TEST_CASE(staged_ones_are_found_whole)
{
	static const char words[] = "it is missing in the block in which it is staged";
	struct checked_segment before = {0};
	assert_int_equal(check(&first, 2, &before), OK);
	assert_int_equal(check(&first, 3, &before), OK);
	assert_int_equal(before.last_round, 2);
	assert_int_equal(check(&second, 3, &before), OK);
	altered.segment = move_on_place;
	expect_fault(&first, 3, words);
	expect_fault(&second, 3, words); /* there are two */
	altered.segment = move_to_another_block;
	expect_fault(&first, 3, words);
	altered.segment = claim_a_later_round;
	expect_fault(&first, 3, "its round is missing");
}

/* The sealer takes the block back during the check. */
static void take_back(void)
{
	assert_int_equal(store_unstage_block(office.service.store, 3, 0, NULL), OK);
}

/* The block then holds other segments. */
static void replace(void)
{
	take_back();
	register_in(&first, 1);
	office_stage(&office);
}

static void lose_the_block(void)
{
	sample_change(&office.sample, "DELETE FROM round_blocks WHERE round = 3");
}

TEST_CASE(what_is_taken_back_beside_is_no_fault)
{
	struct checked_segment before = {0};
	struct error error;
	assert_int_equal(check(&first, 2, &before), OK);
	altered.run_once = take_back;
	assert_int_equal(check_of(&first, 3, &before, &error), ERR_NOT_FOUND);
	office_stage(&office);
	altered.run_once = replace;
	assert_int_equal(check(&first, 3, &before), OK);
	assert_int_equal(check(&second, 3, &before), OK);
	altered.run_once = lose_the_block;
	expect_fault(&first, 3, "it is missing in the block in which it is staged");
	take_back();
	office_stage(&office);
	assert_int_equal(check(&first, 3, &before), OK);
}

static void flip(struct slice bytes, size_t at)
{
	assert_true(at < bytes.size);
	((char *)bytes.data)[at] ^= 1; /* in the caller's arena */
}

/* ---- documents ---- */

/* Replaces the document by another one that could be a segment's. Its text is valid until the next
 * call. */
static void name_no_seal(struct segment_record *segment)
{
	static char text[SEAL_DOCUMENT_MAX];
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf out;
	struct seal_document document;
	buf_init(&out, sizeof text);
	assert_int_equal(stored_segment_document(segment, &arena, &document, NULL), OK);
	document.previous_seal_hash = NULL;
	seal_document_write(&document, &out);
	assert_int_equal(buf_check(&out), OK);
	memcpy(text, out.data, out.size);
	segment->document = slice_make(text, out.size);
}

static void shift_range(struct segment_record *segment)
{
	segment->first_sequence++;
}

static void take_back_number(struct segment_record *segment)
{
	segment->number--;
}

static void move_on_number(struct segment_record *segment)
{
	segment->number++;
}

TEST_CASE(documents_say_what_the_segment_is)
{
	static const char words[] = "does not reference the previous seal";
	altered.segment = shift_range;
	expect_fault(&first, 1, "seal document");
	altered.segment = move_on_number;
	expect_fault(&first, 1, words);
	altered.segment = take_back_number;
	expect_fault(&first, 2, words);
	altered.segment = name_no_seal;
	expect_fault(&first, 2, words);
}

/* A seal is only compared with the one directly before it in its chain. */
TEST_CASE(a_seal_is_compared_with_the_one_before)
{
	struct checked_segment before = {0}, changed;
	assert_int_equal(check(&first, 1, &before), OK);
	changed = before;
	assert_int_equal(check(&first, 2, &changed), OK);
	changed = before;
	changed.seal_hash.bytes[SHA256_SIZE - 1] ^= 1;
	struct checked_segment others[] = {changed, changed, changed};
	struct error error;
	assert_int_equal(check_of(&first, 2, &changed, &error), ERR_CORRUPT);
	assert_non_null(strstr(error.cause, "does not reference the previous seal"));
	others[0].account++;
	others[1].chain++;
	others[2].number = 0;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(check(&first, 2, &others[i]), OK);
}

/* ---- trees ---- */

static size_t find(struct slice text, const char *words)
{
	const char *place = memmem(text.data, text.size, words, strlen(words));
	assert_non_null(place);
	return (size_t)(place - text.data);
}

static void say_other_source(struct segment_record *segment)
{
	flip(segment->document, find(segment->document, "ntp_adjtime"));
}

static void flip_root(struct segment_record *segment)
{
	segment->root.bytes[0] ^= 1;
}

static void flip_last_node(struct segment_record *segment)
{
	flip(segment->nodes, segment->nodes.size - 1);
}

static void lose_node(struct segment_record *segment)
{
	segment->nodes.size -= SHA256_SIZE;
}

static void flip_first_hash(struct sha256 *hashes, size_t count)
{
	hashes[0].bytes[0] ^= 1;
}

static void flip_last_hash(struct sha256 *hashes, size_t count)
{
	hashes[count - 1].bytes[0] ^= 1;
}

TEST_CASE(trees_follow_from_documents_and_events)
{
	static const char words[] = "tree does not follow from its events";
	void (*const segments[])(struct segment_record *) = {say_other_source, flip_root,
	                                                     flip_last_node, lose_node};
	for (size_t i = 0; i < sizeof segments / sizeof *segments; i++) {
		altered.segment = segments[i];
		expect_fault(&second, 2, words);
	}
	altered.segment = NULL;
	altered.hashes = flip_first_hash;
	expect_fault(&second, 2, words);
	altered.hashes = flip_last_hash;
	expect_fault(&second, 2, words);
}

/* Makes segment and document agree on the count. Its text is valid until the next call. */
static void claim_events(struct segment_record *segment, int64_t count)
{
	static char text[2 * SEAL_DOCUMENT_MAX];
	struct slice document = segment->document;
	size_t begin = find(document, "\"count\""), end = find(document, ",\"previous_seal_hash\"");
	segment->last_sequence = segment->first_sequence + count - 1;
	int size = snprintf(text, sizeof text,
	                    "%.*s\"count\":%" PRId64 ",\"first_sequence\":%" PRId64
	                    ",\"last_sequence\":%" PRId64 "%.*s",
	                    (int)begin, document.data, count, segment->first_sequence,
	                    segment->last_sequence, (int)(document.size - end), document.data + end);
	segment->document = slice_make(text, (size_t)size);
}

static void claim_as_many_events(struct segment_record *segment)
{
	struct slice document = segment->document;
	claim_events(segment, segment->last_sequence - segment->first_sequence + 1);
	assert_true(slice_equal(segment->document, document));
}

static void claim_no_events(struct segment_record *segment)
{
	claim_events(segment, 0);
}

static void claim_too_many_events(struct segment_record *segment)
{
	claim_events(segment, SEGMENT_EVENTS_MAX + 1);
}

TEST_CASE(impossible_ranges_are_not_read)
{
	struct checked_segment before = {0};
	altered.segment = claim_as_many_events;
	assert_int_equal(check(&first, 1, &before), OK);
	altered.hashes_result = ERR_UNAVAILABLE; /* if they were read */
	altered.segment = claim_no_events;
	expect_fault(&first, 2, "seal document");
	altered.segment = claim_too_many_events;
	expect_fault(&first, 2, "seal document");
}

/* ---- rounds ---- */

/* As in rounds of earlier versions: its sibling in a round of two. */
static void have_path(struct segment_record *segment)
{
	static struct sha256 sibling;
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct segment_record other;
	bool is_first = segment->chain == first.live_chain;
	const struct sample *run_once = is_first ? &second : &first;
	assert_int_equal(__real_store_get_segment(office.service.store, run_once->account,
	                                          run_once->live_chain, segment->number, &arena, &other,
	                                          NULL),
	                 OK);
	sibling = other.root;
	segment->place = SEGMENT_HAS_PATH;
	segment->path = slice_make(&sibling, sizeof sibling);
}

static void flip_path(struct segment_record *segment)
{
	have_path(segment);
	flip(segment->path, 0);
}

static void cut_path(struct segment_record *segment)
{
	have_path(segment);
	segment->path.size--;
}

static void flip_round_root(struct round_record *round)
{
	round->root.bytes[0] ^= 1;
}

TEST_CASE(paths_lead_to_the_rounds_root)
{
	struct checked_segment before = {0};
	altered.segment = have_path;
	assert_int_equal(check(&first, 1, &before), OK);
	assert_int_equal(check(&second, 2, &before), OK);
	altered.segment = move_on_place;
	expect_fault(&first, 1, "path does not lead to its round's root");
	expect_fault(&second, 1, "path does not lead to its round's root");
	altered.segment = move_to_another_block;
	expect_fault(&first, 1, "its block is missing");
	altered.segment = flip_path;
	expect_fault(&first, 1, "path does not lead to its round's root");
	altered.segment = cut_path;
	expect_fault(&first, 1, "path has an impossible size");
	altered.segment = NULL;
	altered.round = flip_round_root;
	expect_fault(&first, 1, "path does not lead to its round's root");
	altered.round_result = ERR_NOT_FOUND;
	expect_fault(&first, 1, "round is missing");
}

static void flip_token_hash(struct round_record *round)
{
	round->token_hash.bytes[0] ^= 1;
}

static void date_later(struct round_record *round)
{
	round->sealed_at_us++;
}

/* Alters the signature itself, not the data that it signs. */
static void flip_token(struct round_record *round)
{
	flip(round->token, round->token.size - 1);
	round->token_hash = sha256_of(round->token.data, round->token.size);
}

/* Nothing is read from such a token, not even its time. */
static void flip_token_of_no_time(struct round_record *round)
{
	flip_token(round);
	round->sealed_at_us = 0;
}

/* The timestamp is valid, but over other data. */
static void take_the_other_rounds_token(struct round_record *round)
{
	static char text[65536];
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	struct round_record other;
	assert_int_equal(
		__real_store_get_round(office.service.store, 3 - round->round, &arena, &other, NULL), OK);
	assert_true(other.token.size <= sizeof text);
	memcpy(text, other.token.data, other.token.size);
	round->token = slice_make(text, other.token.size);
	round->token_hash = other.token_hash;
	round->sealed_at_us = other.sealed_at_us;
}

TEST_CASE(timestamps_are_verified)
{
	void (*const rounds[])(struct round_record *) = {flip_token_hash, date_later, flip_token,
	                                                 flip_token_of_no_time,
	                                                 take_the_other_rounds_token};
	for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
		altered.round = rounds[i];
		expect_fault(&first, 2, "timestamp of its round is not valid");
	}
}

/* The round's own token serves as that of a second authority, since it covers the same root. */
static void (*alter_second)(struct round_token *token);
int __wrap_store_get_second_token(struct store *store, int64_t round, struct arena *arena,
                                  struct round_token *ret, struct error *error);
int __wrap_store_get_second_token(struct store *store, int64_t round, struct arena *arena,
                                  struct round_token *ret, struct error *error)
{
	struct round_record record;
	if (second_result)
		return second_result;
	assert_int_equal(__real_store_get_round(store, round, arena, &record, error), OK);
	*ret = (struct round_token){.token = record.token, .sealed_at_us = record.sealed_at_us};
	if (alter_second)
		alter_second(ret);
	return OK;
}

static void date_second_later(struct round_token *token)
{
	token->sealed_at_us++;
}

static void flip_second(struct round_token *token)
{
	flip(token->token, token->token.size - 1);
}

TEST_CASE(second_timestamps_are_verified)
{
	struct checked_segment before = {0};
	struct error error;
	second_result = OK;
	assert_int_equal(check(&first, 1, &before), OK);
	alter_second = date_second_later;
	expect_fault(&first, 1, "the second timestamp of its round is not valid");
	alter_second = flip_second;
	expect_fault(&first, 1, "the second timestamp of its round is not valid");
	alter_second = NULL;
	second_result = ERR_UNAVAILABLE;
	before = (struct checked_segment){0};
	assert_int_equal(check_of(&first, 1, &before, &error), ERR_UNAVAILABLE);
}

/* Only a timestamp that was found valid, and only for segments of the same round. */
TEST_CASE(a_timestamp_is_verified_once)
{
	struct checked_segment before = {0};
	struct error error;
	assert_int_equal(check(&first, 1, &before), OK);
	altered.round = flip_token;
	assert_int_equal(check(&second, 1, &before), OK);
	assert_int_equal(check_of(&second, 2, &before, &error), ERR_CORRUPT);
	assert_int_equal(check_of(&first, 2, &before, &error), ERR_CORRUPT);
}

/* ---- */

static void cut_document(struct segment_record *segment)
{
	segment->document.size--;
}

/* It is compared with the stored segments. */
TEST_CASE(after_a_fault_the_next_is_checked)
{
	struct checked_segment before = {0};
	struct error error;
	altered.segment = flip_last_node;
	assert_int_equal(check_of(&first, 1, &before, &error), ERR_CORRUPT);
	altered.segment = NULL;
	assert_int_equal(check(&first, 2, &before), OK);
	void (*const documents[])(struct segment_record *) = {say_other_source, cut_document};
	for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
		before = (struct checked_segment){0};
		altered.segment = documents[i];
		assert_int_equal(check_of(&first, 1, &before, &error), ERR_CORRUPT);
		altered.segment = NULL;
		assert_int_equal(check_of(&first, 2, &before, &error), ERR_CORRUPT);
		assert_non_null(strstr(error.cause, "does not reference the previous seal"));
	}
}

TEST_CASE(what_cannot_be_checked_is_no_fault)
{
	int *const results[] = {&altered.segment_result, &altered.hashes_result, &altered.round_result};
	for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
		struct checked_segment before = {0};
		struct error error;
		*results[i] = ERR_UNAVAILABLE;
		assert_int_equal(check_of(&first, 1, &before, &error), ERR_UNAVAILABLE);
		*results[i] = OK;
	}
}

int main(void)
{
	return tests_run(open_group, close_group, set_up, NULL);
}
