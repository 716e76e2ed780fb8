/* ASN.1 of evidence records (RFC 4998, appendix A) as OpenSSL templates. For src/seal only.
 * Undeclared parts do not parse: encryptionInfo and the attributes of an archive timestamp. */
#ifndef SEAL_EVIDENCE_ASN1_H
#define SEAL_EVIDENCE_ASN1_H

#include <openssl/asn1t.h>
#include <openssl/x509.h>

#include "seal/evidence_record.h"

DEFINE_STACK_OF(ASN1_OCTET_STRING)
typedef STACK_OF(ASN1_OCTET_STRING) PartialHashtree;
DEFINE_STACK_OF(PartialHashtree)

typedef struct {
	X509_ALGOR *digest_algorithm;                 /* NULL: algorithm of the token's imprint */
	STACK_OF(PartialHashtree) * reduced_hashtree; /* NULL: the token directly covers the leaf */
	ASN1_TYPE *token;                             /* unchanged bytes */
} ArchiveTimeStamp;
DEFINE_STACK_OF(ArchiveTimeStamp)
typedef STACK_OF(ArchiveTimeStamp) ArchiveTimeStampChain;
DEFINE_STACK_OF(ArchiveTimeStampChain)

typedef struct {
	ASN1_INTEGER *version;
	STACK_OF(X509_ALGOR) * digest_algorithms;
	STACK_OF(X509_ATTRIBUTE) * crypto_infos; /* NULL: none */
	STACK_OF(ArchiveTimeStampChain) * chains;
} EvidenceRecord;

DECLARE_ASN1_FUNCTIONS(EvidenceRecord)
DECLARE_ASN1_ALLOC_FUNCTIONS(ArchiveTimeStamp)

struct evidence_record {
	EvidenceRecord *asn1;
	enum digest_algorithm algorithms[EVIDENCE_CHAINS_MAX]; /* by chain */
};

void partial_hashtree_free(PartialHashtree *list);
void archive_chain_free(ArchiveTimeStampChain *chain);

static inline int evidence_chain_count(const struct evidence_record *record)
{
	return sk_ArchiveTimeStampChain_num(record->asn1->chains);
}
static inline ArchiveTimeStampChain *evidence_chain(const struct evidence_record *record, int chain)
{
	return sk_ArchiveTimeStampChain_value(record->asn1->chains, chain);
}
struct slice archive_timestamp_token(const ArchiveTimeStamp *stamp);

/* Returns the digest algorithm as an AlgorithmIdentifier without parameters (RFC 5754 section 2);
 * NULL: no memory. */
X509_ALGOR *evidence_algorithm_new(enum digest_algorithm algorithm);
/* Returns false for other algorithms or for parameters other than NULL. */
bool evidence_algorithm_read(const X509_ALGOR *algorithm, enum digest_algorithm *ret_algorithm);

/* Prefixes the cause of ERR_INVALID_EVIDENCE with the archive timestamp (counted from 0); returns
 * `result`. */
int evidence_set_stamp_error(struct error *error, int result, int chain, int number);

/* Computes the hash that the first archive timestamp of chain `chain` covers (from 0; it may not
 * exist yet). `data` is the digest of the data object by the chain's algorithm. */
int evidence_chain_leaf(const struct evidence_record *record, int chain, const struct digest *data,
                        struct digest *ret_leaf) MUST_CHECK;

/* Computes the digest of the hashes, sorted as unsigned bytes and concatenated (RFC 4998 section
 * 4.2). All have one algorithm. Sorts `hashes` in place. Returns 0 or ERR_NO_MEMORY. */
int evidence_node(struct digest *hashes, size_t count, struct digest *ret_node) MUST_CHECK;
/* The same for two hashes, without allocation. */
struct digest evidence_pair(const struct digest *one, const struct digest *other);

#endif
