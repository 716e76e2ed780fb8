#include "seal/timestamp.h"

#include <openssl/err.h>
#include <openssl/ts.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "seal/ber.h"
#include "seal/signed_data.h"

#define NONCE_SIZE 16
#define ACCURACY_MAX_SECONDS 86400
#define NAME_SIZE 160 /* in an error message */

static int invalid(struct error *error, const char *reason)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", reason);
}

static void request_cleanup(TS_REQ **request)
{
	TS_REQ_free(*request);
}

static void info_cleanup(TS_TST_INFO **info)
{
	TS_TST_INFO_free(*info);
}

static const int digest_nids[DIGEST_ALGORITHM_COUNT] = {
	[DIGEST_SHA256] = NID_sha256,
	[DIGEST_SHA384] = NID_sha384,
	[DIGEST_SHA512] = NID_sha512,
};

static bool request_set_imprint(TS_REQ *request, const struct digest *imprint)
{
	TS_MSG_IMPRINT *message = TS_MSG_IMPRINT_new();
	X509_ALGOR *algorithm = X509_ALGOR_new();
	bool set = message && algorithm &&
	           X509_ALGOR_set0(algorithm, OBJ_nid2obj(digest_nids[imprint->algorithm]), V_ASN1_NULL,
	                           NULL) == 1 &&
	           TS_MSG_IMPRINT_set_algo(message, algorithm) == 1 &&
	           TS_MSG_IMPRINT_set_msg(message, (unsigned char *)imprint->bytes,
	                                  (int)digest_size(imprint->algorithm)) == 1 &&
	           TS_REQ_set_msg_imprint(request, message) == 1;

	X509_ALGOR_free(algorithm);
	TS_MSG_IMPRINT_free(message);
	return set;
}

static bool request_set_nonce(TS_REQ *request)
{
	unsigned char bytes[NONCE_SIZE];

	random_bytes(bytes, sizeof bytes);
	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and always of full length */
	BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
	ASN1_INTEGER *nonce = number ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
	bool set = nonce && TS_REQ_set_nonce(request, nonce) == 1;
	ASN1_INTEGER_free(nonce);
	BN_free(number);
	return set;
}

int timestamp_request(const struct sha256 *imprint, const char *policy, struct buf *out,
                      struct error *error)
{
	struct digest digest = digest_of_sha256(imprint);
	return timestamp_request_over(&digest, policy, out, error);
}

int timestamp_request_over(const struct digest *imprint, const char *policy, struct buf *out,
                           struct error *error)
{
	__attribute__((cleanup(request_cleanup))) TS_REQ *request = TS_REQ_new();
	unsigned char *der = NULL;

	if (!request || TS_REQ_set_version(request, 1) != 1 || TS_REQ_set_cert_req(request, 1) != 1 ||
	    !request_set_imprint(request, imprint) || !request_set_nonce(request))
		return ERR_NO_MEMORY;
	if (policy) {
		ERR_clear_error();
		ASN1_OBJECT *object = OBJ_txt2obj(policy, 1);
		bool set = object && TS_REQ_set_policy_id(request, object) == 1;
		ASN1_OBJECT_free(object);
		if (!set)
			return openssl_failure(error, "policy") == ERR_NO_MEMORY
			           ? ERR_NO_MEMORY
			           : error_cause(error, ERR_VALIDATION, "'%s' is not a policy identifier",
			                         policy);
	}
	int size = i2d_TS_REQ(request, &der);
	if (size <= 0)
		return ERR_NO_MEMORY;
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	return buf_check(out);
}

/* Parses a GeneralizedTime of RFC 3161 section 2.4.2: YYYYMMDDhhmmss[.s…]Z. */
static bool read_gen_time(const ASN1_GENERALIZEDTIME *time, int64_t *ret_us)
{
	const char *text = (const char *)ASN1_STRING_get0_data(time);
	int length = ASN1_STRING_length(time);
	struct tm parts = {0};
	int64_t fraction = 0;
	int64_t unit = US_PER_SECOND;

	if (length < 15 || length > 32 || text[length - 1] != 'Z' || ASN1_TIME_to_tm(time, &parts) != 1)
		return false;
	if (length > 15 && (text[14] != '.' || length == 16))
		return false;
	for (int i = 15; i < length - 1; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		unit /= 10;
		fraction += unit * (text[i] - '0'); /* digits beyond microseconds are ignored */
	}
	*ret_us = (int64_t)timegm(&parts) * US_PER_SECOND + fraction;
	return true;
}

static bool add_accuracy(const ASN1_INTEGER *field, int64_t most, int64_t unit_us, int64_t *sum_us)
{
	int64_t value;

	if (!field)
		return true;
	if (ASN1_INTEGER_get_int64(&value, field) != 1 || value < 0 || value > most)
		return false;
	*sum_us += value * unit_us;
	return true;
}

static bool read_accuracy(TS_TST_INFO *info, int64_t *ret_us)
{
	TS_ACCURACY *accuracy = TS_TST_INFO_get_accuracy(info);
	int64_t sum_us = 0;

	*ret_us = TIMESTAMP_ACCURACY_UNKNOWN;
	if (!accuracy)
		return true;
	const ASN1_INTEGER *seconds = TS_ACCURACY_get_seconds(accuracy);
	const ASN1_INTEGER *millis = TS_ACCURACY_get_millis(accuracy);
	const ASN1_INTEGER *micros = TS_ACCURACY_get_micros(accuracy);
	if ((!seconds && !millis && !micros) ||
	    !add_accuracy(seconds, ACCURACY_MAX_SECONDS, US_PER_SECOND, &sum_us) ||
	    !add_accuracy(millis, 999, 1000, &sum_us) || !add_accuracy(micros, 999, 1, &sum_us))
		return false;
	*ret_us = sum_us;
	return true;
}

static bool read_imprint(TS_MSG_IMPRINT *message, struct digest *ret_imprint)
{
	const ASN1_OCTET_STRING *hash = TS_MSG_IMPRINT_get_msg(message);
	const ASN1_OBJECT *object;
	struct digest imprint = {0};
	int i = 0;

	X509_ALGOR_get0(&object, NULL, NULL, TS_MSG_IMPRINT_get_algo(message));
	while (i < DIGEST_ALGORITHM_COUNT && OBJ_obj2nid(object) != digest_nids[i])
		i++;
	if (i == DIGEST_ALGORITHM_COUNT)
		return false;
	imprint.algorithm = (enum digest_algorithm)i;
	if ((size_t)ASN1_STRING_length(hash) != digest_size(imprint.algorithm))
		return false;
	memcpy(imprint.bytes, ASN1_STRING_get0_data(hash), digest_size(imprint.algorithm));
	*ret_imprint = imprint;
	return true;
}

static int read_facts(TS_TST_INFO *info, struct timestamp_facts *facts, struct error *error)
{
	const ASN1_INTEGER *serial = TS_TST_INFO_get_serial(info);
	int serial_size = ASN1_STRING_length(serial);

	if (TS_TST_INFO_get_version(info) != 1)
		return invalid(error, "wrong version of the TSTInfo");
	if (!read_imprint(TS_TST_INFO_get_msg_imprint(info), &facts->imprint))
		return invalid(error, "the imprint is not a SHA-2 digest");
	ERR_clear_error();
	if (!read_gen_time(TS_TST_INFO_get_time(info), &facts->gen_time_us))
		return openssl_failure(error, "the time is malformed");
	if (!read_accuracy(info, &facts->accuracy_us))
		return invalid(error, "the accuracy is malformed");
	if (ASN1_STRING_type(serial) != V_ASN1_INTEGER || serial_size < 1 ||
	    (size_t)serial_size * 2 >= sizeof facts->serial)
		return invalid(error, "the serial number is negative or too long");
	hex_encode(ASN1_STRING_get0_data(serial), (size_t)serial_size, facts->serial);
	int policy =
		OBJ_obj2txt(facts->policy, sizeof facts->policy, TS_TST_INFO_get_policy_id(info), 1);
	if (policy <= 0 || (size_t)policy >= sizeof facts->policy)
		return invalid(error, "the policy identifier is too long");
	return 0;
}

static int parse_info(const ASN1_OCTET_STRING *content, TS_TST_INFO **ret_info, struct error *error)
{
	const unsigned char *position = ASN1_STRING_get0_data(content);
	const unsigned char *end = position + ASN1_STRING_length(content);

	ERR_clear_error();
	TS_TST_INFO *info = d2i_TS_TST_INFO(NULL, &position, ASN1_STRING_length(content));
	if (info && position == end) {
		*ret_info = info;
		return 0;
	}
	TS_TST_INFO_free(info);
	return openssl_failure(error, "the TSTInfo does not parse");
}

/* A critical extension may change the meaning of the rest (RFC 3161 section 2.4.2), and none is
 * supported. */
static int check_extensions(TS_TST_INFO *info, struct error *error)
{
	int at = TS_TST_INFO_get_ext_by_critical(info, 1, -1);
	char oid[128];

	if (at < 0)
		return 0;
	const X509_EXTENSION *extension = TS_TST_INFO_get_ext(info, at);
	if (OBJ_obj2txt(oid, sizeof oid, X509_EXTENSION_get_object((X509_EXTENSION *)extension), 1) <=
	    0)
		oid[0] = 0;
	return error_cause(error, ERR_INVALID_EVIDENCE,
	                   "the TSTInfo has an unknown critical extension, %s", oid);
}

static bool is_alternative_name(const GENERAL_NAMES *names, GENERAL_NAME *name)
{
	for (int i = 0; i < (names ? sk_GENERAL_NAME_num(names) : 0); i++)
		if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(names, i), name) == 0)
			return true;
	return false;
}

/* Checks that `tsa`, if present, is one of the names in the certificate (RFC 3161 section 2.4.2).
 * Names are compared as by `openssl ts -verify`. */
static int check_name(TS_TST_INFO *info, const X509 *signer, struct error *error)
{
	GENERAL_NAME *tsa = TS_TST_INFO_get_tsa(info);
	char stated[NAME_SIZE] = "(no directory name)", own[NAME_SIZE];

	if (!tsa)
		return 0;
	bool is_directory = tsa->type == GEN_DIRNAME;
	if (is_directory && X509_NAME_cmp(tsa->d.directoryName, X509_get_subject_name(signer)) == 0)
		return 0;
	ERR_clear_error();
	GENERAL_NAMES *names = X509_get_ext_d2i(signer, NID_subject_alt_name, NULL, NULL);
	bool found = is_alternative_name(names, tsa);
	GENERAL_NAMES_free(names);
	if (found)
		return 0;
	if (openssl_failure(error, "tsa") == ERR_NO_MEMORY)
		return ERR_NO_MEMORY;
	if (is_directory)
		certificate_name(tsa->d.directoryName, stated, sizeof stated);
	certificate_name(X509_get_subject_name(signer), own, sizeof own);
	return error_cause(error, ERR_INVALID_EVIDENCE,
	                   "tsa in the TSTInfo, %s, is no name of the certificate that signed it, %s",
	                   stated, own);
}

static int verify_authority(const SignedContent *content, X509 *signer, struct slice roots_pem,
                            const struct timestamp_path *along, int64_t time_us, bool *ret_trusted,
                            struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *roots = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *known = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *path = NULL;
	bool trusted = roots_pem.data != NULL;
	int result = 0;

	if (roots_pem.data)
		result = certificates_read(roots_pem, &roots, error);
	if (!result && along && along->known.size > 0)
		result = certificates_read_der(along->known, &known, error);
	if (!result)
		result =
			signed_content_verify_path(content, signer, known, roots, PATH_TIMESTAMP, time_us,
		                               along && along->tolerant ? &trusted : NULL, &path, error);
	if (!result && along && along->complete)
		result = certificates_write_der(path, along->complete);
	*ret_trusted &= trusted;
	return result;
}

/* Verifies a token without reference to a request; the caller owns the TSTInfo. */
static int verify_token(struct slice token, struct slice roots_pem,
                        const struct timestamp_path *along, int64_t judged_us,
                        TS_TST_INFO **ret_info, struct timestamp_facts *ret_facts,
                        struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	__attribute__((cleanup(info_cleanup))) TS_TST_INFO *info = NULL;
	struct timestamp_facts facts = {.trusted = true};
	struct timestamp_path again = {.known = along ? along->known : slice_make(NULL, 0),
	                               .tolerant = along && along->tolerant};
	X509 *signer;

	int result = signed_content_parse_ber(token, &content, error);
	if (!result)
		result = signed_content_verify(content, NID_id_smime_ct_TSTInfo, NULL, &signer, error);
	if (result)
		return result;
	result = parse_info(content->data->encapsulated->content, &info, error);
	if (!result)
		result = read_facts(info, &facts, error);
	if (!result)
		result = check_extensions(info, error);
	if (!result)
		result = check_name(info, signer, error);
	if (!result)
		result = verify_authority(content, signer, roots_pem, along, facts.gen_time_us,
		                          &facts.trusted, error);
	if (!result && judged_us > facts.gen_time_us)
		result =
			verify_authority(content, signer, roots_pem, &again, judged_us, &facts.trusted, error);
	if (!result)
		result = certificate_describe(signer, &facts.authority, error);
	if (result)
		return result;
	*ret_facts = facts;
	*ret_info = info;
	info = NULL;
	return 0;
}

static int read_request(struct slice request, TS_REQ **ret_request, struct error *error)
{
	const unsigned char *position = (const unsigned char *)request.data;

	ERR_clear_error();
	*ret_request = request.size > 0 && request.size <= TIMESTAMP_REQUEST_MAX
	                   ? d2i_TS_REQ(NULL, &position, (long)request.size)
	                   : NULL;
	return *ret_request ? OK : openssl_failure(error, "the request does not parse");
}

static int compare_with_request(TS_REQ *asked, TS_TST_INFO *info,
                                const struct timestamp_facts *facts, struct error *error)
{
	struct digest imprint;
	if (!read_imprint(TS_REQ_get_msg_imprint(asked), &imprint) ||
	    !digest_equal(&imprint, &facts->imprint))
		return invalid(error, "the imprint of the timestamp differs from that of the request");
	const ASN1_INTEGER *nonce = TS_REQ_get_nonce(asked);
	const ASN1_INTEGER *answered = TS_TST_INFO_get_nonce(info);
	if (!nonce != !answered || (nonce && ASN1_INTEGER_cmp(nonce, answered) != 0))
		return invalid(error, "the nonce is not the one sent");
	ASN1_OBJECT *policy = TS_REQ_get_policy_id(asked);
	if (policy && OBJ_cmp(policy, TS_TST_INFO_get_policy_id(info)) != 0)
		return invalid(error, "the policy is not the requested one");
	return 0;
}

/* Checks that the request is DER, which has a single encoding, and contains no free-form parts. */
static int check_request_form(TS_REQ *asked, struct slice request, struct error *error)
{
	unsigned char *der = NULL;
	int parameters;

	/* OpenSSL preserves the BER value of a BOOLEAN; setting it normalizes the value. */
	if (TS_REQ_set_cert_req(asked, TS_REQ_get_cert_req(asked)) != 1)
		return ERR_NO_MEMORY;
	int size = i2d_TS_REQ(asked, &der);
	if (size <= 0)
		return ERR_NO_MEMORY;
	bool exact = slice_equal(request, slice_make((const char *)der, (size_t)size));
	OPENSSL_free(der);
	X509_ALGOR_get0(NULL, &parameters, NULL,
	                TS_MSG_IMPRINT_get_algo(TS_REQ_get_msg_imprint(asked)));
	if (!exact || TS_REQ_get_version(asked) != 1 || TS_REQ_get_exts(asked) ||
	    (parameters != V_ASN1_NULL && parameters != V_ASN1_UNDEF))
		return invalid(error, "the request is not a TimeStampReq in DER");
	return 0;
}

static int check_kept_request(struct slice request, TS_TST_INFO *info,
                              const struct timestamp_facts *facts, struct error *error)
{
	__attribute__((cleanup(request_cleanup))) TS_REQ *asked = NULL;

	int result = read_request(request, &asked, error);
	if (!result)
		result = check_request_form(asked, request, error);
	return !result ? compare_with_request(asked, info, facts, error) : result;
}

static int verify_over(struct slice token, const struct digest *imprint, struct slice roots_pem,
                       const struct timestamp_path *path, int64_t judged_us,
                       struct timestamp_facts *ret_facts, struct error *error)
{
	__attribute__((cleanup(info_cleanup))) TS_TST_INFO *info = NULL;
	struct timestamp_facts facts;

	int result = verify_token(token, roots_pem, path, judged_us, &info, &facts, error);
	if (result)
		return result;
	if (!digest_equal(&facts.imprint, imprint))
		return invalid(error, "the imprint of the timestamp is not that of the data");
	if (path && path->request.size > 0)
		result = check_kept_request(path->request, info, &facts, error);
	if (!result)
		*ret_facts = facts;
	return result;
}

int timestamp_verify_token_path(struct slice token, const struct sha256 *imprint,
                                struct slice roots_pem, const struct timestamp_path *path,
                                struct timestamp_facts *ret_facts, struct error *error)
{
	struct digest digest = digest_of_sha256(imprint);
	return verify_over(token, &digest, roots_pem, path, TIME_NONE, ret_facts, error);
}

int timestamp_verify_token_at(struct slice token, const struct digest *imprint,
                              struct slice roots_pem, const struct timestamp_path *path,
                              int64_t judged_us, struct timestamp_facts *ret_facts,
                              struct error *error)
{
	return verify_over(token, imprint, roots_pem, path, judged_us, ret_facts, error);
}

int timestamp_verify_token(struct slice token, const struct sha256 *imprint, struct slice roots_pem,
                           struct timestamp_facts *ret_facts, struct error *error)
{
	return timestamp_verify_token_path(token, imprint, roots_pem, NULL, ret_facts, error);
}

int timestamp_token_imprint(struct slice token, struct digest *ret_imprint, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	__attribute__((cleanup(info_cleanup))) TS_TST_INFO *info = NULL;

	int result = signed_content_parse_ber(token, &content, error);
	if (result)
		return result;
	const EncapsulatedContent *inside = content->data->encapsulated;
	if (OBJ_obj2nid(inside->type) != NID_id_smime_ct_TSTInfo || !inside->content)
		return invalid(error, "it is not a timestamp token");
	result = parse_info(inside->content, &info, error);
	if (!result && !read_imprint(TS_TST_INFO_get_msg_imprint(info), ret_imprint))
		result = invalid(error, "the imprint is not a SHA-2 digest");
	return result;
}

static bool holds(const STACK_OF(X509) * certificates, const X509 *wanted)
{
	for (int i = 0; i < sk_X509_num(certificates); i++)
		if (X509_cmp(sk_X509_value(certificates, i), wanted) == 0)
			return true;
	return false;
}

/* Parses the token, and the certificates of `path` that are not inside it. */
static int read_external(struct slice token, struct slice path, SignedContent **ret_content,
                         STACK_OF(X509) * *ret_external, struct error *error)
{
	int result = signed_content_parse_ber(token, ret_content, error);
	if (!result)
		result = certificates_read_der(path, ret_external, error);
	for (int i = !result ? sk_X509_num(*ret_external) - 1 : -1; i >= 0; i--)
		if (holds((*ret_content)->data->certificates, sk_X509_value(*ret_external, i)))
			X509_free(sk_X509_delete(*ret_external, i));
	return result;
}

int timestamp_missing_certificates(struct slice token, struct slice path, struct buf *out,
                                   struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *external = NULL;

	int result = read_external(token, path, &content, &external, error);
	return !result ? certificates_write_der(external, out) : result;
}

int timestamp_token_add_certificates(struct slice token, struct slice certificates, struct buf *out,
                                     struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *external = NULL;

	int result = read_external(token, certificates, &content, &external, error);
	while (!result && sk_X509_num(external) > 0) {
		X509 *certificate = sk_X509_shift(external);
		if (!signed_content_add_certificate(content, certificate)) {
			X509_free(certificate);
			result = ERR_NO_MEMORY;
		}
	}
	return !result ? signed_content_write(content, out) : result;
}

/* Parses the token, and all certificates inside it or in `external`. */
static int read_known(struct slice token, struct slice external, SignedContent **ret_content,
                      STACK_OF(X509) * *ret_known, struct error *error)
{
	int result = read_external(token, external, ret_content, ret_known, error);
	if (result)
		return result;
	const STACK_OF(X509) *inside = (*ret_content)->data->certificates;
	for (int i = 0; i < sk_X509_num(inside); i++) {
		X509 *certificate = sk_X509_value(inside, i);
		if (!X509_up_ref(certificate))
			return ERR_NO_MEMORY;
		if (!sk_X509_push(*ret_known, certificate)) {
			X509_free(certificate);
			return ERR_NO_MEMORY;
		}
	}
	return OK;
}

static int find_next(X509 *certificate, const STACK_OF(X509) * known, X509 **ret_next)
{
	*ret_next = NULL;
	return certificate_is_self_issued(certificate)
	           ? OK
	           : certificate_find_issuer(certificate, known, ret_next);
}

static int earliest_end(X509 *certificate, const STACK_OF(X509) * known, int64_t *ret_us)
{
	int64_t until_us = INT64_MAX, end_us;
	for (int i = 0; certificate && i < CERTIFICATES_MAX; i++) {
		if (!certificate_time(X509_get0_notAfter(certificate), &end_us))
			return ERR_INVALID_EVIDENCE;
		until_us = end_us < until_us ? end_us : until_us;
		int result = find_next(certificate, known, &certificate);
		if (result)
			return result;
	}
	*ret_us = until_us;
	return OK;
}

int timestamp_known_path(struct slice token, struct slice external, struct buf *out,
                         struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *known = NULL;
	STACK_OF(X509) *path = sk_X509_new_null(); /* its members are in `known` */

	int result = path ? read_known(token, external, &content, &known, error) : ERR_NO_MEMORY;
	X509 *certificate = !result ? signed_content_certificate(content) : NULL;
	if (!result && !certificate)
		result = invalid(error, "it is not a timestamp token");
	while (!result && certificate && sk_X509_num(path) < CERTIFICATES_MAX)
		result = sk_X509_push(path, certificate) > 0 ? find_next(certificate, known, &certificate)
		                                             : ERR_NO_MEMORY;
	if (!result)
		result = certificates_write_der(path, out);
	sk_X509_free(path);
	return result;
}

int timestamp_embedded_path(struct slice token, struct buf *out, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	STACK_OF(X509) *path = NULL; /* its members are the content's */

	int result = signed_content_parse_ber(token, &content, error);
	X509 *certificate = !result ? signed_content_certificate(content) : NULL;
	if (!result && !certificate)
		result = invalid(error, "it is not a timestamp token");
	if (!result)
		result = certificate_embedded_path(certificate, content->data->certificates, &path);
	if (!result)
		result = certificates_write_der(path, out);
	sk_X509_free(path);
	return result;
}

int timestamp_valid_until(struct slice token, struct slice external, int64_t *ret_gen_time_us,
                          int64_t *ret_until_us, struct error *error)
{
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	CERTIFICATES_AUTO STACK_OF(X509) *known = NULL;
	__attribute__((cleanup(info_cleanup))) TS_TST_INFO *info = NULL;
	struct timestamp_facts facts;

	int result = read_known(token, external, &content, &known, error);
	X509 *signer = !result ? signed_content_certificate(content) : NULL;
	if (!result && (!signer || !content->data->encapsulated->content))
		result = invalid(error, "it is not a timestamp token");
	if (!result)
		result = parse_info(content->data->encapsulated->content, &info, error);
	if (!result)
		result = read_facts(info, &facts, error);
	if (!result)
		result = earliest_end(signer, known, ret_until_us);
	if (!result)
		*ret_gen_time_us = facts.gen_time_us;
	return result;
}

bool timestamp_next_certificate(struct slice *rest, struct slice *ret_der)
{
	struct ber_element element;

	if (!ber_next(rest, &element) || element.identifier != BER_SEQUENCE)
		return false;
	*ret_der = element.whole;
	return true;
}

static int cut_response(struct slice response, struct ber_element *ret_status,
                        struct ber_element *ret_token, struct error *error)
{
	struct ber_element whole;

	if (response.size > TIMESTAMP_RESPONSE_MAX || !ber_next(&response, &whole) ||
	    whole.identifier != BER_SEQUENCE || response.size > 0 ||
	    !ber_next(&whole.inside, ret_status) || ret_status->identifier != BER_SEQUENCE)
		return invalid(error, "the response does not parse");
	if (whole.inside.size == 0)
		*ret_token = (struct ber_element){0};
	else if (!ber_next(&whole.inside, ret_token) || ret_token->identifier != BER_SEQUENCE ||
	         whole.inside.size > 0)
		return invalid(error, "the bytes after the response's status are not a token");
	return 0;
}

/* Returns the original bytes, since encoding a parsed token could change them. */
int timestamp_response_token(struct slice response, struct slice *ret_token, struct error *error)
{
	struct ber_element status, token;

	int result = cut_response(response, &status, &token, error);
	if (!result && !token.whole.data)
		return invalid(error, "the response has no token");
	if (!result)
		*ret_token = token.whole;
	return result;
}

int timestamp_response_end_with_token(struct buf *response, struct error *error)
{
	struct ber_element status, token;
	unsigned char header[8];
	unsigned char *end = header;

	int result = cut_response(buf_slice(response), &status, &token, error);
	if (!result && !token.whole.data)
		return invalid(error, "the response has no token");
	if (result || token.whole.data + token.whole.size == response->data + response->size)
		return result;
	BUF_AUTO struct buf rewritten;
	buf_init(&rewritten, TIMESTAMP_RESPONSE_MAX);
	ASN1_put_object(&end, 1, (int)(status.whole.size + token.whole.size), V_ASN1_SEQUENCE,
	                V_ASN1_UNIVERSAL);
	buf_add(&rewritten, header, (size_t)(end - header));
	buf_add_slice(&rewritten, status.whole);
	buf_add_slice(&rewritten, token.whole);
	buf_clear(response);
	buf_add_slice(response, buf_slice(&rewritten));
	return buf_check(&rewritten) ? buf_check(&rewritten) : buf_check(response);
}

/* Copies the authority's status text without characters that are unsafe in a log. */
static void status_text(const TS_STATUS_INFO *status, char text[128])
{
	const STACK_OF(ASN1_UTF8STRING) *words = TS_STATUS_INFO_get0_text(status);
	size_t size = 0;

	if (words && sk_ASN1_UTF8STRING_num(words) > 0) {
		const ASN1_UTF8STRING *first = sk_ASN1_UTF8STRING_value(words, 0);
		const unsigned char *data = ASN1_STRING_get0_data(first);
		for (int i = 0; i < ASN1_STRING_length(first) && size < 127; i++)
			text[size++] = data[i] >= 0x20 && data[i] < 0x7f ? (char)data[i] : '?';
	}
	text[size] = 0;
}

static int check_status(struct slice response, struct error *error)
{
	struct ber_element element, token;
	int64_t status = -1;
	char text[128];

	int result = cut_response(response, &element, &token, error);
	if (result)
		return result;
	const unsigned char *position = (const unsigned char *)element.whole.data;
	const unsigned char *end = position + element.whole.size;
	ERR_clear_error();
	TS_STATUS_INFO *info = d2i_TS_STATUS_INFO(NULL, &position, (long)element.whole.size);
	if (!info || position != end) {
		TS_STATUS_INFO_free(info);
		return openssl_failure(error, "the response's status does not parse");
	}
	bool read = ASN1_INTEGER_get_int64(&status, TS_STATUS_INFO_get0_status(info)) == 1;
	status_text(info, text);
	TS_STATUS_INFO_free(info);
	if (read && (status == TS_STATUS_GRANTED || status == TS_STATUS_GRANTED_WITH_MODS))
		return 0;
	return error_cause(error, ERR_INVALID_EVIDENCE, "not granted: status %lld %s",
	                   (long long)status, text);
}

int timestamp_verify_response(struct slice request, struct slice response, struct slice roots_pem,
                              const struct timestamp_path *path, struct buf *token,
                              struct timestamp_facts *ret_facts, struct error *error)
{
	__attribute__((cleanup(info_cleanup))) TS_TST_INFO *info = NULL;
	__attribute__((cleanup(request_cleanup))) TS_REQ *asked = NULL;
	struct timestamp_facts facts;
	struct slice found;

	if (!roots_pem.data)
		return error_cause(error, ERR_VALIDATION, "no roots");
	int result = check_status(response, error);
	if (!result)
		result = timestamp_response_token(response, &found, error);
	if (!result)
		result = verify_token(found, roots_pem, path, TIME_NONE, &info, &facts, error);
	if (!result)
		result = read_request(request, &asked, error);
	if (!result && !TS_REQ_get_nonce(asked))
		result = invalid(error, "the nonce is not the one sent");
	if (!result)
		result = compare_with_request(asked, info, &facts, error);
	if (result)
		return result;
	if (token) {
		buf_add_slice(token, found);
		result = buf_check(token);
	}
	if (!result)
		*ret_facts = facts;
	return result;
}
