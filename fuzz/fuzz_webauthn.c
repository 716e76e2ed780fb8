/* Passkey registrations and sign-ins from browsers. The input is two bytes with the size of the
 * client data, the client data, and the authenticator data. For a sign-in, the last 64 bytes are
 * the signature. */
#include "console/webauthn.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct webauthn_party party = {"https://example.org", "example.org"};
	static const char challenge[WEBAUTHN_CHALLENGE_SIZE];
	struct webauthn_credential made = {0};
	struct error error = {0};
	uint32_t count = 0;
	if (size < 2)
		return 0;
	size_t client_size = (size_t)data[0] << 8 | data[1];
	if (client_size > size - 2)
		client_size = size - 2;
	struct slice client = slice_make(data + 2, client_size);
	struct slice rest = slice_make(data + 2 + client_size, size - 2 - client_size);
	struct slice asked = slice_make(challenge, sizeof challenge);
	int result = webauthn_register(&party, asked, client, rest, &made, &error);
	require(result == OK || (result == ERR_REFUSED && error.cause[0]),
	        "a rejected input has a cause");
	if (result) {
		require(!made.id_size, "a rejected input writes nothing");
		made.algorithm = WEBAUTHN_EDDSA;
		made.public_key_size = 32;
	} else {
		require(made.id_size && made.id_size <= WEBAUTHN_ID_MAX &&
		            made.public_key_size <= WEBAUTHN_KEY_MAX,
		        "a credential is within its limits");
	}
	size_t signature = rest.size < 64 ? rest.size : 64;
	result =
		webauthn_verify(&party, asked, &made, client, slice_make(rest.data, rest.size - signature),
	                    slice_make(rest.data + rest.size - signature, signature), &count, &error);
	require(result == OK || result == ERR_REFUSED, "a sign-in is accepted or rejected");
	return 0;
}
