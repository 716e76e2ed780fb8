/* An OCSP response, preceded by a certificate and its issuer. A rejected response changes nothing,
 * and the facts of an accepted one are consistent. */
#include "pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pair pair;
	X509 *responder = NULL;

	if (pair_read(data, size, &pair)) {
		struct revocation_facts facts = untouched;
		int result = revocation_check_ocsp(pair.rest, pair.certificate, pair.issuer, &facts,
		                                   &responder, NULL);
		pair_require(result, &facts, "an OCSP answer");
		X509_free(responder);
	}
	pair_free(&pair);
	return 0;
}
