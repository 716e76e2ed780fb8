/* The extensions of a certificate. The addresses that it states for revocation data are HTTP
 * addresses, few, and complete. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "seal/revocation_data.h"

static void require(const struct revocation_urls *urls)
{
	bool good = urls->count <= REVOCATION_URLS_MAX;

	for (size_t i = 0; good && i < urls->count; i++)
		good = http_url_check(slice_of(urls->urls[i]), true, "url", NULL) == 0;
	if (good)
		return;
	fprintf(stderr, "broken: the addresses\n");
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct revocation_sources sources;
	const unsigned char *position = data;
	X509 *certificate = d2i_X509(NULL, &position, (long)size);

	if (certificate && revocation_sources(certificate, &sources, NULL) == 0) {
		require(&sources.ocsp);
		require(&sources.crl);
	}
	X509_free(certificate);
	return 0;
}
