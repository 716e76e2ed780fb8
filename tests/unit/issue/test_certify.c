/* Certifications at the interface: what is accepted and refused, which jobs that wakes, and the
 * answers, verbatim. The test sets the clock that the nodes share. */
#include <ctype.h>

#include "testing.h"
#include "base/json.h"
#include "sample.h"
#include "issue/certify.h"
#include "issue/links.h"
#include "issue/verification.h"
#include "store/certifications/certifications.h"
#include "store/certifications/idempotency.h"

#define NOW INT64_C(1767323045678901)
#define NOW_TEXT "2026-01-02T03:04:05.678901Z"
#define CREDITS 100
#define FEE 7
#define LIVE_EVENTS_MAX 8000000
#define CONFIG_VERSIONS_MAX 1000
#define HOLDER "node#0"
#define RECORD_MAX 8192

#define NO_RECORD                                                                                  \
	"\"evidence_record_url\":null,\"evidence_record_sha256\":null,"                                \
	"\"evidence_record_since\":null,\"evidence_record_renew_at\":null,"

static struct sample sample;
static struct settings settings;
static struct service service;
static struct error error;
static struct arena arena;
static struct buf out;
static int64_t shared_now_us;
static const char *idempotency_key; /* of the following requests; NULL: none */
static bool replayed;               /* by the last one */
static int64_t waits;               /* seconds, of the last answer */
static int64_t pretended_events;    /* of any chain; 0: the actual number */
static bool another_is_quicker;     /* the key is gone by the time that it is looked up */
static int64_t
	arrives_after_us; /* clock at which an event arrives after the chain was read; 0: none */
static struct {
	int sealer, issuer, others;
} woken;

int64_t __wrap_store_now_us(const struct store *store);
int __real_store_get_chain(struct store *store, int64_t account, int64_t chain,
                           struct chain_head *ret, struct error *why);
int __wrap_store_get_chain(struct store *store, int64_t account, int64_t chain,
                           struct chain_head *ret, struct error *why);

static int writers_taken;
struct db_connection *__real_db_take_writer(struct db *db);
struct db_connection *__wrap_db_take_writer(struct db *db);

struct db_connection *__wrap_db_take_writer(struct db *db)
{
	writers_taken++;
	return __real_db_take_writer(db);
}

int64_t __wrap_store_now_us(const struct store *store)
{
	return shared_now_us;
}

int __wrap_store_get_chain(struct store *store, int64_t account, int64_t chain,
                           struct chain_head *ret, struct error *why)
{
	int result = __real_store_get_chain(store, account, chain, ret, why);
	if (!result && pretended_events)
		ret->last_sequence = pretended_events;
	if (!result && arrives_after_us) {
		sample.now_us = shared_now_us + arrives_after_us - 1000;
		sample_register(&sample, MODE_LIVE, 1);
	}
	return result;
}

int __real_store_find_repeated(struct store *store, int64_t account, int64_t chain, const char *key,
                               int64_t now_us, const struct certification_range *range,
                               bool seal_history, struct arena *memory, struct certification *ret,
                               struct error *why);
int __wrap_store_find_repeated(struct store *store, int64_t account, int64_t chain, const char *key,
                               int64_t now_us, const struct certification_range *range,
                               bool seal_history, struct arena *memory, struct certification *ret,
                               struct error *why);

int __wrap_store_find_repeated(struct store *store, int64_t account, int64_t chain, const char *key,
                               int64_t now_us, const struct certification_range *range,
                               bool seal_history, struct arena *memory, struct certification *ret,
                               struct error *why)
{
	bool too_early = another_is_quicker;
	another_is_quicker = false;
	return too_early ? ERR_NOT_FOUND
	                 : __real_store_find_repeated(store, account, chain, key, now_us, range,
	                                              seal_history, memory, ret, why);
}

static void wake(void *context, enum wake which)
{
	assert_ptr_equal(context, &woken);
	switch (which) {
	case WAKE_SEALER: woken.sealer++; break;
	case WAKE_ISSUER: woken.issuer++; break;
	default: woken.others++;
	}
}

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, CREDITS);
	sample.now_us = NOW - US_PER_SECOND;
	shared_now_us = NOW;
	pretended_events = arrives_after_us = 0;
	another_is_quicker = false;
	memset(&woken, 0, sizeof woken);
	idempotency_key = NULL;
	settings = (struct settings){
		.service_prefix = "svc",
		.service_public_url = "https://public.example",
		.certification_link_lifetime = US_PER_DAY,
		.certification_fee = FEE,
		.seal_clock_bound = US_PER_SECOND,
	};
	service = (struct service){
		.settings = &settings, .store = sample.store, .wake = wake, .wake_context = &woken};
	arena_init(&arena, 4 << 20);
	buf_init(&out, 1 << 20);
	assert_int_equal(links_open(&service, &error), OK);
	return 0;
}

static int tear_down(void **state)
{
	buf_free(&out);
	arena_free(&arena);
	links_close(&service);
	sample_close(&sample);
	return 0;
}

static struct key_identity key_of(enum mode mode)
{
	struct key_identity key = {
		.account = sample.account,
		.channel = sample.channel,
		.chain = mode == MODE_TEST ? sample.test_chain : sample.live_chain,
		.key = 1,
		.mode = mode,
	};
	memcpy(key.channel_id, sample.channel_id, ID_SIZE);
	return key;
}

static int ask(enum mode mode, struct certification_range range)
{
	struct key_identity key = key_of(mode);
	buf_clear(&out);
	error = (struct error){0};
	return certification_request(&service,
	                             &(struct certification_order){.key = &key,
	                                                           .range = &range,
	                                                           .idempotency_key = idempotency_key,
	                                                           .language = LANGUAGE_SPANISH},
	                             &out, &replayed, &waits, &error);
}

static int request(enum mode mode, int64_t first, int64_t last)
{
	return ask(mode,
	           (struct certification_range){
				   .from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = first, .seq_to = last});
}

static int get(enum mode mode, const char *id, enum language language)
{
	struct key_identity key = key_of(mode);
	buf_clear(&out);
	return certification_get(&service, &key, slice_of(id), language, &out, &waits, &error);
}

static void is_written(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void is_written(const char *format, ...)
{
	char expected[RECORD_MAX];
	va_list arguments;
	va_start(arguments, format);
	int size = vsnprintf(expected, sizeof expected, format, arguments);
	va_end(arguments);
	assert_in_range(size, 1, sizeof expected - 1);
	assert_int_equal(buf_check(&out), OK);
	assert_string_equal(out.data, expected);
}

static void assert_refused(int result, int code, const char *words)
{
	assert_int_equal(result, code);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), words));
	assert_int_equal(woken.sealer + woken.issuer + woken.others, 0);
	assert_int_equal(out.size, 0);
	struct balance balance;
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, CREDITS - 5);
}

static int64_t event_count(void)
{
	struct json *json;
	assert_int_equal(json_parse(&arena, buf_slice(&out), NULL, &json, &error), OK);
	return (int64_t)json_member(json, "event_count")->number;
}

/* ---- acceptance ---- */

/* The sealer is woken for the unsealed part of a live range. */
TEST_CASE(a_live_request_is_paid_and_wakes)
{
	sample_register(&sample, MODE_LIVE, 3);
	assert_int_equal(request(MODE_LIVE, 2, 3), OK);
	is_written("{\"certification_id\":\"CERT-2026-0000001\",\"channel_id\":\"%s\","
	           "\"status\":\"processing\",\"progress\":0,\"requested_at\":\"" NOW_TEXT "\","
	           "\"completed_at\":null,\"range\":{\"from\":null,\"to\":null,\"seq_from\":2,"
	           "\"seq_to\":3},\"event_count\":2,\"config_versions_in_range\":[1],"
	           "\"report_url\":null,\"reports\":[],\"evidence_url\":null," NO_RECORD
	           "\"verification_code\":null,\"mode\":\"live\",\"content_parts\":[]}",
	           sample.channel_id);
	assert_int_equal(waits, 1);
	assert_int_equal(woken.sealer, 1);
	assert_int_equal(woken.issuer, 1);
	struct balance balance;
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, CREDITS - 3 - FEE);
	struct certification found;
	assert_int_equal(store_find_certification(sample.store, sample.account, sample.live_chain,
	                                          slice_of("CERT-2026-0000001"), &arena, &found,
	                                          &error),
	                 OK);
	assert_memory_equal(found.verification_code, "SVC-2026-", 9);
	assert_int_equal(found.language, LANGUAGE_SPANISH);
	assert_int_equal(found.first_sequence, 2);
	assert_int_equal(found.last_sequence, 3);

	sample_seal(&sample);
	assert_int_equal(request(MODE_LIVE, 1, 3), OK);
	assert_int_equal(woken.sealer, 1);
	assert_int_equal(woken.issuer, 2);
	sample_register(&sample, MODE_LIVE, 1);
	assert_int_equal(request(MODE_LIVE, 1, 4), OK);
	assert_int_equal(woken.sealer, 2);
	assert_int_equal(woken.others, 0);
}

TEST_CASE(a_test_request_needs_no_seal)
{
	sample_register(&sample, MODE_TEST, 2);
	assert_int_equal(request(MODE_TEST, 1, 2), OK);
	assert_non_null(strstr(out.data, "\"CERT-TEST-2026-0000001\""));
	assert_non_null(strstr(out.data, "\"mode\":\"test\""));
	assert_int_equal(woken.sealer, 0);
	assert_int_equal(woken.issuer, 1);
	struct balance balance;
	assert_int_equal(store_get_balance(sample.store, sample.account, &balance, &error), OK);
	assert_int_equal(balance.balance, CREDITS);
}

static int ask_times(int64_t from_us, int64_t to_us)
{
	return ask(MODE_LIVE, (struct certification_range){.from_us = from_us, .to_us = to_us});
}

/* ---- the estimate ---- */

static int estimate(enum mode mode, int64_t last, struct certification_estimate *ret)
{
	struct key_identity key = key_of(mode);
	struct certification_range range = {
		.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = last};
	return certification_estimate(
		&service, &(struct certification_order){.key = &key, .range = &range}, ret, &error);
}

/* It reaches the result of a request, and no registration waits for it. */
TEST_CASE(an_estimate_takes_no_writer)
{
	struct certification_estimate told;
	sample_register(&sample, MODE_LIVE, 1);
	sample_register(&sample, MODE_TEST, 1);
	for (int asked = 0; asked <= TEST_CERTIFICATIONS_PER_DAY; asked++) {
		writers_taken = 0;
		assert_int_equal(estimate(MODE_TEST, 1, &told), OK);
		assert_int_equal(told.refusal, asked == TEST_CERTIFICATIONS_PER_DAY ? ERR_TEST_QUOTA : OK);
		assert_int_equal(writers_taken, 0);
		assert_int_equal(request(MODE_TEST, 1, 1), told.refusal);
	}
	for (int left = CREDITS - 1; left >= 0; left -= FEE) {
		writers_taken = 0;
		assert_int_equal(estimate(MODE_LIVE, 1, &told), OK);
		assert_int_equal(told.refusal, left < FEE ? ERR_INSUFFICIENT_BALANCE : OK);
		assert_int_equal(writers_taken, 0);
		assert_int_equal(request(MODE_LIVE, 1, 1), told.refusal);
	}
	sample_register(&sample, MODE_LIVE, 10);
	settings.certification_open_per_account = 1;
	assert_int_equal(estimate(MODE_LIVE, 1, &told), OK);
	assert_int_equal(told.refusal, ERR_RATE_LIMITED);
	settings.certification_open_per_account = 0;
	assert_int_equal(estimate(MODE_LIVE, 1, &told), OK);
	assert_int_equal(told.refusal, ERR_NOT_OPERATIONAL);
}

/* `from` is inclusive, `to` exclusive. Later events are not included, however late `to` is. */
TEST_CASE(times_are_frozen_at_the_request)
{
	sample.now_us = NOW - 1000;
	sample_register(&sample, MODE_LIVE, 2); /* at NOW */
	sample.now_us = NOW + US_PER_SECOND - 1000;
	sample_register(&sample, MODE_LIVE, 3); /* a second later */
	shared_now_us = NOW + 2 * US_PER_SECOND;
	assert_int_equal(ask_times(NOW, NOW + US_PER_SECOND), OK);
	assert_int_equal(event_count(), 2);
	assert_non_null(strstr(out.data, "\"range\":{\"from\":\"" NOW_TEXT
	                                 "\",\"to\":\"2026-01-02T03:04:06.678901Z\","
	                                 "\"seq_from\":null,\"seq_to\":null}"));
	assert_int_equal(ask_times(NOW + 1, NOW + US_PER_SECOND + 1), OK);
	assert_int_equal(event_count(), 3);
	assert_int_equal(ask_times(NOW, NOW + US_PER_DAY), OK);
	assert_int_equal(event_count(), 5);
	assert_non_null(strstr(out.data, "\"to\":\"2026-01-03T03:04:05.678901Z\""));
	/* An event that is received while the request waits for the writer is included. */
	arrives_after_us = 1;
	assert_int_equal(ask_times(NOW, NOW + US_PER_DAY), OK);
	assert_int_equal(event_count(), 6);
	assert_non_null(strstr(out.data, "\"requested_at\":\"2026-01-02T03:04:07.678903Z\""));
	arrives_after_us = 0;

	/* Nodes whose clocks are ahead of the local one. */
	for (int i = 0; i < 2; i++) {
		shared_now_us = i ? NOW - US_PER_DAY : sample.now_us;
		assert_int_equal(ask_times(NOW, NOW + US_PER_DAY), OK);
		assert_int_equal(event_count(), 6);
	}
}

TEST_CASE(ranges_without_meaning_are_refused)
{
	sample_register(&sample, MODE_LIVE, 5);
	static const struct {
		struct certification_range range;
		const char *words;
	} refused[] = {
		{{TIME_NONE, TIME_NONE, 0, 0}, "exactly one pair"},
		{{TIME_NONE, TIME_NONE, 1, 0}, "exactly one pair"},
		{{TIME_NONE, TIME_NONE, 0, 1}, "exactly one pair"},
		{{NOW, TIME_NONE, 0, 0}, "exactly one pair"},
		{{NOW, NOW + 1, 1, 2}, "exactly one pair"},
		{{TIME_NONE, TIME_NONE, -1, 2}, "at least 1"},
		{{TIME_NONE, TIME_NONE, 3, 2}, "'seq_from' must not be greater than 'seq_to'"},
		{{TIME_NONE, TIME_NONE, 5, 6}, "last event of the chain, which is 5"},
		{{NOW, NOW, 0, 0}, "'from' must come before 'to'"},
		{{NOW, NOW + 1, 0, 0}, "contains no events"},
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_refused(ask(MODE_LIVE, refused[i].range), ERR_VALIDATION, refused[i].words);
	assert_refused(request(MODE_TEST, 1, 1), ERR_VALIDATION, "which is 0");
	assert_int_equal(get(MODE_LIVE, "CERT-2026-0000001", LANGUAGE_ENGLISH), ERR_NOT_FOUND);
}

/* A request over the limit of either kind is refused with both numbers. */
TEST_CASE(a_range_is_of_so_many_events)
{
	static const struct {
		enum mode mode;
		int64_t most;
		const char *words;
	} limits[] = {
		{MODE_TEST, TEST_CERTIFICATION_EVENTS_MAX, "at most 10000 events; this range has 10001"},
		{MODE_LIVE, LIVE_EVENTS_MAX, "at most 8000000 events; this range has 8000001"},
	};
	sample_register(&sample, MODE_LIVE, 5);
	pretended_events = LIVE_EVENTS_MAX + 100;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		assert_refused(request(limits[i].mode, 2, limits[i].most + 2), ERR_VALIDATION,
		               limits[i].words);
	pretended_events = 0;
	sample_register(&sample, MODE_TEST, TEST_CERTIFICATION_EVENTS_MAX);
	sample.now_us += US_PER_DAY; /* of which there may be no more in one */
	sample_register(&sample, MODE_TEST, 1);
	assert_refused(request(MODE_TEST, 1, TEST_CERTIFICATION_EVENTS_MAX + 1), ERR_VALIDATION,
	               limits[0].words);
	assert_int_equal(request(MODE_TEST, 2, TEST_CERTIFICATION_EVENTS_MAX + 1), OK);
	assert_int_equal(event_count(), TEST_CERTIFICATION_EVENTS_MAX);
}

/* A channel of an earlier version may have more of them. */
TEST_CASE(a_range_has_so_many_configurations)
{
	for (int i = 1; i < CONFIG_VERSIONS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof name, "name %d", i);
		struct config_change change = {.modality = -1, .name = name};
		int64_t version;
		bool changed;
		sample_register(&sample, MODE_TEST, 1);
		assert_int_equal(store_configure_channel(sample.store, slice_of(sample.channel_id), &change,
		                                         sample.now_us, &version, &changed, &error),
		                 OK);
		assert_true(changed);
	}
	sample_register(&sample, MODE_TEST, 1);
	sample_change(
		&sample,
		"INSERT INTO channel_configs (account, channel, version, sealed_at, modality, name,"
		" declarant, config_hash) SELECT account, channel, 1001, sealed_at, modality, name,"
		" declarant, config_hash FROM channel_configs WHERE version = 1000;"
		"UPDATE channels SET config_version = 1001 WHERE config_version = 1000");
	sample_register(&sample, MODE_TEST, 1);
	assert_int_equal(request(MODE_TEST, 1, CONFIG_VERSIONS_MAX + 1), ERR_VALIDATION);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "more than 1000"));
	assert_int_equal(woken.issuer, 0);
	assert_int_equal(request(MODE_TEST, 1, CONFIG_VERSIONS_MAX), OK);
	assert_int_equal(request(MODE_TEST, CONFIG_VERSIONS_MAX - 1, CONFIG_VERSIONS_MAX + 1), OK);
	assert_non_null(strstr(out.data, "\"config_versions_in_range\":[999,1000,1001],"));
}

TEST_CASE(what_the_store_refuses_wakes_nobody)
{
	sample_register(&sample, MODE_LIVE, 5);
	settings.certification_fee = CREDITS;
	assert_refused(request(MODE_LIVE, 1, 5), ERR_INSUFFICIENT_BALANCE, "");
	settings.certification_fee = 0;
	settings.certification_open_per_account = 1;
	assert_int_equal(request(MODE_LIVE, 1, 5), OK);
	memset(&woken, 0, sizeof woken);
	assert_refused(request(MODE_LIVE, 1, 5), ERR_RATE_LIMITED, "");
}

/* ---- repeated requests ---- */

static int64_t balance(void)
{
	struct balance found;
	assert_int_equal(store_get_balance(sample.store, sample.account, &found, &error), OK);
	return found.balance;
}

static void assert_replayed(int result, const char *id)
{
	char member[64];
	snprintf(member, sizeof member, "{\"certification_id\":\"%s\",", id);
	assert_int_equal(result, OK);
	assert_true(replayed);
	assert_int_equal(buf_check(&out), OK);
	assert_memory_equal(out.data, member, strlen(member));
	assert_int_equal(woken.sealer + woken.issuer + woken.others, 0);
}

TEST_CASE(whoever_was_slower_is_answered_the_same)
{
	sample_register(&sample, MODE_LIVE, 3);
	idempotency_key = "a";
	assert_int_equal(request(MODE_LIVE, 1, 3), OK);
	int64_t left = balance();
	memset(&woken, 0, sizeof woken);
	another_is_quicker = true;
	assert_replayed(request(MODE_LIVE, 1, 3), "CERT-2026-0000001");
	another_is_quicker = true;
	assert_int_equal(request(MODE_LIVE, 1, 2), ERR_CONFLICT);
	assert_false(another_is_quicker);
	assert_int_equal(balance(), left);
}

/* ---- log messages and notices ---- */

static struct document document_of(enum document_kind kind, enum language language,
                                   const char *name, int64_t bytes)
{
	struct document document = {
		.kind = kind, .language = language, .size_bytes = bytes, .sha256 = sha256_of(name, 4)};
	snprintf(document.name, sizeof document.name, "%s", name);
	snprintf(document.object, sizeof document.object, "issued/%s", name);
	return document;
}

enum { SPANISH, ENGLISH, EVIDENCE, PART_1, PART_2, DOCUMENTS };
static struct document documents[DOCUMENTS];

static void claim(struct certification *ret)
{
	struct certification_claim claim = {
		.holder = HOLDER, .now_us = shared_now_us, .lease_us = 60 * US_PER_SECOND};
	assert_int_equal(store_claim_certification(sample.store, &claim, &arena, ret, &error), OK);
}

/* Issues the first certification, of test events 1 and 2, as a worker does. */
static struct certification issue(void)
{
	sample_register(&sample, MODE_TEST, 3);
	assert_int_equal(request(MODE_TEST, 1, 2), OK);
	documents[SPANISH] = document_of(DOCUMENT_REPORT, LANGUAGE_SPANISH, "a-es.pdf", 100);
	documents[ENGLISH] = document_of(DOCUMENT_REPORT, LANGUAGE_ENGLISH, "b-en.pdf", 200);
	documents[EVIDENCE] = document_of(DOCUMENT_EVIDENCE, LANGUAGE_ENGLISH, "c-ev.zip", 300);
	documents[PART_1] = document_of(DOCUMENT_PART, LANGUAGE_ENGLISH, "d-01.zip", 400);
	documents[PART_2] = document_of(DOCUMENT_PART, LANGUAGE_ENGLISH, "e-02.zip", 500);
	struct certification certification;
	claim(&certification);
	assert_int_equal(store_complete_certification(sample.store, &certification, HOLDER,
	                                              NOW + US_PER_SECOND, documents, DOCUMENTS,
	                                              &error),
	                 OK);
	return certification;
}

static const char *link_of(const struct certification *certification, int document)
{
	BUF_AUTO struct buf link = {.limit = 4096};
	document_link(&service, certification->certification_id, &documents[document], shared_now_us,
	              &link);
	assert_int_equal(buf_check(&link), OK);
	return arena_printf(&arena, "%.*s", (int)link.size, link.data);
}

static const char *sum_of(int document)
{
	char *text = arena_alloc(&arena, 2 * SHA256_SIZE + 1);
	hex_encode(documents[document].sha256.bytes, SHA256_SIZE, text);
	text[(size_t)2 * SHA256_SIZE] = '\0';
	return text;
}

/* The report is in the requested language; all reports are listed. */
TEST_CASE(what_is_issued_is_linked)
{
	struct certification issued = issue();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(get(MODE_TEST, issued.certification_id,
		                     i == SPANISH ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH),
		                 OK);
		is_written("{\"certification_id\":\"CERT-TEST-2026-0000001\",\"channel_id\":\"%s\","
		           "\"status\":\"completed\",\"progress\":null,\"requested_at\":\"" NOW_TEXT "\","
		           "\"completed_at\":\"2026-01-02T03:04:06.678901Z\",\"range\":{\"from\":null,"
		           "\"to\":null,\"seq_from\":1,\"seq_to\":2},\"event_count\":2,"
		           "\"config_versions_in_range\":[1],\"report_url\":\"%s\",\"reports\":["
		           "{\"languages\":[\"es\"],\"url\":\"%s\",\"sha256\":\"%s\"},"
		           "{\"languages\":[\"en\"],\"url\":\"%s\",\"sha256\":\"%s\"}],"
		           "\"evidence_url\":\"%s\"," NO_RECORD
		           "\"verification_code\":\"%s\",\"mode\":\"test\","
		           "\"content_parts\":["
		           "{\"name\":\"d-01.zip\",\"url\":\"%s\",\"sha256\":\"%s\",\"bytes\":400},"
		           "{\"name\":\"e-02.zip\",\"url\":\"%s\",\"sha256\":\"%s\",\"bytes\":500}]}",
		           sample.channel_id, link_of(&issued, i), link_of(&issued, SPANISH),
		           sum_of(SPANISH), link_of(&issued, ENGLISH), sum_of(ENGLISH),
		           link_of(&issued, EVIDENCE), issued.verification_code, link_of(&issued, PART_1),
		           sum_of(PART_1), link_of(&issued, PART_2), sum_of(PART_2));
	}
	/* With the key of the other mode, with another number, and without a number. */
	assert_int_equal(get(MODE_LIVE, issued.certification_id, LANGUAGE_ENGLISH), ERR_NOT_FOUND);
	assert_int_equal(get(MODE_TEST, "CERT-TEST-2026-0000002", LANGUAGE_ENGLISH), ERR_NOT_FOUND);
	assert_int_equal(get(MODE_TEST, "", LANGUAGE_ENGLISH), ERR_NOT_FOUND);
	assert_int_equal(out.size, 0);
}

TEST_CASE(progress_is_told_until_the_end)
{
	sample_register(&sample, MODE_TEST, 3);
	assert_int_equal(request(MODE_TEST, 1, 2), OK);
	struct certification certification;
	claim(&certification);
	assert_int_equal(store_renew_certification(sample.store, &certification, HOLDER,
	                                           NOW + US_PER_DAY, 250, &error),
	                 OK);
	assert_int_equal(get(MODE_TEST, certification.certification_id, LANGUAGE_ENGLISH), OK);
	assert_non_null(strstr(out.data, "\"status\":\"processing\",\"progress\":0.25,"));
	assert_int_equal(waits, 1);
	char incident[ID_SIZE];
	assert_int_equal(store_fail_certification(sample.store, &certification, HOLDER, "cause",
	                                          NOW + 1, incident, &error),
	                 OK);
	assert_int_equal(get(MODE_TEST, certification.certification_id, LANGUAGE_ENGLISH), OK);
	assert_non_null(strstr(out.data, "\"status\":\"failed\",\"progress\":null,"));
	assert_int_equal(waits, 0);
	assert_non_null(strstr(out.data, "\"verification_code\":null,"));
	assert_non_null(strstr(out.data, "\"report_url\":null,\"reports\":[],\"evidence_url\":null,"));
	assert_null(strstr(out.data, "cause"));
}

TEST_CASE(a_client_learns_when_to_ask_again)
{
	static const struct {
		int64_t events, passed_us, next_in_us;
		bool worked_on;
		int64_t seconds;
	} cases[] = {
		{1, 0, 0, false, 1},
		{99999, 0, 0, false, 1},
		{100000, 0, 0, false, 2},
		{1000000, 0, 0, false, 11},
		{INT64_C(1) << 40, 0, 0, false, 60},
		{1, 19 * US_PER_SECOND, 0, false, 1},
		{1, 20 * US_PER_SECOND, 0, false, 2},
		{1000000, 200 * US_PER_SECOND, 0, false, 20},
		{1, US_PER_DAY, 0, false, 60},
		/* The attempt failed and the next one waits; a lease is no wait. */
		{1, US_PER_SECOND, 4 * US_PER_SECOND + 1, false, 5},
		{1, US_PER_SECOND, 4 * US_PER_SECOND, false, 4},
		{1, US_PER_SECOND, US_PER_DAY, false, 60},
		{1, US_PER_SECOND, US_PER_DAY, true, 1},
		/* The clock was set back. */
		{1, -US_PER_DAY, 0, false, 1},
		{1, US_PER_SECOND, -US_PER_DAY, false, 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct certification asked = {
			.status = CERTIFICATION_PROCESSING,
			.requested_at_us = NOW - cases[i].passed_us,
			.next_attempt_at_us = NOW + cases[i].next_in_us,
			.worked_on = cases[i].worked_on,
			.first_sequence = 5,
			.last_sequence = 4 + cases[i].events,
		};
		assert_int_equal(certification_wait_seconds(&asked, NOW), cases[i].seconds);
		asked.status = CERTIFICATION_COMPLETED;
		assert_int_equal(certification_wait_seconds(&asked, NOW), 0);
		asked.status = CERTIFICATION_FAILED;
		assert_int_equal(certification_wait_seconds(&asked, NOW), 0);
	}
}

/* ---- public verification ---- */

static int look_up(const char *code, const struct sha256 *digest)
{
	buf_clear(&out);
	return verification_lookup(&service, slice_of(code), digest, &out, &error);
}

static void assert_verification(const struct certification *issued)
{
	is_written("{\"certification_id\":\"CERT-TEST-2026-0000001\",\"verification_code\":\"%s\","
	           "\"mode\":\"test\",\"status\":\"completed\","
	           "\"issued_at\":\"2026-01-02T03:04:06.678901Z\",\"event_count\":2,"
	           "\"first_sequence\":1,\"last_sequence\":2,\"documents\":["
	           "{\"name\":\"a-es.pdf\",\"kind\":\"report\",\"language\":\"es\",\"bytes\":100,"
	           "\"sha256\":\"%s\"},"
	           "{\"name\":\"b-en.pdf\",\"kind\":\"report\",\"language\":\"en\",\"bytes\":200,"
	           "\"sha256\":\"%s\"},"
	           "{\"name\":\"c-ev.zip\",\"kind\":\"evidence\",\"language\":null,\"bytes\":300,"
	           "\"sha256\":\"%s\"},"
	           "{\"name\":\"d-01.zip\",\"kind\":\"content_part\",\"language\":null,"
	           "\"bytes\":400,\"sha256\":\"%s\"},"
	           "{\"name\":\"e-02.zip\",\"kind\":\"content_part\",\"language\":null,"
	           "\"bytes\":500,\"sha256\":\"%s\"}]}",
	           issued->verification_code, sum_of(SPANISH), sum_of(ENGLISH), sum_of(EVIDENCE),
	           sum_of(PART_1), sum_of(PART_2));
}

/* Public look-up: by code in upper or lower case, or by the digest of a file. */
TEST_CASE(what_is_issued_is_found_by_code_and_by_digest)
{
	struct certification issued = issue();
	assert_int_equal(look_up(issued.verification_code, NULL), OK);
	assert_verification(&issued);
	char code[2 * VERIFICATION_CODE_SIZE];
	for (size_t i = 0; i <= strlen(issued.verification_code); i++)
		code[i] = (char)tolower((unsigned char)issued.verification_code[i]);
	assert_string_not_equal(code, issued.verification_code);
	assert_int_equal(look_up(code, NULL), OK);
	assert_verification(&issued);
	for (int i = 0; i < DOCUMENTS; i++) {
		assert_int_equal(look_up("", &documents[i].sha256), OK);
		assert_verification(&issued);
	}

	assert_int_equal(look_up("", NULL), ERR_NOT_FOUND);
	code[strlen(code) - 1] ^= 1;
	assert_int_equal(look_up(code, NULL), ERR_NOT_FOUND);
	memset(code, 'a', sizeof code - 1);
	code[sizeof code - 1] = '\0';
	for (size_t size = sizeof code; size-- > VERIFICATION_CODE_SIZE - 2;) {
		code[size] = '\0';
		assert_int_equal(look_up(code, NULL), ERR_NOT_FOUND);
	}
	struct sha256 other = sha256_of("none", 4);
	assert_int_equal(look_up(issued.verification_code, &other), ERR_NOT_FOUND);
	assert_int_equal(out.size, 0);
	/* One that is not issued yet. */
	assert_int_equal(request(MODE_TEST, 1, 3), OK);
	struct certification waiting;
	claim(&waiting);
	assert_int_equal(look_up(waiting.verification_code, NULL), ERR_NOT_FOUND);
}

TEST_MAIN_EACH(set_up, tear_down)
