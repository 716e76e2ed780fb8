/* Notices on their way: rules, secrets, envelope, signature, types. */
#include "testing.h"
#include "base/clock.h"
#include "service/webhook.h"

static const struct settings settings = {
	.service_prefix = "acme",
	.webhook_schedule = "1m, 5m,30m,2h,6h,12h,24h",
	.webhook_allow_networks = "10.0.0.0/8",
	.webhook_timeout = 10 * US_PER_SECOND,
};

static struct webhook_rules rules_of(const struct settings *given)
{
	struct webhook_rules rules;
	assert_int_equal(webhook_rules_read(given, &rules, NULL), OK);
	return rules;
}

TEST_CASE(test_rules)
{
	struct webhook_rules rules = rules_of(&settings);
	assert_int_equal(rules.schedule.count, 7);
	assert_int_equal(rules.schedule.waits_us[1], 5 * 60 * US_PER_SECOND);
	assert_string_equal(rules.prefix, "ACME");
	assert_int_equal(rules.timeout_ms, 10000);
	assert_null(rules.roots_path);
	assert_false(rules.allow_http);
	static const char *const bad[] = {
		"",       "1x",    "1m,",
		"1m,,2m", "1m 2m", "1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s"};
	for (size_t i = 1; i < sizeof bad / sizeof *bad; i++) {
		struct settings other = settings;
		other.webhook_schedule = bad[i];
		bool trailing = strcmp(bad[i], "1m,") == 0; /* nothing may follow the last comma */
		assert_int_equal(webhook_rules_read(&other, &rules, NULL), trailing ? OK : ERR_VALIDATION);
	}
}

TEST_CASE(test_secrets)
{
	struct sha256 installation = {{1, 2, 3}}, other = {{1, 2, 4}};
	char a[WEBHOOK_SECRET_SIZE], b[WEBHOOK_SECRET_SIZE];
	webhook_secret(&installation, "whk_a", 1, a);
	webhook_secret(&installation, "whk_a", 1, b);
	assert_string_equal(a, b);
	assert_int_equal(strlen(a), WEBHOOK_SECRET_SIZE - 1);
	assert_memory_equal(a, "whsec_", 6);
	webhook_secret(&installation, "whk_a", 2, b);
	assert_string_not_equal(a, b);
	webhook_secret(&installation, "whk_b", 1, b);
	assert_string_not_equal(a, b);
	webhook_secret(&other, "whk_a", 1, b);
	assert_string_not_equal(a, b);
}

TEST_CASE(test_envelope)
{
	BUF_AUTO struct buf out = {.limit = 1024};
	webhook_envelope("ntc_1", "balance.low", INT64_C(1767323045678901), "live",
	                 slice_of("{\"balance\":1}"), &out);
	assert_string_equal(out.data, "{\"id\":\"ntc_1\",\"type\":\"balance.low\","
	                              "\"created_at\":\"2026-01-02T03:04:05.678901Z\","
	                              "\"mode\":\"live\",\"data\":{\"balance\":1}}");
}

/* Made with: printf '1767323045.%s' BODY | openssl dgst -sha256 -hmac SECRET */
#define SIGNED_NEW "77f7ab59bd21c4e6025bd4a4bf04bf4ca4b4a798fbd11fbd41fe5b4ad0162b25"
#define SIGNED_OLD "4df210dcfe4ab32d8d4c7202cc13ca8af76aea5e0697688091051a7df7b30608"

TEST_CASE(test_signatures)
{
	struct webhook_rules rules = rules_of(&settings);
	struct webhook_headers headers;
	struct slice body = slice_of("{\"id\":\"ntc_1\"}");
	int64_t now_us = INT64_C(1767323045999999);
	assert_int_equal(webhook_sign(&rules, "ntc_1", body, "whsec_new", NULL, now_us, &headers), OK);
	assert_string_equal(headers.list[0], "X-ACME-Webhook-Id: ntc_1");
	assert_string_equal(headers.list[1], "X-ACME-Timestamp: 1767323045");
	assert_string_equal(headers.list[2], "X-ACME-Signature: v1=" SIGNED_NEW);
	assert_int_equal(
		webhook_sign(&rules, "ntc_1", body, "whsec_new", "whsec_old", now_us, &headers), OK);
	assert_string_equal(headers.list[2], "X-ACME-Signature: v1=" SIGNED_NEW ",v1=" SIGNED_OLD);
}

TEST_CASE(test_acknowledgments)
{
	static const struct {
		int result, status;
		bool good;
	} cases[] = {{OK, 200, true},  {OK, 299, true},  {OK, 199, false},
	             {OK, 300, false}, {OK, 500, false}, {ERR_NETWORK, 200, false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct http_answer answer = {.status = cases[i].status};
		assert_int_equal(webhook_is_acknowledged(cases[i].result, &answer), cases[i].good);
	}
}

TEST_CASE(test_waits_that_receivers_ask_for)
{
	static const struct {
		const char *value;
		int64_t wait_us;
	} cases[] = {
		{"0", 0},
		{"1", US_PER_SECOND},
		{"60", 60 * US_PER_SECOND},
		{"299", 299 * US_PER_SECOND},
		{"301", 300 * US_PER_SECOND},
		{"1000000000", 300 * US_PER_SECOND},
		{"99999999999999999999999999", 300 * US_PER_SECOND},
		{"-1", 0},
		{"soon", 0},
		{"1.5", 0},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 0},
		{"Sun, 06 Nov 1994 08:51:37 GMT", 60 * US_PER_SECOND},
		{"Sunday, 06-Nov-94 08:51:37 GMT", 60 * US_PER_SECOND},
		{"Sun Nov  6 08:51:37 1994", 60 * US_PER_SECOND},
		{"Fri, 31 Dec 9999 23:59:59 GMT", 300 * US_PER_SECOND},
		{"Sun, 06 Nov 1994 08:51:37 GMT and more", 0},
		{"Sun, 06 Nov 1994 08:51:37 CET", 0},
	};
	const int64_t now_us = INT64_C(784111837) * US_PER_SECOND; /* 1994-11-06T08:50:37Z */
	struct webhook_rules rules = {0};
	assert_true(schedule_parse("1s,5m,2s", &rules.schedule));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct http_answer answer = {.status = 503};
		buf_init(&answer.headers, 1024);
		buf_printf(&answer.headers, "Server: x\nretry-after: %s\n", cases[i].value);
		assert_int_equal(webhook_retry_after_us(&rules, OK, &answer, now_us), cases[i].wait_us);
		assert_int_equal(webhook_retry_after_us(&rules, ERR_NETWORK, &answer, now_us), 0);
		buf_free(&answer.headers);
	}
	struct http_answer none = {.status = 503};
	assert_int_equal(webhook_retry_after_us(&rules, OK, &none, now_us), 0);
	none.status = 410;
	assert_true(webhook_is_gone(OK, &none));
	assert_false(webhook_is_gone(ERR_NETWORK, &none));
	none.status = 404;
	assert_false(webhook_is_gone(OK, &none));
}

TEST_CASE(test_types)
{
	static const struct {
		const char *given, *taken; /* NULL: refused */
	} cases[] = {
		{"all", ""},
		{"balance.low", "balance.low"},
		{"balance.low, certification.failed", "balance.low,certification.failed"},
		{"balance.low,balance.low", "balance.low"},
		{"balance.lo", NULL},
		{"balance.low,", NULL},
		{",", NULL},
		{"", NULL},
		{"webhook.test", NULL},
		{"balance.low,all", NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		BUF_AUTO struct buf out = {.limit = 512};
		struct error error = {0};
		int result = webhook_types_check(slice_of(cases[i].given), &out, &error);
		assert_int_equal(result, cases[i].taken ? OK : ERR_USAGE);
		if (cases[i].taken)
			assert_true(slice_is(buf_slice(&out), cases[i].taken));
		else
			assert_non_null(strstr(error.english, "certification.completed"));
	}
}

TEST_MAIN(NULL, NULL)
