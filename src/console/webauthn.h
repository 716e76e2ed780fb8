/* Passkeys: what a browser hands over when one is made and when one signs in, verified by the rules
 * of Web Authentication (Level 2, sections 7.1 and 7.2). Signatures and keys are libfido2's affair.
 *
 * A passkey is the only thing that its user shows, so the authenticator must have verified him (a
 * PIN, a fingerprint). No attestation is asked for: which device it is does not matter. ES256 and
 * EdDSA are taken. Pure; thread safe. The challenge is the caller's: random, for one browser, for
 * once, for a few minutes (store/people/passkeys.h). */
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

#define WEBAUTHN_ES256 (-7) /* of COSE */
#define WEBAUTHN_EDDSA (-8)

/* Base64url (RFC 4648 section 5) without padding, as scripts hand bytes over. False: another
 * character, or more than size_max bytes. */
bool webauthn_decode(struct slice text, void *data, size_t size_max, size_t *ret_size) MUST_CHECK;
#define WEBAUTHN_TEXT_SIZE(size) (BASE64_SIZE(size) + 1)
void webauthn_encode(const void *data, size_t size, char *text); /* of WEBAUTHN_TEXT_SIZE(size) */

struct webauthn_credential {
	uint8_t id[WEBAUTHN_ID_MAX];
	size_t id_size;
	int algorithm;                        /* WEBAUTHN_ES256, WEBAUTHN_EDDSA */
	uint8_t public_key[WEBAUTHN_KEY_MAX]; /* x and y; or the 32 bytes of EdDSA */
	size_t public_key_size;
	uint32_t sign_count; /* 0: its authenticator may not count */
};

/* What navigator.credentials.create() gave: response.clientDataJSON and
 * response.getAuthenticatorData(). ERR_REFUSED, with one sentence for the user, and the reason as
 * the cause: of another ceremony, challenge, origin or party, framed, without the user's presence
 * or verification, of another algorithm, malformed, too large. */
int webauthn_register(const struct webauthn_party *party, struct slice challenge,
                      struct slice client_data, struct slice authenticator_data,
                      struct webauthn_credential *ret, struct error *error) MUST_CHECK;

/* What navigator.credentials.get() gave for a credential that is known: response.clientDataJSON,
 * response.authenticatorData, response.signature. ERR_REFUSED likewise, also for a signature that
 * is not of its key, and for a count that does not go up: then there is a copy of it. */
int webauthn_verify(const struct webauthn_party *party, struct slice challenge,
                    const struct webauthn_credential *known, struct slice client_data,
                    struct slice authenticator_data, struct slice signature,
                    uint32_t *ret_sign_count, struct error *error) MUST_CHECK;

#endif
