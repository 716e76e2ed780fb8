/* Input of the revocation targets: a DER certificate, the DER certificate of its issuer, and a CRL
 * or OCSP response about the first one. */
#ifndef FUZZ_PAIR_H
#define FUZZ_PAIR_H

#include "fuzz.h"
#include "seal/revocation_data.h"

struct pair {
	X509 *certificate;
	X509 *issuer;
	struct slice rest;
};

static const struct revocation_facts untouched = {.reason = 1234};

static inline bool pair_read(const uint8_t *data, size_t size, struct pair *ret)
{
	const unsigned char *position = data;

	*ret = (struct pair){.certificate = d2i_X509(NULL, &position, (long)size)};
	if (ret->certificate)
		ret->issuer = d2i_X509(NULL, &position, (long)(size - (size_t)(position - data)));
	ret->rest = slice_make(position, size - (size_t)(position - data));
	return ret->issuer != NULL;
}

static inline void pair_free(struct pair *pair)
{
	X509_free(pair->certificate);
	X509_free(pair->issuer);
}

static inline void pair_require(int result, const struct revocation_facts *facts, const char *what)
{
	bool revoked = facts->status == REVOCATION_STATUS_REVOKED;
	bool good = !result ? facts->reason >= REVOCATION_REASON_NONE && facts->reason != 1234 &&
	                          facts->issued_us != TIME_NONE &&
	                          (facts->revoked_us != TIME_NONE) == revoked
	                    : memcmp(facts, &untouched, sizeof untouched) == 0;

	require(good, what);
}

#endif
