/* Builds evidence records from the stored tokens (store/evidence/evidence.h). Documents and tokens
 * are covered by archive timestamps, and these by later ones. No record is stored whole, so one
 * renewal renews all records that depend on it. Each record may be used by one thread at a time.
 * ERR_CORRUPT, with the archive timestamp in the cause: the stored hashes do not match. */
#ifndef EVIDENCE_EVIDENCE_CHAIN_H
#define EVIDENCE_EVIDENCE_CHAIN_H

#include "seal/evidence_record.h"
#include "service/service.h"
#include "store/evidence/evidence.h"

/* Appends the chain of renewals of the record's last token, which is the given stored token. `last`
 * is the last archive timestamp to include; 0: all. *ret_newest is the new last token; zeroed if it
 * is not among the stored tokens. */
int evidence_chain_follow(struct store *store, struct evidence_record *record,
                          enum token_source source, int64_t number, int64_t last,
                          struct renewable_token *ret_newest, struct error *error) MUST_CHECK;

/* Finds the archive timestamp that covers a stored token, and the hash path from the token's digest
 * to it; *ret_stamp 0: none. */
int evidence_chain_next(struct store *store, enum token_source source, int64_t number,
                        struct slice token, int64_t *ret_stamp, struct evidence_path *ret_path,
                        struct error *error) MUST_CHECK;

/* Builds the current record of a certification's documents. ERR_NOT_FOUND: there is none yet. The
 * caller frees `record`. */
struct certification_record {
	struct evidence_record *record;
	int64_t exists_since_us; /* the time of its first archive timestamp */
	int64_t number, chain;   /* of its last chain (store/evidence/evidence.h) */
	int64_t last_stamp;
	struct renewable_token newest;
};
int certification_record_load(struct store *store, int64_t account, int64_t certification,
                              struct certification_record *ret, struct error *error) MUST_CHECK;

/* Appends the DER of that record, and describes it for the API. */
struct evidence_offer {
	int64_t certification;
	bool has_digest; /* false in lists: the digest needs the whole record */
	struct sha256 sha256;
	int64_t exists_since_us;
	int64_t renew_at_us; /* TIME_NONE: it expired before it was renewed */
};
struct certification;
int certification_evidence_record(struct service *service,
                                  const struct certification *certification, struct buf *out,
                                  struct evidence_offer *ret_offer, struct error *error) MUST_CHECK;
/* Lists the records of the certifications `first` to `last` of a chain of events, in that order, up
 * to the capacity of `items`. Certifications without a record are omitted. No record is built for
 * this. */
struct evidence_offers {
	struct evidence_offer *items;
	size_t room, count;
};
int certification_list_offers(struct service *service, int64_t account, int64_t chain,
                              int64_t first, int64_t last, struct evidence_offers *offers,
                              struct error *error) MUST_CHECK;

#endif
