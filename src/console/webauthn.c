#include "console/webauthn.h"

#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "libfido2.h"

#define CLIENT_DATA_MEMORY ((size_t)64 * 1024)
#define HEAD_SIZE 37 /* authenticator data: relying party hash, flags, counter */

static int refuse(struct error *error, const char *why)
{
	error_cause(error, ERR_REFUSED, "passkey: %s", why);
	return error_set(error, ERR_REFUSED, MSG_USER_BAD_PASSKEY, NULL);
}

void webauthn_encode(const void *data, size_t size, char *text)
{
	base64_encode(data, size, text);
	for (char *at = text; *at; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at == '=' ? '\0' : *at;
}

bool webauthn_decode(struct slice text, void *data, size_t size_max, size_t *ret_size)
{
	BUF_AUTO struct buf plain;
	buf_init(&plain, BASE64_SIZE(size_max) + 1);
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		if (c == '+' || c == '/' || c == '=')
			return false;
		buf_add_byte(&plain, c == '-' ? '+' : c == '_' ? '/' : c);
	}
	if (buf_check(&plain))
		return false;
	return base64_decode(buf_slice(&plain), data, size_max, ret_size);
}

/* ---- client data ---- */

static int check_client_data(const struct webauthn_party *party, const char *ceremony,
                             struct slice challenge, struct slice client_data, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct json *json;
	struct slice type, given, origin;
	uint8_t bytes[WEBAUTHN_CHALLENGE_SIZE];
	size_t size = 0;
	static const struct json_limits limits = {.depth_max = 4, .value_max = 64};
	arena_init(&arena, CLIENT_DATA_MEMORY);
	if (client_data.size > WEBAUTHN_CLIENT_DATA_MAX)
		return refuse(error, "the client data is too large");
	if (challenge.size != WEBAUTHN_CHALLENGE_SIZE)
		return refuse(error, "the challenge is missing");
	if (json_parse(&arena, client_data, &limits, &json, NULL) || json->type != JSON_OBJECT)
		return refuse(error, "the client data is not a JSON object");
	if (!json_get_text(json, "type", &type) || !slice_is(type, ceremony))
		return refuse(error, "the client data is for another ceremony");
	if (!json_get_text(json, "challenge", &given) ||
	    !webauthn_decode(given, bytes, sizeof bytes, &size) ||
	    !constant_time_equal(slice_make(bytes, size), challenge))
		return refuse(error, "the challenge differs");
	if (!json_get_text(json, "origin", &origin) || !slice_is(origin, party->origin))
		return refuse(error, "the origin differs");
	const struct json *framed = json_member(json, "crossOrigin");
	if ((framed && framed->type != JSON_FALSE) || json_member(json, "topOrigin"))
		return refuse(error, "the page was embedded in another origin");
	return OK;
}

/* ---- authenticator data ---- */

struct parts {
	fido_cred_t *credential;
	fido_assert_t *assertion;
	es256_pk_t *es256;
	eddsa_pk_t *eddsa;
};

static void parts_free(struct parts *parts)
{
	fido_cred_free(&parts->credential);
	fido_assert_free(&parts->assertion);
	es256_pk_free(&parts->es256);
	eddsa_pk_free(&parts->eddsa);
}
#define PARTS_AUTO __attribute__((cleanup(parts_free)))

/* Returns the key in the representation of libfido2; NULL: invalid. */
static const void *read_key(int algorithm, const void *bytes, size_t size, struct parts *parts)
{
	if (algorithm == WEBAUTHN_ES256 && size == 64 && (parts->es256 = es256_pk_new()) &&
	    es256_pk_from_ptr(parts->es256, bytes, size) == FIDO_OK)
		return parts->es256;
	if (algorithm == WEBAUTHN_EDDSA && size == 32 && (parts->eddsa = eddsa_pk_new()) &&
	    eddsa_pk_from_ptr(parts->eddsa, bytes, size) == FIDO_OK)
		return parts->eddsa;
	return NULL;
}

/* Reads the attested credential if it uses the algorithm. libfido2 accepts only the algorithm that
 * was set. */
static bool read_credential(int algorithm, struct slice data, struct parts *parts)
{
	fido_cred_free(&parts->credential);
	parts->credential = fido_cred_new();
	return parts->credential && fido_cred_set_type(parts->credential, algorithm) == FIDO_OK &&
	       fido_cred_set_authdata_raw(parts->credential, (const unsigned char *)data.data,
	                                  data.size) == FIDO_OK;
}

static bool fill_credential(const struct parts *parts, int algorithm,
                            struct webauthn_credential *ret)
{
	const fido_cred_t *credential = parts->credential;
	size_t id_size = fido_cred_id_len(credential), key_size = fido_cred_pubkey_len(credential);
	if (!id_size || id_size > sizeof ret->id || !key_size || key_size > sizeof ret->public_key)
		return false;
	*ret = (struct webauthn_credential){.id_size = id_size,
	                                    .algorithm = algorithm,
	                                    .public_key_size = key_size,
	                                    .sign_count = fido_cred_sigcount(credential)};
	memcpy(ret->id, fido_cred_id_ptr(credential), id_size);
	memcpy(ret->public_key, fido_cred_pubkey_ptr(credential), key_size);
	return true;
}

/* Returns whether the key is valid, that is, its point is on the curve. The conversion for a
 * signature check reveals this. */
static bool key_is_usable(const struct webauthn_credential *credential, struct parts *parts)
{
	const void *key =
		read_key(credential->algorithm, credential->public_key, credential->public_key_size, parts);
	EVP_PKEY *made = NULL;
	if (key)
		made = credential->algorithm == WEBAUTHN_ES256 ? es256_pk_to_EVP_PKEY(parts->es256)
		                                               : eddsa_pk_to_EVP_PKEY(parts->eddsa);
	EVP_PKEY_free(made);
	return made != NULL;
}

static int check_head(const struct webauthn_party *party, struct slice data, struct error *error)
{
	struct sha256 wanted = sha256_of(party->id, strlen(party->id));
	if (data.size < HEAD_SIZE || data.size > WEBAUTHN_AUTHENTICATOR_DATA_MAX)
		return refuse(error, "the authenticator data is too short or too large");
	if (memcmp(data.data, wanted.bytes, sizeof wanted.bytes) != 0)
		return refuse(error, "the relying party differs");
	return OK;
}

int webauthn_register(const struct webauthn_party *party, struct slice challenge,
                      struct slice client_data, struct slice authenticator_data,
                      struct webauthn_credential *ret, struct error *error)
{
	int result = libfido2_load(error);
	if (result)
		return result;
	PARTS_AUTO struct parts parts = {0};
	struct webauthn_credential credential;
	const uint8_t needed = CTAP_AUTHDATA_USER_PRESENT | CTAP_AUTHDATA_USER_VERIFIED;
	result = check_client_data(party, "webauthn.create", challenge, client_data, error);
	if (!result)
		result = check_head(party, authenticator_data, error);
	if (result)
		return result;
	int algorithm = WEBAUTHN_ES256;
	if (!read_credential(algorithm, authenticator_data, &parts)) {
		algorithm = WEBAUTHN_EDDSA;
		if (!read_credential(algorithm, authenticator_data, &parts))
			return refuse(error, "the authenticator data contains no ES256 or EdDSA credential");
	}
	if ((fido_cred_flags(parts.credential) & needed) != needed)
		return refuse(error, "the user was not present or not verified");
	if (!fill_credential(&parts, algorithm, &credential) || !key_is_usable(&credential, &parts))
		return refuse(error, "the key or the identifier of the credential is not usable");
	*ret = credential;
	return OK;
}

/* ---- assertion ---- */

static bool set_assertion(const struct webauthn_party *party, struct slice client_data,
                          struct slice data, struct slice signature, fido_assert_t *assertion)
{
	struct sha256 hash = sha256_of(client_data.data, client_data.size);
	return assertion && fido_assert_set_count(assertion, 1) == FIDO_OK &&
	       fido_assert_set_rp(assertion, party->id) == FIDO_OK &&
	       fido_assert_set_up(assertion, FIDO_OPT_TRUE) == FIDO_OK &&
	       fido_assert_set_uv(assertion, FIDO_OPT_TRUE) == FIDO_OK &&
	       fido_assert_set_clientdata_hash(assertion, hash.bytes, sizeof hash.bytes) == FIDO_OK &&
	       fido_assert_set_authdata_raw(assertion, 0, (const unsigned char *)data.data,
	                                    data.size) == FIDO_OK &&
	       fido_assert_set_sig(assertion, 0, (const unsigned char *)signature.data,
	                           signature.size) == FIDO_OK;
}

int webauthn_verify(const struct webauthn_party *party, struct slice challenge,
                    const struct webauthn_credential *known, struct slice client_data,
                    struct slice authenticator_data, struct slice signature,
                    uint32_t *ret_sign_count, struct error *error)
{
	int result = libfido2_load(error);
	if (result)
		return result;
	PARTS_AUTO struct parts parts = {0};
	result = check_client_data(party, "webauthn.get", challenge, client_data, error);
	if (!result)
		result = check_head(party, authenticator_data, error);
	if (result)
		return result;
	if (!signature.size || signature.size > WEBAUTHN_SIGNATURE_MAX)
		return refuse(error, "the signature is empty or too large");
	parts.assertion = fido_assert_new();
	if (!set_assertion(party, client_data, authenticator_data, signature, parts.assertion))
		return refuse(error, "the authenticator data is malformed");
	const void *key = read_key(known->algorithm, known->public_key, known->public_key_size, &parts);
	if (!key || fido_assert_verify(parts.assertion, 0, known->algorithm, key) != FIDO_OK)
		return refuse(error, "the signature is invalid or the user was not verified");
	uint32_t count = fido_assert_sigcount(parts.assertion, 0);
	if ((count || known->sign_count) && count <= known->sign_count)
		return refuse(error,
		              "the signature counter did not increase: the authenticator may be cloned");
	*ret_sign_count = count;
	return OK;
}
