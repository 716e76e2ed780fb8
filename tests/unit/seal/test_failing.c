/* Signatures, timestamps and keys are made and verified with each call failing in turn. A fault is
 * reported as a fault, never as invalid evidence, and never ignored. */
#include "support.h"

#include "base/clock.h"
#include "failing.h"
#include "seal/certificate.h"
#include "seal/cms.h"
#include "seal/development.h"
#include "seal/evidence_record.h"
#include "seal/timestamp.h"
#include "stride.h"

#define ALL (FAILING_MEMORY | FAILING_FILES | FAILING_OPENSSL)
#define POLICY "1.2.3.4"

static struct signer *signer;
static struct sha256 digest;
static struct buf cms, request, response;

static int give_timestamp(void *context, const struct sha256 *imprint, struct buf *out,
                          struct error *error)
{
	struct timestamp_facts facts;
	BUF_AUTO struct buf asked = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf answer = {.limit = TIMESTAMP_RESPONSE_MAX};

	int result = timestamp_request(imprint, NULL, &asked, error);
	if (!result)
		result = signer_timestamp(context, buf_slice(&asked), &answer, error);
	return result ? result
	              : timestamp_verify_response(buf_slice(&asked), buf_slice(&answer),
	                                          signer_timestamp_roots(context), NULL, out, &facts,
	                                          error);
}

static int create(struct signer *by, struct buf *out, struct error *error)
{
	struct cms_signer one = {by, SIGNER_REPORT};
	struct cms_signing signing = {.certificates_pem = signer_certificates(by),
	                              .sign = cms_sign_with_signer,
	                              .sign_context = &one,
	                              .timestamp = give_timestamp,
	                              .timestamp_context = by};

	buf_init(out, CMS_SIZE_MAX);
	return cms_create(&digest, clock_now_us(), &signing, out, error);
}

static int verify(struct slice signature, struct signer *by, struct error *error)
{
	struct cms_facts facts;

	int result = cms_verify(
		signature, &digest,
		&(struct trust_roots){.signers = signer_trust(by), .timestamps = signer_trust(by)}, &facts,
		error);
	if (!result)
		assert_true(facts.trusted && facts.has_timestamp && facts.signer.subject[0]);
	return result;
}

static int make_all(void **state)
{
	scratch_begin(state);
	signer = development_signer();
	digest = sha256_of("content", 7);
	buf_init(&request, TIMESTAMP_REQUEST_MAX);
	buf_init(&response, TIMESTAMP_RESPONSE_MAX);
	return create(signer, &cms, NULL) || timestamp_request(&digest, NULL, &request, NULL) ||
	       signer_timestamp(signer, buf_slice(&request), &response, NULL);
}

static int drop_all(void **state)
{
	signer_stop(signer);
	buf_free(&cms);
	buf_free(&request);
	buf_free(&response);
	return scratch_end(state);
}

static bool is_fault(int result)
{
	return result == ERR_NO_MEMORY || result == ERR_IO || result == ERR_INTERNAL;
}

/* Makes every call of `run` fail in turn: it returns a fault or succeeds nevertheless. */
static void in_turn(int (*run)(struct error *error), int calls_min)
{
	int at = 1, wrong = 0;

	for (;; STRIDE(at)) {
		struct error error = {0};
		failing_arm(ALL, at);
		int result = run(&error);
		const char *failed = failing_disarm();
		if (!failed) {
			if (result)
				fail_msg("%d: %s", result, error.cause);
			break;
		}
		if (result && !is_fault(result))
			print_error("call %d, %s: %d %s\n", at, failed, result, error.cause);
		wrong += result && !is_fault(result);
	}
	assert_true(at > calls_min);
	assert_int_equal(wrong, 0);
}

static int run_create(struct error *error)
{
	BUF_AUTO struct buf out;

	return create(signer, &out, error);
}

static int run_verify(struct error *error)
{
	return verify(buf_slice(&cms), signer, error);
}

static int run_request(struct error *error)
{
	BUF_AUTO struct buf out = {.limit = TIMESTAMP_REQUEST_MAX};

	return timestamp_request(&digest, POLICY, &out, error);
}

static int run_response(struct error *error)
{
	struct timestamp_facts facts;
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};

	return timestamp_verify_response(buf_slice(&request), buf_slice(&response),
	                                 signer_timestamp_roots(signer), NULL, &token, &facts, error);
}

static int run_certificates(struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	BUF_AUTO struct buf out = {.limit = (size_t)1 << 20};

	int result = certificates_read(signer_trust(signer), &certificates, error);
	if (!result) {
		assert_int_equal(sk_X509_num(certificates), 2); /* none was omitted */
		result = certificates_write(certificates, &out);
	}
	return result;
}

TEST_CASE(test_making)
{
	in_turn(run_create, 40);
	in_turn(run_request, 10);
}

TEST_CASE(test_verifying)
{
	in_turn(run_verify, 40);
	in_turn(run_response, 20);
	in_turn(run_certificates, 5);
}

/* Makes a record over `digest`, renews and verifies it, and stores the token of the renewal. */
static struct buf record_der, renewal_token;

static int make_record(struct evidence_record **ret_record, struct error *error)
{
	struct tree_proof proof = {.leaf = digest};
	struct slice token;

	int result = timestamp_response_token(buf_slice(&response), &token, error);
	return result ? result : evidence_record_create(&proof, token, ret_record, error);
}

static int give_renewal(void *context, const struct digest *imprint, struct buf *token,
                        struct error *error)
{
	(void)context, (void)imprint, (void)error;
	buf_add_slice(token, buf_slice(&renewal_token));
	return buf_check(token);
}

static void prepare_record(void)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	struct digest leaf;
	struct sha256 imprint;

	assert_int_equal(make_record(&record, NULL), 0);
	assert_int_equal(evidence_record_next_leaf(record, NULL, &leaf), 0);
	memcpy(imprint.bytes, leaf.bytes, SHA256_SIZE);
	buf_init(&renewal_token, TIMESTAMP_RESPONSE_MAX);
	assert_int_equal(give_timestamp(signer, &imprint, &renewal_token, NULL), 0);
	assert_int_equal(evidence_records_renew(&(struct evidence_renewal){record, NULL}, 1,
	                                        give_renewal, NULL, NULL),
	                 0);
	buf_init(&record_der, EVIDENCE_RECORD_MAX);
	assert_int_equal(evidence_record_write(record, &record_der), 0);
}

static int run_record(struct error *error)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};

	int result = make_record(&record, error);
	if (!result)
		result = evidence_records_renew(&(struct evidence_renewal){record, NULL}, 1, give_renewal,
		                                NULL, error);
	if (!result)
		result = evidence_record_write(record, &der);
	if (!result)
		assert_true(slice_equal(buf_slice(&der), buf_slice(&record_der)));
	return result;
}

static int run_verify_record(struct error *error)
{
	struct digest data[DIGEST_ALGORITHM_COUNT] = {digest_of_sha256(&digest)};
	struct evidence_query question = {.roots_pem = signer_timestamp_roots(signer),
	                                  .at_us = clock_now_us()};
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;

	int result = evidence_record_parse(buf_slice(&record_der), &record, error);
	return result ? result : evidence_record_verify(record, data, &question, &arena, &facts, error);
}

TEST_CASE(test_records)
{
	prepare_record();
	in_turn(run_record, 25);
	in_turn(run_verify_record, 60);
	record_der.data[record_der.size / 2] ^= 1;
	for (int at = 1; at < 200; at++) {
		failing_arm(ALL, at);
		int result = run_verify_record(NULL);
		failing_disarm();
		if (result != ERR_INVALID_EVIDENCE && !is_fault(result))
			fail_msg("call %d: %d", at, result);
	}
	buf_free(&record_der);
	buf_free(&renewal_token);
}

/* Whatever fails, altered evidence is never valid. */
TEST_CASE(test_verifying_what_was_altered)
{
	struct sha256 right = digest;

	for (int at = 1; at < 100; at++) {
		digest = sha256_of("other", 5);
		failing_arm(ALL, at);
		int result = run_verify(NULL);
		failing_disarm();
		digest = right;
		if (result != ERR_INVALID_EVIDENCE && !is_fault(result))
			fail_msg("call %d: %d", at, result);
	}
}

/* The files of a failed start do not prevent the next one. */
TEST_CASE(test_development_keys)
{
	char directory[256];
	bool failed = true;

	for (int at = 1; failed; at++) {
		struct error error = {0};
		assert_int_equal(scratch_run("rm -rf keys && mkdir -m 700 keys"), 0);
		snprintf(directory, sizeof directory, "%s", scratch_path("keys"));
		failing_arm(ALL, at);
		int result = development_create(directory, &error);
		failed = failing_disarm() != NULL;
		if (result && !is_fault(result))
			fail_msg("call %d: %d %s", at, result, error.cause);
		assert_int_equal(development_create(directory, &error), 0);
		assert_true(failed || at > 60);
	}
}

/* The failing calls include those of the new process. It does not start, signs correctly or reports
 * that it does not sign. */
TEST_CASE(test_signing_process)
{
	char directory[256];
	bool failed = true;

	snprintf(directory, sizeof directory, "%s", scratch_path("other"));
	for (int at = 1; failed; at++) {
		assert_true(at < 1000); /* a single failure must not persist */
		struct error error = {0};
		struct signer *other = NULL;
		struct signer_options options = {.directory = directory, .development = true};
		BUF_AUTO struct buf out = {0};
		failing_arm(ALL, at);
		int result = signer_start(&options, &other, &error);
		failed = failing_disarm() != NULL || result;
		if (result)
			continue;
		result = create(other, &out, &error);
		if (!result)
			assert_int_equal(verify(buf_slice(&out), other, NULL), 0);
		failed |= result != 0;
		signer_stop(other);
		assert_true(failed || at > 40);
	}
}

TEST_MAIN(make_all, drop_all)
