/* Passkeys: verifies the data that a browser sends when a passkey is created and used, by the rules
 * of Web Authentication (Level 2, sections 7.1 and 7.2). libfido2 verifies signatures and keys.
 *
 * A passkey is the only credential of a sign-in, so the authenticator must have verified the user
 * (PIN, fingerprint). No attestation is required, because the type of device is irrelevant. ES256
 * and EdDSA are accepted. Pure; thread safe. The caller provides the challenge: random, for one
 * browser, valid once, for a few minutes (store/people/console_users.h). */
#ifndef CONSOLE_WEBAUTHN_H
#define CONSOLE_WEBAUTHN_H

#include <stdint.h>

#include "admin/webauthn_party.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/error.h"

#define WEBAUTHN_CHALLENGE_SIZE 32
#define WEBAUTHN_CLIENT_DATA_MAX 4096
#define WEBAUTHN_AUTHENTICATOR_DATA_MAX 4096
#define WEBAUTHN_SIGNATURE_MAX 512
#define WEBAUTHN_ID_MAX 1023
#define WEBAUTHN_KEY_MAX 64

#define WEBAUTHN_ES256 (-7) /* COSE algorithm identifier */
#define WEBAUTHN_EDDSA (-8)

/* Base64url (RFC 4648 section 5) without padding, as used by the scripts. False: an invalid
 * character, or more than size_max bytes. */
bool webauthn_decode(struct slice text, void *data, size_t size_max, size_t *ret_size) MUST_CHECK;
#define WEBAUTHN_TEXT_SIZE(size) (BASE64_SIZE(size) + 1)
void webauthn_encode(const void *data, size_t size, char *text); /* of WEBAUTHN_TEXT_SIZE(size) */

struct webauthn_credential {
	uint8_t id[WEBAUTHN_ID_MAX];
	size_t id_size;
	int algorithm;                        /* WEBAUTHN_ES256, WEBAUTHN_EDDSA */
	uint8_t public_key[WEBAUTHN_KEY_MAX]; /* ES256: x and y; EdDSA: 32 bytes */
	size_t public_key_size;
	uint32_t sign_count; /* 0: the authenticator may not count */
};

/* Verifies the result of navigator.credentials.create(): response.clientDataJSON and
 * response.getAuthenticatorData(). ERR_REFUSED, with one message for the user and the reason as the
 * cause: wrong ceremony, challenge, origin or relying party, embedded page, missing user presence
 * or verification, unsupported algorithm, malformed, too large. */
int webauthn_register(const struct webauthn_party *party, struct slice challenge,
                      struct slice client_data, struct slice authenticator_data,
                      struct webauthn_credential *ret, struct error *error) MUST_CHECK;

/* Verifies the result of navigator.credentials.get() for a known credential:
 * response.clientDataJSON, response.authenticatorData, response.signature. ERR_REFUSED likewise,
 * also if the signature does not match the key, or if the counter does not increase, which
 * indicates a cloned authenticator. */
int webauthn_verify(const struct webauthn_party *party, struct slice challenge,
                    const struct webauthn_credential *known, struct slice client_data,
                    struct slice authenticator_data, struct slice signature,
                    uint32_t *ret_sign_count, struct error *error) MUST_CHECK;

#endif
