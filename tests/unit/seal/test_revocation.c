#include "support.h"

#include "pki.h"
#include "seal/revocation_data.h"

#define HOUR_US (3600 * US_PER_SECOND)

/* Everything happens around this time, whatever the present time is. */
static int64_t noon_us;
static struct pki_identity root, other, leaf, sub, below, responder, checked, nobody;

static const struct pki_extension responder_extensions[] = {
	{"keyUsage", "critical,digitalSignature"},
	{"extendedKeyUsage", "OCSPSigning"},
	{"noCheck", "ignored"},
	{NULL, NULL},
};
static const struct pki_extension checked_extensions[] = {
	{"keyUsage", "critical,digitalSignature"},
	{"extendedKeyUsage", "OCSPSigning"},
	{"crlDistributionPoints", "URI:http://crl.example/2.crl"},
	{NULL, NULL},
};

static int make(void **state)
{
	noon_us = clock_now_us() / US_PER_SECOND * US_PER_SECOND;
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	/* With the same name and another key. */
	other = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	sub = pki_issue(
		&(struct pki_certificate){.name = "Sub", .issuer = &root, .extensions = pki_authority});
	leaf = pki_issue(
		&(struct pki_certificate){.name = "Leaf", .issuer = &root, .extensions = pki_leaf});
	below = pki_issue(
		&(struct pki_certificate){.name = "Below", .issuer = &sub, .extensions = pki_leaf});
	responder = pki_issue(&(struct pki_certificate){
		.name = "Responder", .issuer = &root, .extensions = responder_extensions});
	checked = pki_issue(&(struct pki_certificate){
		.name = "Checked", .issuer = &root, .extensions = checked_extensions});
	nobody = pki_issue(
		&(struct pki_certificate){.name = "Nobody", .issuer = &root, .extensions = pki_leaf});
	return 0;
}

static int forget(void **state)
{
	struct pki_identity *const all[] = {&root,  &other,     &leaf,    &sub,
	                                    &below, &responder, &checked, &nobody};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		pki_free(all[i]);
	return 0;
}

static struct pki_crl usual_crl(void)
{
	return (struct pki_crl){
		.issuer = &root, .issued_us = noon_us, .next_us = noon_us + 24 * HOUR_US, .reason = -1};
}

static struct pki_ocsp usual_ocsp(void)
{
	return (struct pki_ocsp){.issuer = &root,
	                         .responder = &responder,
	                         .certificate = leaf.certificate,
	                         .status = V_OCSP_CERTSTATUS_GOOD,
	                         .issued_us = noon_us,
	                         .next_us = noon_us + HOUR_US};
}

static int check_crl(const struct pki_crl *wanted, struct revocation_facts *facts,
                     struct error *error)
{
	BUF_AUTO struct buf der = {.limit = REVOCATION_CRL_MAX * 2};

	pki_crl(&der, wanted);
	error_clear(error);
	return revocation_check_crl(buf_slice(&der), leaf.certificate, root.certificate, facts, error);
}

static int check_ocsp(const struct pki_ocsp *wanted, struct revocation_facts *facts,
                      struct error *error)
{
	BUF_AUTO struct buf der = {.limit = REVOCATION_OCSP_MAX * 2};
	X509 *asked = NULL;

	pki_ocsp(&der, wanted);
	error_clear(error);
	int result = revocation_check_ocsp(buf_slice(&der), leaf.certificate, root.certificate, facts,
	                                   &asked, error);
	assert_true((asked != NULL) == (!result && wanted->responder == &checked));
	X509_free(asked);
	return result;
}

TEST_CASE(test_crl)
{
	struct revocation_facts facts;
	struct pki_crl crl = usual_crl();

	assert_int_equal(check_crl(&crl, &facts, NULL), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_GOOD);
	assert_int_equal(facts.issued_us, noon_us);
	assert_int_equal(facts.next_us, noon_us + 24 * HOUR_US);
	assert_int_equal(facts.revoked_us, TIME_NONE);
	crl.revoked = nobody.certificate;
	crl.revoked_us = noon_us - HOUR_US;
	crl.others = 3;
	assert_int_equal(check_crl(&crl, &facts, NULL), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_GOOD);
	crl.revoked = leaf.certificate;
	assert_int_equal(check_crl(&crl, &facts, NULL), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_REVOKED);
	assert_int_equal(facts.revoked_us, noon_us - HOUR_US);
	assert_int_equal(facts.reason, REVOCATION_REASON_NONE);
	crl.reason = CRL_REASON_KEY_COMPROMISE;
	crl.invalid_us = noon_us - 5 * HOUR_US;
	assert_int_equal(check_crl(&crl, &facts, NULL), 0);
	assert_int_equal(facts.reason, CRL_REASON_KEY_COMPROMISE);
	assert_int_equal(facts.revoked_us, noon_us - 5 * HOUR_US);
	crl.invalid_us = noon_us;
	crl.digest = EVP_sha512();
	assert_int_equal(check_crl(&crl, &facts, NULL), 0);
	assert_int_equal(facts.revoked_us, noon_us - HOUR_US);
}

TEST_CASE(test_crl_scope)
{
	static const struct {
		struct pki_extension extension;
		const char *cause; /* NULL: accepted */
	} cases[] = {
		{{"issuingDistributionPoint", "critical,onlyuser:TRUE"}, NULL},
		{{"issuingDistributionPoint", "critical,fullname:URI:http://crl.example/1.crl"}, NULL},
		{{"crlNumber", "DER:020107"}, NULL},
		{{"issuingDistributionPoint", "critical,onlyCA:TRUE"}, "other kinds"},
		{{"issuingDistributionPoint", "critical,onlyAA:TRUE"}, "other kinds"},
		{{"issuingDistributionPoint", "critical,indirectCRL:TRUE"}, "is indirect"},
		{{"issuingDistributionPoint", "critical,onlysomereasons:keyCompromise"}, "some reasons"},
		{{"issuingDistributionPoint", "critical,fullname:URI:http://crl.example/2.crl"},
	     "another distribution point"},
		{{"issuingDistributionPoint", "critical,DER:0500"}, "distribution point"},
		{{"2.5.29.27", "critical,DER:020101"}, "delta"},
		{{"2.5.29.27", "DER:020101"}, "delta"},
		{{"1.2.3.4", "critical,DER:0500"}, "unknown critical"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct pki_extension extensions[] = {cases[i].extension, {NULL, NULL}};
		struct pki_crl crl = usual_crl();
		struct revocation_facts facts;
		struct error error = {0};
		crl.extensions = extensions;
		int result = check_crl(&crl, &facts, &error);
		if (!cases[i].cause)
			assert_int_equal(result, 0);
		else if (result != ERR_INVALID_EVIDENCE || !strstr(error.cause, cases[i].cause))
			fail_msg("case %zu: %d %s", i, result, error.cause);
	}
}

TEST_CASE(test_crl_refused)
{
	static const struct pki_extension certificate_issuer[] = {
		{"2.5.29.29", "critical,DER:3000"},
		{NULL, NULL},
	};
	struct revocation_facts facts;
	struct error error = {0};
	struct pki_crl crl = usual_crl();

	crl.issuer = &other;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "signature"));
	crl.issuer = &sub;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_NOT_FOUND);
	crl = usual_crl();
	crl.next_us = TIME_NONE;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
	crl = usual_crl();
	crl.digest = EVP_sha1();
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "too weak"));
	crl = usual_crl();
	crl.revoked = nobody.certificate;
	crl.revoked_us = noon_us;
	crl.entry_extensions = certificate_issuer;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "indirect"));
	crl = usual_crl();
	crl.issued_us = noon_us + 60LL * 366 * 24 * HOUR_US;
	crl.next_us = crl.issued_us + HOUR_US;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "not valid"));
	crl = usual_crl();
	crl.next_us = crl.issued_us - HOUR_US;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_crl_size)
{
	struct revocation_facts facts;
	struct error error = {0};
	struct pki_crl crl = usual_crl();

	crl.others = 250000;
	crl.revoked = leaf.certificate;
	crl.revoked_us = noon_us;
	assert_int_equal(check_crl(&crl, &facts, &error), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_REVOKED);
	crl.others = 450000;
	assert_int_equal(check_crl(&crl, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "too long"));
}

TEST_CASE(test_ocsp)
{
	struct revocation_facts facts;
	struct pki_ocsp ocsp = usual_ocsp();

	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_GOOD);
	assert_int_equal(facts.issued_us, noon_us);
	assert_int_equal(facts.next_us, noon_us + HOUR_US);
	ocsp.next_us = TIME_NONE;
	ocsp.by_key = true;
	ocsp.id_digest = EVP_sha256();
	ocsp.digest = EVP_sha384();
	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	assert_int_equal(facts.next_us, TIME_NONE);
	ocsp.status = V_OCSP_CERTSTATUS_UNKNOWN;
	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_NONE);
	ocsp.status = V_OCSP_CERTSTATUS_REVOKED;
	ocsp.revoked_us = noon_us - HOUR_US;
	ocsp.reason = CRL_REASON_SUPERSEDED;
	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	assert_int_equal(facts.status, REVOCATION_STATUS_REVOKED);
	assert_int_equal(facts.revoked_us, noon_us - HOUR_US);
	assert_int_equal(facts.reason, CRL_REASON_SUPERSEDED);
	/* Signed by the issuer itself, whose certificate is not included. */
	ocsp = usual_ocsp();
	ocsp.responder = NULL;
	ocsp.without_certificate = true;
	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	ocsp.responder = &checked;
	ocsp.without_certificate = false;
	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	/* A state that begins after the answer was made applies from then on. */
	ocsp = usual_ocsp();
	ocsp.produced_us = noon_us - HOUR_US;
	assert_int_equal(check_ocsp(&ocsp, &facts, NULL), 0);
	assert_int_equal(facts.issued_us, noon_us - HOUR_US);
}

TEST_CASE(test_ocsp_refused)
{
	struct revocation_facts facts;
	struct error error = {0};
	struct pki_ocsp ocsp = usual_ocsp();
	struct pki_identity late = pki_issue(&(struct pki_certificate){
		.name = "Late",
		.issuer = &root,
		.extensions = responder_extensions,
		.from_us = noon_us + HOUR_US,
	});
	/* Of the other root with the same name. */
	struct pki_identity foreign = pki_issue(&(struct pki_certificate){
		.name = "Foreign", .issuer = &other, .extensions = responder_extensions});
	const struct {
		struct pki_identity *signer;
		const char *cause;
	} cases[] = {
		{&nobody, "did not certify"}, {&sub, "did not certify"},     {&leaf, "did not certify"},
		{&late, "was not valid"},     {&foreign, "did not certify"}, {&other, "did not certify"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ocsp.responder = cases[i].signer;
		int result = check_ocsp(&ocsp, &facts, &error);
		if (result != ERR_INVALID_EVIDENCE || !strstr(error.cause, cases[i].cause))
			fail_msg("case %zu: %d %s", i, result, error.cause);
	}
	ocsp = usual_ocsp();
	ocsp.without_certificate = true;
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "an authorized responder"));
	ocsp = usual_ocsp();
	ocsp.certificate = nobody.certificate;
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_NOT_FOUND);
	ocsp = usual_ocsp();
	ocsp.issuer = &other;
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_NOT_FOUND);
	ocsp = usual_ocsp();
	ocsp.twice = true;
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "two answers about the certificate"));
	ocsp = usual_ocsp();
	ocsp.critical = true;
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "critical"));
	ocsp = usual_ocsp();
	ocsp.digest = EVP_sha1();
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "too weak"));
	ocsp = usual_ocsp();
	ocsp.next_us = ocsp.issued_us - HOUR_US;
	assert_int_equal(check_ocsp(&ocsp, &facts, &error), ERR_INVALID_EVIDENCE);
	pki_free(&late);
	pki_free(&foreign);
}

TEST_CASE(test_ocsp_status)
{
	struct revocation_facts facts;
	struct error error = {0};
	/* OCSPResponse { tryLater } */
	struct slice later = slice_make("\x30\x03\x0a\x01\x03", 5);

	assert_int_equal(
		revocation_check_ocsp(later, leaf.certificate, root.certificate, &facts, NULL, &error),
		ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "trylater"));
	char *block = calloc(1, REVOCATION_OCSP_MAX + 1);
	assert_int_equal(revocation_check_ocsp(slice_make(block, REVOCATION_OCSP_MAX + 1),
	                                       leaf.certificate, root.certificate, &facts, NULL,
	                                       &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "too long"));
	free(block);
}

/* Any alteration is refused or does not change the result: not all included certificates are
 * signed. */
static void attack(struct buf *der, enum validation_kind kind)
{
	struct revocation_facts facts = {0};
	struct revocation_facts first;
	bool ocsp = kind == VALIDATION_OCSP;
	size_t refused = 0;

	for (size_t bit = 0; bit <= der->size * 8; bit++) {
		if (bit > 0)
			der->data[(bit - 1) / 8] ^= (char)(1 << (bit - 1) % 8);
		int result = ocsp ? revocation_check_ocsp(buf_slice(der), leaf.certificate,
		                                          root.certificate, &facts, NULL, NULL)
		                  : revocation_check_crl(buf_slice(der), leaf.certificate, root.certificate,
		                                         &facts, NULL);
		if (bit == 0)
			first = facts;
		assert_true(bit > 0 || !result);
		if (!result)
			assert_memory_equal(&facts, &first, sizeof facts);
		refused += result != 0;
		if (bit > 0)
			der->data[(bit - 1) / 8] ^= (char)(1 << (bit - 1) % 8);
	}
	assert_true(refused > (ocsp ? der->size * 8 / 2 : der->size * 8 * 9 / 10));
	for (size_t size = 0; size < der->size; size++) {
		struct slice cut = slice_make(der->data, size);
		int result =
			ocsp
				? revocation_check_ocsp(cut, leaf.certificate, root.certificate, &facts, NULL, NULL)
				: revocation_check_crl(cut, leaf.certificate, root.certificate, &facts, NULL);
		assert_int_equal(result, ERR_INVALID_EVIDENCE);
	}
	buf_add_byte(der, 0);
	assert_int_equal(ocsp ? revocation_check_ocsp(buf_slice(der), leaf.certificate,
	                                              root.certificate, &facts, NULL, NULL)
	                      : revocation_check_crl(buf_slice(der), leaf.certificate, root.certificate,
	                                             &facts, NULL),
	                 ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_damage)
{
	BUF_AUTO struct buf der = {.limit = REVOCATION_OCSP_MAX};
	struct pki_ocsp ocsp = usual_ocsp();
	struct pki_crl crl = usual_crl();

	pki_ocsp(&der, &ocsp);
	attack(&der, VALIDATION_OCSP);
	crl.revoked = leaf.certificate;
	crl.revoked_us = noon_us;
	crl.reason = CRL_REASON_KEY_COMPROMISE;
	pki_crl(&der, &crl);
	attack(&der, VALIDATION_CRL);
}

TEST_CASE(test_request)
{
	BUF_AUTO struct buf der = {.limit = 4096};

	assert_int_equal(revocation_ocsp_request(leaf.certificate, root.certificate, &der, NULL), 0);
	const unsigned char *position = (const unsigned char *)der.data;
	OCSP_REQUEST *request = d2i_OCSP_REQUEST(NULL, &position, (long)der.size);
	assert_non_null(request);
	assert_int_equal(OCSP_request_onereq_count(request), 1);
	OCSP_CERTID *id = OCSP_onereq_get0_id(OCSP_request_onereq_get0(request, 0));
	OCSP_CERTID *expected = OCSP_cert_to_id(EVP_sha1(), leaf.certificate, root.certificate);
	assert_int_equal(OCSP_id_cmp(id, expected), 0);
	OCSP_CERTID_free(expected);
	OCSP_REQUEST_free(request);
}

TEST_CASE(test_sources)
{
	static const struct pki_extension many[] = {
		{"authorityInfoAccess",
	     "OCSP;URI:ldap://a.example/,OCSP;URI:https://b.example/o,caIssuers;URI:http://c.example/,"
	     "OCSP;URI:http://user@d.example/,OCSP;DNS:e.example"},
		{"crlDistributionPoints",
	     "URI:http://1.example/,URI:ldap://2.example/,URI:http://3.example/,URI:http://4.example/,"
	     "URI:http://5.example/,URI:http://6.example/"},
		{NULL, NULL},
	};
	static const struct pki_extension broken[] = {{"authorityInfoAccess", "DER:0500"},
	                                              {NULL, NULL}};
	static struct revocation_sources sources;
	struct pki_identity odd =
		pki_issue(&(struct pki_certificate){.name = "Odd", .issuer = &root, .extensions = many});
	struct pki_identity bad =
		pki_issue(&(struct pki_certificate){.name = "Bad", .issuer = &root, .extensions = broken});

	assert_int_equal(revocation_sources(leaf.certificate, &sources, NULL), 0);
	assert_int_equal(sources.ocsp.count, 1);
	assert_string_equal(sources.ocsp.urls[0], "http://ocsp.example/");
	assert_int_equal(sources.crl.count, 1);
	assert_string_equal(sources.crl.urls[0], "http://crl.example/1.crl");
	assert_int_equal(sources.others, 0);
	assert_int_equal(revocation_sources(root.certificate, &sources, NULL), 0);
	assert_int_equal(sources.ocsp.count + sources.crl.count + sources.others, 0);
	assert_int_equal(revocation_sources(odd.certificate, &sources, NULL), 0);
	assert_int_equal(sources.ocsp.count, 1);
	assert_string_equal(sources.ocsp.urls[0], "https://b.example/o");
	assert_int_equal(sources.crl.count, REVOCATION_URLS_MAX);
	assert_int_equal(sources.others, 3 + 2);
	assert_int_equal(revocation_sources(bad.certificate, &sources, NULL), ERR_INVALID_EVIDENCE);
	pki_free(&odd);
	pki_free(&bad);
}

/* ---- paths ---- */

static void add_crl(struct validation_set *set, const struct pki_crl *wanted)
{
	BUF_AUTO struct buf der = {.limit = REVOCATION_CRL_MAX};

	pki_crl(&der, wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_CRL, buf_slice(&der), NULL), 0);
}

static void add_ocsp(struct validation_set *set, const struct pki_ocsp *wanted)
{
	BUF_AUTO struct buf der = {.limit = REVOCATION_OCSP_MAX};

	pki_ocsp(&der, wanted);
	assert_int_equal(validation_set_add(set, VALIDATION_OCSP, buf_slice(&der), NULL), 0);
}

/* The verdict on the leaf below the root. */
static struct revocation_verdict judge(const struct validation_set *set, int64_t time_us,
                                       bool is_self_dated)
{
	BUF_AUTO struct buf pem = {.limit = 65536};
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = time_us, .is_self_dated = is_self_dated};
	struct error error = {0};
	size_t count = 0;

	pki_path(&pem, (const struct pki_identity *[]){&leaf, &root}, 2);
	if (revocation_judge(buf_slice(&pem), set, &at, verdicts, &count, &error) != 0)
		fail_msg("%s", error.cause);
	assert_int_equal(count, 2);
	assert_int_equal(verdicts[1].outcome, REVOCATION_NOT_NEEDED);
	assert_string_equal(verdicts[0].certificate.subject, "CN=Leaf");
	bool good = revocation_is_sufficient(verdicts[0].outcome);
	assert_ptr_equal(revocation_find_insufficient(verdicts, count), good ? NULL : &verdicts[0]);
	return verdicts[0];
}

TEST_CASE(test_times)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct pki_crl crl = usual_crl();
	struct pki_ocsp ocsp = usual_ocsp();
	int64_t then_us = noon_us + 12 * HOUR_US;

	struct revocation_verdict verdict = judge(&set, then_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_MISSING);
	add_ocsp(&set, &ocsp);
	verdict = judge(&set, then_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_TOO_OLD);
	add_crl(&set, &crl);
	verdict = judge(&set, then_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_CURRENT);
	assert_int_equal(verdict.next_us, noon_us + 24 * HOUR_US);
	assert_int_equal(judge(&set, noon_us, false).outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(judge(&set, noon_us + 25 * HOUR_US, false).outcome, REVOCATION_TOO_OLD);
	ocsp.issued_us = then_us;
	ocsp.next_us = TIME_NONE;
	add_ocsp(&set, &ocsp);
	verdict = judge(&set, then_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(verdict.issued_us, then_us);
	assert_non_null(validation_set_find(&set, &verdict.object));
	/* Without nextUpdate it is valid for no later time. */
	VALIDATION_SET_AUTO struct validation_set alone = {0};
	add_ocsp(&alone, &ocsp);
	assert_int_equal(judge(&alone, then_us + US_PER_SECOND, false).outcome, REVOCATION_TOO_OLD);
}

TEST_CASE(test_revoked)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct pki_crl crl = usual_crl();
	struct pki_ocsp ocsp = usual_ocsp();

	crl.revoked = leaf.certificate;
	crl.revoked_us = noon_us;
	crl.issued_us = noon_us + HOUR_US;
	crl.reason = CRL_REASON_KEY_COMPROMISE;
	add_crl(&set, &crl);
	/* Another answer states "good"; that has no effect. */
	ocsp.issued_us = noon_us + 2 * HOUR_US;
	ocsp.next_us = noon_us + 3 * HOUR_US;
	add_ocsp(&set, &ocsp);
	struct revocation_verdict verdict = judge(&set, noon_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_REVOKED);
	assert_int_equal(verdict.revoked_us, noon_us);
	assert_int_equal(verdict.reason, CRL_REASON_KEY_COMPROMISE);
	assert_int_equal(judge(&set, noon_us - US_PER_SECOND, false).outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(judge(&set, noon_us - US_PER_SECOND, true).outcome, REVOCATION_REVOKED);
}

/* RFC 3161 section 4: a token that the key itself dated remains valid if the key was discontinued,
 * and the verdict says so. */
TEST_CASE(test_self_dated)
{
	static const struct {
		int reason;
		enum revocation_outcome before;
	} cases[] = {
		{-1, REVOCATION_REVOKED},
		{CRL_REASON_UNSPECIFIED, REVOCATION_GOOD_AFTER},
		{CRL_REASON_KEY_COMPROMISE, REVOCATION_REVOKED},
		{CRL_REASON_CA_COMPROMISE, REVOCATION_REVOKED},
		{CRL_REASON_AFFILIATION_CHANGED, REVOCATION_GOOD_AFTER},
		{CRL_REASON_SUPERSEDED, REVOCATION_GOOD_AFTER},
		{CRL_REASON_CESSATION_OF_OPERATION, REVOCATION_GOOD_AFTER},
		{CRL_REASON_CERTIFICATE_HOLD, REVOCATION_REVOKED},
		{CRL_REASON_AA_COMPROMISE, REVOCATION_REVOKED},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		VALIDATION_SET_AUTO struct validation_set set = {0};
		struct pki_crl crl = usual_crl();
		crl.revoked = leaf.certificate;
		crl.revoked_us = noon_us;
		crl.reason = cases[i].reason;
		add_crl(&set, &crl);
		struct revocation_verdict verdict = judge(&set, noon_us - HOUR_US, true);
		assert_int_equal(verdict.outcome, cases[i].before);
		assert_int_equal(verdict.revoked_us, noon_us);
		assert_int_equal(judge(&set, noon_us, true).outcome, REVOCATION_REVOKED);
	}
}

TEST_CASE(test_responder_judged)
{
	static const struct pki_extension point[] = {
		{"issuingDistributionPoint", "critical,fullname:URI:http://crl.example/2.crl"},
		{NULL, NULL},
	};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	VALIDATION_SET_AUTO struct validation_set revoked = {0};
	struct pki_ocsp ocsp = usual_ocsp();
	struct pki_crl crl = usual_crl();

	ocsp.responder = &checked;
	add_ocsp(&set, &ocsp);
	add_ocsp(&revoked, &ocsp);
	struct revocation_verdict verdict = judge(&set, noon_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_MISSING);
	assert_non_null(strstr(verdict.cause, "responder itself"));
	/* Covers only the responder. */
	crl.extensions = point;
	add_crl(&set, &crl);
	verdict = judge(&set, noon_us, false);
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_AFTER);
	const struct validation_object *decided = validation_set_find(&set, &verdict.object);
	assert_int_equal(decided->kind, VALIDATION_OCSP);
	crl.revoked = checked.certificate;
	crl.revoked_us = noon_us - HOUR_US;
	add_crl(&revoked, &crl);
	assert_int_equal(judge(&revoked, noon_us, false).outcome, REVOCATION_MISSING);
}

TEST_CASE(test_after_the_end)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct pki_identity ended = pki_issue(&(struct pki_certificate){
		.name = "Ended", .issuer = &root, .extensions = pki_leaf, .to_us = noon_us - HOUR_US});
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = noon_us - 2 * HOUR_US};
	struct pki_crl crl = usual_crl();
	BUF_AUTO struct buf pem = {.limit = 65536};
	size_t count;

	pki_path(&pem, (const struct pki_identity *[]){&ended, &root}, 2);
	add_crl(&set, &crl);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[0].outcome, REVOCATION_MISSING);
	assert_non_null(strstr(verdicts[0].cause, "end"));
	crl.revoked = ended.certificate;
	crl.revoked_us = at.time_us;
	add_crl(&set, &crl);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[0].outcome, REVOCATION_REVOKED);
	pki_free(&ended);
}

TEST_CASE(test_path)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = noon_us};
	struct error error = {0};
	BUF_AUTO struct buf pem = {.limit = 65536};
	struct pki_crl crl = usual_crl();
	size_t count = 0;

	crl.issuer = &sub;
	add_crl(&set, &crl);
	pki_path(&pem, (const struct pki_identity *[]){&below, &sub, &root}, 3);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, NULL), 0);
	assert_int_equal(count, 3);
	assert_int_equal(verdicts[0].outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(verdicts[1].outcome, REVOCATION_UNPUBLISHED);
	assert_ptr_equal(revocation_find_insufficient(verdicts, count), &verdicts[1]);
	/* A list that does not name it may still cover it. */
	crl.issuer = &root;
	add_crl(&set, &crl);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[1].outcome, REVOCATION_GOOD_AFTER);
	assert_null(revocation_find_insufficient(verdicts, count));
	/* A revoked certificate is reported before one without data. */
	crl.revoked = sub.certificate;
	crl.revoked_us = noon_us - HOUR_US;
	crl.reason = CRL_REASON_CA_COMPROMISE;
	add_crl(&set, &crl);
	VALIDATION_SET_AUTO struct validation_set some = {0};
	add_crl(&some, &crl);
	assert_int_equal(revocation_judge(buf_slice(&pem), &some, &at, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[0].outcome, REVOCATION_MISSING);
	assert_ptr_equal(revocation_find_insufficient(verdicts, count), &verdicts[1]);
	/* Without its root, and with something that is not a path. */
	buf_clear(&pem);
	pki_path(&pem, (const struct pki_identity *[]){&below, &sub}, 2);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[1].outcome, REVOCATION_MISSING);
	assert_non_null(strstr(verdicts[1].cause, "not known"));
	buf_clear(&pem);
	pki_path(&pem, (const struct pki_identity *[]){&leaf, &other}, 2);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, &error),
	                 ERR_INVALID_EVIDENCE);
	struct pki_identity alone =
		pki_issue(&(struct pki_certificate){.name = "Alone", .extensions = pki_leaf});
	buf_clear(&pem);
	pki_path(&pem, (const struct pki_identity *[]){&alone}, 1);
	assert_int_equal(revocation_judge(buf_slice(&pem), &set, &at, verdicts, &count, &error), 0);
	assert_int_equal(verdicts[0].outcome, REVOCATION_NOT_NEEDED);
	pki_free(&alone);
	assert_int_equal(revocation_judge(slice_of("none"), &set, &at, verdicts, &count, &error),
	                 ERR_VALIDATION);
}

TEST_MAIN(make, forget)
