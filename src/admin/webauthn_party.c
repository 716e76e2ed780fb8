#include "admin/webauthn_party.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "net/origin.h"

static bool is_address(const char *host)
{
	struct in_addr address;
	return *host == '[' || inet_pton(AF_INET, host, &address) == 1;
}

int webauthn_party_read(const char *public_url, struct webauthn_party *ret, struct error *error)
{
	struct origin origin;
	if (!origin_read(public_url, &origin))
		return error_set(error, ERR_REFUSED, MSG_USER_NO_PASSKEYS, NULL);
	if (!origin.secure && strcmp(origin.host, "127.0.0.1") == 0) {
		memcpy(origin.text, "http://localhost", sizeof "http://127.0.0.1" - 1);
		snprintf(origin.host, sizeof origin.host, "localhost");
	}
	if (is_address(origin.host) || (!origin.secure && strcmp(origin.host, "localhost") != 0))
		return error_set(error, ERR_REFUSED, MSG_USER_NO_PASSKEYS, NULL);
	snprintf(ret->origin, sizeof ret->origin, "%s", origin.text);
	snprintf(ret->id, sizeof ret->id, "%s", origin.host);
	return OK;
}
