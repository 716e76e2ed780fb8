#include "base/pem.h"

#include <ctype.h>

static bool has(struct slice text, const char *words)
{
	return text.size && memmem(text.data, text.size, words, strlen(words));
}

const char *pem_certificates_fault(struct slice text)
{
	if (has(text, "-----BEGIN CERTIFICATE-----") || has(text, "-----BEGIN X509 CERTIFICATE-----") ||
	    has(text, "-----BEGIN TRUSTED CERTIFICATE-----"))
		return NULL;
	if (text.size > 1 && *text.data == 0x30 && text.data[1] & 0x80) /* a long SEQUENCE */
		return "is in DER form and must be PEM: convert it with 'openssl x509 -inform DER -in FILE "
			   "-out FILE.pem'";
	while (text.size && isspace((unsigned char)*text.data))
		text = slice_make(text.data + 1, text.size - 1);
	if (!text.size)
		return "is empty";
	if (*text.data == '<')
		return "is a web page or XML and must contain certificates in PEM form";
	if (has(text, "PRIVATE KEY-----"))
		return "contains a private key and no certificate";
	if (has(text, "CERTIFICATE REQUEST-----"))
		return "contains a certificate request and no certificate";
	if (has(text, "-----BEGIN PKCS7-----"))
		return "is PKCS #7: convert it with 'openssl pkcs7 -print_certs'";
	return "contains no certificate in PEM form";
}
