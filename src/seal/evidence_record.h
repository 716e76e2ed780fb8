/* Evidence records (RFC 4998, in the ASN.1 of its appendix A): that a data object existed at a
 * time, kept provable by renewals for longer than any certificate or digest lasts.
 *
 * A record is a sequence of chains of archive timestamps, all in the order of time. Each archive
 * timestamp is an RFC 3161 token, and, unless it is over one thing alone, the way of a hash tree
 * (reducedHashtree) from what it covers to the token's imprint. A chain hashes with one algorithm
 * H: the first of the first chain covers H(data object); each later one of a chain covers H(the DER
 * of the token before): a timestamp renewal; the first of a later chain, with an H of its own,
 * covers H(H(data object) ‖ H(the DER of the sequence of all chains before)), not sorted: a
 * hash-tree renewal. A token vouches for what it covers as of its own time, as long as its
 * certificates are good. So a record is valid when each token is at the time of the next one, and
 * the last one now.
 *
 * Read is DER alone, to the last byte; tokens stay as their authority wrote them. cryptoInfos is
 * kept, not judged. A first list of one hash may be that hash, as others write it, or be hashed
 * again, as section 4.3 has it. Not read: encryptionInfo; attributes of archive timestamps.
 *
 * One thread at a time for each record. Results are 0, ERR_INVALID_EVIDENCE with the cause, or
 * ERR_NO_MEMORY, where nothing else is said. */
#ifndef SEAL_EVIDENCE_RECORD_H
#define SEAL_EVIDENCE_RECORD_H

#include "base/arena.h"
#include "seal/timestamp.h"
#include "seal/tree.h"

#define EVIDENCE_RECORD_MAX ((size_t)4 << 20) /* bytes */
#define EVIDENCE_CHAINS_MAX 32
#define EVIDENCE_STAMPS_MAX 64 /* in one chain */
#define EVIDENCE_LISTS_MAX 64  /* of one reducedHashtree */
/* In one of its lists: the documents of a certification, of which a first list may be. */
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

/* The record of the data object whose SHA-256 is the leaf of `proof`, by the token over its root
 * (of which only that it is over it is checked). */
int evidence_record_create(const struct tree_proof *proof, struct slice token,
                           struct evidence_record **ret_record, struct error *error) MUST_CHECK;
/* Checks the form, and what the tokens say they are over; evidence_record_verify does the rest. */
int evidence_record_parse(struct slice der, struct evidence_record **ret_record,
                          struct error *error) MUST_CHECK;
/* Appends the DER. */
int evidence_record_write(const struct evidence_record *record, struct buf *out) MUST_CHECK;
/* Whether a chain hashes with it, so that the data object's digest by it is needed. */
bool evidence_record_uses(const struct evidence_record *record, enum digest_algorithm algorithm);

/* ---- renewing ---- */

/* The way from what an archive timestamp covers to its token's imprint, as struct tree_proof is.
 * What belongs together can be covered as one (a data object group, RFC 4998 section 4.2): its
 * members stand in the tree's first list, and its leaf is evidence_group_leaf of them. */
struct evidence_path {
	struct digest leaf;
	const struct digest *group; /* borrowed; NULL: the leaf is of one data object */
	size_t group_count;         /* 2 to EVIDENCE_HASHES_MAX */
	size_t count;
	struct digest siblings[TREE_PROOF_MAX]; /* of the leaf's algorithm */
};
/* Where it leads. */
struct digest evidence_path_root(const struct evidence_path *path);
/* Sorts the hashes of a group as they stand in a list, and gives the leaf that is the group. 0 or
 * ERR_NO_MEMORY. */
int evidence_group_leaf(struct digest *hashes, size_t count, struct digest *ret_leaf) MUST_CHECK;

/* What its last chain hashes with. */
enum digest_algorithm evidence_record_digest(const struct evidence_record *record);
/* Whether another archive timestamp fits into its last chain, or into a new one. */
bool evidence_record_has_room(const struct evidence_record *record, bool new_chain);
/* What the next archive timestamp has to cover. `data` NULL: that of a timestamp renewal; else the
 * data object's digest by the algorithm of a hash-tree renewal. */
int evidence_record_next_leaf(const struct evidence_record *record, const struct digest *data,
                              struct digest *ret_leaf) MUST_CHECK;
/* Appends it: `path` begins with that leaf, and the token is over its root. ERR_REFUSED when the
 * record has no room for one more. */
int evidence_record_renew(struct evidence_record *record, const struct digest *data,
                          const struct evidence_path *path, struct slice token, struct error *error)
	MUST_CHECK;
/* The same for whoever kept the path of a renewal by hash tree and no longer has the data: that the
 * path begins with what has to be covered shows when the record is verified. *record NULL: a new
 * record, of which this is the first archive timestamp; by any algorithm, and of a group too. */
int evidence_record_begin_chain(struct evidence_record **record, const struct evidence_path *path,
                                struct slice token, struct error *error) MUST_CHECK;

struct validation_set;
/* Puts what validates the record's tokens into the newest one, which nothing in it covers: the
 * certificates (DER, one after the other) that are not inside, and the CRLs and OCSP answers of the
 * set as revocation-values. What its authority signed stays. A renewal that was made over the token
 * without them does not fit the record any more: for a record that is handed out. Where there is
 * nothing to add, or no room, the token stays byte for byte. */
int evidence_record_complete(struct evidence_record *record, struct slice certificates,
                             const struct validation_set *set, struct error *error) MUST_CHECK;

struct evidence_renewal {
	struct evidence_record *record;
	const struct digest *data; /* as above */
};
/* Gets a token over `imprint` and appends it to `token`. */
typedef int (*evidence_stamper)(void *context, const struct digest *imprint, struct buf *token,
                                struct error *error);
/* Renews 1 to EVIDENCE_RENEWED_MAX records with one token over the tree of what each has to cover.
 * ERR_USAGE when these are not all by one algorithm; or what the stamper answers. After a failure
 * some of the records may be renewed: none is to be used. */
int evidence_records_renew(const struct evidence_renewal *renewals, size_t count,
                           evidence_stamper stamper, void *context, struct error *error) MUST_CHECK;

/* ---- verifying ---- */

struct evidence_question {
	struct slice roots_pem; /* of timestamp authorities; data NULL: integrity alone */
	int64_t at_us;          /* when the newest token is judged, if that is after its own time */
	bool tolerant;          /* of the roots, as struct trust_roots has it */
};

struct evidence_stamp {
	size_t chain, number; /* from 1; the number counts within the chain */
	struct timestamp_facts timestamp;
	struct slice path; /* DER: its certificate and those above it; in the arena */
};

struct evidence_facts {
	struct evidence_stamp *stamps; /* in the order of time; in the arena */
	size_t stamp_count;
	size_t chain_count;      /* one more than hash-tree renewals */
	int64_t exists_since_us; /* the time of the first token */
	int64_t valid_until_us;  /* the end of the newest token's certificate */
	bool trusted;            /* each token's path leads to the roots */
};

/* How often the first archive timestamp covers that data object. 0: the record is of others; more
 * than 1: several members of its group are the same. */
size_t evidence_record_covers(const struct evidence_record *record,
                              const struct digest data[DIGEST_ALGORITHM_COUNT]);
/* How many hashes the first archive timestamp has in its first list: of a group, its members. */
size_t evidence_record_group(const struct evidence_record *record);
/* `data` holds the data object's digest by each algorithm that the record uses, at that
 * algorithm's place. The cause says which archive timestamp is wrong. ERR_VALIDATION for unusable
 * roots. */
int evidence_record_verify(const struct evidence_record *record,
                           const struct digest data[DIGEST_ALGORITHM_COUNT],
                           const struct evidence_question *question, struct arena *arena,
                           struct evidence_facts *ret_facts, struct error *error) MUST_CHECK;

#endif
