#include "seal/evidence_asn1.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdlib.h>

#include "seal/certificate.h"

#define CRYPTO_INFOS_MAX 64

/* clang-format off */
DECLARE_ASN1_ITEM(PartialHashtree)
ASN1_ITEM_TEMPLATE(PartialHashtree) =
	ASN1_EX_TEMPLATE_TYPE(ASN1_TFLG_SEQUENCE_OF, 0, PartialHashtree, ASN1_OCTET_STRING)
ASN1_ITEM_TEMPLATE_END(PartialHashtree)

/* ANY preserves the bytes of the token, whose digest a renewal covers. */
DECLARE_ASN1_ITEM(ArchiveTimeStamp)
ASN1_SEQUENCE(ArchiveTimeStamp) = {
	ASN1_IMP_OPT(ArchiveTimeStamp, digest_algorithm, X509_ALGOR, 0),
	ASN1_IMP_SEQUENCE_OF_OPT(ArchiveTimeStamp, reduced_hashtree, PartialHashtree, 2),
	ASN1_SIMPLE(ArchiveTimeStamp, token, ASN1_ANY),
} ASN1_SEQUENCE_END(ArchiveTimeStamp)
IMPLEMENT_ASN1_ALLOC_FUNCTIONS(ArchiveTimeStamp)

DECLARE_ASN1_ITEM(ArchiveTimeStampChain)
ASN1_ITEM_TEMPLATE(ArchiveTimeStampChain) =
	ASN1_EX_TEMPLATE_TYPE(ASN1_TFLG_SEQUENCE_OF, 0, ArchiveTimeStampChain, ArchiveTimeStamp)
ASN1_ITEM_TEMPLATE_END(ArchiveTimeStampChain)

DECLARE_ASN1_ITEM(ArchiveTimeStampSequence)
ASN1_ITEM_TEMPLATE(ArchiveTimeStampSequence) =
	ASN1_EX_TEMPLATE_TYPE(ASN1_TFLG_SEQUENCE_OF, 0, ArchiveTimeStampSequence, ArchiveTimeStampChain)
ASN1_ITEM_TEMPLATE_END(ArchiveTimeStampSequence)

ASN1_SEQUENCE(EvidenceRecord) = {
	ASN1_SIMPLE(EvidenceRecord, version, ASN1_INTEGER),
	ASN1_SEQUENCE_OF(EvidenceRecord, digest_algorithms, X509_ALGOR),
	ASN1_IMP_SEQUENCE_OF_OPT(EvidenceRecord, crypto_infos, X509_ATTRIBUTE, 0),
	ASN1_SEQUENCE_OF(EvidenceRecord, chains, ArchiveTimeStampChain),
} ASN1_SEQUENCE_END(EvidenceRecord)
IMPLEMENT_ASN1_FUNCTIONS(EvidenceRecord)
	/* clang-format on */

	static int invalid(struct error * error, const char *reason)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", reason);
}

void partial_hashtree_free(PartialHashtree *list)
{
	ASN1_item_free((ASN1_VALUE *)list, ASN1_ITEM_rptr(PartialHashtree));
}

void archive_chain_free(ArchiveTimeStampChain *chain)
{
	ASN1_item_free((ASN1_VALUE *)chain, ASN1_ITEM_rptr(ArchiveTimeStampChain));
}

struct slice archive_timestamp_token(const ArchiveTimeStamp *stamp)
{
	const ASN1_STRING *whole = stamp->token->value.sequence;
	return slice_make(ASN1_STRING_get0_data(whole), (size_t)ASN1_STRING_length(whole));
}

void evidence_record_free(struct evidence_record *record)
{
	if (record)
		EvidenceRecord_free(record->asn1);
	free(record);
}

/* ---- digests ---- */

static const int nids[DIGEST_ALGORITHM_COUNT] = {
	[DIGEST_SHA256] = NID_sha256,
	[DIGEST_SHA384] = NID_sha384,
	[DIGEST_SHA512] = NID_sha512,
};

X509_ALGOR *evidence_algorithm_new(enum digest_algorithm algorithm)
{
	X509_ALGOR *made = X509_ALGOR_new();
	if (made && X509_ALGOR_set0(made, OBJ_nid2obj(nids[algorithm]), V_ASN1_UNDEF, NULL) == 1)
		return made;
	X509_ALGOR_free(made);
	return NULL;
}

bool evidence_algorithm_read(const X509_ALGOR *algorithm, enum digest_algorithm *ret_algorithm)
{
	const ASN1_OBJECT *object;
	int type;
	X509_ALGOR_get0(&object, &type, NULL, algorithm);
	if (type != V_ASN1_UNDEF && type != V_ASN1_NULL)
		return false;
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		if (OBJ_obj2nid(object) == nids[i]) {
			*ret_algorithm = (enum digest_algorithm)i;
			return true;
		}
	return false;
}

static int compare_hashes(const void *a, const void *b)
{
	const struct digest *first = a, *second = b;
	return memcmp(first->bytes, second->bytes, digest_size(first->algorithm));
}

int evidence_node(struct digest *hashes, size_t count, struct digest *ret_node)
{
	struct digest_stream *stream = digest_begin_by(hashes->algorithm);
	if (!stream)
		return ERR_NO_MEMORY;
	qsort(hashes, count, sizeof *hashes, compare_hashes);
	for (size_t i = 0; i < count; i++)
		digest_add(stream, hashes[i].bytes, digest_size(hashes[i].algorithm));
	*ret_node = digest_end_by(stream);
	return OK;
}

struct digest evidence_pair(const struct digest *one, const struct digest *other)
{
	assert(one->algorithm == other->algorithm); /* a path is of its leaf's algorithm */
	uint8_t joined[2 * DIGEST_SIZE_MAX];
	size_t size = digest_size(one->algorithm);
	bool ascending = compare_hashes(one, other) <= 0;
	memcpy(joined, ascending ? one->bytes : other->bytes, size);
	memcpy(joined + size, ascending ? other->bytes : one->bytes, size);
	return digest_by(one->algorithm, joined, 2 * size);
}

/* ---- the first hash of a chain ---- */

int evidence_chain_leaf(const struct evidence_record *record, int chain, const struct digest *data,
                        struct digest *ret_leaf)
{
	if (chain == 0) {
		*ret_leaf = *data;
		return OK;
	}
	STACK_OF(ArchiveTimeStampChain) *before = sk_ArchiveTimeStampChain_new_null();
	bool complete = before != NULL;
	for (int i = 0; complete && i < chain; i++)
		complete = sk_ArchiveTimeStampChain_push(before, evidence_chain(record, i)) > 0;
	unsigned char *der = NULL;
	int size = complete ? ASN1_item_i2d((const ASN1_VALUE *)before, &der,
	                                    ASN1_ITEM_rptr(ArchiveTimeStampSequence))
	                    : 0;
	sk_ArchiveTimeStampChain_free(before);
	if (size <= 0)
		return ERR_NO_MEMORY;
	uint8_t both[2 * DIGEST_SIZE_MAX];
	size_t half = digest_size(data->algorithm);
	struct digest chains = digest_by(data->algorithm, der, (size_t)size);
	OPENSSL_free(der);
	memcpy(both, data->bytes, half);
	memcpy(both + half, chains.bytes, half);
	*ret_leaf = digest_by(data->algorithm, both, 2 * half);
	return OK;
}

bool evidence_record_uses_digest(const struct evidence_record *record,
                                 enum digest_algorithm algorithm)
{
	for (int i = 0; i < evidence_chain_count(record); i++)
		if (record->algorithms[i] == algorithm)
			return true;
	return false;
}

/* ---- DER ---- */

int evidence_record_write(const struct evidence_record *record, struct buf *out)
{
	unsigned char *der = NULL;
	int size = i2d_EvidenceRecord(record->asn1, &der);
	if (size <= 0)
		return ERR_NO_MEMORY;
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	return buf_check(out);
}

static int check_encoding(const struct evidence_record *record, struct slice der,
                          struct error *error)
{
	BUF_AUTO struct buf again;
	buf_init(&again, der.size);
	int result = evidence_record_write(record, &again);
	if (result && !again.full)
		return result;
	if (result || !slice_equal(buf_slice(&again), der))
		return invalid(error, "the evidence record is not DER, or is followed by other bytes");
	return OK;
}

static int check_hashtree(const ArchiveTimeStamp *stamp, enum digest_algorithm algorithm,
                          struct error *error)
{
	const STACK_OF(PartialHashtree) *lists = stamp->reduced_hashtree;
	if (!lists)
		return OK;
	int count = sk_PartialHashtree_num(lists);
	if (count < 1 || count > EVIDENCE_LISTS_MAX)
		return invalid(error, "its reducedHashtree has no list or too many");
	for (int i = 0; i < count; i++) {
		const PartialHashtree *list = sk_PartialHashtree_value(lists, i);
		int hashes = sk_ASN1_OCTET_STRING_num(list);
		if (hashes < 1 || hashes > EVIDENCE_HASHES_MAX)
			return invalid(error, "a list of its reducedHashtree has no hash or too many");
		for (int j = 0; j < hashes; j++)
			if ((size_t)ASN1_STRING_length(sk_ASN1_OCTET_STRING_value(list, j)) !=
			    digest_size(algorithm))
				return invalid(
					error,
					"a hash of its reducedHashtree does not have the length of its algorithm");
	}
	return OK;
}

/* The algorithm of a chain is that of its first archive timestamp. */
static int check_stamp(const ArchiveTimeStamp *stamp, bool first,
                       enum digest_algorithm *chain_algorithm, struct error *error)
{
	if (stamp->token->type != V_ASN1_SEQUENCE)
		return invalid(error, "its timeStamp is not a ContentInfo");
	struct digest imprint;
	int result = timestamp_token_imprint(archive_timestamp_token(stamp), &imprint, error);
	if (result)
		return result;
	enum digest_algorithm named = imprint.algorithm;
	if (stamp->digest_algorithm && !evidence_algorithm_read(stamp->digest_algorithm, &named))
		return invalid(error, "its digest algorithm is not accepted");
	if (named != imprint.algorithm)
		return invalid(error, "its digest algorithm is not that of its token's imprint");
	if (!first && named != *chain_algorithm)
		return invalid(error, "its digest algorithm is not that of its chain");
	*chain_algorithm = named;
	return check_hashtree(stamp, named, error);
}

int evidence_set_stamp_error(struct error *error, int result, int chain, int number)
{
	char cause[ERROR_CAUSE_MAX];
	if (!error || result != ERR_INVALID_EVIDENCE)
		return result;
	memcpy(cause, error->cause, sizeof cause);
	return error_cause(error, result, "archive timestamp %d of chain %d: %.400s", number + 1,
	                   chain + 1, cause);
}

static int check_chains(struct evidence_record *record, struct error *error)
{
	int chains = evidence_chain_count(record);
	if (chains < 1 || chains > EVIDENCE_CHAINS_MAX)
		return invalid(error, "the evidence record has no chain or too many");
	for (int i = 0; i < chains; i++) {
		const ArchiveTimeStampChain *chain = evidence_chain(record, i);
		int count = sk_ArchiveTimeStamp_num(chain);
		if (count < 1 || count > EVIDENCE_STAMPS_MAX)
			return invalid(error, "a chain has no archive timestamp or too many");
		for (int j = 0; j < count; j++) {
			int result = check_stamp(sk_ArchiveTimeStamp_value(chain, j), j == 0,
			                         &record->algorithms[i], error);
			if (result)
				return evidence_set_stamp_error(error, result, i, j);
		}
	}
	return OK;
}

/* Checks that digestAlgorithms names each algorithm of the chains once and no other. */
static int check_algorithms(const struct evidence_record *record, struct error *error)
{
	bool named[DIGEST_ALGORITHM_COUNT] = {false};
	const STACK_OF(X509_ALGOR) *list = record->asn1->digest_algorithms;
	for (int i = 0; i < sk_X509_ALGOR_num(list); i++) {
		enum digest_algorithm algorithm;
		if (!evidence_algorithm_read(sk_X509_ALGOR_value(list, i), &algorithm) || named[algorithm])
			return invalid(error, "digestAlgorithms names one that is not accepted, or one twice");
		named[algorithm] = true;
	}
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		if (named[i] != evidence_record_uses_digest(record, (enum digest_algorithm)i))
			return invalid(error, "digestAlgorithms are not those of the chains");
	return OK;
}

static int check_form(struct evidence_record *record, struct error *error)
{
	int64_t version = 0;
	if (ASN1_INTEGER_get_int64(&version, record->asn1->version) != 1 || version != 1)
		return invalid(error, "the evidence record is not of version 1");
	const STACK_OF(X509_ATTRIBUTE) *infos = record->asn1->crypto_infos;
	if (infos &&
	    (sk_X509_ATTRIBUTE_num(infos) < 1 || sk_X509_ATTRIBUTE_num(infos) > CRYPTO_INFOS_MAX))
		return invalid(error, "cryptoInfos is empty or too long");
	int result = check_chains(record, error);
	return result ? result : check_algorithms(record, error);
}

int evidence_record_parse(struct slice der, struct evidence_record **ret_record,
                          struct error *error)
{
	const unsigned char *position = (const unsigned char *)der.data;
	if (der.size == 0 || der.size > EVIDENCE_RECORD_MAX)
		return invalid(error, "the evidence record is empty or too large");
	struct evidence_record *record = calloc(1, sizeof *record);
	if (!record)
		return ERR_NO_MEMORY;
	ERR_clear_error();
	record->asn1 = d2i_EvidenceRecord(NULL, &position, (long)der.size);
	int result = record->asn1 ? check_encoding(record, der, error)
	                          : openssl_failure(error, "the evidence record does not parse");
	if (!result)
		result = check_form(record, error);
	if (!result)
		*ret_record = record;
	else
		evidence_record_free(record);
	return result;
}
