#include "seal/responder.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "seal/certificate.h"
#include "seal/revocation_data.h"

static void basic_cleanup(OCSP_BASICRESP **basic)
{
	OCSP_BASICRESP_free(*basic);
}
#define BASIC_AUTO __attribute__((cleanup(basic_cleanup)))

static void request_cleanup(OCSP_REQUEST **request)
{
	OCSP_REQUEST_free(*request);
}
#define REQUEST_AUTO __attribute__((cleanup(request_cleanup)))

/* ---- loading ---- */

static int read_file(const char *directory, const char *name, struct buf *out, struct error *error)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
		return error_cause(error, ERR_IO, "path too long");
	buf_clear(out);
	return file_read_whole(path, out, error);
}

/* Loads the first certificate of a file and, with `ret_key`, the key that follows it. */
static int load(const char *directory, const char *name, X509 **ret_certificate, EVP_PKEY **ret_key,
                struct error *error)
{
	struct buf pem;

	buf_init(&pem, PEM_FILE_MAX);
	int result = read_file(directory, name, &pem, error);
	BIO *bio = !result ? BIO_new_mem_buf(pem.data, (int)pem.size) : NULL;
	*ret_certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
	if (*ret_certificate && ret_key)
		*ret_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, "");
	BIO_free(bio);
	if (pem.data)
		OPENSSL_cleanse(pem.data, pem.size);
	buf_free(&pem);
	if (!result && (!*ret_certificate || (ret_key && !*ret_key)))
		result = error_cause(error, ERR_REFUSED, "%s/%s: %s", directory, name, openssl_reason());
	return result;
}

static int load_pair(const char *directory, const struct development_names *names,
                     struct responder_pair *pair, struct error *error)
{
	int result = load(directory, names->root, &pair->issuer, NULL, error);

	if (!result)
		result = load(directory, names->signer, &pair->subject, NULL, error);
	return result ? result
	              : load(directory, names->responder, &pair->certificate, &pair->key, error);
}

static int try_pair(const struct responder *responder, const struct responder_pair *pair,
                    struct error *error)
{
	BUF_AUTO struct buf request;
	BUF_AUTO struct buf answer;
	struct revocation_facts facts;
	struct sha256 ignored;

	buf_init(&request, RESPONDER_REQUEST_MAX);
	buf_init(&answer, REVOCATION_OCSP_MAX);
	int result = revocation_ocsp_request(pair->subject, pair->issuer, &request, error);
	if (!result)
		result = responder_answer(responder, buf_slice(&request), &answer, &ignored, error);
	if (!result)
		result = revocation_check_ocsp(buf_slice(&answer), pair->subject, pair->issuer, &facts,
		                               NULL, error);
	return result == ERR_INVALID_EVIDENCE ? ERR_REFUSED : result;
}

int responder_load(const char *directory, struct responder *ret_responder, struct error *error)
{
	int result = OK;

	for (size_t i = 0; !result && i < DEVELOPMENT_KINDS; i++)
		result = load_pair(directory, &development_names[i], &ret_responder->pairs[i], error);
	for (size_t i = 0; !result && i < DEVELOPMENT_KINDS; i++)
		result = try_pair(ret_responder, &ret_responder->pairs[i], error);
	return result;
}

/* ---- answering ---- */

static const struct responder_pair *find_pair(const struct responder *responder, OCSP_CERTID *asked)
{
	ASN1_OBJECT *algorithm = NULL;

	OCSP_id_get0_info(NULL, &algorithm, NULL, NULL, asked);
	const EVP_MD *digest = EVP_get_digestbyobj(algorithm);
	for (size_t i = 0; digest && i < DEVELOPMENT_KINDS; i++) {
		const struct responder_pair *pair = &responder->pairs[i];
		OCSP_CERTID *own =
			pair->issuer ? OCSP_cert_to_id(digest, pair->subject, pair->issuer) : NULL;
		bool same = own && OCSP_id_issuer_cmp(own, asked) == 0;
		OCSP_CERTID_free(own);
		if (same)
			return pair;
	}
	return NULL;
}

static bool is_of_subject(const struct responder_pair *pair, OCSP_CERTID *asked)
{
	ASN1_INTEGER *serial = NULL;

	OCSP_id_get0_info(NULL, NULL, NULL, &serial, asked);
	return ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(pair->subject)) == 0;
}

static bool fill(OCSP_BASICRESP *basic, const struct responder_pair *pair, OCSP_REQUEST *request,
                 OCSP_CERTID *asked)
{
	time_t now_s = (time_t)(clock_now_us() / US_PER_SECOND);
	ASN1_TIME *now = ASN1_TIME_set(NULL, now_s);
	ASN1_TIME *next = ASN1_TIME_set(NULL, now_s + RESPONDER_CURRENT_S);
	int status = is_of_subject(pair, asked) ? V_OCSP_CERTSTATUS_GOOD : V_OCSP_CERTSTATUS_UNKNOWN;
	bool filled = now && next && OCSP_basic_add1_status(basic, asked, status, 0, NULL, now, next) &&
	              OCSP_copy_nonce(basic, request) > 0 &&
	              OCSP_basic_sign(basic, pair->certificate, pair->key, EVP_sha256(), NULL, 0) == 1;

	ASN1_TIME_free(now);
	ASN1_TIME_free(next);
	return filled;
}

static int write_out(OCSP_BASICRESP *basic, struct buf *out, struct sha256 *ret_signed)
{
	unsigned char *der = NULL;
	unsigned char *response_data = NULL;
	OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
	int size = response ? i2d_OCSP_RESPONSE(response, &der) : -1;
	int response_data_size =
		i2d_OCSP_RESPDATA((OCSP_RESPDATA *)OCSP_resp_get0_respdata(basic), &response_data);
	bool written = size > 0 && response_data_size > 0;

	if (written) {
		buf_add(out, der, (size_t)size);
		*ret_signed = sha256_of(response_data, (size_t)response_data_size);
	}
	OPENSSL_free(response_data);
	OPENSSL_free(der);
	OCSP_RESPONSE_free(response);
	return written ? buf_check(out) : ERR_NO_MEMORY;
}

int responder_answer(const struct responder *responder, struct slice request, struct buf *out,
                     struct sha256 *ret_signed, struct error *error)
{
	const unsigned char *position = (const unsigned char *)request.data;

	if (request.size > RESPONDER_REQUEST_MAX)
		return error_cause(error, ERR_REFUSED, "the OCSP request is too long");
	REQUEST_AUTO OCSP_REQUEST *parsed = d2i_OCSP_REQUEST(NULL, &position, (long)request.size);
	if (!parsed || OCSP_request_onereq_count(parsed) != 1)
		return error_cause(error, ERR_REFUSED, "not an OCSP request about exactly one certificate");
	OCSP_CERTID *asked = OCSP_onereq_get0_id(OCSP_request_onereq_get0(parsed, 0));
	const struct responder_pair *pair = find_pair(responder, asked);
	if (!pair)
		return error_cause(error, ERR_REFUSED, "the OCSP request is about another issuer");
	BASIC_AUTO OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
	if (!basic || !fill(basic, pair, parsed, asked))
		return error_cause(error, ERR_NO_MEMORY, "the OCSP response could not be created: %s",
		                   openssl_reason());
	return write_out(basic, out, ret_signed);
}
