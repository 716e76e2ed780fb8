/* Complete archives with correct digests that were signed or timestamped without authorization. */
#include "testing.h"
#include "test_archive_fixture.h"
#include "test_forger.h"

static struct fixture fixture;
static struct forger_holder root;
static struct buf root_pem;
static struct trust_roots both; /* the development roots and the forger's */
static const struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};

static int set_up(void **state)
{
	static const struct forger_plan plan_of_root = {.name = "Every purpose's root",
	                                                .extensions = {CA, CA_USAGE}};
	fixture_open(&fixture);
	forger_issue(&plan_of_root, NULL, &root);
	both = forger_trust(&root, fixture.roots.signers, &root_pem);
	return 0;
}

static int tear_down(void **state)
{
	forger_free(&root);
	buf_free(&root_pem);
	fixture_close(&fixture);
	return 0;
}

static void make(const char *name, struct fixture_archive *made)
{
	fixture_forget(&fixture);
	fixture_make_good(&fixture, name, &plan, made);
}

/* Signs an archive with that key, with a valid timestamp. */
static void make_signed(const char *name, struct forger_holder *holder,
                        struct fixture_archive *made)
{
	struct cms_signer unused;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &unused);
	BUF_AUTO struct buf chain = {.limit = 65536};
	forger_chain(holder, &chain);
	signing.certificates_pem = buf_slice(&chain);
	signing.sign = forger_sign;
	signing.sign_context = holder;
	fixture.signing = &signing;
	make(name, made);
	fixture.signing = NULL;
}

static void expect(const struct fixture_archive *made, const struct trust_roots *roots,
                   const char *where, const char *what)
{
	struct verify_result result;
	const char *path = made->path;
	fixture_verify(&path, 1, roots, &result);
	bool as_expected = what ? verify_exit_code(&result) == 1 && !result.trusted &&
	                              fixture_finds(&result, VERIFY_WRONG, where, what)
	                        : verify_exit_code(&result) == 0;
	if (!as_expected) {
		verify_print(&result, false, stderr);
		fail_msg("expected %s", what ? what : "a valid archive");
	}
	verify_result_free(&result);
}

TEST_CASE(only_certificates_for_documents_sign)
{
	static const struct {
		struct forger_plan plan;
		const char *what; /* NULL: accepted */
	} cases[] = {
		{{.name = "No purpose", .extensions = {LEAF, SIGNS}}, NULL},
		{{.name = "Seal", .extensions = {LEAF, SIGNS, "extendedKeyUsage=1.3.6.1.5.5.7.3.36"}},
	     NULL},
		{{.name = "Mail",
	      .extensions = {LEAF, SIGNS, "extendedKeyUsage=emailProtection,clientAuth"}},
	     NULL},
		{{.name = "Any", .extensions = {LEAF, SIGNS, "extendedKeyUsage=anyExtendedKeyUsage"}},
	     NULL},
		{{.name = "Large", .rsa_bits = 2048, .extensions = {LEAF, SIGNS}}, NULL},
		{{.name = "www.example.com",
	      .rsa_bits = 1024,
	      .extensions = {LEAF, "extendedKeyUsage=serverAuth"}},
	     "not for signing documents"},
		{{.name = "www.example.com",
	      .extensions = {LEAF, "extendedKeyUsage=serverAuth,clientAuth"}},
	     "the certificate of CN=www.example.com is not for signing documents"},
		{{.name = "Both", .extensions = {LEAF, "extendedKeyUsage=serverAuth,emailProtection"}},
	     "not for signing documents"},
		{{.name = "Client", .extensions = {LEAF, "extendedKeyUsage=clientAuth"}},
	     "not for signing documents"},
		{{.name = "Code", .extensions = {LEAF, "extendedKeyUsage=codeSigning"}},
	     "not for signing documents"},
		{{.name = "Unknown", .extensions = {LEAF, "extendedKeyUsage=1.2.3.4"}},
	     "not for signing documents"},
		{{.name = "Authority", .extensions = {LEAF, SIGNS, STAMPS}}, "not for signing documents"},
		{{.name = "Encrypts", .extensions = {LEAF, "keyUsage=critical,keyEncipherment"}},
	     "may not sign"},
		{{.name = "Small", .rsa_bits = 1024, .extensions = {LEAF, SIGNS}}, "key too weak"},
		{{.name = "Expired", .from_days = -20, .to_days = -10, .extensions = {LEAF, SIGNS}},
	     "expired"},
		{{.name = "Early", .from_days = 10, .to_days = 20, .extensions = {LEAF, SIGNS}},
	     "not yet valid"},
		{{.name = "CA", .extensions = {CA, "keyUsage=critical,keyCertSign,digitalSignature"}},
	     "only sign certificates"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[32];
		struct forger_holder holder;
		struct fixture_archive made;
		snprintf(name, sizeof name, "signer-%zu", i);
		forger_issue(&cases[i].plan, &root, &holder);
		make_signed(name, &holder, &made);
		expect(&made, &both, "META-INF/signature001.p7s", cases[i].what);
		forger_free(&holder);
	}
}

/* The requirements on issuers and their limits. */
TEST_CASE(issuers_are_held_to_their_limits)
{
	static const struct {
		struct forger_plan issuer, leaf;
		const char *what;
	} cases[] = {
		{{.name = "Sub", .extensions = {CA, CA_USAGE}}, {.name = "A", .extensions = {LEAF}}, NULL},
		{{.name = "Sub", .extensions = {CA, CA_USAGE, "extendedKeyUsage=serverAuth"}},
	     {.name = "B", .extensions = {LEAF}},
	     "may not issue certificates for this purpose"},
		{{.name = "Sub", .rsa_bits = 1024, .extensions = {CA, CA_USAGE}},
	     {.name = "C", .extensions = {LEAF}},
	     "CA certificate key too weak"},
		{{.name = "Sub", .extensions = {CA_USAGE}},
	     {.name = "D", .extensions = {LEAF}},
	     "invalid CA certificate"},
		{{.name = "Sub", .extensions = {LEAF, SIGNS}},
	     {.name = "E", .extensions = {LEAF}},
	     "certificate path"},
		{{.name = "Sub",
	      .extensions = {CA, CA_USAGE, "nameConstraints=critical,permitted;email:example.org"}},
	     {.name = "F", .extensions = {LEAF, "subjectAltName=email:a@example.com"}},
	     "permitted subtree"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[32];
		struct forger_holder issuer, leaf;
		struct fixture_archive made;
		snprintf(name, sizeof name, "issuer-%zu", i);
		forger_issue(&cases[i].issuer, &root, &issuer);
		forger_issue(&cases[i].leaf, &issuer, &leaf);
		make_signed(name, &leaf, &made);
		expect(&made, &both, "META-INF/signature001.p7s", cases[i].what);
		forger_free(&leaf);
		forger_free(&issuer);
	}
}

TEST_CASE(path_lengths_count)
{
	static const struct forger_plan plans[] = {
		{.name = "Short root", .extensions = {CA ",pathlen:0", CA_USAGE}},
		{.name = "Sub", .extensions = {CA, CA_USAGE}},
		{.name = "Leaf", .extensions = {LEAF}},
	};
	struct forger_holder holders[3];
	struct fixture_archive made;
	BUF_AUTO struct buf pem = {.limit = 65536};
	for (size_t i = 0; i < 3; i++)
		forger_issue(&plans[i], i ? &holders[i - 1] : NULL, &holders[i]);
	forger_root(&holders[2], &pem);
	make_signed("length", &holders[2], &made);
	expect(
		&made,
		&(struct trust_roots){.signers = buf_slice(&pem), .timestamps = fixture.roots.timestamps},
		"META-INF/signature001.p7s", "path length");
	for (size_t i = 0; i < 3; i++)
		forger_free(&holders[i]);
}

/* SHA-1 in the signature of an issuer, with roots, and without any. */
TEST_CASE(weak_digests_count)
{
	struct forger_plan leaf = {.name = "SHA-1", .digest = EVP_sha1(), .extensions = {LEAF, SIGNS}};
	struct forger_holder holder;
	struct fixture_archive made;
	forger_issue(&leaf, &root, &holder);
	make_signed("sha1", &holder, &made);
	expect(&made, &both, "META-INF/signature001.p7s", "too weak");
	expect(&made, NULL, "META-INF/signature001.p7s", "too weak");
	forger_free(&holder);
}

TEST_CASE(weak_keys_count_without_roots)
{
	static const struct forger_plan leaf = {
		.name = "Small", .rsa_bits = 1024, .extensions = {LEAF, SIGNS}};
	struct forger_holder holder;
	struct fixture_archive made;
	forger_issue(&leaf, &root, &holder);
	make_signed("small", &holder, &made);
	expect(&made, NULL, "META-INF/signature001.p7s", "key too weak");
	forger_free(&holder);
}

TEST_CASE(authorities_are_held_to_the_same)
{
	static const struct {
		struct forger_plan plan;
		const char *what;
	} cases[] = {
		{{.name = "TSA", .extensions = {LEAF, SIGNS, STAMPS}}, NULL},
		{{.name = "TSA", .from_days = -20, .to_days = -10, .extensions = {LEAF, SIGNS, STAMPS}},
	     "expired"},
		{{.name = "TSA", .rsa_bits = 1024, .extensions = {LEAF, SIGNS, STAMPS}}, "key too weak"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[32];
		struct forger_holder holder;
		struct fixture_archive made;
		snprintf(name, sizeof name, "authority-%zu", i);
		forger_issue(&cases[i].plan, &root, &holder);
		struct forger_authority authority = {.holder = &holder, .accuracy_seconds = 1};
		fixture.stamp = forger_stamp;
		fixture.stamp_context = &authority;
		make(name, &made);
		fixture.stamp = NULL;
		expect(&made, &both, "rounds/rounds-000001.ndjson.gz", cases[i].what);
		if (cases[i].what)
			expect(&made, &both, "META-INF/signature001.p7s", cases[i].what);
		forger_free(&holder);
	}
}

/* A path is judged at the time that the timestamp proves: earlier signatures of an expired signer
 * remain valid. */
TEST_CASE(paths_are_judged_as_of_the_timestamp)
{
	static const struct forger_plan plans[] = {
		{.name = "TSA", .from_days = -30, .to_days = 30, .extensions = {LEAF, SIGNS, STAMPS}},
		{.name = "Signer", .from_days = -20, .to_days = -10, .extensions = {LEAF, SIGNS}},
	};
	struct forger_plan old_root = {
		.name = "Old root", .from_days = -60, .to_days = 60, .extensions = {CA, CA_USAGE}};
	struct forger_holder above, holders[2];
	struct fixture_archive made;
	BUF_AUTO struct buf pem = {.limit = 65536};
	forger_issue(&old_root, NULL, &above);
	forger_root(&above, &pem);
	for (size_t i = 0; i < 2; i++)
		forger_issue(&plans[i], &above, &holders[i]);
	struct forger_authority authority = {
		.holder = &holders[0], .offset_us = -15 * US_PER_DAY, .accuracy_seconds = 1};
	fixture.stamp = forger_stamp;
	fixture.stamp_context = &authority;
	fixture.base_us -= 15 * US_PER_DAY;
	fixture.clock_offset_us = -15 * US_PER_DAY;
	make_signed("old", &holders[1], &made);
	fixture.base_us += 15 * US_PER_DAY;
	fixture.clock_offset_us = 0;
	fixture.stamp = NULL;
	struct trust_roots roots = {.signers = buf_slice(&pem), .timestamps = buf_slice(&pem)};
	expect(&made, &roots, "", NULL);
	forger_free(&holders[0]);
	forger_free(&holders[1]);
	forger_free(&above);
}

/* A root of one kind does not vouch for the other. */
TEST_CASE(roots_are_kept_apart)
{
	struct fixture_archive made;
	BUF_AUTO struct buf report = {.limit = 65536};
	BUF_AUTO struct buf timestamp = {.limit = 65536};
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/keys/report-root.pem", fixture.directory);
	assert_int_equal(verify_read_roots(path, &report, NULL), 0);
	snprintf(path, sizeof path, "%s/keys/timestamp-root.pem", fixture.directory);
	assert_int_equal(verify_read_roots(path, &timestamp, NULL), 0);
	struct slice signers = buf_slice(&report), timestamps = buf_slice(&timestamp);
	make("apart", &made);
	expect(&made, &(struct trust_roots){.signers = signers, .timestamps = timestamps}, "", NULL);
	const struct slice none = {0};
	const struct {
		struct slice signers, timestamps;
		enum verify_verdict verdict;
		bool signer, authority; /* not established */
	} cases[] = {
		{timestamps, timestamps, VERIFY_SIGNER_OPEN, true, false},
		{signers, signers, VERIFY_AUTHORITY_OPEN, false, true},
		{timestamps, signers, VERIFY_SIGNER_OPEN, true, true},
		{signers, none, VERIFY_AUTHORITY_OPEN, false, true},
		{none, timestamps, VERIFY_SIGNER_OPEN, true, false},
		{none, none, VERIFY_SIGNER_OPEN, true, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trust_roots roots = {.signers = cases[i].signers, .timestamps = cases[i].timestamps};
		struct verify_result result;
		const char *one = made.path;
		fixture_verify(&one, 1, &roots, &result);
		assert_int_equal(verify_exit_code(&result), 2);
		assert_int_equal(verify_verdict(&result), cases[i].verdict);
		assert_false(result.trusted);
		assert_int_equal(
			fixture_finds(&result, VERIFY_UNESTABLISHED, "", "the signer was not established"),
			cases[i].signer);
		assert_int_equal(fixture_finds(&result, VERIFY_UNESTABLISHED, "",
		                               "the timestamp authority was not established"),
		                 cases[i].authority);
		verify_result_free(&result);
	}
}

/* An intermediate or a single certificate can be trusted without the root. */
TEST_CASE(every_certificate_given_is_an_anchor)
{
	static const struct forger_plan plans[] = {
		{.name = "Anchored sub", .extensions = {CA, CA_USAGE}},
		{.name = "Anchored signer", .extensions = {LEAF, SIGNS}},
		{.name = "Anchored TSA", .extensions = {LEAF, SIGNS, STAMPS}},
		{.name = "Another", .extensions = {LEAF, SIGNS}},
	};
	struct forger_holder sub, holders[3];
	struct fixture_archive made;
	struct buf pems[4];
	forger_issue(&plans[0], &root, &sub);
	for (size_t i = 0; i < 3; i++)
		forger_issue(&plans[i + 1], &sub, &holders[i]);
	struct forger_holder *given[] = {&sub, &holders[0], &holders[1], &holders[2]};
	for (size_t i = 0; i < 4; i++) {
		buf_init(&pems[i], 65536);
		forger_certificate(given[i], &pems[i]);
	}
	struct forger_authority authority = {.holder = &holders[1], .accuracy_seconds = 1};
	fixture.stamp = forger_stamp;
	fixture.stamp_context = &authority;
	make_signed("anchored", &holders[0], &made);
	fixture.stamp = NULL;
	const struct {
		size_t signers, timestamps;
		enum verify_verdict verdict;
	} cases[] = {{0, 0, VERIFY_VALID},
	             {1, 2, VERIFY_VALID},
	             {1, 1, VERIFY_AUTHORITY_OPEN},
	             {2, 2, VERIFY_SIGNER_OPEN},
	             {3, 0, VERIFY_SIGNER_OPEN}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trust_roots roots = {.signers = buf_slice(&pems[cases[i].signers]),
		                            .timestamps = buf_slice(&pems[cases[i].timestamps])};
		struct verify_result result;
		const char *one = made.path;
		fixture_verify(&one, 1, &roots, &result);
		if (verify_verdict(&result) != cases[i].verdict) {
			verify_print(&result, false, stderr);
			fail_msg("case %zu", i);
		}
		verify_result_free(&result);
	}
	for (size_t i = 0; i < 3; i++)
		forger_free(&holders[i]);
	forger_free(&sub);
	for (size_t i = 0; i < 4; i++)
		buf_free(&pems[i]);
}

/* An archive that another signer below the same root signed: the pin detects it. */
TEST_CASE(a_pin_names_the_signer)
{
	static const struct forger_plan leaf = {.name = "Colleague", .extensions = {LEAF, SIGNS}};
	struct forger_holder holder;
	struct fixture_archive good, other;
	struct verify_result result;
	make("good", &good);
	forger_issue(&leaf, &root, &holder);
	make_signed("pinned", &holder, &other);
	const char *paths[] = {good.path, other.path};
	fixture_verify(paths, 1, &both, &result);
	assert_int_equal(result.signers.count, 1);
	struct sha256 pins[2] = {sha256_of("", 0), result.signers.first->certificate.sha256};
	verify_result_free(&result);
	struct verify_options options = {.signers = pins, .signer_count = 2};
	assert_int_equal(verify_paths(paths, 1, &both, &options, &result, NULL), 0);
	assert_int_equal(verify_exit_code(&result), 0);
	verify_result_free(&result);
	/* With only the roots of the authorities, the pin alone identifies the signer. */
	struct trust_roots authorities = {.timestamps = both.timestamps};
	assert_int_equal(verify_paths(paths, 1, &authorities, &options, &result, NULL), 0);
	assert_true(verify_exit_code(&result) == 0 && result.trusted);
	verify_result_free(&result);
	assert_int_equal(verify_paths(paths + 1, 1, &authorities, &options, &result, NULL), 0);
	assert_int_equal(verify_exit_code(&result), 1);
	assert_true(fixture_finds(&result, VERIFY_WRONG, "META-INF/signature001.p7s",
	                          "is Colleague, which is not one of the required signers"));
	verify_result_free(&result);
	forger_free(&holder);
}

TEST_CASE(everyone_is_named)
{
	static const struct forger_plan leaf = {
		.name = "Evil\x1b[2J \xc2\x9b \xe2\x80\xae one \xc3\xa9", .extensions = {LEAF, SIGNS}};
	struct forger_holder holder;
	struct fixture_archive made;
	struct verify_result result;
	forger_issue(&leaf, &root, &holder);
	make_signed("named", &holder, &made);
	const char *path = made.path;
	fixture_verify(&path, 1, &both, &result);
	assert_int_equal(verify_exit_code(&result), 0);
	assert_int_equal(result.signers.count, 1);
	const struct certificate_facts *signer = &result.signers.first->certificate;
	unsigned char *der = NULL;
	int size = i2d_X509(holder.certificate, &der);
	struct sha256 digest = sha256_of(der, (size_t)size);
	OPENSSL_free(der);
	assert_true(sha256_equal(&digest, &signer->sha256));
	assert_string_equal(signer->issuer, "CN=Every purpose's root");
	assert_string_equal(signer->subject, "CN=Evil\\1B[2J ?? ??? one \xc3\xa9");
	assert_int_equal(signer->not_after_us - signer->not_before_us, 31 * US_PER_DAY);
	assert_int_equal(result.authorities.count, 1);
	assert_string_equal(result.authorities.first->certificate.subject,
	                    "CN=Development timestamp authority,"
	                    "O=Constancia development\\, no legal value");
	char *text = NULL;
	size_t text_size = 0;
	FILE *out = open_memstream(&text, &text_size);
	verify_print(&result, false, out);
	fclose(out);
	assert_string_equal(signer->name, signer->subject); /* no other form can be shown */
	assert_non_null(strstr(text, "signed by: CN=Evil"));
	assert_non_null(strstr(text, "time given by: Development timestamp authority (Constancia "
	                             "development, no legal value)\n"));
	free(text);
	verify_result_free(&result);
	forger_free(&holder);
}

TEST_MAIN(set_up, tear_down)
