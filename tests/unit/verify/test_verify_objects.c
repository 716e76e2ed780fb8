/* Archives with separate validation data of their timestamps: the second authority includes only
 * its own certificate in its tokens, and an intermediate issued that. */
#include "testing.h"
#include "pki.h"
#include "archive/archive_lines.h"
#include "test_archive_fixture.h"
#include "test_forger.h"

static struct fixture fixture;
static struct forger_holder root, middle, holder;
static struct forger_authority authority;
static struct buf root_pem;
static struct buf ders[2]; /* of the intermediate and the root */
static struct trust_roots roots;

static void write_der(X509 *certificate, struct buf *out)
{
	unsigned char *der = NULL;
	int size = i2d_X509(certificate, &der);
	assert_true(size > 0);
	buf_init(out, 65536);
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
}

static int set_up(void **state)
{
	static const struct forger_plan plans[] = {
		{.name = "Another root", .extensions = {CA, CA_USAGE ",cRLSign"}},
		{.name = "Intermediate", .extensions = {CA, CA_USAGE ",cRLSign"}},
		{.name = "Another authority", .extensions = {LEAF, SIGNS, STAMPS}},
	};
	fixture_open(&fixture);
	forger_issue(&plans[0], NULL, &root);
	forger_issue(&plans[1], &root, &middle);
	forger_issue(&plans[2], &middle, &holder);
	write_der(middle.certificate, &ders[0]);
	write_der(root.certificate, &ders[1]);
	roots = forger_trust(&root, fixture.roots.signers, &root_pem);
	fixture_write(fixture.trust, buf_slice(&root_pem));
	authority = (struct forger_authority){.holder = &holder, .accuracy_seconds = 1, .alone = true};
	fixture.second_stamp = forger_stamp;
	fixture.second_context = &authority;
	return 0;
}

static int tear_down(void **state)
{
	forger_free(&holder);
	forger_free(&middle);
	forger_free(&root);
	buf_free(&root_pem);
	buf_free(&ders[0]);
	buf_free(&ders[1]);
	fixture_close(&fixture);
	return 0;
}

/* Stores the certificates in the order of their SHA-256. */
static void hold_both(void)
{
	struct sha256 hashes[2];
	for (size_t i = 0; i < 2; i++)
		hashes[i] = sha256_of(ders[i].data, ders[i].size);
	bool turned = memcmp(&hashes[0], &hashes[1], SHA256_SIZE) > 0;
	for (size_t i = 0; i < 2; i++) {
		fixture.certificates[i] = hashes[i ^ turned];
		fixture.objects[i] =
			(struct archive_object){OBJECT_CERTIFICATE, buf_slice(&ders[i ^ turned])};
	}
	fixture.certificate_count = fixture.object_count = 2;
	fixture.revocation_count = 0;
}

static int make(struct fixture_archive *made)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	fixture_forget(&fixture);
	return fixture_make(&fixture, "objects", &plan, made);
}

/* Both verifiers reach that result; the other one does not distinguish wrong from unproven. */
static void assert_found_as(int exit_code, enum verify_severity severity, const char *where,
                            const char *what)
{
	struct fixture_archive made;
	struct verify_result result;
	assert_int_equal(make(&made), 0);
	const char *path = made.path;
	fixture_verify(&path, 1, &roots, &result);
	if (verify_exit_code(&result) != exit_code ||
	    (what && !fixture_finds(&result, severity, where, what))) {
		verify_print(&result, false, stderr);
		fail_msg("not '%s'", what ? what : "valid");
	}
	verify_result_free(&result);
	assert_int_equal(fixture_agrees(&fixture, made.path, NULL, NULL), what == NULL);
}

static void assert_found(const char *where, const char *what)
{
	assert_found_as(what != NULL, VERIFY_WRONG, where, what);
}

TEST_CASE(with_the_root_alone_it_is_valid)
{
	hold_both();
	assert_found(NULL, NULL);
}

TEST_CASE(without_them_it_is_not)
{
	fixture.certificate_count = fixture.object_count = 0;
	assert_found_as(2, VERIFY_UNESTABLISHED, "", "in the name of Another authority");
}

TEST_CASE(what_is_named_must_be_there)
{
	hold_both();
	fixture.object_count = 1;
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "member 'certificates'");
	hold_both();
	fixture.revocations[0] = sha256_of("no list", 7);
	fixture.revocation_count = 1;
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "member 'revocations'");
}

TEST_CASE(what_is_there_must_be_named)
{
	hold_both();
	fixture.object_count = 0;
	struct archive_object list = {OBJECT_CRL, slice_of("a list")};
	struct sha256 hash = sha256_of("a list", 6);
	for (size_t i = 0, placed = 0; i < 3; i++) {
		bool now = !placed && (i == 2 || memcmp(&hash, &fixture.certificates[i], SHA256_SIZE) < 0);
		size_t at = i - placed;
		struct buf *der = at < 2 && sha256_of(ders[0].data, ders[0].size).bytes[0] ==
		                                fixture.certificates[at].bytes[0]
		                      ? &ders[0]
		                      : &ders[1];
		fixture.objects[fixture.object_count++] =
			now ? list : (struct archive_object){OBJECT_CERTIFICATE, buf_slice(der)};
		placed += now;
	}
	assert_found("validation", "no token refers to object");
	fixture.revocations[0] = hash;
	fixture.revocation_count = 1;
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "refers to an object that is not needed");
}

/* ---- revocation data ---- */

static struct buf lists[3];
static size_t list_count;

static void add_list(const struct forger_holder *issuer, const struct forger_holder *revoked,
                     int reason, int64_t issued_us)
{
	const struct pki_identity by = {issuer->certificate, issuer->key};
	struct pki_crl wanted = {
		.issuer = &by,
		.revoked = revoked ? revoked->certificate : NULL,
		.revoked_us = fixture.base_us + US_PER_DAY,
		.reason = reason,
		.issued_us = issued_us,
		.next_us = issued_us + US_PER_DAY / 2,
	};
	buf_init(&lists[list_count], 65536);
	pki_crl(&lists[list_count++], &wanted);
}

static int compare_objects(const void *left, const void *right)
{
	const struct archive_object *a = left, *b = right;
	struct sha256 one = sha256_of(a->der.data, a->der.size);
	struct sha256 other = sha256_of(b->der.data, b->der.size);
	return memcmp(&one, &other, SHA256_SIZE);
}

static int compare_hashes(const void *left, const void *right)
{
	return memcmp(left, right, SHA256_SIZE);
}

/* Stores the added lists with the certificates; every second token names all. */
static void hold_lists(void)
{
	hold_both();
	for (size_t i = 0; i < list_count; i++) {
		struct slice der = buf_slice(&lists[i]);
		fixture.objects[fixture.object_count++] = (struct archive_object){OBJECT_CRL, der};
		fixture.revocations[fixture.revocation_count++] = sha256_of(der.data, der.size);
	}
	qsort(fixture.objects, fixture.object_count, sizeof *fixture.objects, compare_objects);
	qsort(fixture.revocations, fixture.revocation_count, SHA256_SIZE, compare_hashes);
}

static void forget_lists(void)
{
	while (list_count > 0)
		buf_free(&lists[--list_count]);
}

static void assert_shown(const char *where, const char *what)
{
	hold_lists();
	assert_found(where, what);
	forget_lists();
}

static uint64_t not_revoked(void)
{
	struct fixture_archive made;
	struct verify_result result;
	uint64_t found = 0;
	hold_lists();
	assert_int_equal(make(&made), 0);
	const char *path = made.path;
	fixture_verify(&path, 1, &roots, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	for (const struct verify_identity *at = result.authorities.first; at; at = at->next) {
		found += at->not_revoked;
		assert_true(at->not_revoked == 0 || at->not_revoked == at->timestamps);
	}
	verify_result_free(&result);
	return found;
}

TEST_CASE(what_shows_that_nothing_was_revoked_is_told)
{
	int64_t later_us = fixture.base_us + 2 * US_PER_DAY;
	assert_int_equal(not_revoked(), 0);
	add_list(&root, NULL, -1, later_us);
	assert_int_equal(not_revoked(), 0);
	add_list(&middle, NULL, -1, later_us);
	assert_true(not_revoked() > 0);
	assert_shown(NULL, NULL);
}

TEST_CASE(nothing_superfluous_is_named)
{
	static const char where[] = "rounds/rounds-000001.ndjson.gz line 1";
	int64_t later_us = fixture.base_us + 2 * US_PER_DAY;
	add_list(&middle, NULL, -1, later_us);
	add_list(&middle, NULL, -1, later_us + US_PER_SECOND);
	assert_shown(where, "refers to an object that is not needed");
	add_list(&middle, NULL, -1, fixture.base_us - US_PER_DAY); /* too old */
	assert_shown(where, "refers to an object that is not needed");
	add_list(&holder, NULL, -1, later_us); /* did not issue the certificate */
	assert_shown(where, "refers to an object that is not needed");
}

/* The first token of each round is from another authority and is sufficient. Alone, this one would
 * not be. */
TEST_CASE(a_revoked_authority_proves_nothing)
{
	int64_t later_us = fixture.base_us + 2 * US_PER_DAY;
	struct fixture_archive made;
	struct verify_result result;
	add_list(&middle, &holder, CRL_REASON_KEY_COMPROMISE, later_us);
	hold_lists();
	assert_int_equal(make(&made), 0);
	const char *path = made.path;
	fixture_verify(&path, 1, &roots, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	assert_true(fixture_finds(&result, VERIFY_WARNING, "rounds", "was revoked as of"));
	verify_result_free(&result);
	assert_true(fixture_agrees(&fixture, made.path, NULL, NULL));
	fixture.only_second = true;
	assert_found("seals/seals-000001.ndjson.gz line 1 member round_id", "were revoked");
	forget_lists();
	/* Later, for a reason that does not affect earlier tokens. */
	add_list(&middle, &holder, CRL_REASON_SUPERSEDED, later_us);
	assert_shown(NULL, NULL);
	fixture.only_second = false;
}

TEST_CASE(a_kind_is_no_other)
{
	hold_both();
	fixture.objects[0].kind = OBJECT_CRL;
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "member 'certificates'");
}

TEST_CASE(the_writer_keeps_their_order)
{
	struct fixture_archive made;
	hold_both();
	struct archive_object first = fixture.objects[0];
	fixture.objects[0] = fixture.objects[1];
	fixture.objects[1] = first;
	assert_int_equal(make(&made), ERR_USAGE);
	fixture.objects[0] = first;
	fixture.objects[1] = first;
	assert_int_equal(make(&made), ERR_USAGE);
}

TEST_CASE(the_readme_works_as_it_stands)
{
	struct fixture_archive made;
	hold_both();
	assert_int_equal(make(&made), 0);
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, 3 NOTE, 0 WRONG$");
}

/* Like the verifier, it accepts one valid token of two, but not a revoked one alone. */
TEST_CASE(the_readme_finds_what_was_revoked)
{
	struct fixture_archive made;
	hold_both();
	add_list(&middle, &holder, CRL_REASON_KEY_COMPROMISE, fixture.base_us + 2 * US_PER_DAY);
	hold_lists();
	assert_int_equal(make(&made), 0);
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, .* NOTE, 0 WRONG$");
	fixture_readme_said(&fixture, "^NOTE   round .* one timestamp is revoked");
	fixture.only_second = true;
	assert_int_equal(make(&made), 0);
	fixture_follow_readme(&fixture, made.path, "^NOT VALID - ");
	fixture_readme_said(&fixture, "^WRONG  round .* all timestamps are revoked");
	fixture.only_second = false;
	forget_lists();
	add_list(&middle, &holder, CRL_REASON_SUPERSEDED, fixture.base_us + 2 * US_PER_DAY);
	hold_lists();
	assert_int_equal(make(&made), 0);
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, .* NOTE, 0 WRONG$");
	fixture_readme_said(&fixture, "^NOTE   rounds: for 6 of 6 timestamps ");
	forget_lists();
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

TEST_CASE(lines)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{"{\"der\":\"AAEC\",\"kind\":\"certificate\",\"sha256\":\"" ZEROS "\"}", true},
		{"{\"der\":\"AAEC\",\"kind\":\"crl\",\"sha256\":\"" ZEROS "\"}", true},
		{"{\"der\":\"AAEC\",\"kind\":\"ocsp\",\"sha256\":\"" ZEROS "\"}", true},
		{"{\"der\":\"AAEC\",\"kind\":\"key\",\"sha256\":\"" ZEROS "\"}", false},
		{"{\"der\":\"AA!C\",\"kind\":\"crl\",\"sha256\":\"" ZEROS "\"}", false},
		{"{\"der\":\"AAEC\",\"kind\":\"crl\",\"sha256\":\"00\"}", false},
		{"{\"der\":\"AAEC\",\"kind\":\"crl\"}", false},
		{"{\"der\":null,\"kind\":\"crl\",\"sha256\":\"" ZEROS "\"}", false},
	};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct archive_object object;
		struct sha256 sha256;
		struct slice text = slice_of(cases[i].text);
		int result = archive_read_object(&arena, text, &object, &sha256, NULL);
		assert_int_equal(result, cases[i].good ? OK : ERR_INVALID_EVIDENCE);
		if (!cases[i].good)
			continue;
		BUF_AUTO struct buf again = {.limit = 4096};
		archive_object_line(&object, &sha256, &again);
		assert_true(slice_equal(buf_slice(&again), text));
	}
}

TEST_MAIN(set_up, tear_down)
