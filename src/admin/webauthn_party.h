/* The WebAuthn relying party for which webauthn.h of the console verifies passkeys, and whether
 * passkeys are possible at all. Pure; thread safe. */
#ifndef ADMIN_WEBAUTHN_PARTY_H
#define ADMIN_WEBAUTHN_PARTY_H

#include "base/error.h"

#define WEBAUTHN_NAME_MAX 300

/* Relying party. For "https://example.org:8443/x", the origin is "https://example.org:8443" and the
 * identifier "example.org". */
struct webauthn_party {
	char origin[WEBAUTHN_NAME_MAX];
	char id[WEBAUTHN_NAME_MAX];
};
/* Derives the relying party from service.public_url. ERR_REFUSED: passkeys do not work there. They
 * need https and a host name; "localhost" also works with http, an IP address does not. Only
 * http://127.0.0.1, used in development, is mapped to localhost with the same port, which reaches
 * the same service. */
int webauthn_party_read(const char *public_url, struct webauthn_party *ret, struct error *error)
	MUST_CHECK;

#endif
