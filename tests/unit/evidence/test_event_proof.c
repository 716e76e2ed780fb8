/* The proof of one event, verbatim, from real rounds over two channels. It leads from the event to
 * the root of the round by SHA-256 alone. The same as an evidence record. */
#include "testing.h"
#include "base/base64.h"
#include "base/json.h"
#include "office.h"
#include "evidence/event_proof.h"
#include "seal/evidence_record.h"
#include "seal/signer.h"
#include "seal/tree.h"
#include "store/events/segments.h"

#define EVENTS 300 /* more than one node of the segment's tree covers */
#define TEXT_MAX ((size_t)1 << 20)

static struct office office;
static struct sample first; /* the first channel, office.sample the second */
static struct arena arena;
static struct buf out;
static struct error error;
static bool spoils_nodes, spoils_token;

int __real_store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                              struct arena *memory, struct segment_record *ret, struct error *why);
int __wrap_store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                              struct arena *memory, struct segment_record *ret, struct error *why);

int __wrap_store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                              struct arena *memory, struct segment_record *ret, struct error *why)
{
	int result = __real_store_find_segment(store, account, chain, sequence, memory, ret, why);
	if (!result && spoils_nodes) {
		char *nodes = arena_alloc(memory, ret->nodes.size);
		memcpy(nodes, ret->nodes.data, ret->nodes.size);
		nodes[0] ^= 1;
		ret->nodes.data = nodes;
	}
	return result;
}

int __real_store_get_round(struct store *store, int64_t round, struct arena *memory,
                           struct round_record *ret, struct error *why);
int __wrap_store_get_round(struct store *store, int64_t round, struct arena *memory,
                           struct round_record *ret, struct error *why);

int __wrap_store_get_round(struct store *store, int64_t round, struct arena *memory,
                           struct round_record *ret, struct error *why)
{
	int result = __real_store_get_round(store, round, memory, ret, why);
	if (!result && spoils_token)
		ret->token = slice_of("no token");
	return result;
}

static int open_group(void **state)
{
	if (office_start_signer(state))
		return -1;
	office_open(&office, MODALITY_HASH_ONLY, 1000);
	first = office.sample;
	sample_register(&first, MODE_LIVE, EVENTS - 1);
	struct config_change change = {.modality = -1, .name = "Other"};
	int64_t version;
	bool changed;
	assert_int_equal(store_configure_channel(first.store, slice_of(first.channel_id), &change,
	                                         first.now_us, &version, &changed, &error),
	                 OK);
	assert_int_equal(version, 2);
	sample_register(&first, MODE_LIVE, 1);
	sample_register(&first, MODE_TEST, 2);
	sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
	office.sample.references = first.references;
	sample_register(&office.sample, MODE_LIVE, 3);
	office_seal(&office);
	sample_register(&office.sample, MODE_LIVE, 1); /* the fourth remains unsealed */
	return 0;
}

static int close_group(void **state)
{
	office_close(&office);
	return office_stop_signer(state);
}

static int set_up(void **state)
{
	arena_init(&arena, (size_t)16 << 20);
	buf_init(&out, TEXT_MAX);
	spoils_nodes = spoils_token = false;
	return 0;
}

static int tear_down(void **state)
{
	buf_free(&out);
	arena_free(&arena);
	return 0;
}

static int64_t chain_of(const struct sample *channel, enum mode mode)
{
	return mode == MODE_TEST ? channel->test_chain : channel->live_chain;
}

static struct event event_of(const struct sample *channel, enum mode mode, int64_t sequence)
{
	struct event event;
	assert_int_equal(store_get_event(office.service.store, channel->account,
	                                 chain_of(channel, mode), sequence, &arena, &event, &error),
	                 OK);
	return event;
}

static int write_within(const struct sample *channel, const struct event *event,
                        struct arena *memory)
{
	struct json_writer writer = {.out = &out};
	buf_clear(&out);
	error = (struct error){0};
	return event_proof_json(office.service.store, channel->account, chain_of(channel, event->mode),
	                        event, memory, &writer, &error);
}

static int write(const struct sample *channel, const struct event *event)
{
	return write_within(channel, event, &arena);
}

static const char *hex_of(const struct sha256 *hash)
{
	char *text = arena_alloc(&arena, 2 * SHA256_SIZE + 1);
	hex_encode(hash->bytes, SHA256_SIZE, text);
	text[(size_t)2 * SHA256_SIZE] = '\0';
	return text;
}

/* Returns the links of an event, which precede a seal. */
static const char *links_of(const struct sample *channel, const struct event *event)
{
	struct sha256 previous;
	struct channel record;
	assert_int_equal(store_get_chain_hash(office.service.store, channel->account,
	                                      chain_of(channel, event->mode), event->sequence - 1,
	                                      &previous, &error),
	                 OK);
	assert_int_equal(store_get_channel_versions(office.service.store, channel->account,
	                                            channel->channel, INT64_MAX, INT64_MAX, &arena,
	                                            &record, &error),
	                 OK);
	return arena_printf(&arena, "\"proof\":{\"previous_chain_hash\":\"%s\",\"config_hash\":\"%s\"",
	                    hex_of(&previous), hex_of(&record.configs[event->config_version - 1].hash));
}

static void is_written(const char *expected)
{
	assert_int_equal(buf_check(&out), OK);
	assert_string_equal(out.data, expected);
}

/* ---- without a seal ---- */

TEST_CASE(what_is_not_sealed_has_its_links_only)
{
	struct event open = event_of(&office.sample, MODE_LIVE, 4);
	assert_int_equal(write(&office.sample, &open), OK);
	is_written(arena_printf(&arena, "%s}", links_of(&office.sample, &open)));
	for (int64_t sequence = 1; sequence <= 2; sequence++) {
		struct event test = event_of(&first, MODE_TEST, sequence);
		assert_int_equal(test.config_version, 2);
		assert_int_equal(write(&first, &test), OK);
		is_written(arena_printf(&arena, "%s}", links_of(&first, &test)));
	}
}

/* The links of an event hash to its own place in the chain and to no other. */
TEST_CASE(a_first_event_follows_the_genesis)
{
	struct event event = event_of(&first, MODE_TEST, 1);
	struct chain_head head;
	assert_int_equal(
		store_get_chain(office.service.store, first.account, first.test_chain, &head, &error), OK);
	assert_int_equal(write(&first, &event), OK);
	assert_non_null(strstr(out.data, hex_of(&head.genesis_hash)));
	struct event second = event_of(&first, MODE_TEST, 2);
	assert_int_equal(write(&first, &second), OK);
	assert_non_null(strstr(out.data, hex_of(&event.chain_hash)));
}

/* ---- with one ---- */

static struct sha256 hash_in(const struct json *text)
{
	struct sha256 hash;
	assert_true(text && text->type == JSON_STRING);
	assert_true(hex_decode(text->text, hash.bytes, SHA256_SIZE));
	return hash;
}

static struct sha256 combine(struct sha256 a, struct sha256 b)
{
	uint8_t both[2 * SHA256_SIZE];
	bool swapped = memcmp(a.bytes, b.bytes, SHA256_SIZE) > 0;
	memcpy(both, swapped ? b.bytes : a.bytes, SHA256_SIZE);
	memcpy(both + SHA256_SIZE, swapped ? a.bytes : b.bytes, SHA256_SIZE);
	return sha256_of(both, sizeof both);
}

/* The first list has the leaf and its sibling, each later list one sibling. */
static void assert_leads(const struct json *proof, const struct event *event)
{
	const struct json *list = json_member(proof, "path")->first;
	assert_non_null(list);
	assert_int_equal(list->count, 2);
	struct sha256 a = hash_in(list->first), b = hash_in(list->first->next);
	assert_true(sha256_equal(&a, &event->chain_hash) || sha256_equal(&b, &event->chain_hash));
	struct sha256 node = combine(a, b);
	struct sha256 segment = hash_in(json_member(json_member(proof, "segment"), "root"));
	bool through_segment = sha256_equal(&node, &segment);
	while ((list = list->next)) {
		assert_int_equal(list->count, 1);
		node = combine(node, hash_in(list->first));
		through_segment |= sha256_equal(&node, &segment);
	}
	struct sha256 root = hash_in(json_member(json_member(proof, "round"), "root"));
	assert_true(through_segment);
	assert_false(sha256_equal(&segment, &root)); /* two channels share the round */
	assert_true(sha256_equal(&node, &root));
}

static const char *quoted(const char *text)
{
	BUF_AUTO struct buf json = {.limit = 4096};
	json_text(&(struct json_writer){.out = &json}, NULL, text);
	assert_int_equal(buf_check(&json), OK);
	return arena_printf(&arena, "%s", json.data);
}

static void is_proved(const struct sample *channel, int64_t sequence)
{
	struct event event = event_of(channel, MODE_LIVE, sequence);
	struct segment_record segment;
	struct round_record round;
	assert_int_equal(__real_store_find_segment(office.service.store, channel->account,
	                                           channel->live_chain, sequence, &arena, &segment,
	                                           &error),
	                 OK);
	assert_int_equal(store_get_round(office.service.store, segment.round, &arena, &round, &error),
	                 OK);
	assert_string_equal(event.segment_id, segment.segment_id);
	assert_int_equal(write(channel, &event), OK);

	const char *text = arena_printf(&arena, "{%s}", out.data);
	struct json *json;
	assert_int_equal(json_parse(&arena, slice_of(text), NULL, &json, &error), OK);
	assert_leads(json_member(json, "proof"), &event);

	/* The text is known verbatim but for the path. */
	const char *path = strstr(out.data, ",\"path\":[");
	const char *end = path ? strstr(path, ",\"round\":") : NULL;
	assert_non_null(end);
	char time[TIME_TEXT_SIZE];
	time_format(round.sealed_at_us, time);
	char *token = arena_alloc(&arena, BASE64_SIZE(round.token.size) + 1);
	base64_encode(round.token.data, round.token.size, token);
	is_written(arena_printf(
		&arena,
		"%s,\"segment\":{\"segment_id\":\"%s\",\"first_sequence\":%d,\"last_sequence\":%d,"
		"\"seal_document\":%.*s,\"root\":\"%s\"}%.*s,"
		"\"round\":{\"root\":\"%s\",\"authority\":%s,\"kind\":\"%s\",\"sealed_at\":\"%s\","
		"\"token\":\"%s\"}}",
		links_of(channel, &event), segment.segment_id, (int)segment.first_sequence,
		(int)segment.last_sequence, (int)segment.document.size, segment.document.data,
		hex_of(&segment.root), (int)(end - path), path, hex_of(&round.root),
		quoted(round.authority), round.kind, time, token));
}

TEST_CASE(what_is_sealed_leads_to_its_round)
{
	static const int64_t sequences[] = {1, 2, 128, 129, EVENTS - 1, EVENTS};
	for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
		is_proved(&first, sequences[i]);
	is_proved(&office.sample, 3);
}

/* ---- as an evidence record ---- */

static int record(const struct sample *channel, const struct event *event, struct arena *memory)
{
	buf_clear(&out);
	error = (struct error){0};
	return event_evidence_record(office.service.store, office.service.revocation, channel->account,
	                             chain_of(channel, event->mode), event, memory, &out, &error);
}

static void is_recorded(const struct sample *channel, int64_t sequence)
{
	struct event event = event_of(channel, MODE_LIVE, sequence);
	assert_int_equal(record(channel, &event, &arena), OK);
	EVIDENCE_RECORD_AUTO struct evidence_record *read = NULL;
	assert_int_equal(evidence_record_parse(buf_slice(&out), &read, &error), OK);
	struct digest digests[DIGEST_ALGORITHM_COUNT] = {digest_of_sha256(&event.chain_hash)};
	struct evidence_query question = {.roots_pem = signer_timestamp_roots(office.service.signer),
	                                  .at_us = clock_now_us()};
	struct evidence_facts facts;
	assert_int_equal(evidence_record_verify(read, digests, &question, &arena, &facts, &error), OK);
	assert_true(facts.trusted);
	assert_int_equal(facts.exists_since_us, event.sealed_at_us);
	assert_int_equal(facts.stamp_count, 1);
	digests[DIGEST_SHA256].bytes[0] ^= 1;
	assert_int_equal(evidence_record_verify(read, digests, &question, &arena, &facts, &error),
	                 ERR_INVALID_EVIDENCE);
}

/* ---- what cannot be proved ---- */

static void assert_nothing(int result, int code, const char *cause)
{
	assert_int_equal(result, code);
	assert_non_null(strstr(error.cause, cause));
	assert_int_equal(out.size, 0);
}

/* Nothing is written unless all parts of a proof were found and agree. */
TEST_CASE(what_is_not_proved_is_not_written)
{
	static const int64_t versions[] = {-1, 0, 3};
	struct event event = event_of(&first, MODE_LIVE, 7);
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		struct event altered = event;
		altered.config_version = versions[i];
		assert_nothing(write(&first, &altered), ERR_CORRUPT, "no configuration version");
		assert_non_null(strstr(error.cause, event.event_id));
	}
	struct event open = event_of(&office.sample, MODE_LIVE, 4);
	strcpy(open.segment_id, "seg_none");
	assert_nothing(write(&office.sample, &open), ERR_NOT_FOUND, "");
	spoils_nodes = true;
	assert_nothing(write(&first, &event), ERR_CORRUPT, "does not lead to its root");
	spoils_nodes = false;

	int result;
	int failed = 0;
	for (size_t most = 0; most < 1 << 20; most += 512) {
		ARENA_AUTO struct arena small;
		arena_init(&small, most);
		result = write_within(&first, &event, &small);
		if (!result)
			break;
		assert_nothing(result, ERR_NO_MEMORY, "");
		failed++;
	}
	assert_int_equal(result, OK);
	assert_true(failed > 1);
}

TEST_CASE(what_is_sealed_has_a_record)
{
	static const int64_t sequences[] = {1, 2, 128, 129, EVENTS - 1, EVENTS};
	for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
		is_recorded(&first, sequences[i]);
	is_recorded(&office.sample, 3);
}

TEST_CASE(what_is_not_sealed_has_no_record)
{
	struct event open = event_of(&office.sample, MODE_LIVE, 4);
	assert_nothing(record(&office.sample, &open, &arena), ERR_NOT_FOUND, "");
	assert_int_equal(error.message, MSG_EVIDENCE_RECORD_PENDING);
	struct event test = event_of(&first, MODE_TEST, 1);
	assert_nothing(record(&first, &test, &arena), ERR_NOT_FOUND, "");
	assert_int_equal(error.message, MSG_EVIDENCE_RECORD_TEST);
}

TEST_CASE(what_does_not_agree_has_no_record)
{
	struct event event = event_of(&first, MODE_LIVE, 7);
	spoils_nodes = true;
	assert_nothing(record(&first, &event, &arena), ERR_CORRUPT, "does not lead to its root");
	spoils_nodes = false;
	spoils_token = true;
	assert_nothing(record(&first, &event, &arena), ERR_CORRUPT, event.event_id);
}

int main(void)
{
	return tests_run(open_group, close_group, set_up, tear_down);
}
