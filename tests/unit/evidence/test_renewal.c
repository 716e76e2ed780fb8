/* Stored evidence over simulated years: authorities with successive certificates, generations
 * renewed and lost, nodes that die at any step. The service's verifier and that of the tests, which
 * was written from the format description alone, judge each record. */
#include <inttypes.h>

#include "testing.h"
#include "office.h"
#include "evidence/check_stamp.h"
#include "evidence/event_proof.h"
#include "evidence/evidence_chain.h"
#include "evidence/renewal.h"
#include "issue/certify.h"
#include "seal/authority.h"
#include "seal/level.h"
#include "store/store_internal.h"
#include "store/transaction.h"
#include "time_authority.h"

#define AUTHORITIES 5
#define DOCUMENTS 3

static struct office office;
static struct error error;

/* ---- time, and the authorities ---- */

static struct time_authority authorities[AUTHORITIES];
static struct buf trust;
/* Start of the first certificate. Each is valid for four years and overlaps the one before by one
 * year. */
static int64_t start_us;
static int64_t now_us; /* 0: the real time */
static size_t current; /* index of the authority for timestamps */
static size_t second;  /* and of that for second ones */
static int64_t bought; /* tokens */
static bool authority_down, refuses_sha512;
static bool revoked[AUTHORITIES], rejected[AUTHORITIES];
static enum digest_algorithm last_algorithm;
static bool dies_before_commit; /* the process dies after it has received its token */
static atomic_bool stopping, lost;

int64_t __real_clock_now_us(void);
int64_t __wrap_clock_now_us(void);
int64_t __wrap_clock_now_us(void)
{
	return now_us ? now_us : __real_clock_now_us();
}

static void add_der(X509 *certificate, struct buf *out)
{
	unsigned char *der = NULL;
	int size = i2d_X509(certificate, &der);
	assert_true(size > 0);
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
}

static int give_timestamp(size_t which, const struct digest *imprint,
                          struct authority_result *result, struct error *ret_error)
{
	struct time_authority *authority = &authorities[which];
	if (authority_down || (refuses_sha512 && imprint->algorithm == DIGEST_SHA512))
		return error_cause(ret_error, ERR_AUTHORITY, "no answer");
	*result = (struct authority_result){.kind = AUTHORITY_QUALIFIED};
	snprintf(result->name, sizeof result->name, "authority %zu", which);
	snprintf(result->url, sizeof result->url, "https://%zu.example/", which);
	buf_init(&result->request, TIMESTAMP_REQUEST_MAX);
	buf_init(&result->response, TIMESTAMP_RESPONSE_MAX);
	buf_init(&result->token, TIMESTAMP_RESPONSE_MAX);
	buf_init(&result->path, TIMESTAMP_PATH_MAX);
	time_authority_stamp(authority, imprint, now_us, &result->token);
	buf_add_slice(&result->response, buf_slice(&result->token));
	buf_add_text(&result->request, "request");
	add_der(authority->certificate, &result->path);
	add_der(authority->root, &result->path);
	bought++;
	last_algorithm = imprint->algorithm;
	return timestamp_verify_token_at(buf_slice(&result->token), imprint, buf_slice(&trust), NULL,
	                                 TIME_NONE, &result->facts, ret_error);
}

int __wrap_authorities_timestamp(struct authorities *of, const struct sha256 *imprint,
                                 int64_t earliest_us, struct authority_result *ret_result,
                                 struct authority_failures *ret_failures, struct error *ret_error);
int __wrap_authorities_timestamp(struct authorities *of, const struct sha256 *imprint,
                                 int64_t earliest_us, struct authority_result *ret_result,
                                 struct authority_failures *ret_failures, struct error *ret_error)
{
	struct digest digest = digest_of_sha256(imprint);
	(void)of, (void)earliest_us, (void)ret_failures;
	return give_timestamp(current, &digest, ret_result, ret_error);
}

int __wrap_authorities_timestamp_independent(struct authorities *of, const struct sha256 *imprint,
                                             int64_t earliest_us,
                                             const struct authority_result *first,
                                             struct authority_result *ret_result,
                                             struct authority_failures *ret_failures,
                                             struct error *ret_error);
int __wrap_authorities_timestamp_independent(struct authorities *of, const struct sha256 *imprint,
                                             int64_t earliest_us,
                                             const struct authority_result *first,
                                             struct authority_result *ret_result,
                                             struct authority_failures *ret_failures,
                                             struct error *ret_error)
{
	struct digest digest = digest_of_sha256(imprint);
	(void)of, (void)earliest_us, (void)first, (void)ret_failures;
	return give_timestamp(second, &digest, ret_result, ret_error);
}

int __wrap_authorities_timestamp_over(struct authorities *of, const struct digest *imprint,
                                      struct authority_result *ret_result,
                                      struct authority_failures *ret_failures,
                                      struct error *ret_error);
int __wrap_authorities_timestamp_over(struct authorities *of, const struct digest *imprint,
                                      struct authority_result *ret_result,
                                      struct authority_failures *ret_failures,
                                      struct error *ret_error)
{
	(void)of, (void)ret_failures;
	size_t which = current;
	while (which < AUTHORITIES && rejected[which])
		which++;
	return which < AUTHORITIES ? give_timestamp(which, imprint, ret_result, ret_error)
	                           : error_cause(ret_error, ERR_AUTHORITY, "all are left alone");
}

static size_t who_gave(struct slice path)
{
	for (size_t i = 0; i < AUTHORITIES; i++) {
		BUF_AUTO struct buf own = {.limit = TIMESTAMP_PATH_MAX};
		add_der(authorities[i].certificate, &own);
		if (path.size > own.size && memcmp(path.data, own.data, own.size) == 0)
			return i;
	}
	fail_msg("nobody's path");
	return 0;
}

void __wrap_authorities_reject(struct authorities *of, const struct authority_result *given,
                               const char *reason);
void __wrap_authorities_reject(struct authorities *of, const struct authority_result *given,
                               const char *reason)
{
	(void)of;
	assert_non_null(strstr(reason, "revoked"));
	rejected[who_gave(buf_slice(&given->path))] = true;
}

int __real_level_collect_authority(struct revocation_client *client, struct slice path,
                                   int64_t at_us, struct validation_set *set, bool *ret_suffices,
                                   char cause[LEVEL_CAUSE_SIZE], struct error *ret_error);
int __wrap_level_collect_authority(struct revocation_client *client, struct slice path,
                                   int64_t at_us, struct validation_set *set, bool *ret_suffices,
                                   char cause[LEVEL_CAUSE_SIZE], struct error *ret_error);
int __wrap_level_collect_authority(struct revocation_client *client, struct slice path,
                                   int64_t at_us, struct validation_set *set, bool *ret_suffices,
                                   char cause[LEVEL_CAUSE_SIZE], struct error *ret_error)
{
	return revoked[who_gave(path)] ? error_cause(ret_error, ERR_INVALID_EVIDENCE, "revoked")
	                               : __real_level_collect_authority(client, path, at_us, set,
	                                                                ret_suffices, cause, ret_error);
}

int __real_store_write_archive_timestamp(struct store *store, const struct archive_timestamp *stamp,
                                         int64_t blocks, struct error *ret_error);
int __wrap_store_write_archive_timestamp(struct store *store, const struct archive_timestamp *stamp,
                                         int64_t blocks, struct error *ret_error);
int __wrap_store_write_archive_timestamp(struct store *store, const struct archive_timestamp *stamp,
                                         int64_t blocks, struct error *ret_error)
{
	return dies_before_commit
	           ? error_cause(ret_error, ERR_IO, "killed")
	           : __real_store_write_archive_timestamp(store, stamp, blocks, ret_error);
}

static size_t evidence_queries;

struct db_query *__real_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql)
{
	if (strstr(literal_sql, "evidence_chains") || strstr(literal_sql, "archive_timestamp") ||
	    strstr(literal_sql, "tokens_at_rest"))
		evidence_queries++;
	return __real_db_query(connection, literal_sql);
}

static int64_t unseen; /* a certification whose chains are not found; 0: none */

int __real_store_last_evidence_chain(struct store *store, int64_t account, int64_t certification,
                                     int64_t *ret_record, int64_t *ret_chain,
                                     struct error *ret_error);
int __wrap_store_last_evidence_chain(struct store *store, int64_t account, int64_t certification,
                                     int64_t *ret_record, int64_t *ret_chain,
                                     struct error *ret_error);
int __wrap_store_last_evidence_chain(struct store *store, int64_t account, int64_t certification,
                                     int64_t *ret_record, int64_t *ret_chain,
                                     struct error *ret_error)
{
	*ret_record = *ret_chain = 0;
	return certification == unseen
	           ? OK
	           : __real_store_last_evidence_chain(store, account, certification, ret_record,
	                                              ret_chain, ret_error);
}

/* ---- an office ---- */

static int64_t year_us(double years)
{
	return start_us + (int64_t)(years * 365 * (double)US_PER_DAY);
}

/* Moves the time to a number of years after the start. */
static void come(double years)
{
	now_us = year_us(years);
}

static int begin(void **state)
{
	int result = office_start_signer(state);
	start_us = __real_clock_now_us() / US_PER_SECOND * US_PER_SECOND - 3600 * US_PER_SECOND;
	buf_init(&trust, 262144);
	for (size_t i = 0; i < AUTHORITIES; i++) {
		char name[32];
		snprintf(name, sizeof name, "Authority %zu", i);
		time_authority_make(&authorities[i], name, year_us(3.0 * (double)i),
		                    year_us(3.0 * (double)i + 4));
		time_authority_trust(&authorities[i], &trust);
	}
	return result;
}

static int end(void **state)
{
	for (size_t i = 0; i < AUTHORITIES; i++)
		time_authority_free(&authorities[i]);
	buf_free(&trust);
	return office_stop_signer(state);
}

static int set_up(void **state)
{
	now_us = 0;
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	current = second = 0;
	bought = 0;
	authority_down = dies_before_commit = refuses_sha512 = false;
	memset(revoked, 0, sizeof revoked);
	memset(rejected, 0, sizeof rejected);
	unseen = 0;
	atomic_store(&stopping, false);
	atomic_store(&lost, false);
	now_us = __real_clock_now_us();
	return 0;
}

static int tear_down(void **state)
{
	now_us = 0;
	office_close(&office);
	return 0;
}

static int64_t count_of(const char *literal_sql)
{
	return sample_number(&office.sample, literal_sql);
}

static int64_t failures(void)
{
	return atomic_load(&office.service.counters.evidence_failures);
}

static int pass(void)
{
	const struct renewal renewal = {&office.service, &stopping, &lost};
	error = (struct error){0};
	return renewal_pass(&renewal, &error);
}

/* Runs a pass that must take that number of tokens; then nothing may be due. */
static void expect_pass(int64_t tokens)
{
	int64_t before = bought;
	int result = pass();
	if (result)
		fail_msg("pass: %s", error_reason(&error, result));
	assert_int_equal(bought - before, tokens);
	assert_int_equal(pass(), OK);
	assert_int_equal(bought - before, tokens);
}

/* ---- certifications, and their documents ---- */

static void put_document(struct document *document, const char *text, int number)
{
	static const enum document_kind kinds[] = {DOCUMENT_REPORT, DOCUMENT_REPORT, DOCUMENT_EVIDENCE};
	struct content_writer *writer;
	*document = (struct document){.kind = kinds[number]};
	document->language = number == 1 ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
	snprintf(document->name, sizeof document->name, "document-%d", number);
	content_fresh_name("issued", document->object);
	assert_int_equal(content_write_begin(office.service.content, &writer, &error), OK);
	assert_int_equal(content_write(writer, text, strlen(text), &error), OK);
	assert_int_equal(content_write_commit(writer, document->object, &error), OK);
	document->size_bytes = (int64_t)strlen(text);
	document->sha256 = sha256_of(text, strlen(text));
}

static void complete(struct document documents[DOCUMENTS], enum mode mode,
                     struct certification *ret)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct certification accepted = {
		.account = office.sample.account,
		.channel = office.sample.channel,
		.chain = mode == MODE_TEST ? office.sample.test_chain : office.sample.live_chain,
		.key = 1,
		.mode = mode,
		.requested_at_us = now_us,
		.language = LANGUAGE_ENGLISH,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = 1},
		.first_sequence = 1,
		.last_sequence = 1,
		.config_versions = "[1]",
	};
	memcpy(accepted.channel_id, office.sample.channel_id, ID_SIZE);
	assert_int_equal(store_accept_certification(office.service.store, "SVC", 0, &accepted, &error),
	                 OK);
	struct certification_claim claim = {
		.holder = "a", .now_us = INT64_MAX / 4, .lease_us = US_PER_SECOND};
	struct certification job;
	assert_int_equal(store_claim_certification(office.service.store, &claim, &arena, &job, &error),
	                 OK);
	assert_int_equal(store_complete_certification(office.service.store, &job, "a", now_us,
	                                              documents, DOCUMENTS, &error),
	                 OK);
	*ret = accepted;
}

struct issued {
	struct certification certification;
	struct document documents[DOCUMENTS];
	char texts[DOCUMENTS][64];
};

static struct issued issue(int number)
{
	struct issued issued;
	for (int i = 0; i < DOCUMENTS; i++) {
		snprintf(issued.texts[i], sizeof issued.texts[i], "document %d of %d", i, number);
		put_document(&issued.documents[i], issued.texts[i], i);
	}
	complete(issued.documents, MODE_LIVE, &issued.certification);
	return issued;
}

/* Registers an event and seals it with all earlier ones. */
static void seal_event(void)
{
	office.sample.now_us = now_us - 10 * US_PER_SECOND;
	sample_register(&office.sample, MODE_LIVE, 1);
	office_seal(&office);
}

/* ---- records ---- */

struct judged {
	size_t chains, stamps;
	int64_t since_us;
};

static int judge(struct slice der, const char *data, int64_t at_us, struct judged *ret)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct digest digests[DIGEST_ALGORITHM_COUNT];
	struct evidence_query question = {.roots_pem = buf_slice(&trust), .at_us = at_us};
	struct evidence_facts facts;
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		digests[i] = digest_by((enum digest_algorithm)i, data, strlen(data));
	error = (struct error){0};
	int result = evidence_record_parse(der, &record, &error);
	if (!result)
		result = evidence_record_verify(record, digests, &question, &arena, &facts, &error);
	if (!result)
		*ret = (struct judged){facts.chain_count, facts.stamp_count, facts.exists_since_us};
	return result;
}

/* The other verifier must reach the same result. */
static int judge_otherwise(struct slice der, const char *data, int64_t at_us)
{
	const char *script = getenv("CONSTANCIA_CHECK_RECORD");
	char command[4096];
	assert_non_null(script);
	snprintf(command, sizeof command, "%s/record.ers", office.sample.directory);
	FILE *file = fopen(command, "w");
	assert_true(file && fwrite(der.data, 1, der.size, file) == der.size && fclose(file) == 0);
	snprintf(command, sizeof command, "%s/data", office.sample.directory);
	file = fopen(command, "w");
	assert_true(file && fputs(data, file) >= 0 && fclose(file) == 0);
	snprintf(command, sizeof command, "%s/trust.pem", office.sample.directory);
	file = fopen(command, "w");
	assert_true(file && fwrite(trust.data, 1, trust.size, file) == trust.size && fclose(file) == 0);
	snprintf(command, sizeof command,
	         "cd '%s' && python3 '%s' --trust trust.pem --at %" PRId64
	         " record.ers data >/dev/null",
	         office.sample.directory, script, at_us / US_PER_SECOND);
	return system(command) == 0 ? 0 : 1;
}

/* Finds the entry of a certification in a list; false if there is none. */
static bool find_in_list(const struct certification *certification, struct evidence_offer *ret)
{
	struct evidence_offer items[64];
	struct evidence_offers offers = {.items = items, .room = 64};
	error = (struct error){0};
	assert_int_equal(certification_list_offers(&office.service, certification->account,
	                                           certification->chain, certification->certification,
	                                           certification->certification, &offers, &error),
	                 OK);
	assert_true(offers.count <= 1);
	*ret = items[0];
	return offers.count == 1;
}

static struct evidence_offer fetch(const struct certification *certification, struct buf *der)
{
	struct evidence_offer offer;
	error = (struct error){0};
	int result = certification_evidence_record(&office.service, certification, der, &offer, &error);
	if (result)
		fail_msg("no record: %s", error_reason(&error, result));
	struct sha256 found = sha256_of(der->data, der->size);
	assert_true(offer.has_digest && sha256_equal(&found, &offer.sha256));
	struct evidence_offer listed;
	assert_true(find_in_list(certification, &listed) && !listed.has_digest);
	assert_int_equal(listed.certification, certification->certification);
	assert_int_equal(listed.exists_since_us, offer.exists_since_us);
	assert_int_equal(listed.renew_at_us, offer.renew_at_us);
	return offer;
}

/* Both verifiers find each document covered at the present time, and another text not. */
static struct judged expect_valid(const struct issued *issued)
{
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	struct judged judged = {0}, unused;
	struct evidence_offer offer = fetch(&issued->certification, &der);
	assert_true(offer.renew_at_us != TIME_NONE);
	for (int i = 0; i < DOCUMENTS; i++)
		if (judge(buf_slice(&der), issued->texts[i], now_us, &judged))
			fail_msg("%s: %s", issued->texts[i], error.cause);
	assert_int_equal(judged.since_us, offer.exists_since_us);
	assert_int_equal(judge(buf_slice(&der), "another", now_us, &unused), ERR_INVALID_EVIDENCE);
	assert_int_equal(judge_otherwise(buf_slice(&der), issued->texts[0], now_us), 0);
	assert_int_equal(judge_otherwise(buf_slice(&der), "another", now_us), 1);
	return judged;
}

static void expect_none(const struct certification *certification)
{
	struct evidence_offer offer;
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	assert_int_equal(
		certification_evidence_record(&office.service, certification, &der, &offer, &error),
		ERR_NOT_FOUND);
	assert_false(find_in_list(certification, &offer));
}

/* Judges an event, whose record is the data; only its digest is known here. */
static int judge_event(int64_t sequence, int64_t at_us, struct judged *ret)
{
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	struct digest digests[DIGEST_ALGORITHM_COUNT] = {0};
	struct evidence_query question = {.roots_pem = buf_slice(&trust), .at_us = at_us};
	struct evidence_facts facts;
	struct event event;
	assert_int_equal(store_get_event(office.service.store, office.sample.account,
	                                 office.sample.live_chain, sequence, &arena, &event, &error),
	                 OK);
	digests[DIGEST_SHA256] = digest_of_sha256(&event.chain_hash);
	error = (struct error){0};
	assert_int_equal(event_evidence_record(office.service.store, NULL, office.sample.account,
	                                       office.sample.live_chain, &event, &arena, &der, &error),
	                 OK);
	assert_int_equal(evidence_record_parse(buf_slice(&der), &record, &error), OK);
	int result = evidence_record_verify(record, digests, &question, &arena, &facts, &error);
	if (!result)
		*ret = (struct judged){facts.chain_count, facts.stamp_count, facts.exists_since_us};
	return result;
}

static void expect_event(int64_t sequence, size_t stamps)
{
	struct judged judged;
	if (judge_event(sequence, now_us, &judged))
		fail_msg("event %d: %s", (int)sequence, error.cause);
	assert_int_equal(judged.chains, 1);
	assert_int_equal(judged.stamps, stamps);
}

/* ---- tests ---- */

TEST_CASE(test_one_token_for_many)
{
	struct issued issued[7];
	struct certification tried;
	seal_event();
	sample_register(&office.sample, MODE_TEST, 1);
	expect_pass(0);
	for (int i = 0; i < 7; i++)
		issued[i] = issue(i);
	complete(issued[0].documents, MODE_TEST, &tried);
	expect_none(&issued[3].certification);
	expect_pass(1);
	for (int i = 0; i < 7; i++) {
		struct judged judged = expect_valid(&issued[i]);
		assert_int_equal(judged.stamps, 1);
	}
	expect_none(&tried);
}

/* More than a block, and blocks of several sizes. */
TEST_CASE(test_many_blocks)
{
	struct issued first, last;
	struct certification unused;
	seal_event();
	first = issue(0);
	for (int i = 0; i < EVIDENCE_LEAVES_MAX + 5; i++)
		complete(first.documents, MODE_LIVE, &unused);
	last = issue(1);
	expect_pass(1);
	assert_int_equal(count_of("SELECT COUNT(*) FROM archive_timestamp_blocks"), 2);
	assert_int_equal(expect_valid(&first).stamps, 1);
	assert_int_equal(expect_valid(&last).stamps, 1);
	come(3.9);
	current = 1;
	expect_pass(1);
	assert_int_equal(expect_valid(&last).stamps, 2);
	/* All certificates have expired. */
	come(8);
	current = 2;
	expect_pass(2);
	assert_int_equal(count_of("SELECT COUNT(*) FROM evidence_chains WHERE record = 2"),
	                 EVIDENCE_LEAVES_MAX + 7);
	assert_int_equal(expect_valid(&last).stamps, 1);
}

TEST_CASE(test_three_generations)
{
	struct issued old, young;
	seal_event();
	old = issue(0);
	expect_pass(1);
	expect_event(1, 1);
	/* Nothing is due more than 90 days before the end. */
	come(3.7);
	expect_pass(0);
	/* One token renews rounds, archive timestamps and what was issued since. */
	come(3.8);
	current = 1;
	seal_event();
	young = issue(1);
	expect_pass(1);
	assert_int_equal(expect_valid(&old).stamps, 2);
	assert_int_equal(expect_valid(&young).stamps, 1);
	expect_event(1, 2);
	expect_event(2, 1);
	come(6.9);
	current = 2;
	expect_pass(1);
	assert_int_equal(expect_valid(&old).stamps, 3);
	assert_int_equal(expect_valid(&young).stamps, 2);
	expect_event(1, 3);
	expect_event(2, 2);
	come(9.95);
	current = 3;
	expect_pass(1);
	struct judged judged = expect_valid(&old);
	assert_int_equal(judged.stamps, 4);
	assert_true(judged.since_us < year_us(1));
	expect_event(1, 4);
	/* Each token has one row, however many chains lead to it. */
	assert_int_equal(count_of("SELECT COUNT(*) FROM archive_timestamps"), 4);
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL"), 0);
	/* Roots are also recorded of authorities that gave no round. */
	assert_int_equal(count_of("SELECT COUNT(*) FROM timestamp_roots"), 4);
}

static size_t count_in(struct slice text, const char *part)
{
	size_t count = 0;
	for (const char *at = text.data;
	     (at = memmem(at, (size_t)(text.data + text.size - at), part, strlen(part))); at++)
		count++;
	return count;
}

/* However many there are, and however often they were renewed. */
TEST_CASE(a_list_asks_once_for_all_records)
{
	struct key_identity key = {.account = office.sample.account,
	                           .channel = office.sample.channel,
	                           .chain = office.sample.live_chain,
	                           .key = 1,
	                           .mode = MODE_LIVE};
	bool more;
	int64_t last;
	seal_event();
	for (int i = 0; i < 3; i++) {
		BUF_AUTO struct buf out = {.limit = 1 << 20};
		come(3.0 * i + 0.8);
		current = (size_t)i;
		for (int j = 0; j < 10; j++)
			issue(10 * i + j);
		expect_pass(1);
		struct list_page page = {i % 2 ? ORDER_ASCENDING : ORDER_DESCENDING, 0, 500};
		evidence_queries = 0;
		assert_int_equal(certification_list(&office.service, &key, NULL, &page, LANGUAGE_ENGLISH,
		                                    &out, &more, &last, &error),
		                 OK);
		assert_int_equal(evidence_queries, 1);
		size_t count = 10 * ((size_t)i + 1);
		assert_int_equal(count_in(buf_slice(&out), "/evidence-record\""), count);
		assert_int_equal(count_in(buf_slice(&out), "\"evidence_record_sha256\":null"), count);
		assert_int_equal(count_in(buf_slice(&out), "\"evidence_record_renew_at\":\"20"), count);
		evidence_queries = 0;
		assert_int_equal(certification_list(&office.service, &key, "failed", &page,
		                                    LANGUAGE_ENGLISH, &out, &more, &last, &error),
		                 OK);
		assert_int_equal(evidence_queries, 0);
	}
}

/* The rows alone do not show whether they lead to the token. */
TEST_CASE(a_damaged_archive_timestamp_is_found)
{
	static const char *const damages[][2] = {
		{"UPDATE archive_timestamp_blocks SET leaves = (SELECT o.leaves"
	     " FROM archive_timestamp_blocks o WHERE o.stamp = 1) WHERE stamp = 2",
	     "one of its blocks is damaged"},
		{"UPDATE archive_timestamp_blocks SET block = 1 WHERE stamp = 2",
	     "one of its blocks is missing"},
		{"UPDATE archive_timestamps SET blocks = (SELECT b.leaves FROM archive_timestamp_blocks b"
	     " WHERE b.stamp = 1) WHERE stamp = 2",
	     "one of its blocks is damaged"},
		{"UPDATE archive_timestamps SET blocks = x'00' WHERE stamp = 2",
	     "its block hashes cannot be read"},
		{"UPDATE archive_timestamps SET token = (SELECT a.token FROM archive_timestamps a"
	     " WHERE a.stamp = 1) WHERE stamp = 2",
	     "its token is not valid"},
		{"UPDATE archive_timestamps SET token = x'00' WHERE stamp = 2", "its token is not valid"},
		{"UPDATE archive_timestamps SET stamped_at = stamped_at + 1 WHERE stamp = 2",
	     "its token is not valid"},
	};
	struct store *store = office.service.store;
	seal_event();
	issue(0);
	expect_pass(1);
	issue(1);
	expect_pass(1);
	assert_int_equal(check_stamp(store, 1, &error), OK);
	assert_int_equal(check_stamp(store, 3, &error), ERR_NOT_FOUND);
	sample_change(&office.sample, "CREATE TABLE kept_stamps AS SELECT * FROM archive_timestamps");
	sample_change(&office.sample,
	              "CREATE TABLE kept_blocks AS SELECT * FROM archive_timestamp_blocks");
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		assert_int_equal(check_stamp(store, 2, &error), OK);
		sample_change(&office.sample, damages[i][0]);
		error = (struct error){0};
		assert_int_equal(check_stamp(store, 2, &error), ERR_CORRUPT);
		assert_non_null(strstr(error.cause, damages[i][1]));
		sample_change(&office.sample,
		              "DELETE FROM archive_timestamps; DELETE FROM archive_timestamp_blocks;"
		              "INSERT INTO archive_timestamps SELECT * FROM kept_stamps;"
		              "INSERT INTO archive_timestamp_blocks SELECT * FROM kept_blocks");
	}
}

/* An earlier version completed them: none is queued, and no chain leads to them. */
TEST_CASE(forgotten_certifications_are_queued)
{
	const struct renewal renewal = {&office.service, &stopping, &lost};
	struct issued first, last;
	struct certification unused;
	seal_event();
	struct issued known = issue(0);
	expect_pass(1);
	first = issue(1);
	for (int i = 0; i < EVIDENCE_LEAVES_MAX + 5; i++)
		complete(first.documents, MODE_LIVE, &unused);
	last = issue(2);
	sample_change(&office.sample, "DELETE FROM evidence_queue");
	struct issued staged = issue(3);
	authority_down = true;
	assert_int_equal(pass(), ERR_AUTHORITY);
	authority_down = false;
	sample_register(&office.sample, MODE_TEST, 1);
	complete(first.documents, MODE_TEST, &unused);
	expect_pass(1);
	expect_none(&first.certification);
	assert_int_equal(renewal_queue_missing(&renewal, &error), OK);
	assert_int_equal(count_of("SELECT COUNT(*) FROM evidence_queue"), EVIDENCE_LEAVES_MAX + 7);
	assert_int_equal(count_of("SELECT COUNT(*) FROM evidence_queue WHERE reason = 'first'"),
	                 EVIDENCE_LEAVES_MAX + 7);
	assert_int_equal(renewal_queue_missing(&renewal, &error), OK);
	expect_pass(1);
	assert_int_equal(expect_valid(&first).stamps, 1);
	assert_int_equal(expect_valid(&last).stamps, 1);
	assert_int_equal(expect_valid(&known).stamps, 1);
	assert_int_equal(expect_valid(&staged).stamps, 1);
	assert_int_equal(count_of("SELECT MAX(record) FROM evidence_chains"), 1);
}

static int64_t due_since(void)
{
	int64_t since_us;
	assert_int_equal(store_evidence_due_since(office.service.store, now_us,
	                                          office.settings.evidence_renew_before, &since_us,
	                                          &error),
	                 OK);
	return since_us;
}

/* The alert is about a renewal that does not happen, not about an end that comes closer. */
TEST_CASE(what_is_due_and_not_renewed_is_told)
{
	seal_event();
	issue(0);
	assert_int_equal(due_since(), TIME_NONE);
	expect_pass(1);
	come(3.7);
	assert_int_equal(pass(), OK);
	assert_int_equal(due_since(), TIME_NONE);
	come(3.8);
	authority_down = true;
	int64_t due_us = due_since();
	assert_true(due_us > year_us(3.75) && due_us <= year_us(4) - 90 * US_PER_DAY);
	come(3.85);
	assert_int_equal(due_since(), due_us);
	authority_down = false;
	current = 1;
	expect_pass(1);
	assert_int_equal(due_since(), TIME_NONE);
	/* A certificate that expires soon after its issue is not due for half of its lifetime. */
	current = 0;
	come(3.9);
	issue(1);
	expect_pass(1);
	assert_int_equal(due_since(), TIME_NONE);
	come(3.96);
	assert_true(due_since() >= year_us(3.945) && due_since() <= year_us(3.955));
}

TEST_CASE(test_by_hash_tree)
{
	struct issued issued[3];
	seal_event();
	for (int i = 0; i < 3; i++)
		issued[i] = issue(i);
	expect_pass(1);
	come(3.8);
	current = 1;
	expect_pass(1);
	office.settings.evidence_digest = "sha-512";
	/* A document that was altered after its issue does not delay the others. */
	struct document damaged;
	put_document(&damaged, "document 1 of 2, altered", 1);
	struct db_connection *connection = begin_write(office.service.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	struct db_query *query =
		db_query(connection, "UPDATE issued_files SET object = $1 WHERE object = $2");
	db_bind_string(query, damaged.object);
	db_bind_string(query, issued[2].documents[1].object);
	assert_int_equal(end_write_of_one(connection, query, &error), OK);
	expect_pass(1);
	assert_int_equal(last_algorithm, DIGEST_SHA512);
	assert_int_equal(atomic_load(&office.service.counters.evidence_failures), 1);
	for (int i = 0; i < 3; i++) {
		struct judged judged = expect_valid(&issued[i]);
		assert_int_equal(judged.chains, i == 2 ? 1 : 2);
		assert_int_equal(judged.stamps, i == 2 ? 2 : 3);
	}
	/* Documents that are issued from now on begin with it. */
	struct issued fresh = issue(3);
	expect_pass(1);
	assert_int_equal(last_algorithm, DIGEST_SHA512);
	assert_int_equal(expect_valid(&fresh).chains, 1);
	/* The new chains are renewed by timestamp, and so are rounds and whatever has only the old
	 * digest. */
	come(6.9);
	current = 2;
	expect_pass(2);
	struct judged judged = expect_valid(&issued[0]);
	assert_int_equal(judged.chains, 2);
	assert_int_equal(judged.stamps, 4);
	assert_int_equal(expect_valid(&fresh).stamps, 2);
	expect_event(1, 3);
}

/* A lost generation is reported, and the remaining evidence is still shown. */
TEST_CASE(test_lost)
{
	struct judged judged;
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	come(3.8);
	current = 1;
	expect_pass(1);
	int64_t since_us = expect_valid(&issued).since_us;
	come(7.5);
	current = 2;
	/* No node ran in the meantime. Until one does, the record states that it has expired. */
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};
	struct evidence_offer offer = fetch(&issued.certification, &der);
	assert_int_equal(offer.renew_at_us, TIME_NONE);
	assert_int_equal(judge(buf_slice(&der), issued.texts[0], now_us, &judged),
	                 ERR_INVALID_EVIDENCE);
	expect_pass(2); /* one for the time of day, one for the documents */
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL"), 1);
	/* The documents have a new record from now on. */
	judged = expect_valid(&issued);
	assert_int_equal(judged.stamps, 1);
	assert_true(judged.since_us > since_us + 3 * 365 * US_PER_DAY);
	assert_int_equal(count_of("SELECT MAX(record) FROM evidence_chains"), 2);
	/* The record of the event is unchanged, and valid as of an earlier time. */
	assert_int_equal(judge_event(1, now_us, &judged), ERR_INVALID_EVIDENCE);
	assert_int_equal(judge_event(1, year_us(6.5), &judged), OK);
	assert_int_equal(judged.stamps, 2);
	/* The new record is renewed as usual. */
	come(9.9);
	current = 3;
	expect_pass(1);
	assert_int_equal(expect_valid(&issued).stamps, 2);
}

/* When the first token of a round is lost, the second one may still be valid. */
TEST_CASE(test_second_token)
{
	struct judged judged;
	office.settings.tsa_tokens = 2;
	come(3.1);
	second = 1;
	seal_event();
	expect_pass(0);
	expect_event(1, 1);
	come(4.5); /* the first one has expired */
	current = 1;
	expect_pass(1); /* the time of day */
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL"), 1);
	expect_event(1, 1);
	come(6.9);
	current = 2;
	expect_pass(1);
	expect_event(1, 2);
	assert_int_equal(judge_event(1, now_us, &judged), OK);
	assert_true(judged.since_us < year_us(3.2));
}

/* A node that was killed before the commit of its token, refused by all authorities, or stopped
 * leaves staged work. The next node finds it and covers it with one token. */
TEST_CASE(test_killed)
{
	seal_event();
	struct issued first = issue(0);
	dies_before_commit = true;
	assert_int_equal(pass(), ERR_IO);
	assert_int_equal(bought, 2); /* including that of the round */
	assert_int_equal(count_of("SELECT COUNT(*) FROM evidence_queue"), 0);
	assert_int_equal(count_of("SELECT COUNT(*) FROM archive_timestamp_blocks"), 1);
	expect_none(&first.certification);
	dies_before_commit = false;
	authority_down = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pass(), ERR_AUTHORITY);
	assert_int_equal(count_of("SELECT COUNT(*) FROM archive_timestamp_blocks"), 1);
	authority_down = false;
	atomic_store(&stopping, true);
	assert_int_equal(pass(), ERR_REFUSED);
	atomic_store(&stopping, false);
	atomic_store(&lost, true);
	assert_int_equal(pass(), ERR_REFUSED);
	atomic_store(&lost, false);
	assert_int_equal(bought, 2);
	expect_pass(1);
	assert_int_equal(expect_valid(&first).stamps, 1);
	assert_int_equal(count_of("SELECT COUNT(*) FROM archive_timestamp_blocks"), 1);
	/* A node that is killed while renewing loses nothing, and nothing is renewed twice. */
	come(3.8);
	current = 1;
	dies_before_commit = true;
	assert_int_equal(pass(), ERR_IO);
	assert_int_equal(expect_valid(&first).stamps, 1);
	expect_event(1, 1);
	dies_before_commit = false;
	expect_pass(1);
	assert_int_equal(expect_valid(&first).stamps, 2);
	expect_event(1, 2);
	assert_int_equal(count_of("SELECT COUNT(*) FROM archive_timestamps"), 2);
}

/* Work that was staged in time but expired before an authority answered does not count as
 * renewed. */
TEST_CASE(test_too_late)
{
	struct judged judged;
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	come(3.9);
	current = 1;
	authority_down = true;
	assert_int_equal(pass(), ERR_AUTHORITY);
	come(4.1);
	authority_down = false;
	expect_pass(2); /* the staged work, and the documents for a new record */
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL"), 2);
	judged = expect_valid(&issued);
	assert_int_equal(judged.stamps, 1);
	assert_true(judged.since_us > year_us(4));
	assert_int_equal(judge_event(1, now_us, &judged), ERR_INVALID_EVIDENCE);
	assert_int_equal(judge_event(1, year_us(3.5), &judged), OK);
}

/* A renewal by hash tree renews no chains that have expired before it. */
TEST_CASE(test_hash_tree_too_late)
{
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	come(3.5);
	current = 1;
	office.settings.evidence_digest = "sha-512";
	authority_down = true;
	assert_int_equal(pass(), ERR_AUTHORITY);
	come(4.1);
	authority_down = false;
	expect_pass(3); /* the time of day, the staged work, and the documents again */
	struct judged judged = expect_valid(&issued);
	assert_int_equal(judged.chains, 1);
	assert_true(judged.since_us > year_us(4));
}

/* After a jump of the local clock nothing is given up. */
TEST_CASE(test_clock_ahead)
{
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	come(4.5);
	authority_down = true; /* as good as down: no answer agrees with that clock */
	assert_int_equal(pass(), ERR_AUTHORITY);
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL"), 0);
	authority_down = false;
	come(3.8);
	current = 1;
	expect_pass(1);
	assert_int_equal(expect_valid(&issued).stamps, 2);
	expect_event(1, 2);
}

/* The authority continues with an expiring certificate: half of the remaining time passes between
 * renewals. */
TEST_CASE(test_same_certificate)
{
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	for (int days = 90; days > 0; days--) {
		come(4 - days / 365.0);
		assert_int_equal(pass(), OK);
	}
	assert_true(bought <= 2 + 8);
	current = 1;
	come(4 - 0.4 / 365);
	assert_int_equal(pass(), OK);
	come(5);
	expect_pass(0);
	expect_valid(&issued);
	expect_event(1, expect_valid(&issued).stamps);
}

/* Two nodes with different settings: what one has renewed by hash tree the other does not renew
 * back. */
TEST_CASE(test_digests_that_differ)
{
	seal_event();
	struct issued issued = issue(0), fresh;
	expect_pass(1);
	office.settings.evidence_digest = "sha-512";
	expect_pass(1);
	assert_int_equal(expect_valid(&issued).chains, 2);
	for (int i = 0; i < 3; i++) {
		office.settings.evidence_digest = i % 2 ? "sha-512" : "sha-256";
		expect_pass(0);
	}
	fresh = issue(1);
	expect_pass(1);
	assert_int_equal(last_algorithm, DIGEST_SHA512);
	assert_int_equal(expect_valid(&issued).chains, 2);
	assert_int_equal(expect_valid(&fresh).chains, 1);
}

/* Before the first token with the stronger digest, waiting work does not get the weaker one. */
TEST_CASE(test_digest_taken_back)
{
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	sample_change(
		&office.sample,
		"INSERT INTO evidence_queue SELECT account, certification, 'digest', 0, 0, 0, NULL"
		" FROM evidence_chains");
	expect_pass(0);
	assert_int_equal(count_of("SELECT COUNT(*) FROM evidence_queue"), 0);
	assert_int_equal(expect_valid(&issued).chains, 1);
	assert_int_equal(failures(), 0);
}

/* A record of the maximum length is followed by another record. */
TEST_CASE(test_no_room_for_a_chain)
{
	seal_event();
	struct issued issued = issue(0), other = issue(1);
	expect_pass(1);
	for (int i = 2; i <= EVIDENCE_CHAINS_MAX; i++)
		sample_change(
			&office.sample,
			"INSERT INTO evidence_chains SELECT account, certification, record, MAX(chain) + 1,"
			" hashes, stamp, stamp, place FROM evidence_chains WHERE place = 0");
	office.settings.evidence_digest = "sha-512";
	expect_pass(1);
	assert_int_equal(count_of("SELECT MAX(record) FROM evidence_chains WHERE place = 0"), 2);
	assert_int_equal(expect_valid(&issued).chains, 1);
	assert_int_equal(expect_valid(&other).chains, 2);
	assert_int_equal(failures(), 0);
}

/* A record is never read in part. */
TEST_CASE(test_more_chains_than_a_record_has)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 1 << 20);
	struct evidence_chain_row *rows;
	size_t count;
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	for (int i = 2; i <= 65; i++) {
		assert_int_equal(store_list_evidence_chains(office.service.store, office.sample.account,
		                                            issued.certification.certification, &arena,
		                                            &rows, &count, &error),
		                 OK);
		assert_int_equal(count, i - 1);
		sample_change(&office.sample,
		              "INSERT INTO evidence_chains SELECT account, certification, record,"
		              " MAX(chain) + 1, hashes, stamp, stamp, place FROM evidence_chains");
	}
	assert_int_equal(store_list_evidence_chains(office.service.store, office.sample.account,
	                                            issued.certification.certification, &arena, &rows,
	                                            &count, &error),
	                 ERR_CORRUPT);
}

/* A leaf that cannot be staged does not delay the others. */
TEST_CASE(test_a_leaf_that_clashes)
{
	seal_event();
	struct issued issued[3];
	for (int i = 0; i < 3; i++)
		issued[i] = issue(i);
	expect_pass(1);
	office.settings.evidence_digest = "sha-512";
	unseen = issued[1].certification.certification;
	expect_pass(1);
	assert_int_equal(failures(), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(expect_valid(&issued[i]).chains, i == 1 ? 1 : 2);
	unseen = 0;
	now_us += 3600 * US_PER_SECOND;
	expect_pass(1);
	assert_int_equal(expect_valid(&issued[1]).chains, 2);
	assert_int_equal(failures(), 1);
}

/* Missing or damaged tokens do not delay others. They are retried with growing pauses. */
TEST_CASE(test_tokens_that_are_gone)
{
	for (int i = 0; i < 3; i++)
		seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	sample_change(&office.sample, "DELETE FROM seal_rounds WHERE round = 1");
	come(3.8);
	current = 1;
	expect_pass(1);
	assert_int_equal(failures(), 1);
	expect_event(2, 2);
	expect_event(3, 2);
	assert_int_equal(expect_valid(&issued).stamps, 2);
	now_us += 61 * US_PER_SECOND;
	expect_pass(0);
	assert_int_equal(failures(), 2);
	now_us += 61 * US_PER_SECOND;
	expect_pass(0);
	assert_int_equal(failures(), 2);
	now_us += 60 * US_PER_SECOND;
	expect_pass(0);
	assert_int_equal(failures(), 3);
}

/* A round that is lost before it was included has nothing to renew; this is reported. */
TEST_CASE(test_rounds_that_are_gone)
{
	for (int i = 0; i < 3; i++)
		seal_event();
	sample_change(&office.sample, "DELETE FROM seal_rounds WHERE round = 2");
	struct issued issued = issue(0);
	expect_pass(1);
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE source = 'round'"), 3);
	assert_int_equal(count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL"), 1);
	assert_int_equal(expect_valid(&issued).stamps, 1);
	come(3.8);
	current = 1;
	expect_pass(1);
	expect_event(1, 2);
	expect_event(3, 2);
}

static int64_t lost_tokens(void)
{
	return count_of("SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL");
}

/* A token that an archive timestamp renewed does not expire with it while the token itself is
 * valid. */
TEST_CASE(test_good_below_a_lost_one)
{
	seal_event();
	struct issued issued = issue(0);
	expect_pass(1);
	int64_t since_us = expect_valid(&issued).since_us;
	come(3.8);
	current = 1;
	expect_pass(1);
	sample_change(
		&office.sample,
		"UPDATE tokens_at_rest SET valid_until = (SELECT MIN(valid_until) - 864000000000"
		" FROM tokens_at_rest) WHERE source = 'stamp' AND number = 2"); /* ten days before */
	come(3.99);
	expect_pass(2); /* one for the time of day */
	assert_int_equal(lost_tokens(), 1);
	struct judged judged = expect_valid(&issued);
	assert_int_equal(judged.stamps, 2);
	assert_int_equal(judged.since_us, since_us);
	expect_event(1, 2);
}

/* A token that expires earlier than the tokens that it would renew does not replace them. */
TEST_CASE(test_shorter_than_what_it_renews)
{
	static const char covered[] =
		"SELECT COUNT(*) FROM tokens_at_rest WHERE source = 'round' AND stamp IS NOT NULL";
	seal_event();
	expect_pass(0);
	sample_change(&office.sample,
	              "UPDATE tokens_at_rest SET valid_until = valid_until + 864000000000");
	come(3.99);
	expect_pass(1); /* by the one that expires in four days */
	assert_int_equal(count_of(covered), 0);
	current = 1;
	now_us += 6 * US_PER_DAY;
	assert_int_equal(pass(), OK);
	assert_int_equal(count_of(covered), 0);
	now_us += 2 * US_PER_DAY;
	assert_int_equal(pass(), OK);
	assert_int_equal(count_of(covered), 1);
}

/* Lost or damaged staged work is staged again and covered with the rest. */
TEST_CASE(test_staged_and_damaged)
{
	static const char *const damages[] = {
		"DELETE FROM archive_timestamp_blocks WHERE stamp > 1",
		"UPDATE archive_timestamp_blocks SET leaves = x'00' WHERE stamp > 1",
		"UPDATE archive_timestamp_blocks SET algorithm = 'sha-1' WHERE stamp > 1",
		"UPDATE archive_timestamp_blocks SET block = 1 WHERE stamp > 1",
		/* That of the last token, whose content then does not count as covered. */
		"UPDATE tokens_at_rest SET place = place + 1024 WHERE stamp > 1",
	};
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		if (i > 0) {
			tear_down(state);
			set_up(state);
		}
		seal_event();
		struct issued old = issue(0), again = issue(1);
		expect_pass(1);
		sample_change(
			&office.sample,
			"INSERT INTO evidence_queue SELECT account, certification, 'lost', 0, 0, 0, NULL"
			" FROM evidence_chains WHERE place = 1");
		come(3.9);
		current = 1;
		struct issued young = issue(2);
		authority_down = true;
		assert_int_equal(pass(), ERR_AUTHORITY);
		assert_int_equal(count_of("SELECT COUNT(*) FROM evidence_queue"), 0);
		sample_change(&office.sample, damages[i]);
		authority_down = false;
		expect_pass(i < 4 ? 1 : 2);
		assert_int_equal(expect_valid(&old).stamps, 2);
		assert_int_equal(expect_valid(&young).stamps, 1);
		assert_true(expect_valid(&again).since_us > year_us(3.8));
		expect_event(1, 2);
		assert_int_equal(lost_tokens(), 0);
		assert_int_equal(count_of("SELECT MAX(record) FROM evidence_chains"), 2);
	}
}

/* No authority accepts the stronger digest: renewals continue with the other one. */
TEST_CASE(test_sha512_refused)
{
	seal_event();
	struct issued issued = issue(0), fresh;
	expect_pass(1);
	office.settings.evidence_digest = "sha-512";
	refuses_sha512 = true;
	assert_int_equal(pass(), ERR_AUTHORITY);
	come(3.9);
	current = 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pass(), ERR_AUTHORITY);
	expect_event(1, 2);
	assert_int_equal(expect_valid(&issued).stamps, 2);
	fresh = issue(1);
	assert_int_equal(pass(), ERR_AUTHORITY);
	expect_none(&fresh.certification);
	office.settings.evidence_digest = "sha-256"; /* the operator resets it */
	expect_pass(1);
	assert_int_equal(expect_valid(&fresh).stamps, 1);
	assert_int_equal(expect_valid(&issued).chains, 1);
	office.settings.evidence_digest = "sha-512";
	refuses_sha512 = false;
	expect_pass(1);
	assert_int_equal(expect_valid(&issued).chains, 2);
}

/* An authority with a revoked certificate is asked once, and another one gives the token. */
TEST_CASE(test_revoked)
{
	seal_event();
	struct issued issued = issue(0);
	come(3.1);
	revoked[0] = true;
	current = 0;
	expect_pass(2);
	assert_true(rejected[0]);
	assert_int_equal(failures(), 1);
	assert_int_equal(expect_valid(&issued).stamps, 1);
	/* And when no authority gives one. */
	(void)issue(1);
	memset(revoked, true, sizeof revoked);
	rejected[2] = rejected[3] = rejected[4] = true; /* of future years */
	int64_t before = bought;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pass(), ERR_AUTHORITY);
	assert_int_equal(bought - before, 1);
}

/* A node that is about to stop takes no tokens. */
TEST_CASE(test_stops_before_it_asks)
{
	seal_event();
	(void)issue(0);
	expect_pass(1);
	come(4.5);
	int64_t before = bought;
	atomic_store(&stopping, true);
	assert_int_equal(pass(), ERR_REFUSED);
	assert_int_equal(bought, before);
}

int main(void)
{
	return tests_run(begin, end, set_up, tear_down);
}
