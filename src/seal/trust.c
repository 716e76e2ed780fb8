#include "seal/trust.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "seal/certificate.h"

int trust_describe(struct slice pem, struct certificate_facts *ret_facts, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	int result = certificates_read(pem, &certificates, error);

	return result ? result : certificate_describe(sk_X509_value(certificates, 0), ret_facts, error);
}

int trust_describe_path(struct slice pem, struct certificate_facts *ret_facts, int64_t *ret_from_us,
                        int64_t *ret_until_us, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	struct certificate_facts own = {0}, facts;
	int64_t from_us = INT64_MIN, until_us = INT64_MAX;
	int result = certificates_read(pem, &certificates, error);

	for (int i = 0; !result && i < sk_X509_num(certificates); i++) {
		result = certificate_describe(sk_X509_value(certificates, i), &facts, error);
		if (result)
			break;
		if (i == 0)
			own = facts;
		if (facts.not_before_us > from_us)
			from_us = facts.not_before_us;
		if (facts.not_after_us < until_us)
			until_us = facts.not_after_us;
	}
	if (result)
		return result;
	*ret_facts = own;
	*ret_from_us = from_us;
	*ret_until_us = until_us;
	return OK;
}

int trust_certificate_der(struct slice pem, struct buf *der, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	int result = certificates_read(pem, &certificates, error);
	unsigned char *bytes = NULL;
	int size = result ? 0 : i2d_X509(sk_X509_value(certificates, 0), &bytes);

	if (size > 0)
		buf_add(der, bytes, (size_t)size);
	OPENSSL_free(bytes);
	return result ? result : size > 0 ? buf_check(der) : ERR_NO_MEMORY;
}

int trust_path_to_pem(struct slice path, struct buf *pem, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	int result = certificates_read_der(path, &certificates, error);

	return result ? result : certificates_write(certificates, pem);
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

/* ---- names ---- */

/* Reads one value and removes its escapes; false: it does not fit or is empty. */
static bool take_value(const char **at, char *value, size_t size)
{
	size_t used = 0;
	const char *c = *at;
	for (; *c && *c != ',' && *c != '+'; c++) {
		char byte = *c;
		if (c[0] == '\\' && isxdigit((unsigned char)c[1]) && isxdigit((unsigned char)c[2])) {
			if (!hex_decode(slice_make(c + 1, 2), &byte, 1) || (unsigned char)byte < 0x20)
				return false;
			c += 2;
		} else if (c[0] == '\\' && c[1]) {
			byte = *++c;
		}
		if (used + 1 >= size)
			return false;
		value[used++] = byte;
	}
	value[used] = 0;
	*at = c;
	return used > 0;
}

static bool read_name(const char *subject, char *common, char *organization, size_t size)
{
	const char *at = subject;
	common[0] = organization[0] = 0;
	while (*at) {
		char unused[SUBJECT_SIZE];
		bool is_common = strncmp(at, "CN=", 3) == 0 && !common[0];
		bool is_organization = strncmp(at, "O=", 2) == 0 && !organization[0];
		const char *value = strchr(at, '=');
		if (!value)
			return false;
		value++;
		if (!take_value(&value, is_common ? common : is_organization ? organization : unused, size))
			return false;
		at = *value ? value + 1 : value;
	}
	return common[0] || organization[0];
}

static void copy_text(const char *text, char name[SUBJECT_SIZE])
{
	size_t used = strlen(text);
	if (used >= SUBJECT_SIZE)
		for (used = SUBJECT_SIZE - 1; used > 0 && ((unsigned char)text[used] & 0xc0) == 0x80;)
			used--;
	memmove(name, text, used);
	name[used] = 0;
}

void trust_name(const char *subject, char name[SUBJECT_SIZE])
{
	char common[SUBJECT_SIZE], organization[SUBJECT_SIZE], made[2 * SUBJECT_SIZE + 4];
	if (!read_name(subject, common, organization, sizeof common))
		snprintf(made, sizeof made, "%s", subject);
	else if (common[0] && organization[0] && !strstr(common, organization))
		snprintf(made, sizeof made, "%s (%s)", common, organization);
	else
		snprintf(made, sizeof made, "%s", common[0] ? common : organization);
	copy_text(made, name);
}

bool trust_same_organization(const char *subject, const char *other)
{
	char common[SUBJECT_SIZE], one[SUBJECT_SIZE] = "", two[SUBJECT_SIZE] = "";
	if (strcmp(subject, other) == 0)
		return true;
	return read_name(subject, common, one, sizeof one) &&
	       read_name(other, common, two, sizeof two) && one[0] && strcmp(one, two) == 0;
}
