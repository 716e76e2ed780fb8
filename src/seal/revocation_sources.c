/* The addresses of revocation data in a certificate. */
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "seal/certificate.h"
#include "seal/revocation_data.h"

static void access_cleanup(AUTHORITY_INFO_ACCESS **access)
{
	AUTHORITY_INFO_ACCESS_free(*access);
}

static void points_cleanup(CRL_DIST_POINTS **points)
{
	CRL_DIST_POINTS_free(*points);
}

static bool add(struct revocation_urls *urls, const GENERAL_NAME *name)
{
	if (name->type != GEN_URI || urls->count == REVOCATION_URLS_MAX)
		return false;
	const ASN1_IA5STRING *text = name->d.uniformResourceIdentifier;
	struct slice url = slice_make(ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text));
	if (http_url_check(url, true, "url", NULL) != 0)
		return false;
	memcpy(urls->urls[urls->count], url.data, url.size);
	urls->urls[urls->count++][url.size] = '\0';
	return true;
}

static int read_access(const X509 *certificate, struct revocation_sources *sources,
                       struct error *error)
{
	int critical;
	__attribute__((cleanup(access_cleanup))) AUTHORITY_INFO_ACCESS *access =
		X509_get_ext_d2i(certificate, NID_info_access, &critical, NULL);

	if (!access && critical != -1)
		return openssl_failure(error, "the certificate's authority information access");
	for (int i = 0; i < sk_ACCESS_DESCRIPTION_num(access); i++) {
		const ACCESS_DESCRIPTION *item = sk_ACCESS_DESCRIPTION_value(access, i);
		if (OBJ_obj2nid(item->method) == NID_ad_OCSP && !add(&sources->ocsp, item->location))
			sources->others++;
	}
	return OK;
}

/* One usable name of a distribution point suffices: all names are locations of the same CRL. */
static bool add_point(struct revocation_urls *urls, const DIST_POINT *point)
{
	bool added = false;

	if (point->reasons || point->CRLissuer || !point->distpoint || point->distpoint->type != 0)
		return false;
	const GENERAL_NAMES *names = point->distpoint->name.fullname;
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
		added |= add(urls, sk_GENERAL_NAME_value(names, i));
	return added;
}

static int read_points(const X509 *certificate, struct revocation_sources *sources,
                       struct error *error)
{
	int critical;
	__attribute__((cleanup(points_cleanup))) CRL_DIST_POINTS *points =
		X509_get_ext_d2i(certificate, NID_crl_distribution_points, &critical, NULL);

	if (!points && critical != -1)
		return openssl_failure(error, "the certificate's CRL distribution points");
	for (int i = 0; i < sk_DIST_POINT_num(points); i++)
		if (!add_point(&sources->crl, sk_DIST_POINT_value(points, i)))
			sources->others++;
	return OK;
}

int revocation_sources(const X509 *certificate, struct revocation_sources *ret_sources,
                       struct error *error)
{
	ret_sources->ocsp.count = 0;
	ret_sources->crl.count = 0;
	ret_sources->others = 0;
	ERR_clear_error();
	int result = read_access(certificate, ret_sources, error);
	return result ? result : read_points(certificate, ret_sources, error);
}
