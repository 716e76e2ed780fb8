/* A CRL, preceded by a certificate and its issuer. A rejected CRL changes nothing, and the facts of
 * an accepted one are consistent. */
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
