/* A CRL behind the certificate that it is about and its issuer: what is refused changes nothing,
 * and what counts is in order. */
#include "pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pair pair;

	if (pair_read(data, size, &pair)) {
		struct revocation_facts facts = untouched;
		int result = revocation_check_crl(pair.rest, pair.certificate, pair.issuer, &facts, NULL);
		pair_require(result, &facts, "a CRL");
	}
	pair_free(&pair);
	return 0;
}
