/* Evidence records (RFC 4998, ASN.1 of appendix A): proof that a data object existed at a time.
 * Renewals keep it provable for longer than any certificate or digest algorithm lasts.
 *
 * A record is a sequence of chains of archive timestamps in order of time. An archive timestamp is
 * an RFC 3161 token and, unless it covers a single hash, the hash-tree path (reducedHashtree) from
 * the covered hash to the token's imprint. All archive timestamps of a chain use one digest
 * algorithm H:
 *
 *   - The first one of the first chain covers H(data object).
 *   - Each later one of a chain covers H(DER of the previous token): a timestamp renewal.
 *   - The first one of a later chain, with an H of its own, covers H(H(data object) ‖ H(DER of the
 *     sequence of all previous chains)), not sorted: a hash-tree renewal.
 *
 * A token proves what it covers as of its own time, as long as its certificates are valid. A record
 * is therefore valid when each token is valid at the time of the next one, and the last one is
 * valid now.
 *
 * Records are read as strict DER without trailing bytes; tokens keep the encoding of their
 * authority. cryptoInfos is preserved and not evaluated. A first list of one hash is accepted both
 * as the node itself, as other implementations write it, and hashed again, as section 4.3 requires.
 * Not supported: encryptionInfo, attributes of archive timestamps.
 *
 * A record may be used by one thread at a time. Functions return 0, ERR_INVALID_EVIDENCE with the
 * cause, or ERR_NO_MEMORY, unless documented otherwise. */
#ifndef SEAL_EVIDENCE_RECORD_H
#define SEAL_EVIDENCE_RECORD_H

#include "base/arena.h"
#include "seal/timestamp.h"
#include "seal/tree.h"

#define EVIDENCE_RECORD_MAX ((size_t)4 << 20) /* bytes */
#define EVIDENCE_CHAINS_MAX 32
#define EVIDENCE_STAMPS_MAX 64 /* in one chain */
#define EVIDENCE_LISTS_MAX 64  /* of one reducedHashtree */
/* Hashes in one list; a first list may hold all documents of a certification. */
#define EVIDENCE_HASHES_MAX 10240
#define EVIDENCE_RENEWED_MAX 65536

struct evidence_record;

void evidence_record_free(struct evidence_record *record); /* NULL-safe */
static inline void evidence_record_cleanup(struct evidence_record **record)
{
	evidence_record_free(*record);
}
#define EVIDENCE_RECORD_AUTO __attribute__((cleanup(evidence_record_cleanup)))

/* ---- making and reading ---- */

/* Creates the record of the data object whose SHA-256 is the leaf of `proof`, with the token over
 * its root. Of the token only the imprint is checked. */
int evidence_record_create(const struct tree_proof *proof, struct slice token,
                           struct evidence_record **ret_record, struct error *error) MUST_CHECK;
/* Parses a record and checks its form and the imprints of its tokens; evidence_record_verify does
 * the rest. */
int evidence_record_parse(struct slice der, struct evidence_record **ret_record,
                          struct error *error) MUST_CHECK;
/* Appends the DER. */
int evidence_record_write(const struct evidence_record *record, struct buf *out) MUST_CHECK;
/* Returns whether a chain uses the algorithm, so that verification needs the data object's digest
 * by it. */
bool evidence_record_uses_digest(const struct evidence_record *record,
                                 enum digest_algorithm algorithm);

/* ---- renewing ---- */

/* The hash-tree path from the hash that an archive timestamp covers to its token's imprint, like
 * struct tree_proof. Several data objects can be covered as a data object group (RFC 4998 section
 * 4.2): their hashes form the first list of the tree, and the leaf is evidence_group_leaf of
 * them. */
struct evidence_path {
	struct digest leaf;
	const struct digest *group; /* borrowed; NULL: the leaf is of one data object */
	size_t group_count;         /* 2 to EVIDENCE_HASHES_MAX */
	size_t count;
	struct digest siblings[TREE_PROOF_MAX]; /* of the leaf's algorithm */
};
/* Returns the root that the path leads to. */
struct digest evidence_path_root(const struct evidence_path *path);
/* Sorts the hashes of a group in list order and computes its leaf. Returns 0 or ERR_NO_MEMORY. */
int evidence_group_leaf(struct digest *hashes, size_t count, struct digest *ret_leaf) MUST_CHECK;

/* Returns the digest algorithm of the last chain. */
enum digest_algorithm evidence_record_digest(const struct evidence_record *record);
/* Returns whether the last chain, or a new chain, has room for another archive timestamp. */
bool evidence_record_has_room(const struct evidence_record *record, bool new_chain);
/* Computes the hash that the next archive timestamp must cover. `data` NULL: a timestamp renewal;
 * otherwise the data object's digest by the algorithm of a hash-tree renewal. */
int evidence_record_next_leaf(const struct evidence_record *record, const struct digest *data,
                              struct digest *ret_leaf) MUST_CHECK;
/* Appends an archive timestamp. `path` must begin with that hash, and the token must cover its
 * root. ERR_REFUSED: the record has no room. */
int evidence_record_renew(struct evidence_record *record, const struct digest *data,
                          const struct evidence_path *path, struct slice token, struct error *error)
	MUST_CHECK;
/* Appends a hash-tree renewal from its stored path, without the data; evidence_record_verify later
 * checks that the path begins with the right hash. *record NULL: creates a record with this as the
 * first archive timestamp, of any algorithm; it may cover a group. */
int evidence_record_begin_chain(struct evidence_record **record, const struct evidence_path *path,
                                struct slice token, struct error *error) MUST_CHECK;

struct validation_set;
/* Adds validation data to the newest token, which no other part of the record covers: the
 * certificates (concatenated DER) that it lacks, and the CRLs and OCSP responses of the set as
 * revocation-values. The signed part of the token is unchanged. For records that are handed out
 * only: a renewal made over the original token does not fit the result. The token stays unchanged
 * when there is nothing to add or no room. */
int evidence_record_complete(struct evidence_record *record, struct slice certificates,
                             const struct validation_set *set, struct error *error) MUST_CHECK;

struct evidence_renewal {
	struct evidence_record *record;
	const struct digest *data; /* as for evidence_record_next_leaf */
};
/* Requests a token over `imprint` and appends it to `token`. */
typedef int (*evidence_stamper)(void *context, const struct digest *imprint, struct buf *token,
                                struct error *error);
/* Renews 1 to EVIDENCE_RENEWED_MAX records with one token over the tree of the hashes to cover.
 * ERR_USAGE: the digest algorithms differ; otherwise the error of the stamper. After an error some
 * of the records may be renewed; the caller must use none of them. */
int evidence_records_renew(const struct evidence_renewal *renewals, size_t count,
                           evidence_stamper stamper, void *context, struct error *error) MUST_CHECK;

/* ---- verifying ---- */

struct evidence_query {
	struct slice roots_pem; /* of timestamp authorities; data NULL: integrity only */
	int64_t at_us; /* time at which the newest token is checked, if later than its own time */
	bool tolerant; /* as in struct trust_roots */
};

struct evidence_stamp {
	size_t chain, number; /* from 1; `number` counts within the chain */
	struct timestamp_facts timestamp;
	struct slice path; /* DER: its certificate and issuers; in the arena */
};

struct evidence_facts {
	struct evidence_stamp *stamps; /* in order of time; in the arena */
	size_t stamp_count;
	size_t chain_count;      /* number of hash-tree renewals plus 1 */
	int64_t exists_since_us; /* the time of the first token */
	int64_t valid_until_us;  /* the end of the newest token's certificate */
	bool trusted;            /* every token's path leads to the roots */
};

/* Returns how often the first archive timestamp covers the data object. 0: the record covers other
 * data; more than 1: the group has duplicates. */
size_t evidence_record_covers(const struct evidence_record *record,
                              const struct digest data[DIGEST_ALGORITHM_COUNT]);
/* Returns the number of hashes in the first list of the first archive timestamp: the members of a
 * group. */
size_t evidence_record_group_size(const struct evidence_record *record);
/* Verifies a record. `data` holds the data object's digest by each algorithm that the record uses,
 * indexed by algorithm. The cause names the invalid archive timestamp. ERR_VALIDATION: unusable
 * roots. */
int evidence_record_verify(const struct evidence_record *record,
                           const struct digest data[DIGEST_ALGORITHM_COUNT],
                           const struct evidence_query *question, struct arena *arena,
                           struct evidence_facts *ret_facts, struct error *error) MUST_CHECK;

#endif
