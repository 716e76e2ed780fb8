#include "seal/issuers.h"

#include <openssl/err.h>
#include <openssl/pkcs7.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/tuned.h"
#include "net/http.h"
#include "seal/signed_data.h"

#define PATH_MAX_LENGTH 8
#define ADDRESSES_MAX 4 /* URLs tried per certificate */
#define ANSWER_MAX 262144
#define NAME_SIZE 256
#define REASON_SIZE 384

struct issuers {
	struct address_guard guard;
	int timeout_ms;
	pthread_mutex_t mutex;
	STACK_OF(X509) * cached; /* cache of certificates that issued another one */
	int cached_max;
};

struct issuers *issuers_create(const struct address_guard *guard, int timeout_ms)
{
	struct issuers *issuers = calloc(1, sizeof *issuers);

	if (!issuers)
		return NULL;
	pthread_mutex_init(&issuers->mutex, NULL);
	issuers->guard = *guard;
	issuers->timeout_ms = timeout_ms;
	issuers->cached_max = (int)tuned_up_to("issuers_cached", ISSUERS_CACHED_MAX);
	issuers->cached = sk_X509_new_null();
	if (issuers->cached)
		return issuers;
	issuers_free(issuers);
	return NULL;
}

void issuers_free(struct issuers *issuers)
{
	if (!issuers)
		return;
	sk_X509_pop_free(issuers->cached, X509_free);
	pthread_mutex_destroy(&issuers->mutex);
	free(issuers);
}

/* ---- responses ---- */

static int add_der(struct slice answer, struct buf *out)
{
	const unsigned char *position = (const unsigned char *)answer.data;
	const unsigned char *end = position + answer.size;
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = sk_X509_new_null();
	X509 *certificate = d2i_X509(NULL, &position, (long)answer.size);

	if (certificate && position == end && certificates && sk_X509_push(certificates, certificate))
		return certificates_write(certificates, out);
	X509_free(certificate);
	return certificates ? ERR_VALIDATION : ERR_NO_MEMORY;
}

static int add_pkcs7(struct slice answer, struct buf *out)
{
	const unsigned char *position = (const unsigned char *)answer.data;
	const unsigned char *end = position + answer.size;
	PKCS7 *bundle = d2i_PKCS7(NULL, &position, (long)answer.size);
	int result = ERR_VALIDATION;

	if (bundle && position == end && PKCS7_type_is_signed(bundle) && bundle->d.sign &&
	    sk_X509_num(bundle->d.sign->cert) > 0)
		result = certificates_write(bundle->d.sign->cert, out);
	PKCS7_free(bundle);
	return result;
}

/* Appends the certificates of a response as PEM; accepts DER, PEM and certs-only PKCS#7. Returns 0,
 * ERR_VALIDATION for other formats, or ERR_NO_MEMORY. */
static int add_certificates(struct slice answer, struct buf *out, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;

	if (answer.size == 0 || answer.size > ANSWER_MAX)
		return error_cause(error, ERR_VALIDATION, "the response is empty or too large");
	if (answer.data[0] == 0x30) {
		ERR_clear_error();
		int result = add_der(answer, out);
		if (result == ERR_VALIDATION)
			result = add_pkcs7(answer, out);
		if (result == ERR_VALIDATION && openssl_failure(NULL, "") == ERR_NO_MEMORY)
			result = ERR_NO_MEMORY;
		ERR_clear_error();
		return result == ERR_VALIDATION
		           ? error_cause(error, result,
		                         "neither a certificate nor a PKCS#7 container of certificates")
		           : result;
	}
	int result = certificates_read(answer, &certificates, error);
	return !result ? certificates_write(certificates, out) : result;
}

/* ---- one issuer ---- */

static int take_reference(X509 *certificate, STACK_OF(X509) * to)
{
	if (X509_up_ref(certificate) != 1)
		return ERR_NO_MEMORY;
	if (sk_X509_push(to, certificate))
		return 0;
	X509_free(certificate);
	return ERR_NO_MEMORY;
}

/* Looks up the issuer in the cache; an expired one is evicted. Appends it to `known`. */
static int find_cached(struct issuers *issuers, X509 *below, STACK_OF(X509) * known,
                       X509 **ret_issuer)
{
	pthread_mutex_lock(&issuers->mutex);
	int result = certificate_find_issuer(below, issuers->cached, ret_issuer);
	if (*ret_issuer && X509_cmp_current_time(X509_get0_notAfter(*ret_issuer)) <= 0) {
		X509_free(sk_X509_delete_ptr(issuers->cached, *ret_issuer));
		*ret_issuer = NULL;
	}
	if (*ret_issuer)
		result = take_reference(*ret_issuer, known);
	pthread_mutex_unlock(&issuers->mutex);
	return result;
}

static int cache_issuer(struct issuers *issuers, X509 *issuer)
{
	pthread_mutex_lock(&issuers->mutex);
	if (sk_X509_num(issuers->cached) >= issuers->cached_max)
		X509_free(sk_X509_shift(issuers->cached));
	int result = take_reference(issuer, issuers->cached);
	pthread_mutex_unlock(&issuers->mutex);
	return result;
}

/* `reason` receives the cause of a failure. */
static int fetch(const struct issuers *issuers, const char *url, X509 *below,
                 STACK_OF(X509) * known, X509 **ret_issuer, char reason[REASON_SIZE])
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	BUF_AUTO struct buf pem;
	struct error error = {0};
	struct http_request request = {
		.url = url,
		.timeout_ms = issuers->timeout_ms,
		.answer_limit = ANSWER_MAX,
		.allow_http = true, /* the content is signed */
		.guard = &issuers->guard,
	};

	buf_init(&pem, PEM_FILE_MAX);
	int result = http_url_check(slice_of(url), true, "caIssuers", &error);
	if (!result)
		result = http_send(&request, &answer, &error);
	if (!result && answer.status != 200)
		result = error_cause(&error, ERR_NETWORK, "HTTP %d", answer.status);
	if (!result)
		result = add_certificates(buf_slice(&answer.body), &pem, &error);
	if (!result)
		result = certificates_read(buf_slice(&pem), &certificates, &error);
	if (!result)
		result = certificate_find_issuer(below, certificates, ret_issuer);
	if (!result && *ret_issuer)
		return take_reference(*ret_issuer, known);
	if (result == ERR_NO_MEMORY)
		return result;
	snprintf(reason, REASON_SIZE, "; %.200s: %.160s", url,
	         !result        ? "another certificate"
	         : *error.cause ? error.cause
	                        : error_general_message(result, LANGUAGE_ENGLISH));
	return 0;
}

static bool uri_of(const ACCESS_DESCRIPTION *access, char url[HTTP_URL_MAX + 1])
{
	if (OBJ_obj2nid(access->method) != NID_ad_ca_issuers || access->location->type != GEN_URI)
		return false;
	const ASN1_IA5STRING *uri = access->location->d.uniformResourceIdentifier;
	size_t size = (size_t)ASN1_STRING_length(uri);
	if (size == 0 || size > HTTP_URL_MAX || memchr(ASN1_STRING_get0_data(uri), 0, size))
		return false;
	memcpy(url, ASN1_STRING_get0_data(uri), size);
	url[size] = 0;
	return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static int fetch_issuer(struct issuers *issuers, X509 *below, STACK_OF(X509) * known,
                        X509 **ret_issuer, char reason[REASON_SIZE])
{
	AUTHORITY_INFO_ACCESS *places = X509_get_ext_d2i(below, NID_info_access, NULL, NULL);
	int result = 0;

	ERR_clear_error();
	snprintf(reason, REASON_SIZE, "; and it names no URL for it");
	for (int i = 0, tried = 0;
	     !result && !*ret_issuer && tried < ADDRESSES_MAX && i < sk_ACCESS_DESCRIPTION_num(places);
	     i++) {
		char url[HTTP_URL_MAX + 1];
		if (!uri_of(sk_ACCESS_DESCRIPTION_value(places, i), url))
			continue;
		tried++;
		result = fetch(issuers, url, below, known, ret_issuer, reason);
	}
	AUTHORITY_INFO_ACCESS_free(places);
	if (!result && *ret_issuer)
		result = cache_issuer(issuers, *ret_issuer);
	return result;
}

/* ---- the path ---- */

static int set_missing_error(const X509 *below, const char *reason, struct error *error)
{
	char name[NAME_SIZE], issuer[NAME_SIZE];

	certificate_name(X509_get_subject_name(below), name, sizeof name);
	certificate_name(X509_get_issuer_name(below), issuer, sizeof issuer);
	error_cause(error, ERR_INVALID_EVIDENCE,
	            "the certificate of %s was issued by %s, whose certificate is neither in the token "
	            "nor in tsa.roots%s",
	            name, issuer, reason);
	error_blame(error, BLAME_ROOTS);
	return ERR_INVALID_EVIDENCE;
}

/* `known` receives certificates from the cache and the network, in order of the path. */
static int climb(struct issuers *issuers, X509 *signer, const STACK_OF(X509) * inside,
                 const STACK_OF(X509) * roots, STACK_OF(X509) * known, struct error *error)
{
	X509 *top = signer;
	int result = 0;

	for (int steps = 0; !result && !certificate_is_self_issued(top); steps++) {
		char reason[REASON_SIZE] = "";
		X509 *issuer = NULL;
		if (steps == PATH_MAX_LENGTH)
			return error_cause(error, ERR_INVALID_EVIDENCE,
			                   "more than %d certificates above the authority's", PATH_MAX_LENGTH);
		result = certificate_find_issuer(top, roots, &issuer);
		if (!result && !issuer)
			result = certificate_find_issuer(top, inside, &issuer);
		if (!result && !issuer)
			result = find_cached(issuers, top, known, &issuer);
		if (!result && !issuer)
			result = fetch_issuer(issuers, top, known, &issuer, reason);
		if (!result && !issuer)
			result = set_missing_error(top, reason, error);
		top = issuer;
	}
	return result;
}

int issuers_complete(struct issuers *issuers, struct slice token, struct slice roots_pem,
                     struct buf *known, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *roots = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *found = sk_X509_new_null();
	X509 *signer;

	if (!found)
		return ERR_NO_MEMORY;
	int result = signed_content_parse_ber(token, &content, error);
	if (!result)
		result = signed_content_verify(content, NID_id_smime_ct_TSTInfo, NULL, &signer, error);
	if (!result)
		result = certificates_read(roots_pem, &roots, error);
	if (!result)
		result = climb(issuers, signer, content->data->certificates, roots, found, error);
	return !result ? certificates_write_der(found, known) : result;
}
