/* Where passkeys work: what webauthn.h of the console verifies them for, and whether they can be
 * asked for at all. Pure; thread safe. */
#ifndef ADMIN_WEBAUTHN_PARTY_H
#define ADMIN_WEBAUTHN_PARTY_H

#include "base/error.h"

#define WEBAUTHN_NAME_MAX 300

/* Who passkeys are for: of "https://example.org:8443/x" the origin is "https://example.org:8443"
 * and the identifier "example.org". */
struct webauthn_party {
	char origin[WEBAUTHN_NAME_MAX];
	char id[WEBAUTHN_NAME_MAX];
};
/* ERR_REFUSED: passkeys do not work there, since they need https and a name ("localhost" does with
 * http, an address does not). Only http://127.0.0.1, of development, stands for localhost at that
 * port, where the same service is found. */
int webauthn_party_read(const char *public_url, struct webauthn_party *ret, struct error *error)
	MUST_CHECK;

#endif
