#include <unistd.h>

#include "testing.h"
#include "base/json.h"
#include "jobs/internal.h"
#include "office.h"
#include "evidence/event_proof.h"
#include "evidence/stored_segment.h"
#include "issue/certify.h"
#include "seal/signer.h"
#include "seal/timestamp.h"
#include "store/events/segments.h"
#include "store/store_internal.h"

static struct office office;
static struct error error;
static struct arena arena;

static atomic_int segments_read;

int __real_store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                             struct arena *in, struct segment_record *ret, struct error *why);
int __wrap_store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                             struct arena *in, struct segment_record *ret, struct error *why);
int __wrap_store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                             struct arena *in, struct segment_record *ret, struct error *why)
{
	atomic_fetch_add(&segments_read, 1);
	return __real_store_get_segment(store, account, chain, number, in, ret, why);
}

static int set_up_content(void **state)
{
	arena_init(&arena, 16 << 20);
	office_open(&office, MODALITY_CONTENT, 1000000);
	return 0;
}

static int set_up_hash_only(void **state)
{
	arena_init(&arena, 16 << 20);
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	return 0;
}

static int tear_down(void **state)
{
	office_close(&office);
	arena_free(&arena);
	return 0;
}

static struct json *get_record(const char *id, enum language language)
{
	struct buf out = {.limit = 1 << 20};
	assert_int_equal(certification_get(&office.service, &office.live_key, slice_of(id), language,
	                                   &out, NULL, &error),
	                 OK);
	const char *text = arena_copy(&arena, out.data, out.size);
	struct json *json;
	assert_int_equal(json_parse(&arena, slice_make(text, out.size), NULL, &json, &error), OK);
	buf_free(&out);
	return json;
}

static struct slice text_of(const struct json *json, const char *name)
{
	struct slice text;
	assert_true(json_get_text(json, name, &text));
	return text;
}

/* A test certification needs no seal and no authority; the test chain is never sealed. */
TEST_CASE(test_test_mode)
{
	office_break_authority(&office);
	sample_register(&office.sample, MODE_TEST, 700);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_TEST, 1, 700, id);
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
	struct chain_head head;
	assert_int_equal(store_get_chain(office.service.store, office.sample.account,
	                                 office.sample.test_chain, &head, &error),
	                 OK);
	assert_int_equal(head.sealed_sequence, 0);
	assert_int_equal(atomic_load(&office.service.counters.seal_failures), 0);
}

/* Many small rounds of two chains; the range begins and ends within segments. */
TEST_CASE(test_many_rounds)
{
	office.settings.seal_interval = 20000;
	office_start_jobs(&office);
	struct sample first = office.sample;
	sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
	for (int i = 1; i <= 8; i++) {
		first.references = office.sample.references;
		first.now_us = office.sample.now_us;
		sample_register(&first, MODE_LIVE, 3 + i);
		office.sample.references = first.references;
		office.sample.now_us = first.now_us;
		sample_register(&office.sample, MODE_LIVE, 150);
		office_await_seal(&office, 150 * i);
	}
	office_use_channel(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_LIVE, 200, 1190, id);
	struct certification certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
	/* The other channel, whose rounds also contain the first one. */
	office.sample = first;
	office_use_channel(&office);
	office_await_seal(&office, 8 * 3 + 36);
	office_request(&office, MODE_LIVE, 1, 8 * 3 + 36, id);
	certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
}

/* The proof of one event: its record hashes up to the imprint of the round's token. */
static void check_proof(int64_t sequence)
{
	ARENA_AUTO struct arena scratch = {.limit = 4 << 20};
	struct segment_record segment;
	struct round_record round;
	struct tree_proof proof;
	assert_int_equal(store_find_segment(office.service.store, office.sample.account,
	                                    office.sample.live_chain, sequence, &scratch, &segment,
	                                    &error),
	                 OK);
	assert_int_equal(stored_segment_prove(office.service.store, &segment, sequence, &proof, &error),
	                 OK);
	struct event event;
	assert_int_equal(store_get_event(office.service.store, office.sample.account,
	                                 office.sample.live_chain, sequence, &scratch, &event, &error),
	                 OK);
	assert_true(sha256_equal(&proof.leaf, &event.chain_hash));
	assert_string_equal(event.segment_id, segment.segment_id);
	assert_int_equal(store_get_round(office.service.store, segment.round, &scratch, &round, &error),
	                 OK);
	struct sha256 root = tree_proof_root(&proof);
	assert_true(sha256_equal(&root, &round.root));
	struct timestamp_facts facts;
	assert_int_equal(timestamp_verify_token(round.token, &root,
	                                        signer_timestamp_roots(office.service.signer), &facts,
	                                        &error),
	                 OK);
	assert_true(facts.trusted);

	BUF_AUTO struct buf out = {.limit = 1 << 20};
	struct json_writer writer = {.out = &out};
	json_begin_object(&writer, NULL);
	assert_int_equal(event_proof_json(office.service.store, office.sample.account,
	                                  office.sample.live_chain, &event, &scratch, &writer, &error),
	                 OK);
	json_end_object(&writer);
	struct json *json;
	assert_int_equal(json_parse(&scratch, buf_slice(&out), NULL, &json, &error), OK);
	const struct json *member = json_member(json, "proof");
	BUF_AUTO struct buf path = {.limit = 65536};
	tree_proof_write(&proof, &(struct json_writer){.out = &path}, "path");
	assert_non_null(strstr(out.data, path.data));
	assert_true(text_of(json_member(member, "round"), "token").size > 1000);
}

/* A backlog is sealed in several segments of one round, each of which an archive reads once. */
TEST_CASE(test_backlog)
{
	sample_register(&office.sample, MODE_LIVE, 2 * SEGMENT_EVENTS_MAX + 100);
	office_start_jobs(&office);
	office_await_seal(&office, 2 * SEGMENT_EVENTS_MAX + 100);
	assert_int_equal(atomic_load(&office.service.counters.sealed_segments), 3);
	assert_int_equal(atomic_load(&office.service.counters.seal_rounds), 1);
	static const int64_t sequences[] = {
		1,     2,     128,   129,  SEGMENT_EVENTS_MAX, SEGMENT_EVENTS_MAX + 1, 20000, 32767,
		32768, 32769, 32867, 32868};
	for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
		check_proof(sequences[i]);
	char id[ID_SIZE];
	atomic_store(&segments_read, 0);
	office_request(&office, MODE_LIVE, 16000, 32800, id);
	struct certification certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(atomic_load(&segments_read), 3);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
}

/* While no authority answers, nothing is sealed and registration continues; then everything is
 * sealed. */
TEST_CASE(test_authority_fails)
{
	office_break_authority(&office);
	sample_register(&office.sample, MODE_LIVE, 10);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_LIVE, 1, 10, id);
	while (atomic_load(&office.service.counters.seal_failures) == 0)
		usleep(5000);
	sample_register(&office.sample, MODE_LIVE, 10);
	struct chain_head head;
	assert_int_equal(store_get_chain(office.service.store, office.sample.account,
	                                 office.sample.live_chain, &head, &error),
	                 OK);
	assert_int_equal(head.sealed_sequence, 0);
	assert_int_equal(head.last_sequence, 20);
	int64_t round;
	struct sha256 token_hash;
	assert_int_equal(store_last_round(office.service.store, &round, &token_hash, &error), OK);
	assert_int_equal(round, 0);
	office_stop_jobs(&office);
	office_restore_authority(&office);
	office_start_jobs(&office);
	assert_int_equal(office_await_certification(&office, MODE_LIVE, id).status,
	                 CERTIFICATION_COMPLETED);
}

static struct certification await_attempts(const char *id, int64_t attempts)
{
	struct certification certification = {0};
	do {
		usleep(5000);
		arena_reset(&arena);
		assert_int_equal(store_find_certification(office.service.store, office.sample.account,
		                                          office.sample.live_chain, slice_of(id), &arena,
		                                          &certification, &error),
		                 OK);
		assert_int_equal(certification.status, CERTIFICATION_PROCESSING);
	} while (certification.attempts < attempts || !certification.last_error);
	return certification;
}

/* A certification that fails for an hour of attempts fails for good and is refunded. Neither an old
 * request at its first attempt nor many attempts within a minute count as that. */
TEST_CASE_WITH(test_content_lost, set_up_content, tear_down)
{
	office.settings.certification_fee = 7;
	char object[CONTENT_NAME_MAX];
	office_register_object(&office, slice_of("will be lost"), "lost.bin", object);
	assert_int_equal(content_delete(office.service.content, object, &error), OK);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_LIVE, 1, 1, id);
	await_attempts(id, 1);
	sample_change(
		&office.sample,
		"UPDATE certifications SET requested_at = requested_at - 7200000000, next_attempt_at = 0,"
		" last_error = NULL");
	await_attempts(id, 2);
	sample_change(
		&office.sample,
		"UPDATE certifications SET requested_at = requested_at + 7200000000, next_attempt_at = 0,"
		" last_error = NULL,"
		" attempts = 20, own_failures = 19");
	await_attempts(id, 21);
	sample_change(
		&office.sample,
		"UPDATE certifications SET requested_at = requested_at - 7200000000, next_attempt_at = 0,"
		" last_error = NULL");
	struct certification certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(certification.status, CERTIFICATION_FAILED);
	assert_memory_equal(certification.incident_id, "inc_", 4);
	struct balance balance;
	assert_int_equal(
		store_get_balance(office.service.store, office.sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, 1000000 - 1);
	const struct json *record = get_record(id, LANGUAGE_ENGLISH);
	assert_true(slice_is(text_of(record, "status"), "failed"));
	assert_int_equal(json_member(record, "verification_code")->type, JSON_NULL);
	assert_int_equal(json_member(record, "report_url")->type, JSON_NULL);
	assert_int_equal(json_member(record, "reports")->count, 0);
}

/* The store completed an operation that it reported as failed: the issued documents are not
 * deleted. */
static bool fails_when_done;
int __real_store_complete_certification(struct store *store,
                                        const struct certification *certification,
                                        const char *holder, int64_t issued_at_us,
                                        const struct document *documents, size_t count,
                                        struct error *error);
int __wrap_store_complete_certification(struct store *store,
                                        const struct certification *certification,
                                        const char *holder, int64_t issued_at_us,
                                        const struct document *documents, size_t count,
                                        struct error *error);

int __wrap_store_complete_certification(struct store *store,
                                        const struct certification *certification,
                                        const char *holder, int64_t issued_at_us,
                                        const struct document *documents, size_t count,
                                        struct error *ret_error)
{
	int result = __real_store_complete_certification(store, certification, holder, issued_at_us,
	                                                 documents, count, ret_error);
	return fails_when_done ? error_cause(ret_error, ERR_NO_MEMORY, "afterwards") : result;
}

TEST_CASE(test_completed_unknown)
{
	sample_register(&office.sample, MODE_TEST, 5);
	fails_when_done = true;
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_TEST, 1, 5, id);
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	office_stop_jobs(&office);
	fails_when_done = false;
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
}

/* A worker that ended without a result: after the restart the node continues at once. */
TEST_CASE(test_taken_up_again)
{
	sample_register(&office.sample, MODE_TEST, 5);
	char id[ID_SIZE];
	office_request(&office, MODE_TEST, 1, 5, id);
	char host[128] = "", holder[512];
	gethostname(host, sizeof host - 1);
	snprintf(holder, sizeof holder, "%s:%s#1", host, office.sample.directory);
	struct certification claimed;
	struct certification_claim claim = {
		.holder = holder, .now_us = clock_now_us(), .lease_us = 3600 * US_PER_SECOND};
	assert_int_equal(
		store_claim_certification(office.service.store, &claim, &arena, &claimed, &error), OK);
	office_start_jobs(&office);
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(certification.attempts, 2);
}

/* A stop returns the work at once, and the attempt does not count. A sealed range needs no further
 * round. */
TEST_CASE(test_stopped)
{
	sample_register(&office.sample, MODE_LIVE, 20000);
	office_start_jobs(&office);
	office_await_seal(&office, 20000);
	sample_register(&office.sample, MODE_LIVE, 1);
	char id[ID_SIZE];
	office_request(&office, MODE_LIVE, 1, 20000, id);
	struct certification certification = {0};
	while (certification.attempts == 0)
		assert_int_equal(store_find_certification(office.service.store, office.sample.account,
		                                          office.sample.live_chain, slice_of(id), &arena,
		                                          &certification, &error),
		                 OK);
	office_stop_jobs(&office);
	assert_int_equal(store_find_certification(office.service.store, office.sample.account,
	                                          office.sample.live_chain, slice_of(id), &arena,
	                                          &certification, &error),
	                 OK);
	bool completed = certification.status == CERTIFICATION_COMPLETED;
	if (!completed) {
		assert_int_equal(certification.status, CERTIFICATION_PROCESSING);
		assert_int_equal(certification.attempts, 0);
	}
	assert_int_equal(atomic_load(&office.service.counters.seal_rounds), 1);
	office_start_jobs(&office);
	certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(certification.attempts, 1);
	assert_int_equal(office_verify(&office, &certification), 0);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up_hash_only, tear_down);
}
