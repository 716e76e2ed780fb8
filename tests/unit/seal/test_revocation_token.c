#include "support.h"

#include "pki.h"
#include "seal/revocation_token.h"

#define HOUR_US (3600 * US_PER_SECOND)

static int64_t noon_us;
static struct pki_identity root, other, sub, leaf, below, checked;

static const struct pki_extension checked_extensions[] = {
	{"keyUsage", "critical,digitalSignature"},
	{"extendedKeyUsage", "OCSPSigning"},
	{"crlDistributionPoints", "URI:http://crl.example/2.crl"},
	{NULL, NULL},
};
static const struct pki_extension second_point[] = {
	{"issuingDistributionPoint", "critical,fullname:URI:http://crl.example/2.crl"},
	{NULL, NULL},
};

static int make(void **state)
{
	noon_us = clock_now_us() / US_PER_SECOND * US_PER_SECOND;
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	other = pki_issue(&(struct pki_certificate){.name = "Other", .extensions = pki_authority});
	sub = pki_issue(
		&(struct pki_certificate){.name = "Sub", .issuer = &root, .extensions = pki_authority});
	leaf = pki_issue(
		&(struct pki_certificate){.name = "Leaf", .issuer = &root, .extensions = pki_leaf});
	below = pki_issue(
		&(struct pki_certificate){.name = "Below", .issuer = &sub, .extensions = pki_leaf});
	checked = pki_issue(&(struct pki_certificate){
		.name = "Checked", .issuer = &root, .extensions = checked_extensions});
	return 0;
}

static int forget(void **state)
{
	struct pki_identity *const all[] = {&root, &other, &sub, &leaf, &below, &checked};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		pki_free(all[i]);
	return 0;
}

/* Issued an hour after noon, for a day. */
static struct pki_crl crl_of(const struct pki_identity *issuer)
{
	return (struct pki_crl){.issuer = issuer,
	                        .issued_us = noon_us + HOUR_US,
	                        .next_us = noon_us + 25 * HOUR_US,
	                        .reason = -1};
}

static struct pki_ocsp answer_of(const struct pki_identity *responder)
{
	return (struct pki_ocsp){.issuer = &root,
	                         .responder = responder,
	                         .certificate = leaf.certificate,
	                         .status = V_OCSP_CERTSTATUS_GOOD,
	                         .issued_us = noon_us + HOUR_US,
	                         .next_us = noon_us + 2 * HOUR_US};
}

static void add_crl(struct validation_set *set, const struct pki_crl *wanted)
{
	BUF_AUTO struct buf der = {.limit = 1 << 20};
	pki_crl(&der, wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_CRL, buf_slice(&der), NULL), 0);
}

static void add_answer(struct validation_set *set, const struct pki_ocsp *wanted)
{
	BUF_AUTO struct buf der = {.limit = 1 << 20};
	pki_ocsp(&der, wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_OCSP, buf_slice(&der), NULL), 0);
}

static void path_of(struct buf *out, const struct pki_identity *const *path, size_t count)
{
	buf_init(out, 1 << 20);
	for (size_t i = 0; i < count; i++) {
		unsigned char *der = NULL;
		int size = i2d_X509(path[i]->certificate, &der);
		assert_true(size > 0);
		buf_add(out, der, (size_t)size);
		OPENSSL_free(der);
	}
}

static int judge_along(const struct pki_identity *const *path, size_t count, int64_t time_us,
                       struct validation_set *set, struct token_verdict *ret_verdict)
{
	BUF_AUTO struct buf der;
	path_of(&der, path, count);
	return revocation_judge_token(buf_slice(&der), time_us, set, ret_verdict, NULL);
}

static enum token_state judge_leaf(int64_t time_us, struct validation_set *set,
                                   struct token_verdict *ret_verdict)
{
	const struct pki_identity *const path[] = {&leaf, &root};
	assert_int_equal(judge_along(path, 2, time_us, set, ret_verdict), 0);
	return ret_verdict->standing;
}

TEST_CASE(one_object_for_all_times_until_it_is_too_old)
{
	static const int64_t hours[] = {-500, 0, 1, 24};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct token_verdict verdict;
	struct pki_crl crl = crl_of(&root);
	add_crl(&set, &crl);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(judge_leaf(noon_us + hours[i] * HOUR_US, &set, &verdict), TOKEN_GOOD);
		assert_int_equal(verdict.same_until_us, noon_us + 25 * HOUR_US);
		assert_int_equal(set.count, 1);
	}
	assert_int_equal(judge_leaf(noon_us + 25 * HOUR_US, &set, &verdict), TOKEN_GOOD);
	assert_int_equal(judge_leaf(noon_us + 25 * HOUR_US + 1, &set, &verdict), TOKEN_UNDECIDED);
	assert_int_equal(verdict.outcome, REVOCATION_TOO_OLD);
	assert_int_equal(set.count, 0);
}

TEST_CASE(of_two_that_say_the_same_one_is_left)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct token_verdict verdict;
	struct pki_crl crl = crl_of(&root);
	struct pki_ocsp answer = answer_of(NULL);
	add_crl(&set, &crl);
	add_answer(&set, &answer);
	assert_int_equal(judge_leaf(noon_us, &set, &verdict), TOKEN_GOOD);
	assert_int_equal(set.count, 1);
	assert_int_equal(judge_leaf(noon_us, &set, &verdict), TOKEN_GOOD);
	assert_int_equal(set.count, 1);
}

TEST_CASE(whatever_is_of_others_goes)
{
	const struct pki_identity *const path[] = {&below, &sub, &root};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct token_verdict verdict;
	struct pki_crl crls[] = {crl_of(&root), crl_of(&sub), crl_of(&other)};
	for (size_t i = 0; i < 3; i++)
		add_crl(&set, &crls[i]);
	assert_int_equal(validation_set_add(&set, VALIDATION_CRL, slice_of("no list"), NULL), 0);
	assert_int_equal(judge_along(path, 3, noon_us, &set, &verdict), 0);
	assert_int_equal(verdict.standing, TOKEN_GOOD);
	assert_int_equal(set.count, 2);
}

TEST_CASE(half_a_path_is_left_open_and_keeps_what_there_is)
{
	const struct pki_identity *const path[] = {&below, &sub, &root};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct token_verdict verdict;
	struct pki_crl crl = crl_of(&sub);
	assert_int_equal(judge_leaf(noon_us, &set, &verdict), TOKEN_UNDECIDED);
	add_crl(&set, &crl);
	assert_int_equal(judge_along(path, 3, noon_us, &set, &verdict), 0);
	assert_int_equal(verdict.standing, TOKEN_UNDECIDED);
	assert_string_equal(verdict.certificate.name, "Sub");
	assert_int_equal(verdict.same_until_us, TIME_NONE);
	assert_int_equal(set.count, 1);
}

TEST_CASE(a_responder_that_may_be_revoked_needs_its_list)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct token_verdict verdict;
	struct pki_crl crl = crl_of(&root);
	struct pki_ocsp answer = answer_of(&checked);
	crl.extensions = second_point; /* which does not apply to the leaf */
	add_answer(&set, &answer);
	add_crl(&set, &crl);
	assert_int_equal(judge_leaf(noon_us, &set, &verdict), TOKEN_GOOD);
	assert_int_equal(set.count, 2);
	/* The answer itself is current for an hour; the list would be for longer. */
	assert_int_equal(verdict.same_until_us, noon_us + 2 * HOUR_US);
}

TEST_CASE(what_was_revoked)
{
	static const struct {
		int reason;
		int64_t hours; /* from noon to the revocation */
		enum token_state standing;
	} cases[] = {
		{CRL_REASON_KEY_COMPROMISE, -1, TOKEN_REVOKED},
		{CRL_REASON_KEY_COMPROMISE, 1, TOKEN_REVOKED},
		{REVOCATION_REASON_NONE, 1, TOKEN_REVOKED},
		{CRL_REASON_SUPERSEDED, -1, TOKEN_REVOKED},
		{CRL_REASON_SUPERSEDED, 1, TOKEN_GOOD},
		{CRL_REASON_CESSATION_OF_OPERATION, 1, TOKEN_GOOD},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		VALIDATION_SET_AUTO struct validation_set set = {0};
		struct token_verdict verdict;
		struct pki_crl crl = crl_of(&root);
		crl.revoked = leaf.certificate;
		crl.revoked_us = noon_us + cases[i].hours * HOUR_US;
		crl.reason = cases[i].reason;
		add_crl(&set, &crl);
		assert_int_equal(judge_leaf(noon_us, &set, &verdict), cases[i].standing);
		assert_int_equal(set.count, 1);
		if (cases[i].standing == TOKEN_REVOKED) {
			assert_int_equal(verdict.same_until_us, TIME_NONE);
			assert_int_equal(verdict.revoked_us, crl.revoked_us);
			continue;
		}
		/* The list is current for longer, but from then on its verdict changes. */
		assert_int_equal(verdict.same_until_us, crl.revoked_us - 1);
		assert_int_equal(judge_leaf(crl.revoked_us - 1, &set, &verdict), TOKEN_GOOD);
		assert_int_equal(set.count, 1);
		assert_int_equal(verdict.same_until_us, crl.revoked_us - 1);
		assert_int_equal(judge_leaf(crl.revoked_us, &set, &verdict), TOKEN_REVOKED);
	}
}

TEST_CASE(what_is_no_path_is_refused)
{
	const struct pki_identity *const path[] = {&leaf, &other};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct token_verdict verdict;
	assert_int_equal(judge_along(path, 2, noon_us, &set, &verdict), ERR_INVALID_EVIDENCE);
	assert_int_equal(judge_along(path, 0, noon_us, &set, &verdict), ERR_INVALID_EVIDENCE);
}

TEST_MAIN(make, forget)
