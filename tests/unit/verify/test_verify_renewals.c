/* Archives with renewals of their timestamps, whose authority's certificate has expired since. */
#include "testing.h"
#include "pki.h"
#include "archive/archive_lines.h"
#include "test_archive_fixture.h"
#include "test_forger.h"

#define HOUR_US (3600 * US_PER_SECOND)

static struct fixture fixture;
static struct forger_holder root, mortal, lasting;
static struct forger_authority first; /* of the rounds, five days ago */
static struct buf root_pem;
static struct trust_roots roots;

/* The authority that renews each token. */
static struct forger_authority second;
static int generations;
static enum { NOTHING_WRONG, WRONG_PATH, STAMP_MISSING, STAMP_TOO_MANY } fault;
static struct tree_proof paths[16];
static struct buf tokens[16];
static size_t made_count;

static int set_up(void **state)
{
	static const struct forger_plan plans[] = {
		{.name = "Another root",
	     .from_days = -20,
	     .to_days = 30,
	     .extensions = {CA, CA_USAGE ",cRLSign"}},
		{.name = "A mortal authority",
	     .from_days = -10,
	     .to_days = -1,
	     .extensions = {LEAF, SIGNS, STAMPS}},
		{.name = "A lasting authority",
	     .from_days = -10,
	     .to_days = 30,
	     .extensions = {LEAF, SIGNS, STAMPS}},
	};
	fixture_open(&fixture);
	fixture.base_us -= 6 * US_PER_DAY;
	forger_issue(&plans[0], NULL, &root);
	forger_issue(&plans[1], &root, &mortal);
	forger_issue(&plans[2], &root, &lasting);
	roots = forger_trust(&root, fixture.roots.signers, &root_pem);
	fixture_write(fixture.trust, buf_slice(&root_pem));
	first = (struct forger_authority){
		.holder = &mortal, .offset_us = -5 * US_PER_DAY, .accuracy_seconds = 1};
	fixture.second_stamp = forger_stamp;
	fixture.second_context = &first;
	fixture.only_second = true;
	return 0;
}

static void forget_stamps(void)
{
	while (made_count > 0)
		buf_free(&tokens[--made_count]);
	fixture.stamp_count = 0;
}

static int tear_down(void **state)
{
	forget_stamps();
	forger_free(&lasting);
	forger_free(&mortal);
	forger_free(&root);
	buf_free(&root_pem);
	fixture_close(&fixture);
	return 0;
}

/* Makes an archive timestamp over a token and other data. */
static struct archive_stamp *cover(int64_t number, struct slice token,
                                   const struct forger_authority *authority,
                                   struct archive_renewal *ret_renewal)
{
	struct timestamp_facts facts;
	struct tree_proof *path = &paths[made_count];
	struct buf *out = &tokens[made_count++];
	*path = (struct tree_proof){.leaf = sha256_of(token.data, token.size), .count = 1};
	path->siblings[0] = sha256_of("another token", 13);
	struct sha256 imprint = tree_proof_root(path);
	buf_init(out, ARCHIVE_RENEWAL_TOKEN_MAX);
	assert_int_equal(forger_stamp((void *)authority, &imprint, out, NULL), 0);
	assert_int_equal(
		timestamp_verify_token(buf_slice(out), &imprint, slice_make(NULL, 0), &facts, NULL), 0);
	if (fault == WRONG_PATH)
		path->siblings[0].bytes[7] ^= 1;
	*ret_renewal = (struct archive_renewal){number, path};
	/* From the last number to the first. */
	size_t place = 0;
	while (place < fixture.stamp_count && fixture.stamps[place].stamp > number)
		place++;
	memmove(&fixture.stamps[place + 1], &fixture.stamps[place],
	        (fixture.stamp_count++ - place) * sizeof *fixture.stamps);
	fixture.stamps[place] = (struct archive_stamp){
		.stamp = number,
		.authority = "A third authority",
		.kind = AUTHORITY_NON_QUALIFIED,
		.gen_time_us = facts.gen_time_us,
		.token = buf_slice(out),
	};
	return &fixture.stamps[place];
}

static void renew(struct fixture *renewed, struct archive_token *token)
{
	static const struct forger_authority last = {
		.holder = &lasting, .offset_us = -36 * HOUR_US, .accuracy_seconds = 1};
	int64_t number = (int64_t)made_count + 1;
	struct archive_renewal later = {0};
	struct archive_stamp *stamp = cover(number, token->token, &second, &token->renewal);
	if (generations > 1) {
		struct slice covered = stamp->token;
		cover(100 + number, covered, &last, &later);
		for (size_t i = 0; i < renewed->stamp_count; i++)
			if (renewed->stamps[i].stamp == number)
				renewed->stamps[i].renewal = later;
	}
	if (fault == STAMP_MISSING)
		renewed->stamp_count = 0;
	if (fault == STAMP_TOO_MANY)
		token->renewal = (struct archive_renewal){0};
}

static int make(struct fixture_archive *made)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	fixture_forget(&fixture);
	forget_stamps();
	return fixture_make(&fixture, "renewals", &plan, made);
}

#define ENDED "had expired before the archive was signed"

/* Both verifiers reach that result; `ended`: it states that the certificates had expired. */
static void assert_found(const char *where, const char *what, bool ended, uint64_t renewals)
{
	struct fixture_archive made;
	struct verify_result result;
	assert_int_equal(make(&made), 0);
	const char *path = made.path;
	fixture_verify(&path, 1, &roots, &result);
	if (verify_exit_code(&result) != (what != NULL) ||
	    (what && !fixture_finds(&result, VERIFY_WRONG, where, what)) ||
	    (!what && (fixture_finds(&result, VERIFY_WARNING, "", ENDED) != ended ||
	               result.checked.renewals != renewals))) {
		verify_print(&result, false, stderr);
		fail_msg("not '%s'", what ? what : "valid");
	}
	verify_result_free(&result);
	assert_int_equal(fixture_agrees(&fixture, made.path, NULL, NULL), what == NULL);
	fault = NOTHING_WRONG;
}

static void stamp_before(int64_t hours, const struct forger_holder *holder)
{
	second = (struct forger_authority){
		.holder = holder, .offset_us = -hours * HOUR_US, .accuracy_seconds = 1};
}

TEST_CASE(unrenewed_it_is_told_that_nothing_proves_the_time)
{
	fixture.renew = NULL;
	assert_found(NULL, NULL, true, 0);
	fixture.renew = renew;
}

TEST_CASE(renewed_in_time_it_is_proven)
{
	stamp_before(48, &lasting);
	generations = 1;
	assert_found(NULL, NULL, false, 3);
}

TEST_CASE(over_two_generations_too)
{
	stamp_before(48, &mortal);
	generations = 1;
	assert_found(NULL, NULL, true, 3);
	generations = 2;
	assert_found(NULL, NULL, false, 6);
	generations = 1;
}

TEST_CASE(renewed_too_late_it_is_not_valid)
{
	stamp_before(2, &lasting);
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "expired", true, 3);
}

TEST_CASE(a_renewal_is_not_older)
{
	stamp_before(6 * 24, &lasting);
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "older", false, 3);
}

TEST_CASE(a_renewal_covers_what_it_is_said_to)
{
	stamp_before(48, &lasting);
	fault = WRONG_PATH;
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "does not lead", false, 3);
	fault = STAMP_MISSING;
	assert_found("rounds/rounds-000001.ndjson.gz line 1", "does not contain", false, 0);
}

/* Makes a list, issued before the certificate expired, that reports the loss of its key that many
 * hours ago. */
static void revoke_before(int64_t hours, struct buf *list, struct buf *der)
{
	const struct pki_identity issuer = {root.certificate, root.key};
	int64_t now_us = clock_now_us() / US_PER_SECOND * US_PER_SECOND;
	unsigned char *encoded = NULL;
	int size = i2d_X509(root.certificate, &encoded);
	struct pki_crl wanted = {
		.issuer = &issuer,
		.revoked = mortal.certificate,
		.revoked_us = now_us - hours * HOUR_US,
		.reason = CRL_REASON_KEY_COMPROMISE,
		.issued_us = now_us - 30 * HOUR_US,
		.next_us = now_us + 24 * HOUR_US,
	};
	buf_init(list, 65536);
	buf_init(der, 65536);
	pki_crl(list, &wanted);
	buf_add(der, encoded, (size_t)size);
	OPENSSL_free(encoded);
	struct archive_object objects[] = {{OBJECT_CRL, buf_slice(list)},
	                                   {OBJECT_CERTIFICATE, buf_slice(der)}};
	fixture.revocations[0] = sha256_of(list->data, list->size);
	fixture.certificates[0] = sha256_of(der->data, der->size);
	bool turned = memcmp(&fixture.revocations[0], &fixture.certificates[0], SHA256_SIZE) > 0;
	for (size_t i = 0; i < 2; i++)
		fixture.objects[i] = objects[i ^ turned];
	fixture.object_count = 2;
	fixture.certificate_count = fixture.revocation_count = 1;
}

TEST_CASE(what_was_revoked_after_its_renewal_stays_proven)
{
	static const int64_t hours[] = {36, 72};
	stamp_before(48, &lasting);
	for (size_t i = 0; i < 2; i++) {
		struct buf list, der;
		revoke_before(hours[i], &list, &der);
		if (i == 0)
			assert_found(NULL, NULL, false, 3);
		else
			assert_found("seals/seals-000001.ndjson.gz line 1", "were revoked", false, 3);
		buf_free(&list);
		buf_free(&der);
	}
	fixture.object_count = fixture.certificate_count = fixture.revocation_count = 0;
}

TEST_CASE(nothing_is_there_that_nobody_names)
{
	stamp_before(48, &lasting);
	fault = STAMP_TOO_MANY;
	assert_found("renewals", "no token refers to archive timestamp", true, 3);
}

TEST_CASE(the_writer_keeps_their_order)
{
	static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	stamp_before(48, &lasting);
	assert_int_equal(make(&made), 0);
	struct archive_stamp highest = fixture.stamps[0];
	fixture.stamps[0] = fixture.stamps[1];
	fixture.stamps[1] = highest;
	fixture.renew = NULL;
	assert_int_equal(fixture_make(&fixture, "again", &plan, &made), ERR_USAGE);
	fixture.stamps[0] = highest;
	assert_int_equal(fixture_make(&fixture, "again", &plan, &made), ERR_USAGE);
	fixture.renew = renew;
}

TEST_CASE(the_readme_follows_renewals)
{
	struct fixture_archive made;
	stamp_before(48, &mortal);
	generations = 2;
	assert_int_equal(make(&made), 0);
	generations = 1;
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, 3 NOTE, 0 WRONG$");
	fixture_readme_said(&fixture, "^OK     round .*: renewed on ");
	assert_int_equal(make(&made), 0);
	fixture_follow_readme(&fixture, made.path, "^VALID - .* 0 OPEN, 6 NOTE, 0 WRONG$");
	fixture_readme_said(&fixture, "^NOTE   round .* had expired when the archive was signed$");
	stamp_before(2, &lasting);
	assert_int_equal(make(&made), 0);
	fixture_follow_readme(&fixture, made.path, "^NOT VALID - ");
	fixture_readme_said(&fixture, "^WRONG  round .*: valid at the time of the renewal$");
	stamp_before(6 * 24, &lasting);
	fault = WRONG_PATH;
	assert_int_equal(make(&made), 0);
	fault = NOTHING_WRONG;
	fixture_follow_readme(&fixture, made.path, "^NOT VALID - ");
	fixture_readme_said(&fixture, "^WRONG  round .*: the renewal is older than the timestamp$");
	fixture_readme_said(&fixture, "^WRONG  round .*: renewed on ");
}

TEST_MAIN(set_up, tear_down)
