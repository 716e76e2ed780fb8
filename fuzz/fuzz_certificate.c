/* The extensions of a certificate. The addresses that it states for revocation data are HTTP
 * addresses, few, and complete. */
#include "fuzz.h"
#include "seal/revocation_data.h"

static void check_urls(const struct revocation_urls *urls)
{
	require(urls->count <= REVOCATION_URLS_MAX, "the addresses are few");
	for (size_t i = 0; i < urls->count; i++)
		require(http_url_check(slice_of(urls->urls[i]), true, "url", NULL) == 0,
		        "the addresses are valid");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct revocation_sources sources;
	const unsigned char *position = data;
	X509 *certificate = d2i_X509(NULL, &position, (long)size);

	if (certificate && revocation_sources(certificate, &sources, NULL) == 0) {
		check_urls(&sources.ocsp);
		check_urls(&sources.crl);
	}
	X509_free(certificate);
	return 0;
}
