/* Archives whose rounds have two timestamps. */
#include "testing.h"
#include "archive/archive_lines.h"
#include "test_archive_fixture.h"
#include "test_forger.h"
#include "token_parts.h"

static struct fixture fixture;
static struct forger_holder root, holder;
static struct forger_authority authority; /* the second one */
static struct buf root_pem;               /* of all authorities and signers */
static struct trust_roots roots;

static int set_up(void **state)
{
	static const struct forger_plan plan_of_root = {.name = "Another root",
	                                                .extensions = {CA, CA_USAGE}};
	static const struct forger_plan plan_of_authority = {.name = "Another authority",
	                                                     .extensions = {LEAF, SIGNS, STAMPS}};
	fixture_open(&fixture);
	forger_issue(&plan_of_root, NULL, &root);
	forger_issue(&plan_of_authority, &root, &holder);
	roots = forger_trust(&root, fixture.roots.signers, &root_pem);
	fixture_write(fixture.trust, buf_slice(&root_pem));
	authority = (struct forger_authority){.holder = &holder, .accuracy_seconds = 1};
	fixture.second_stamp = forger_stamp;
	fixture.second_context = &authority;
	return 0;
}

static int tear_down(void **state)
{
	forger_free(&holder);
	forger_free(&root);
	buf_free(&root_pem);
	fixture_close(&fixture);
	return 0;
}

static void make(const char *name, struct fixture_archive *made)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	fixture_forget(&fixture);
	fixture_make_good(&fixture, name, &plan, made);
}

static void verify(const struct fixture_archive *made, int exit_code,
                   struct verify_result *ret_result)
{
	const char *path = made->path;
	fixture_verify(&path, 1, &roots, ret_result);
	fixture_expect_exit(ret_result, exit_code);
}

TEST_CASE(both_are_verified_and_named)
{
	struct fixture_archive made;
	struct verify_result result;
	make("both", &made);
	verify(&made, 0, &result);
	assert_true(result.trusted);
	assert_int_equal(fixture_warnings(&result),
	                 2); /* the development authority, no revocation data */
	/* Two segments and the previous round, twice, and the timestamp of the signature. */
	assert_int_equal(result.checked.timestamps, 7);
	assert_int_equal(result.authorities.count, 2);
	const struct verify_identity *other = result.authorities.first;
	while (strcmp(other->certificate.subject, "CN=Another authority") != 0)
		other = other->next;
	assert_int_equal(other->timestamps, 3);
	assert_true(other->first_gen_time_us >= fixture.base_us);
	assert_true(other->last_gen_time_us > other->first_gen_time_us);
	verify_result_free(&result);
	assert_true(fixture_agrees(&fixture, made.path, NULL, NULL));
}

/* The second authority's root is not trusted: its token does not count, and that is reported. */
TEST_CASE(the_second_needs_a_root_too)
{
	struct fixture_archive made;
	struct verify_result result;
	make("root", &made);
	const char *path = made.path;
	fixture_verify(&path, 1, &fixture.roots, &result);
	assert_int_equal(verify_exit_code(&result), 2);
	assert_int_equal(verify_verdict(&result), VERIFY_AUTHORITY_OPEN);
	assert_true(
		fixture_finds(&result, VERIFY_UNESTABLISHED, "", "in the name of Another authority"));
	verify_result_free(&result);
}

TEST_CASE(times_that_diverge_are_told)
{
	static const struct {
		int64_t offset_us;
		bool told;
	} cases[] = {
		{50 * US_PER_SECOND, false},
		{-50 * US_PER_SECOND, false},
		{-90 * US_PER_SECOND, true},
		{3 * US_PER_DAY, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture_archive made;
		struct verify_result result;
		authority.offset_us = cases[i].offset_us;
		make("diverging", &made);
		authority.offset_us = 0;
		verify(&made, 0, &result);
		assert_int_equal(
			fixture_finds(&result, VERIFY_WARNING, "", "the two timestamps of 3 rounds diverge"),
			cases[i].told);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "", "by Another authority"),
		                 cases[i].told);
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		verify_print(&result, true, out);
		fclose(out);
		assert_non_null(strstr(text, "\"valid\":true"));
		assert_int_equal(strstr(text, "rounds diverge") != NULL, cases[i].told);
		free(text);
		verify_result_free(&result);
	}
}

static int stamp_by_the_first(void *context, const struct sha256 *imprint, struct buf *out,
                              struct error *error)
{
	struct cms_signer unused;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &unused);
	return signing.timestamp(signing.timestamp_context, imprint, out, error);
}

TEST_CASE(two_of_one_authority_are_told)
{
	struct fixture_archive made;
	struct verify_result result;
	fixture.second_stamp = stamp_by_the_first;
	make("twice", &made);
	fixture.second_stamp = forger_stamp;
	verify(&made, 0, &result);
	assert_true(fixture_finds(&result, VERIFY_WARNING, "",
	                          "the two timestamps of 3 rounds come from the same authority"));
	verify_result_free(&result);
}

static int stamp_something_else(void *context, const struct sha256 *imprint, struct buf *out,
                                struct error *error)
{
	struct sha256 other = *imprint;
	other.bytes[5] ^= 1;
	return forger_stamp(context, &other, out, error);
}

TEST_CASE(a_second_over_something_else_is_found)
{
	struct fixture_archive made;
	struct verify_result result;
	fixture.second_stamp = stamp_something_else;
	make("else", &made);
	fixture.second_stamp = forger_stamp;
	verify(&made, 1, &result);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "rounds/rounds-000001.ndjson.gz line 2",
	                          "the imprint of the timestamp is not that of the data"));
	verify_result_free(&result);
	assert_false(fixture_agrees(&fixture, made.path, NULL, NULL));
}

/* RFC 3161 section 2.4.2: both verifiers check whether `tsa` names the signer, and critical
 * extensions, even without roots. */
TEST_CASE(what_a_token_ends_with_is_checked)
{
	static const struct {
		const char *name, *extension;
		const char *cause; /* NULL: valid */
	} cases[] = {
		{"Another authority", NULL, NULL},
		{"ANOTHER  authority", NULL, NULL}, /* as names are compared: RFC 5280 section 7.1 */
		{NULL, "1.2.3.4=DER:0500", NULL},
		{"Another authority", "1.2.3.4=DER:0500", NULL},
		{"Another root", NULL,
	     "tsa in the TSTInfo, CN=Another root, is no name of the certificate that signed it, "
	     "CN=Another authority"},
		{NULL, "1.2.3.4=critical,DER:0500", "an unknown critical extension, 1.2.3.4"},
		{"Another authority", "1.2.3.5=critical,DER:0500",
	     "an unknown critical extension, 1.2.3.5"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture_archive made;
		authority.name = cases[i].name;
		authority.extension = cases[i].extension;
		make("ends", &made);
		authority.name = authority.extension = NULL;
		for (int trusts = 0; trusts < 2; trusts++) {
			const char *path = made.path;
			struct trust_roots none = {0};
			struct verify_result result;
			fixture_verify(&path, 1, trusts ? &roots : &none, &result);
			if (cases[i].cause)
				assert_true(fixture_finds(&result, VERIFY_WRONG,
				                          "rounds/rounds-000001.ndjson.gz line 1", cases[i].cause));
			else
				assert_int_equal(verify_exit_code(&result), trusts ? 0 : 2);
			verify_result_free(&result);
		}
		assert_int_equal(fixture_agrees(&fixture, made.path, NULL, NULL), !cases[i].cause);
		assert_int_equal(fixture_agrees_without_roots(&fixture, made.path), !cases[i].cause);
	}
}

static int stamp_with_others(void *context, const struct sha256 *imprint, struct buf *out,
                             struct error *error)
{
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	int result = forger_stamp(context, imprint, &token, error);
	/* A version 2 attribute certificate, which is not read. */
	token_add_choice(&token, 4, slice_make("\xa2\x06\x06\x02\x2a\x03\x05\x00", 8));
	buf_add_slice(out, buf_slice(&token));
	return result;
}

TEST_CASE(attribute_certificates_are_passed_over)
{
	struct fixture_archive made;
	struct verify_result result;
	fixture.second_stamp = stamp_with_others;
	make("others", &made);
	fixture.second_stamp = forger_stamp;
	verify(&made, 0, &result);
	assert_int_equal(result.authorities.count, 2);
	verify_result_free(&result);
	assert_true(fixture_agrees(&fixture, made.path, NULL, NULL));
	assert_true(fixture_agrees_without_roots(&fixture, made.path));
}

TEST_CASE(a_line_is_read_in_its_version_alone)
{
	static const char head[] =
		"\"gen_time\":\"2026-01-01T00:00:00.000000Z\",\"kind\":\"qualified\",";
	static const char request[] = "\"request\":null,";
	static const char place[] =
		"\"root\":\"00000000000000000000000000000000000000000000000000000000"
		"00000000\",\"round_id\":\"rnd_1\",";
	char token[512], texts[4][2048];
	snprintf(token, sizeof token,
	         "{\"authority\":\"a\",\"certificates\":[],%s\"renewal\":null,%s"
	         "\"revocations\":[],\"token\":\"AAAA\"}",
	         head, request);
	snprintf(texts[0], sizeof *texts, "{\"authority\":\"a\",%s%s%s\"token\":\"AAAA\"}", head,
	         request, place);
	for (size_t i = 0; i < 3; i++) {
		char list[1600];
		snprintf(list, sizeof list,
		         i == 0   ? "%s%.0s%.0s"
		         : i == 1 ? "%s,%s%.0s"
		                  : "%s,%s,%s",
		         token, token, token);
		snprintf(texts[i + 1], sizeof *texts,
		         "{\"gen_time\":\"2026-01-01T00:00:00.000000Z\",%s\"tokens\":[%s]}", place, list);
	}
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	for (int64_t version = 1; version <= 2; version++) {
		for (size_t i = 0; i < 4; i++) {
			struct archive_round round;
			struct slice text = slice_of(texts[i]);
			int result = archive_read_round(&arena, text, version, &round, NULL);
			bool good = version == 1 ? i == 0 : i == 1 || i == 2;
			assert_int_equal(result, good ? OK : ERR_INVALID_EVIDENCE);
			if (!good)
				continue;
			assert_int_equal(round.token_count, i == 2 ? 2 : 1);
			BUF_AUTO struct buf again = {.limit = 4096};
			archive_round_line(&round, version, &again);
			assert_true(slice_equal(buf_slice(&again), text));
		}
	}
	/* The time of the round is that of its first token. */
	struct archive_round round;
	char *year = strstr(texts[1], "2026");
	memcpy(year, "2025", 4);
	assert_int_equal(archive_read_round(&arena, slice_of(texts[1]), 2, &round, NULL),
	                 ERR_INVALID_EVIDENCE);
}

TEST_CASE(the_readme_works_as_it_stands)
{
	struct fixture_archive made;
	make("by-hand", &made);
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, 3 NOTE, 0 WRONG$");
	fixture_readme_said(&fixture, "^OK     round .*, non_qualified timestamp: given on ");
	fixture.second_stamp = stamp_with_others;
	make("by-hand-others", &made);
	fixture.second_stamp = forger_stamp;
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, 3 NOTE, 0 WRONG$");
}

TEST_MAIN(set_up, tear_down)
