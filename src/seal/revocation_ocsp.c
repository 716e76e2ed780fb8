/* OCSP requests and checks of OCSP responses (RFC 6960). */
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include "seal/certificate.h"
#include "seal/revocation_data.h"

#define CERTIFICATES_TRIED_MAX 8
#define SECURITY_BITS_MIN 112

static void response_cleanup(OCSP_RESPONSE **response)
{
	OCSP_RESPONSE_free(*response);
}

static void basic_cleanup(OCSP_BASICRESP **basic)
{
	OCSP_BASICRESP_free(*basic);
}
#define BASIC_AUTO __attribute__((cleanup(basic_cleanup)))

static int refuse(struct error *error, const char *reason)
{
	return revocation_refuse(error, "the OCSP response", reason);
}

int revocation_ocsp_request(const X509 *certificate, const X509 *issuer, struct buf *out,
                            struct error *error)
{
	OCSP_REQUEST *request = OCSP_REQUEST_new();
	OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), certificate, issuer);
	unsigned char *der = NULL;
	int size = -1;

	if (request && id && OCSP_request_add0_id(request, id)) {
		id = NULL;
		size = i2d_OCSP_REQUEST(request, &der);
	}
	if (size > 0)
		buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	OCSP_CERTID_free(id);
	OCSP_REQUEST_free(request);
	ERR_clear_error();
	return size > 0 ? buf_check(out) : error_cause(error, ERR_NO_MEMORY, "an OCSP request");
}

/* OpenSSL's parser accepts more than DER and verifies over its own re-encoding. */
static int check_encoding(int status, OCSP_BASICRESP *basic, struct slice der, struct error *error)
{
	unsigned char *again = NULL;
	OCSP_RESPONSE *response = OCSP_response_create(status, basic);
	int size = response ? i2d_OCSP_RESPONSE(response, &again) : -1;
	bool same = size > 0 && slice_equal(slice_make(again, (size_t)size), der);

	OPENSSL_free(again);
	OCSP_RESPONSE_free(response);
	return same ? OK : openssl_failure(error, "the OCSP response is not DER");
}

static int parse(struct slice der, OCSP_BASICRESP **ret_basic, struct error *error)
{
	const unsigned char *position = (const unsigned char *)der.data;

	if (der.size > REVOCATION_OCSP_MAX)
		return refuse(error, "is too long");
	__attribute__((cleanup(response_cleanup))) OCSP_RESPONSE *response =
		d2i_OCSP_RESPONSE(NULL, &position, (long)der.size);
	if (!response)
		return openssl_failure(error, "the OCSP response does not parse");
	int status = OCSP_response_status(response);
	if (status != OCSP_RESPONSE_STATUS_SUCCESSFUL)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the OCSP responder says %s",
		                   OCSP_response_status_str(status));
	*ret_basic = OCSP_response_get1_basic(response);
	if (!*ret_basic)
		return openssl_failure(error, "the OCSP response is not a basic one");
	return check_encoding(status, *ret_basic, der, error);
}

/* Returns whether the response was signed with the certificate's key and names it as the responder:
 * 1, 0 or ERR_NO_MEMORY. */
static int is_signed_by(OCSP_BASICRESP *basic, X509 *certificate)
{
	STACK_OF(X509) *one = sk_X509_new_null();

	if (!one || sk_X509_push(one, certificate) <= 0) {
		sk_X509_free(one);
		return ERR_NO_MEMORY;
	}
	ERR_clear_error();
	bool by = OCSP_basic_verify(basic, one, NULL, OCSP_NOINTERN | OCSP_NOVERIFY) == 1;
	sk_X509_free(one);
	return by || openssl_failure(NULL, "") != ERR_NO_MEMORY ? by : ERR_NO_MEMORY;
}

/* Returns whether the issuer certified the responder for this purpose (RFC 6960 section
 * 4.2.2.2). */
static bool may_respond(X509 *responder, X509 *issuer)
{
	int bits = 0;

	return X509_check_issued(issuer, responder) == X509_V_OK &&
	       X509_verify(responder, X509_get0_pubkey(issuer)) == 1 &&
	       X509_get_signature_info(responder, NULL, NULL, &bits, NULL) == 1 &&
	       bits >= SECURITY_BITS_MIN &&
	       !(X509_get_extension_flags(responder) & (EXFLAG_CRITICAL | EXFLAG_INVALID)) &&
	       X509_get_extension_flags(responder) & EXFLAG_XKUSAGE &&
	       X509_get_extended_key_usage(responder) & XKU_OCSP_SIGN &&
	       X509_get_key_usage(responder) & (KU_DIGITAL_SIGNATURE | KU_NON_REPUDIATION) &&
	       X509_check_ca(responder) == 0;
}

/* Finds the responder's certificate: the issuer, or one inside the response. The caller gets no
 * reference of its own. */
static int find_responder(OCSP_BASICRESP *basic, X509 *issuer, X509 **ret_responder,
                          struct error *error)
{
	const STACK_OF(X509) *inside = OCSP_resp_get0_certs(basic);

	int signed_by = is_signed_by(basic, issuer);
	if (signed_by == 1)
		*ret_responder = issuer;
	if (signed_by != 0)
		return signed_by == 1 ? OK : signed_by;
	for (int i = 0; i < sk_X509_num(inside) && i < CERTIFICATES_TRIED_MAX; i++) {
		X509 *candidate = sk_X509_value(inside, i);
		signed_by = is_signed_by(basic, candidate);
		if (signed_by < 0)
			return signed_by;
		if (signed_by == 0)
			continue;
		*ret_responder = candidate;
		ERR_clear_error();
		return may_respond(candidate, issuer)
		           ? OK
		           : openssl_failure(error,
		                             "the OCSP response is of a responder that the issuer did "
		                             "not certify for it");
	}
	return refuse(error, "is not signed by an authorized responder");
}

static int check_signature(OCSP_BASICRESP *basic, X509 *issuer, int64_t produced_us,
                           X509 **ret_responder, struct error *error)
{
	X509 *responder = NULL;
	int result = find_responder(basic, issuer, &responder, error);

	if (result)
		return result;
	if (!revocation_is_strongly_signed(OCSP_resp_get0_tbs_sigalg(basic),
	                                   X509_get0_pubkey(responder)))
		return refuse(error, "was signed with a digest or a key that is too weak");
	if (!revocation_is_valid_at(responder, produced_us))
		return refuse(error, "was made while its responder's certificate was not valid");
	*ret_responder = responder;
	return OK;
}

/* Returns 1, 0 or ERR_NO_MEMORY. */
static int is_about(const OCSP_SINGLERESP *single, const X509 *certificate, const X509 *issuer)
{
	static const int known[] = {NID_sha1, NID_sha256, NID_sha384, NID_sha512};
	ASN1_OBJECT *algorithm = NULL;
	/* The function lacks a const qualifier. */
	OCSP_CERTID *id = (OCSP_CERTID *)OCSP_SINGLERESP_get0_id(single);
	int about = 0;

	OCSP_id_get0_info(NULL, &algorithm, NULL, NULL, id);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (OBJ_obj2nid(algorithm) != known[i])
			continue;
		OCSP_CERTID *own = OCSP_cert_to_id(EVP_get_digestbynid(known[i]), certificate, issuer);
		about = own ? OCSP_id_cmp(own, id) == 0 : ERR_NO_MEMORY;
		OCSP_CERTID_free(own);
	}
	return about;
}

static int find_single(OCSP_BASICRESP *basic, const X509 *certificate, const X509 *issuer,
                       OCSP_SINGLERESP **ret_single, struct error *error)
{
	OCSP_SINGLERESP *found = NULL;

	for (int i = 0; i < OCSP_resp_count(basic); i++) {
		OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
		int about = is_about(single, certificate, issuer);
		if (about < 0)
			return about;
		if (about == 0)
			continue;
		if (found)
			return refuse(error, "contains two answers about the certificate");
		found = single;
	}
	if (!found)
		return error_cause(error, ERR_NOT_FOUND, "the OCSP response is about other certificates");
	if (OCSP_BASICRESP_get_ext_by_critical(basic, 1, -1) >= 0 ||
	    OCSP_SINGLERESP_get_ext_by_critical(found, 1, -1) >= 0)
		return refuse(error, "has an unknown critical extension");
	*ret_single = found;
	return OK;
}

static bool read_invalidity(OCSP_SINGLERESP *single, struct revocation_facts *facts)
{
	ASN1_GENERALIZEDTIME *invalid =
		OCSP_SINGLERESP_get1_ext_d2i(single, NID_invalidity_date, NULL, NULL);
	int64_t invalid_us = facts->revoked_us;
	bool read = !invalid || certificate_time(invalid, &invalid_us);

	if (invalid_us < facts->revoked_us)
		facts->revoked_us = invalid_us;
	ASN1_GENERALIZEDTIME_free(invalid);
	return read;
}

static int read_single(OCSP_SINGLERESP *single, int64_t produced_us, struct revocation_facts *facts,
                       struct error *error)
{
	ASN1_GENERALIZEDTIME *revoked = NULL;
	ASN1_GENERALIZEDTIME *this_update = NULL;
	ASN1_GENERALIZEDTIME *next_update = NULL;
	int reason = REVOCATION_REASON_NONE;
	int status = OCSP_single_get0_status(single, &reason, &revoked, &this_update, &next_update);

	*facts = (struct revocation_facts){.status = REVOCATION_STATUS_NONE,
	                                   .next_us = TIME_NONE,
	                                   .revoked_us = TIME_NONE,
	                                   .reason = REVOCATION_REASON_NONE};
	if (!this_update || !certificate_time(this_update, &facts->issued_us) ||
	    (next_update &&
	     (!certificate_time(next_update, &facts->next_us) || facts->next_us < facts->issued_us)))
		return refuse(error, "does not state its period of validity");
	if (produced_us < facts->issued_us)
		facts->issued_us = produced_us;
	if (status == V_OCSP_CERTSTATUS_GOOD)
		facts->status = REVOCATION_STATUS_GOOD;
	if (status != V_OCSP_CERTSTATUS_REVOKED)
		return OK;
	facts->status = REVOCATION_STATUS_REVOKED;
	facts->reason = reason;
	if (!revoked || !certificate_time(revoked, &facts->revoked_us) ||
	    !read_invalidity(single, facts))
		return refuse(error, "does not state when the certificate was revoked");
	return OK;
}

int revocation_check_ocsp(struct slice der, X509 *certificate, X509 *issuer,
                          struct revocation_facts *ret_facts, X509 **ret_responder,
                          struct error *error)
{
	BASIC_AUTO OCSP_BASICRESP *basic = NULL;
	OCSP_SINGLERESP *single = NULL;
	X509 *responder = NULL;
	struct revocation_facts facts;
	int64_t produced_us = TIME_NONE;

	ERR_clear_error();
	int result = parse(der, &basic, error);
	if (!result)
		result = find_single(basic, certificate, issuer, &single, error);
	if (!result && !certificate_time(OCSP_resp_get0_produced_at(basic), &produced_us))
		result = refuse(error, "does not state when it was produced");
	if (!result)
		result = check_signature(basic, issuer, produced_us, &responder, error);
	if (!result)
		result = read_single(single, produced_us, &facts, error);
	ERR_clear_error();
	if (result)
		return result;
	if (responder == issuer || X509_get_ext_by_NID(responder, NID_id_pkix_OCSP_noCheck, -1) >= 0)
		responder = NULL;
	if (ret_responder && responder && X509_up_ref(responder) != 1)
		return ERR_NO_MEMORY;
	if (ret_responder)
		*ret_responder = responder;
	*ret_facts = facts;
	return OK;
}
