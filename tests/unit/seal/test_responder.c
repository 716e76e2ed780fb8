#include "support.h"

#include <openssl/pem.h>
#include <unistd.h>

#include "base/clock.h"
#include "pki.h"
#include "seal/cms.h"
#include "seal/responder.h"
#include "seal/revocation_client.h"
#include "seal/revocation_data.h"

static const char *const kinds[] = {"report", "timestamp"};

static X509 *certificate_of(const char *name)
{
	FILE *file = fopen(scratch_path(name), "r");
	assert_non_null(file);
	X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
	assert_non_null(certificate);
	fclose(file);
	return certificate;
}

static int ask(struct signer *signer, X509 *certificate, X509 *issuer, struct buf *answer)
{
	BUF_AUTO struct buf request = {.limit = RESPONDER_REQUEST_MAX};

	buf_clear(answer);
	assert_int_equal(revocation_ocsp_request(certificate, issuer, &request, NULL), 0);
	return signer_ocsp(signer, buf_slice(&request), answer, NULL);
}

/* Also by the data that is public. */
TEST_CASE(test_answers)
{
	struct signer *signer = development_signer();
	BUF_AUTO struct buf answer = {.limit = REVOCATION_OCSP_MAX};

	for (int i = 0; i < 2; i++) {
		char name[64];
		struct revocation_facts facts;
		X509 *responder = NULL;
		snprintf(name, sizeof name, "signer/%s.pem", kinds[i]);
		X509 *certificate = certificate_of(name);
		snprintf(name, sizeof name, "signer/%s-root.pem", kinds[i]);
		X509 *root = certificate_of(name);
		int64_t before_us = clock_now_us() / US_PER_SECOND * US_PER_SECOND;
		assert_int_equal(ask(signer, certificate, root, &answer), 0);
		assert_int_equal(
			revocation_check_ocsp(buf_slice(&answer), certificate, root, &facts, &responder, NULL),
			0);
		assert_null(responder);
		assert_int_equal(facts.status, REVOCATION_STATUS_GOOD);
		assert_true(facts.issued_us >= before_us);
		assert_int_equal(facts.next_us - facts.issued_us, RESPONDER_CURRENT_S * US_PER_SECOND);
		scratch_write("answer", buf_slice(&answer));
		assert_int_equal(
			scratch_run("openssl ocsp -respin answer -issuer signer/%s-root.pem -cert "
		                "signer/%s.pem -CAfile signer/%s-root.pem -no_nonce 2>&1 | tee told && "
		                "grep -q 'verify OK' told && grep -q 'pem: good' told",
		                kinds[i], kinds[i], kinds[i]),
			0);
		X509_free(certificate);
		X509_free(root);
	}
	assert_int_equal(scratch_run("test $(grep -c '\"purpose\":\"ocsp\"' signer/signer.log) = 2"),
	                 0);
	signer_stop(signer);
}

/* Only the one certificate of each root is good; the responder refuses certificates of other
 * issuers. */
TEST_CASE(test_refuses)
{
	struct signer *signer = development_signer();
	BUF_AUTO struct buf answer = {.limit = REVOCATION_OCSP_MAX};
	struct revocation_facts facts;
	X509 *root = certificate_of("signer/report-root.pem");
	X509 *other_root = certificate_of("signer/timestamp-root.pem");
	X509 *certificate = certificate_of("signer/report.pem");
	X509 *stranger = X509_dup(certificate);

	ASN1_INTEGER_set(X509_get_serialNumber(stranger), 7);
	assert_int_equal(ask(signer, stranger, root, &answer), 0);
	assert_int_equal(revocation_check_ocsp(buf_slice(&answer), stranger, root, &facts, NULL, NULL),
	                 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_NONE);
	assert_int_equal(ask(signer, certificate, other_root, &answer), ERR_REFUSED);
	assert_int_equal(ask(signer, certificate, certificate, &answer), ERR_REFUSED);
	assert_int_equal(signer_ocsp(signer, slice_of("nothing"), &answer, NULL), ERR_REFUSED);
	assert_int_equal(ask(signer, certificate, root, &answer), 0);
	X509_free(root);
	X509_free(other_root);
	X509_free(certificate);
	X509_free(stranger);
	signer_stop(signer);
}

/* The client finds it through the certificates, without a network. */
TEST_CASE(test_client)
{
	struct signer *signer = development_signer();
	struct revocation_client *client =
		revocation_client_create(&(struct revocation_client_options){.signer = signer});
	struct revocation_client *elsewhere =
		revocation_client_create(&(struct revocation_client_options){.timeout_ms = 20000});
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = clock_now_us() - US_PER_SECOND};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	VALIDATION_SET_AUTO struct validation_set empty = {0};
	BUF_AUTO struct buf path;
	size_t count = 0;

	assert_int_equal(
		revocation_fetch(client, signer_certificates(signer), &at, &set, verdicts, &count, NULL),
		0);
	assert_int_equal(count, 2);
	assert_int_equal(verdicts[0].outcome, REVOCATION_GOOD_AFTER);
	assert_null(revocation_find_insufficient(verdicts, count));
	assert_int_equal(scratch_run("cat signer/timestamp.pem signer/timestamp-root.pem >path.pem"),
	                 0);
	buf_init(&path, 65536);
	scratch_read("path.pem", &path);
	assert_int_equal(revocation_fetch(client, buf_slice(&path), &at, &set, verdicts, &count, NULL),
	                 0);
	assert_null(revocation_find_insufficient(verdicts, count));
	/* Two certificates with an answer for each. */
	assert_int_equal(set.count, 6);
	assert_int_equal(
		revocation_fetch(elsewhere, buf_slice(&path), &at, &empty, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[0].outcome, REVOCATION_MISSING);
	assert_non_null(strstr(verdicts[0].cause, RESPONDER_URL));
	revocation_client_free(client);
	revocation_client_free(elsewhere);
	signer_stop(signer);
}

static int give_timestamp(void *context, const struct sha256 *imprint, struct buf *out,
                          struct error *error)
{
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf response = {.limit = TIMESTAMP_RESPONSE_MAX};
	struct slice token;

	int result = timestamp_request(imprint, NULL, &request, error);
	if (!result)
		result = signer_timestamp(context, buf_slice(&request), &response, error);
	if (!result)
		result = timestamp_response_token(buf_slice(&response), &token, error);
	if (!result)
		buf_add_slice(out, token);
	return result;
}

static void sign(struct signer *signer, const struct sha256 *digest, struct buf *out)
{
	struct cms_signer one = {signer, SIGNER_ARCHIVE};
	struct cms_signing signing = {.certificates_pem = signer_certificates(signer),
	                              .sign = cms_sign_with_signer,
	                              .sign_context = &one,
	                              .timestamp = give_timestamp,
	                              .timestamp_context = signer};

	buf_init(out, CMS_SIZE_MAX);
	assert_int_equal(cms_create(digest, clock_now_us(), &signing, out, NULL), 0);
}

static bool is_trusted(struct signer *signer, const struct buf *cms, const struct sha256 *digest)
{
	struct trust_roots roots = {.signers = signer_trust(signer),
	                            .timestamps = signer_timestamp_roots(signer)};
	struct cms_facts facts;

	return cms_verify(buf_slice(cms), digest, &roots, &facts, NULL) == 0 && facts.trusted &&
	       facts.timestamp.trusted;
}

/* A directory from before there were responders, and one that was created incompletely: earlier
 * signatures remain trusted, and so are new ones, which have a responder. */
TEST_CASE(test_former_roots)
{
	static const char *const states[] = {
		"rm signer/*-responder.pem",
		"rm signer/*-responder.pem signer/report.pem",
		"rm signer/timestamp-responder.pem signer/timestamp.pem",
	};
	struct sha256 digest = sha256_of("x", 1);
	BUF_AUTO struct buf answer = {.limit = REVOCATION_OCSP_MAX};
	struct buf signatures[4];

	assert_int_equal(scratch_run("rm -rf signer"), 0);
	struct signer *signer = development_signer();
	sign(signer, &digest, &signatures[0]);
	assert_true(is_trusted(signer, &signatures[0], &digest));
	for (size_t i = 0; i < 3; i++) {
		signer_stop(signer);
		assert_int_equal(scratch_run("%s", states[i]), 0);
		signer = development_signer();
		sign(signer, &digest, &signatures[i + 1]);
		assert_true(is_trusted(signer, &signatures[0], &digest));
		assert_true(is_trusted(signer, &signatures[i + 1], &digest));
		X509 *certificate = certificate_of("signer/timestamp.pem");
		X509 *root = certificate_of("signer/timestamp-root.pem");
		assert_int_equal(ask(signer, certificate, root, &answer), 0);
		X509_free(certificate);
		X509_free(root);
	}
	for (size_t i = 0; i < 4; i++)
		buf_free(&signatures[i]);
	signer_stop(signer);
}

TEST_MAIN(scratch_begin, scratch_end)
