/* An OCSP answer behind the certificate that it is about and its issuer: what is refused changes
 * nothing, and what counts is in order. */
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
