/* Checks of certificate revocation lists (RFC 5280). */
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "seal/certificate.h"
#include "seal/revocation_data.h"

static void crl_cleanup(X509_CRL **crl)
{
	X509_CRL_free(*crl);
}

static void point_cleanup(ISSUING_DIST_POINT **point)
{
	ISSUING_DIST_POINT_free(*point);
}

static void points_cleanup(CRL_DIST_POINTS **points)
{
	CRL_DIST_POINTS_free(*points);
}

static int refuse(struct error *error, const char *reason)
{
	return revocation_refuse(error, "the CRL", reason);
}

static int parse(struct slice der, X509_CRL **ret_crl, struct error *error)
{
	const unsigned char *position = (const unsigned char *)der.data;

	if (der.size > REVOCATION_CRL_MAX)
		return refuse(error, "is too long");
	X509_CRL *crl = d2i_X509_CRL(NULL, &position, (long)der.size);
	if (!crl)
		return openssl_failure(error, "the CRL does not parse");
	if ((const char *)position != der.data + der.size) {
		X509_CRL_free(crl);
		return refuse(error, "has trailing bytes");
	}
	*ret_crl = crl;
	return OK;
}

/* An entry with a critical extension, such as the certificate issuer in an indirect CRL, changes
 * the meaning of the following entries. */
static int check_critical(X509_CRL *crl, struct error *error)
{
	STACK_OF(X509_REVOKED) *entries = X509_CRL_get_REVOKED(crl);

	if (X509_CRL_get_ext_by_NID(crl, NID_delta_crl, -1) >= 0)
		return refuse(error, "is a delta");
	for (int i = -1; (i = X509_CRL_get_ext_by_critical(crl, 1, i)) >= 0;) {
		const X509_EXTENSION *extension = X509_CRL_get_ext(crl, i);
		if (OBJ_obj2nid(X509_EXTENSION_get_object((X509_EXTENSION *)extension)) !=
		    NID_issuing_distribution_point)
			return refuse(error, "has an unknown critical extension");
	}
	for (int i = 0; i < sk_X509_REVOKED_num(entries); i++) {
		const X509_REVOKED *entry = sk_X509_REVOKED_value(entries, i);
		for (int j = -1; (j = X509_REVOKED_get_ext_by_critical(entry, 1, j)) >= 0;)
			if (OBJ_obj2nid(X509_EXTENSION_get_object(X509_REVOKED_get_ext(entry, j))) !=
			    NID_crl_reason)
				return refuse(error, "is indirect, or has entries of an unknown kind");
	}
	return OK;
}

static bool share_a_name(const GENERAL_NAMES *names, const GENERAL_NAMES *others)
{
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
		for (int j = 0; j < sk_GENERAL_NAME_num(others); j++)
			if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(names, i),
			                     sk_GENERAL_NAME_value(others, j)) == 0)
				return true;
	return false;
}

/* RFC 5280 section 6.3.3 (b)(2)(i). */
static int check_point(const DIST_POINT_NAME *name, const X509 *certificate, struct error *error)
{
	int critical;
	__attribute__((cleanup(points_cleanup))) CRL_DIST_POINTS *points =
		X509_get_ext_d2i(certificate, NID_crl_distribution_points, &critical, NULL);

	if (!points && critical != -1)
		return openssl_failure(error, "the certificate's CRL distribution points");
	if (name->type != 0)
		return refuse(error, "is of a distribution point without a full name");
	for (int i = 0; i < sk_DIST_POINT_num(points); i++) {
		const DIST_POINT_NAME *own = sk_DIST_POINT_value(points, i)->distpoint;
		if (own && own->type == 0 && share_a_name(name->name.fullname, own->name.fullname))
			return OK;
	}
	return refuse(error, "is of another distribution point");
}

static int check_scope(X509_CRL *crl, X509 *certificate, struct error *error)
{
	int critical;
	__attribute__((cleanup(point_cleanup))) ISSUING_DIST_POINT *point =
		X509_CRL_get_ext_d2i(crl, NID_issuing_distribution_point, &critical, NULL);
	bool authority = X509_check_ca(certificate) != 0;

	if (!point)
		return critical == -1 ? OK : openssl_failure(error, "the CRL's distribution point");
	if (point->indirectCRL > 0)
		return refuse(error, "is indirect");
	if (point->onlysomereasons)
		return refuse(error, "is limited to some reasons");
	if (point->onlyattr > 0 || (point->onlyuser > 0 && authority) ||
	    (point->onlyCA > 0 && !authority))
		return refuse(error, "is for other kinds of certificates");
	return point->distpoint ? check_point(point->distpoint, certificate, error) : OK;
}

static int check_signature(X509_CRL *crl, X509 *issuer, struct error *error)
{
	const X509_ALGOR *algorithm;
	EVP_PKEY *key = X509_get0_pubkey(issuer);

	X509_CRL_get0_signature(crl, NULL, &algorithm);
	if (!(X509_get_key_usage(issuer) & KU_CRL_SIGN))
		return refuse(error, "belongs to an issuer that may not sign CRLs");
	if (!revocation_is_strongly_signed(algorithm, key))
		return refuse(error, "was signed with a digest or a key that is too weak");
	if (X509_CRL_verify(crl, key) != 1)
		return openssl_failure(error, "the CRL's signature is wrong");
	return OK;
}

static int read_times(X509_CRL *crl, struct revocation_facts *facts, struct error *error)
{
	const ASN1_TIME *next = X509_CRL_get0_nextUpdate(crl);

	if (!certificate_time(X509_CRL_get0_lastUpdate(crl), &facts->issued_us) || !next ||
	    !certificate_time(next, &facts->next_us) || facts->next_us < facts->issued_us)
		return refuse(error, "does not state its period of validity");
	return OK;
}

/* An unreadable revocation time counts as a revocation from the beginning. */
static int read_entry(X509_CRL *crl, X509 *certificate, struct revocation_facts *facts,
                      struct error *error)
{
	X509_REVOKED *entry = NULL;
	int critical;

	facts->status = REVOCATION_STATUS_GOOD;
	facts->revoked_us = TIME_NONE;
	facts->reason = REVOCATION_REASON_NONE;
	if (X509_CRL_get0_by_cert(crl, &entry, certificate) == 0)
		return OK;
	facts->status = REVOCATION_STATUS_REVOKED;
	ASN1_ENUMERATED *reason = X509_REVOKED_get_ext_d2i(entry, NID_crl_reason, &critical, NULL);
	if (reason)
		facts->reason = (int)ASN1_ENUMERATED_get(reason);
	ASN1_ENUMERATED_free(reason);
	ASN1_GENERALIZEDTIME *invalid =
		X509_REVOKED_get_ext_d2i(entry, NID_invalidity_date, NULL, NULL);
	int64_t invalid_us;
	bool read = certificate_time(X509_REVOKED_get0_revocationDate(entry), &facts->revoked_us) &&
	            (reason || critical == -1);
	if (invalid && certificate_time(invalid, &invalid_us) && invalid_us < facts->revoked_us)
		facts->revoked_us = invalid_us;
	ASN1_GENERALIZEDTIME_free(invalid);
	return read ? OK : openssl_failure(error, "the CRL has an entry that cannot be read");
}

int revocation_check_crl(struct slice der, X509 *certificate, X509 *issuer,
                         struct revocation_facts *ret_facts, struct error *error)
{
	__attribute__((cleanup(crl_cleanup))) X509_CRL *crl = NULL;
	struct revocation_facts facts;

	ERR_clear_error();
	int result = parse(der, &crl, error);
	if (!result && X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_issuer_name(certificate)) != 0)
		result = error_cause(error, ERR_NOT_FOUND, "the CRL is of another issuer");
	if (!result)
		result = check_signature(crl, issuer, error);
	if (!result)
		result = check_critical(crl, error);
	if (!result)
		result = check_scope(crl, certificate, error);
	if (!result)
		result = read_times(crl, &facts, error);
	if (!result && !revocation_is_valid_at(issuer, facts.issued_us))
		result = refuse(error, "was issued while its issuer's certificate was not valid");
	if (!result)
		result = read_entry(crl, certificate, &facts, error);
	ERR_clear_error();
	if (!result)
		*ret_facts = facts;
	return result;
}
