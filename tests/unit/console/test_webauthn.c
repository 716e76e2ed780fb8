/* Passkeys of an authenticator in the test, with keys of OpenSSL; then forged ones. */
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include "testing.h"
#include "base/base64.h"
#include "base/digest.h"
#include "console/webauthn.h"

#define FLAG_PRESENT 1
#define FLAG_VERIFIED 4
#define FLAG_CREDENTIAL 0x40
#define FLAG_EXTENSIONS 0x80
#define GOOD (FLAG_PRESENT | FLAG_VERIFIED)

static const struct webauthn_party party = {"https://example.org", "example.org"};
static const uint8_t challenge[WEBAUTHN_CHALLENGE_SIZE] = "what is to be answered";

/* A ceremony of the authenticator, parts of which a test changes. */
struct ceremony {
	const char *type;
	const char *origin;
	const char *more; /* additional members at the end of the client data */
	const char *party_id;
	const uint8_t *challenge;
	uint8_t flags;
	uint32_t count;
	int algorithm;   /* stated in the credential */
	int key_fault;   /* 1: a point that is not on the curve; 2: cut off */
	const char *raw; /* client data that replaces all of the above */
};

struct authenticator {
	int algorithm;
	EVP_PKEY *key;
	uint8_t public_key[64];
	size_t public_key_size;
};

struct handed {
	struct buf client_data, data, signature;
};

static void handed_free(struct handed *handed)
{
	buf_free(&handed->client_data);
	buf_free(&handed->data);
	buf_free(&handed->signature);
}
#define HANDED_AUTO __attribute__((cleanup(handed_free)))

static struct authenticator make_authenticator(int algorithm)
{
	struct authenticator made = {.algorithm = algorithm};
	if (algorithm == WEBAUTHN_EDDSA) {
		made.key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
		made.public_key_size = 32;
		assert_true(EVP_PKEY_get_raw_public_key(made.key, made.public_key, &made.public_key_size));
		return made;
	}
	uint8_t point[65];
	size_t size = 0;
	made.key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	assert_true(EVP_PKEY_get_octet_string_param(made.key, OSSL_PKEY_PARAM_PUB_KEY, point,
	                                            sizeof point, &size));
	assert_int_equal(size, 65);
	memcpy(made.public_key, point + 1, 64);
	made.public_key_size = 64;
	return made;
}

static void add_base64url(struct buf *out, const void *bytes, size_t size)
{
	char text[512];
	base64_encode(bytes, size, text);
	for (const char *at = text; *at && *at != '='; at++)
		buf_add_byte(out, *at == '+' ? '-' : *at == '/' ? '_' : *at);
}

static void client_data(const struct ceremony *ceremony, struct buf *out)
{
	if (ceremony->raw) {
		buf_add_text(out, ceremony->raw);
		return;
	}
	buf_printf(out, "{\"type\":\"%s\",\"challenge\":\"", ceremony->type);
	add_base64url(out, ceremony->challenge, WEBAUTHN_CHALLENGE_SIZE);
	buf_printf(out, "\",\"origin\":\"%s\"%s}", ceremony->origin, ceremony->more);
}

static void head(const struct ceremony *ceremony, uint8_t flags, struct buf *out)
{
	struct sha256 hash = sha256_of(ceremony->party_id, strlen(ceremony->party_id));
	uint8_t count[4] = {(uint8_t)(ceremony->count >> 24), (uint8_t)(ceremony->count >> 16),
	                    (uint8_t)(ceremony->count >> 8), (uint8_t)ceremony->count};
	buf_add(out, hash.bytes, sizeof hash.bytes);
	buf_add_byte(out, (char)flags);
	buf_add(out, count, sizeof count);
}

/* COSE_Key (RFC 9053), in CBOR. */
static void cose_key(const struct authenticator *of, const struct ceremony *ceremony,
                     struct buf *out)
{
	uint8_t key[64];
	memcpy(key, of->public_key, sizeof key);
	if (ceremony->key_fault == 1)
		memset(key, 0x5a, sizeof key);
	uint8_t said = (uint8_t)(0x20 - ceremony->algorithm - 1);
	if (of->algorithm == WEBAUTHN_EDDSA) {
		const uint8_t begin[] = {0xa4, 1, 1, 3, said, 0x20, 6, 0x21, 0x58, 32};
		buf_add(out, begin, sizeof begin);
		buf_add(out, key, 32);
		return;
	}
	const uint8_t begin[] = {0xa5, 1, 2, 3, said, 0x20, 1, 0x21, 0x58, 32};
	const uint8_t second[] = {0x22, 0x58, 32};
	buf_add(out, begin, sizeof begin);
	buf_add(out, key, 32);
	buf_add(out, second, sizeof second);
	buf_add(out, key + 32, 32);
}

static void create(const struct authenticator *of, const struct ceremony *ceremony,
                   struct handed *out)
{
	static const char id[] = "a credential";
	*out = (struct handed){0};
	buf_init(&out->client_data, 1 << 16);
	buf_init(&out->data, 1 << 16);
	client_data(ceremony, &out->client_data);
	head(ceremony, ceremony->flags | FLAG_CREDENTIAL, &out->data);
	buf_add(&out->data, "0123456789abcdef", 16); /* its model */
	buf_add_byte(&out->data, 0);
	buf_add_byte(&out->data, sizeof id - 1);
	buf_add_text(&out->data, id);
	cose_key(of, ceremony, &out->data);
	if (ceremony->key_fault == 2)
		out->data.size -= 5;
}

static void get(const struct authenticator *of, const struct ceremony *ceremony, struct handed *out)
{
	uint8_t signature[256];
	size_t size = sizeof signature;
	*out = (struct handed){0};
	buf_init(&out->client_data, 1 << 16);
	buf_init(&out->data, 1 << 16);
	buf_init(&out->signature, 1 << 16);
	client_data(ceremony, &out->client_data);
	head(ceremony, ceremony->flags, &out->data);
	struct sha256 hash = sha256_of(out->client_data.data, out->client_data.size);
	BUF_AUTO struct buf both = {.limit = 1 << 16};
	buf_add_slice(&both, buf_slice(&out->data));
	buf_add(&both, hash.bytes, sizeof hash.bytes);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const EVP_MD *digest = of->algorithm == WEBAUTHN_EDDSA ? NULL : EVP_sha256();
	assert_true(EVP_DigestSignInit(context, NULL, digest, NULL, of->key));
	assert_true(EVP_DigestSign(context, signature, &size, (const uint8_t *)both.data, both.size));
	EVP_MD_CTX_free(context);
	buf_add(&out->signature, signature, size);
}

static struct ceremony good_create(int algorithm)
{
	return (struct ceremony){.type = "webauthn.create",
	                         .origin = party.origin,
	                         .more = ",\"crossOrigin\":false",
	                         .party_id = party.id,
	                         .challenge = challenge,
	                         .flags = GOOD,
	                         .count = 7,
	                         .algorithm = algorithm};
}

static struct ceremony good_get(void)
{
	struct ceremony ceremony = good_create(0);
	ceremony.type = "webauthn.get";
	ceremony.count = 8;
	return ceremony;
}

static int register_it(const struct handed *handed, struct webauthn_credential *ret,
                       struct error *error)
{
	return webauthn_register(&party, slice_make(challenge, sizeof challenge),
	                         buf_slice(&handed->client_data), buf_slice(&handed->data), ret, error);
}

static int verify_it(const struct handed *handed, const struct webauthn_credential *known,
                     uint32_t *ret_count, struct error *error)
{
	return webauthn_verify(&party, slice_make(challenge, sizeof challenge), known,
	                       buf_slice(&handed->client_data), buf_slice(&handed->data),
	                       buf_slice(&handed->signature), ret_count, error);
}

static void expect_refused(int result, const struct error *error, const char *why)
{
	if (result != ERR_REFUSED || error->message != MSG_USER_BAD_PASSKEY ||
	    !strstr(error->cause, why))
		fail_msg("%d, %s: expected %s", result, error->cause, why);
}

static struct webauthn_credential registered(const struct authenticator *authenticator)
{
	HANDED_AUTO struct handed handed;
	struct webauthn_credential credential;
	struct error error = {0};
	struct ceremony ceremony = good_create(authenticator->algorithm);
	create(authenticator, &ceremony, &handed);
	if (register_it(&handed, &credential, &error))
		fail_msg("%s", error.cause);
	return credential;
}

static const int algorithms[] = {WEBAUTHN_ES256, WEBAUTHN_EDDSA};

TEST_CASE(a_passkey_is_registered_and_signs_in)
{
	for (int i = 0; i < 2; i++) {
		HANDED_AUTO struct handed handed;
		struct authenticator authenticator = make_authenticator(algorithms[i]);
		struct webauthn_credential known = registered(&authenticator);
		assert_int_equal(known.algorithm, algorithms[i]);
		assert_int_equal(known.sign_count, 7);
		assert_int_equal(known.id_size, strlen("a credential"));
		assert_memory_equal(known.id, "a credential", known.id_size);
		assert_int_equal(known.public_key_size, authenticator.public_key_size);
		assert_memory_equal(known.public_key, authenticator.public_key, known.public_key_size);
		struct ceremony ceremony = good_get();
		get(&authenticator, &ceremony, &handed);
		uint32_t count = 0;
		struct error error = {0};
		if (verify_it(&handed, &known, &count, &error))
			fail_msg("%s", error.cause);
		assert_int_equal(count, 8);
		EVP_PKEY_free(authenticator.key);
	}
}

static const uint8_t other_challenge[WEBAUTHN_CHALLENGE_SIZE] = "another one";

/* Faults in the browser's answer, in either ceremony. */
static const struct {
	struct ceremony change; /* each value that is not 0 */
	const char *why;
} wrong_words[] = {
	{{.type = "webauthn.other"}, "another ceremony"},
	{{.origin = "https://example.org.evil.example"}, "the origin differs"},
	{{.origin = "http://example.org"}, "the origin differs"},
	{{.origin = "https://example.org:8443"}, "the origin differs"},
	{{.origin = "https://sub.example.org"}, "the origin differs"},
	{{.challenge = other_challenge}, "the challenge differs"},
	{{.more = ",\"crossOrigin\":true"}, "embedded in another origin"},
	{{.more = ",\"topOrigin\":\"https://evil.example\""}, "embedded in another origin"},
	{{.more = ",\"type\":\"webauthn.get\""}, "not a JSON object"},
	{{.raw = "[]"}, "not a JSON object"},
	{{.raw = ""}, "not a JSON object"},
	{{.raw = "{}"}, "another ceremony"},
	{{.raw = "{\"type\":\"webauthn.create\",\"type\":\"webauthn.get\"}"}, "not a JSON object"},
	{{.party_id = "evil.example"}, "the relying party differs"},
};

static struct ceremony changed(struct ceremony ceremony, const struct ceremony *change)
{
	ceremony.type = change->type ? change->type : ceremony.type;
	ceremony.origin = change->origin ? change->origin : ceremony.origin;
	ceremony.more = change->more ? change->more : ceremony.more;
	ceremony.party_id = change->party_id ? change->party_id : ceremony.party_id;
	ceremony.challenge = change->challenge ? change->challenge : ceremony.challenge;
	ceremony.raw = change->raw;
	return ceremony;
}

TEST_CASE(what_is_of_something_else_is_refused)
{
	for (int i = 0; i < 2; i++) {
		struct authenticator authenticator = make_authenticator(algorithms[i]);
		struct webauthn_credential known = registered(&authenticator), made;
		for (size_t at = 0; at < sizeof wrong_words / sizeof *wrong_words; at++) {
			HANDED_AUTO struct handed first, second;
			struct error error = {0};
			uint32_t count;
			struct ceremony ceremony = changed(good_create(algorithms[i]), &wrong_words[at].change);
			create(&authenticator, &ceremony, &first);
			expect_refused(register_it(&first, &made, &error), &error, wrong_words[at].why);
			ceremony = changed(good_get(), &wrong_words[at].change);
			get(&authenticator, &ceremony, &second);
			expect_refused(verify_it(&second, &known, &count, &error), &error, wrong_words[at].why);
		}
		EVP_PKEY_free(authenticator.key);
	}
}

/* The answer of one ceremony is not accepted in the other. */
TEST_CASE(ceremonies_are_told_apart)
{
	HANDED_AUTO struct handed first, second;
	struct authenticator authenticator = make_authenticator(WEBAUTHN_ES256);
	struct webauthn_credential known = registered(&authenticator), made;
	struct error error = {0};
	uint32_t count;
	struct ceremony ceremony = good_create(WEBAUTHN_ES256);
	ceremony.type = "webauthn.get";
	create(&authenticator, &ceremony, &first);
	expect_refused(register_it(&first, &made, &error), &error, "another ceremony");
	ceremony = good_get();
	ceremony.type = "webauthn.create";
	get(&authenticator, &ceremony, &second);
	expect_refused(verify_it(&second, &known, &count, &error), &error, "another ceremony");
	EVP_PKEY_free(authenticator.key);
}

TEST_CASE(a_user_must_be_there_and_verified)
{
	static const uint8_t flags[] = {0, FLAG_PRESENT, FLAG_VERIFIED};
	for (int i = 0; i < 2; i++)
		for (size_t at = 0; at < sizeof flags; at++) {
			HANDED_AUTO struct handed first, second;
			struct authenticator authenticator = make_authenticator(algorithms[i]);
			struct webauthn_credential known = registered(&authenticator), made;
			struct error error = {0};
			uint32_t count;
			struct ceremony ceremony = good_create(algorithms[i]);
			ceremony.flags = flags[at];
			create(&authenticator, &ceremony, &first);
			expect_refused(register_it(&first, &made, &error), &error, "not verified");
			ceremony = good_get();
			ceremony.flags = flags[at];
			get(&authenticator, &ceremony, &second);
			expect_refused(verify_it(&second, &known, &count, &error), &error, "not verified");
			EVP_PKEY_free(authenticator.key);
		}
}

TEST_CASE(forged_signatures_are_refused)
{
	for (int i = 0; i < 2; i++) {
		HANDED_AUTO struct handed handed, of_another;
		struct authenticator authenticator = make_authenticator(algorithms[i]);
		struct authenticator another = make_authenticator(algorithms[i]);
		struct webauthn_credential known = registered(&authenticator);
		struct ceremony ceremony = good_get();
		struct error error = {0};
		uint32_t count;
		get(&another, &ceremony, &of_another);
		expect_refused(verify_it(&of_another, &known, &count, &error), &error, "signature");
		get(&authenticator, &ceremony, &handed);
		for (size_t at = 0; at < handed.signature.size; at++) {
			handed.signature.data[at] ^= 1;
			assert_int_equal(verify_it(&handed, &known, &count, NULL), ERR_REFUSED);
			handed.signature.data[at] ^= 1;
		}
		handed.data.data[36] ^= 1; /* the count */
		assert_int_equal(verify_it(&handed, &known, &count, NULL), ERR_REFUSED);
		handed.data.data[36] ^= 1;
		assert_int_equal(verify_it(&handed, &known, &count, NULL), OK);
		handed.signature.size--;
		assert_int_equal(verify_it(&handed, &known, &count, NULL), ERR_REFUSED);
		handed.signature.size = 0;
		assert_int_equal(verify_it(&handed, &known, &count, NULL), ERR_REFUSED);
		known.algorithm = algorithms[!i];
		assert_int_equal(verify_it(&handed, &known, &count, NULL), ERR_REFUSED);
		EVP_PKEY_free(authenticator.key);
		EVP_PKEY_free(another.key);
	}
}

TEST_CASE(a_count_goes_up)
{
	static const struct {
		uint32_t known, said;
		int result;
	} cases[] = {{0, 0, OK},
	             {0, 1, OK},
	             {7, 8, OK},
	             {7, 7, ERR_REFUSED},
	             {7, 6, ERR_REFUSED},
	             {7, 0, ERR_REFUSED},
	             {0xfffffffe, 0xffffffff, OK}};
	struct authenticator authenticator = make_authenticator(WEBAUTHN_ES256);
	struct webauthn_credential known = registered(&authenticator);
	for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
		HANDED_AUTO struct handed handed;
		struct ceremony ceremony = good_get();
		uint32_t count = 99;
		ceremony.count = cases[at].said;
		known.sign_count = cases[at].known;
		get(&authenticator, &ceremony, &handed);
		assert_int_equal(verify_it(&handed, &known, &count, NULL), cases[at].result);
		assert_int_equal(count, cases[at].result ? 99 : cases[at].said);
	}
	EVP_PKEY_free(authenticator.key);
}

TEST_CASE(broken_credentials_are_refused)
{
	for (int i = 0; i < 2; i++) {
		struct authenticator authenticator = make_authenticator(algorithms[i]);
		struct webauthn_credential made;
		struct error error = {0};
		for (int fault = algorithms[i] == WEBAUTHN_EDDSA ? 2 : 1; fault <= 2; fault++) {
			HANDED_AUTO struct handed handed;
			struct ceremony ceremony = good_create(algorithms[i]);
			ceremony.key_fault = fault;
			create(&authenticator, &ceremony, &handed);
			assert_int_equal(register_it(&handed, &made, &error), ERR_REFUSED);
		}
		struct ceremony ceremony = good_create(algorithms[!i]); /* states another algorithm */
		HANDED_AUTO struct handed handed;
		create(&authenticator, &ceremony, &handed);
		assert_int_equal(register_it(&handed, &made, &error), ERR_REFUSED);
		HANDED_AUTO struct handed cut;
		ceremony = good_create(algorithms[i]);
		create(&authenticator, &ceremony, &cut);
		while (cut.data.size) { /* at every place */
			cut.data.size--;
			assert_int_equal(register_it(&cut, &made, NULL), ERR_REFUSED);
		}
		EVP_PKEY_free(authenticator.key);
	}
}

TEST_CASE(what_is_too_large_is_refused)
{
	HANDED_AUTO struct handed handed;
	struct authenticator authenticator = make_authenticator(WEBAUTHN_ES256);
	struct webauthn_credential known = registered(&authenticator);
	struct error error = {0};
	uint32_t count;
	struct ceremony ceremony = good_get();
	get(&authenticator, &ceremony, &handed);
	while (handed.client_data.size <= WEBAUTHN_CLIENT_DATA_MAX)
		buf_add_byte(&handed.client_data, ' ');
	expect_refused(verify_it(&handed, &known, &count, &error), &error, "too large");
	EVP_PKEY_free(authenticator.key);
}

TEST_CASE(whom_passkeys_are_for)
{
	static const struct {
		const char *url, *origin, *id;
	} good[] = {{"https://Example.org", "https://example.org", "example.org"},
	            {"https://example.org:443/x", "https://example.org", "example.org"},
	            {"https://example.org:8443/", "https://example.org:8443", "example.org"},
	            {"http://localhost:8080", "http://localhost:8080", "localhost"},
	            {"http://127.0.0.1:8080", "http://localhost:8080", "localhost"},
	            {"http://127.0.0.1", "http://localhost", "localhost"},
	            {"http://localhost:80", "http://localhost", "localhost"}};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct webauthn_party read;
		assert_int_equal(webauthn_party_read(good[i].url, &read, NULL), OK);
		assert_string_equal(read.origin, good[i].origin);
		assert_string_equal(read.id, good[i].id);
	}
	static const char *const bad[] = {"http://example.org",
	                                  "https://192.0.2.1",
	                                  "https://[::1]:8",
	                                  "https://",
	                                  "example.org",
	                                  "ftp://example.org",
	                                  "",
	                                  "http://127.0.0.1.example.org",
	                                  "https://127.0.0.1:8080",
	                                  "http://127.0.0.2:8080",
	                                  "https://a@example.org"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct webauthn_party read;
		struct error error = {0};
		assert_int_equal(webauthn_party_read(bad[i], &read, &error), ERR_REFUSED);
		assert_int_equal(error.message, MSG_USER_NO_PASSKEYS);
	}
}

TEST_CASE(bytes_as_scripts_hand_them_over)
{
	uint8_t bytes[4];
	size_t size;
	assert_true(webauthn_decode(slice_of("-_8A"), bytes, sizeof bytes, &size));
	assert_int_equal(size, 3);
	assert_memory_equal(bytes, "\xfb\xff\x00", 3);
	assert_true(webauthn_decode(slice_of("AQ"), bytes, sizeof bytes, &size));
	assert_int_equal(size, 1);
	char text[WEBAUTHN_TEXT_SIZE(4)];
	webauthn_encode("\xfb\xff\x00\xff", 4, text);
	assert_string_equal(text, "-_8A_w");
	assert_false(webauthn_decode(slice_of("+_8A"), bytes, sizeof bytes, &size));
	assert_false(webauthn_decode(slice_of("AQ=="), bytes, sizeof bytes, &size));
	assert_false(webauthn_decode(slice_of("AQIDBAUG"), bytes, sizeof bytes, &size));
	assert_false(webauthn_decode(slice_of("A Q"), bytes, sizeof bytes, &size));
}

TEST_MAIN(NULL, NULL)
