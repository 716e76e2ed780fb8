/* Checks that certificates may be used for signatures, for timestamps, or to issue such
 * certificates. */
#include <openssl/x509v3.h>

#include "seal/certificate.h"

#define NAME_SIZE 256
#define SECURITY_BITS_MIN 112 /* OpenSSL's security level 2 */

/* Key purposes that allow signing documents; most certificates for seals have emailProtection. */
static const char *const document_purposes[] = {
	"1.3.6.1.5.5.7.3.36",      /* id-kp-documentSigning, RFC 9336 */
	"1.3.6.1.5.5.7.3.4",       /* id-kp-emailProtection */
	"1.2.840.113583.1.1.5",    /* Adobe: authentic documents */
	"1.3.6.1.4.1.311.10.3.12", /* Microsoft: document signing */
	"2.5.29.37.0",             /* anyExtendedKeyUsage */
	NULL,
};
static const char *const time_purposes[] = {
	"1.3.6.1.5.5.7.3.8", /* id-kp-timeStamping */
	"2.5.29.37.0",
	NULL,
};
/* Key purposes that exclude signing evidence. */
static const char *const foreign_purposes[] = {
	"1.3.6.1.5.5.7.3.1", /* id-kp-serverAuth */
	"1.3.6.1.5.5.7.3.3", /* id-kp-codeSigning */
	"1.3.6.1.5.5.7.3.8", /* id-kp-timeStamping */
	"1.3.6.1.5.5.7.3.9", /* id-kp-OCSPSigning */
	NULL,
};

static void usage_cleanup(EXTENDED_KEY_USAGE **usage)
{
	sk_ASN1_OBJECT_pop_free(*usage, ASN1_OBJECT_free);
}
#define USAGE_AUTO __attribute__((cleanup(usage_cleanup)))

static int refuse(const X509 *certificate, const char *reason, struct error *error)
{
	char name[NAME_SIZE];

	certificate_name(X509_get_subject_name(certificate), name, sizeof name);
	return error_cause(error, ERR_INVALID_EVIDENCE, "the certificate of %s %s", name, reason);
}

/* Reads the extended key usage; NULL: none. Returns false if it is unreadable or repeated. */
static bool read_usage(const X509 *certificate, EXTENDED_KEY_USAGE **ret_usage, bool *ret_critical)
{
	int critical = -1;

	*ret_usage = X509_get_ext_d2i(certificate, NID_ext_key_usage, &critical, NULL);
	*ret_critical = critical == 1;
	return *ret_usage || critical == -1;
}

static bool names_any(const EXTENDED_KEY_USAGE *usage, const char *const *purposes)
{
	for (int i = 0; i < sk_ASN1_OBJECT_num(usage); i++) {
		char text[80];
		int size = OBJ_obj2txt(text, sizeof text, sk_ASN1_OBJECT_value(usage, i), 1);
		for (const char *const *purpose = purposes; *purpose; purpose++)
			if (size > 0 && (size_t)size < sizeof text && strcmp(text, *purpose) == 0)
				return true;
	}
	return false;
}

/* RFC 3161 section 2.3 requires timeStamping to be critical and the only purpose. OpenSSL's purpose
 * check ignores key purposes that it does not know. */
static bool only_stamps_time(const EXTENDED_KEY_USAGE *usage, bool critical)
{
	return usage && critical && sk_ASN1_OBJECT_num(usage) == 1 &&
	       OBJ_obj2nid(sk_ASN1_OBJECT_value(usage, 0)) == NID_time_stamp;
}

int certificate_check_signer(X509 *signer, enum path_purpose purpose, struct error *error)
{
	/* Without the extension every usage is allowed, and the function returns all bits. */
	uint32_t key_usage = X509_get_key_usage(signer);
	USAGE_AUTO EXTENDED_KEY_USAGE *usage = NULL;
	bool critical;

	if (!(key_usage & (KU_DIGITAL_SIGNATURE | KU_NON_REPUDIATION)))
		return refuse(signer, "is of a key that may not sign", error);
	if (X509_check_ca(signer) != 0)
		return refuse(signer, "is a certification authority's: it may only sign certificates",
		              error);
	if (!read_usage(signer, &usage, &critical))
		return openssl_failure(error, "the extended key usage of the certificate is unreadable");
	if (purpose == PATH_TIMESTAMP && !only_stamps_time(usage, critical))
		return refuse(signer,
		              "is not a timestamp authority's: its extended key usage is not "
		              "timeStamping, critical and alone",
		              error);
	if (purpose == PATH_SIGNATURE && usage &&
	    (names_any(usage, foreign_purposes) || !names_any(usage, document_purposes)))
		return refuse(signer,
		              "is not for signing documents: its extended key usage is for something "
		              "else",
		              error);
	return 0;
}

/* The last certificate of a path may be self-signed. */
static bool is_root(X509 *certificate)
{
	return X509_get_extension_flags(certificate) & EXFLAG_SS;
}

static bool well_signed(X509 *certificate)
{
	int bits = 0;

	return X509_get_signature_info(certificate, NULL, NULL, &bits, NULL) == 1 &&
	       bits >= SECURITY_BITS_MIN;
}

/* OpenSSL does not check the extended key usage of issuers, nor how the topmost certificate was
 * signed, even if it is not a root. */
int certificate_check_issuers(const STACK_OF(X509) * path, enum path_purpose purpose,
                              struct error *error)
{
	for (int i = 0; i < sk_X509_num(path); i++) {
		X509 *certificate = sk_X509_value(path, i);
		USAGE_AUTO EXTENDED_KEY_USAGE *usage = NULL;
		bool critical;
		if (is_root(certificate))
			continue;
		if (!well_signed(certificate))
			return refuse(certificate, "was signed with a digest that is too weak", error);
		if (i == 0)
			continue;
		if (!read_usage(certificate, &usage, &critical))
			return openssl_failure(error, "the extended key usage of a certificate is unreadable");
		if (usage &&
		    !names_any(usage, purpose == PATH_TIMESTAMP ? time_purposes : document_purposes))
			return refuse(certificate,
			              "may not issue certificates for this purpose: its extended key usage is "
			              "for something else",
			              error);
	}
	return 0;
}
