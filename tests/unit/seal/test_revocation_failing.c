/* Revocation data is verified and requested with each call failing in turn. A fault is reported as
 * a fault: it makes no certificate revoked, good or unknown, and no data invalid. */
#include "support.h"

#include "failing.h"
#include "pki.h"
#include "seal/revocation_data.h"
#include "stride.h"

#define HOUR_US (3600 * US_PER_SECOND)

static struct pki_identity root, leaf, responder;
static struct buf crl, ocsp, path;
static int64_t noon_us;

static int make(void **state)
{
	static const struct pki_extension responding[] = {
		{"extendedKeyUsage", "OCSPSigning"}, {"noCheck", "ignored"}, {NULL, NULL}};
	static const struct pki_extension point[] = {
		{"issuingDistributionPoint", "critical,fullname:URI:http://crl.example/1.crl"},
		{NULL, NULL}};

	noon_us = clock_now_us() / US_PER_SECOND * US_PER_SECOND;
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	leaf = pki_issue(
		&(struct pki_certificate){.name = "Leaf", .issuer = &root, .extensions = pki_leaf});
	responder = pki_issue(
		&(struct pki_certificate){.name = "Responder", .issuer = &root, .extensions = responding});
	buf_init(&crl, REVOCATION_CRL_MAX);
	buf_init(&ocsp, REVOCATION_OCSP_MAX);
	buf_init(&path, 65536);
	pki_path(&path, (const struct pki_identity *[]){&leaf, &root}, 2);
	pki_crl(&crl, &(struct pki_crl){.issuer = &root,
	                                .revoked = leaf.certificate,
	                                .revoked_us = noon_us,
	                                .reason = CRL_REASON_SUPERSEDED,
	                                .issued_us = noon_us,
	                                .next_us = noon_us + HOUR_US,
	                                .extensions = point});
	pki_ocsp(&ocsp, &(struct pki_ocsp){.issuer = &root,
	                                   .responder = &responder,
	                                   .certificate = leaf.certificate,
	                                   .status = V_OCSP_CERTSTATUS_GOOD,
	                                   .issued_us = noon_us,
	                                   .next_us = noon_us + HOUR_US});
	return 0;
}

static int forget(void **state)
{
	pki_free(&root);
	pki_free(&leaf);
	pki_free(&responder);
	buf_free(&crl);
	buf_free(&ocsp);
	buf_free(&path);
	return 0;
}

static int judge(const struct buf *der, enum validation_kind kind, enum revocation_outcome expected)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = noon_us};
	size_t count = 0;
	int result = validation_set_add(&set, kind, buf_slice(der), NULL);

	if (!result)
		result = revocation_judge(buf_slice(&path), &set, &at, verdicts, &count, NULL);
	if (!result) {
		if (verdicts[0].outcome != expected)
			fail_msg("%s after %s: %s", revocation_outcome_text(verdicts[0].outcome),
			         failing_disarm(), verdicts[0].cause);
		assert_int_equal(verdicts[1].outcome, REVOCATION_NOT_NEEDED);
	}
	return result;
}

static int judge_list(void)
{
	return judge(&crl, VALIDATION_CRL, REVOCATION_REVOKED);
}

static int judge_answer(void)
{
	return judge(&ocsp, VALIDATION_OCSP, REVOCATION_GOOD_AFTER);
}

static int request(void)
{
	BUF_AUTO struct buf out = {.limit = 4096};

	return revocation_ocsp_request(leaf.certificate, root.certificate, &out, NULL);
}

static void in_turn(int (*run)(void), int calls_min)
{
	int at = 1;

	for (;; STRIDE(at)) {
		failing_arm(FAILING_MEMORY | FAILING_OPENSSL, at);
		int result = run();
		const char *failed = failing_disarm();
		if (!failed) {
			assert_int_equal(result, 0);
			break;
		}
		if (result && result != ERR_NO_MEMORY)
			fail_msg("call %d, %s: %d", at, failed, result);
	}
	assert_true(at > calls_min);
}

TEST_CASE(test_list)
{
	in_turn(judge_list, 8);
}

TEST_CASE(test_answer)
{
	in_turn(judge_answer, 10);
}

TEST_CASE(test_request)
{
	in_turn(request, 3);
}

TEST_MAIN(make, forget)
