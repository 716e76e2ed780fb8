#include "seal/trust.h"

#include <openssl/x509v3.h>

#include "seal/certificate.h"

int trust_describe(struct slice pem, struct certificate_facts *ret_facts, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	int result = certificates_read(pem, &certificates, error);

	return result ? result : certificate_describe(sk_X509_value(certificates, 0), ret_facts, error);
}

int trust_add_roots(struct slice pem, struct buf *out, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	int result = certificates_read(pem, &certificates, error);

	for (int i = 0; !result && i < sk_X509_num(certificates); i++) {
		X509 *certificate = sk_X509_value(certificates, i);
		BUF_AUTO struct buf text;
		buf_init(&text, PEM_FILE_MAX);
		if (!(X509_get_extension_flags(certificate) & EXFLAG_SS))
			continue;
		result = certificate_write(certificate, &text);
		struct slice present = buf_slice(out);
		if (!result && !memmem(present.data, present.size, text.data, text.size))
			buf_add_slice(out, buf_slice(&text));
	}
	return result ? result : buf_check(out);
}
