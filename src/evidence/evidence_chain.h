/* Evidence records put together from what is at rest (store/evidence/evidence.h): how documents and
 * tokens lead to archive timestamps, and these to later ones. Nothing of a record is kept whole, so
 * one renewal renews all that lead to it. One thread at a time for each record. ERR_CORRUPT, with
 * the archive timestamp in the cause, when the rows do not lead where they have to. */
#ifndef EVIDENCE_EVIDENCE_CHAIN_H
#define EVIDENCE_EVIDENCE_CHAIN_H

#include "seal/evidence_record.h"
#include "service/service.h"
#include "store/evidence/evidence.h"

/* Appends what renewed the record's last token, which is that one at rest, and so on; up to and
 * with archive timestamp `last` (0: as far as it goes). *ret_newest is the last token then; zeroed
 * when it is not at rest. */
int evidence_chain_follow(struct store *store, struct evidence_record *record,
                          enum token_source source, int64_t number, int64_t last,
                          struct token_at_rest *ret_newest, struct error *error) MUST_CHECK;

/* The archive timestamp that covers a token at rest, and the way to it from the token's digest;
 * *ret_stamp 0: none does. */
int evidence_chain_next(struct store *store, enum token_source source, int64_t number,
                        struct slice token, int64_t *ret_stamp, struct evidence_path *ret_path,
                        struct error *error) MUST_CHECK;

/* The record of a certification's documents, as it stands now. ERR_NOT_FOUND: there is none yet. */
struct certification_record {
	struct evidence_record *record;
	int64_t exists_since_us; /* the time of its first archive timestamp */
	int64_t number, chain;   /* of its last chain: store/evidence/evidence.h */
	int64_t last_stamp;
	struct token_at_rest newest;
};
int certification_record_load(struct store *store, int64_t account, int64_t certification,
                              struct certification_record *ret, struct error *error) MUST_CHECK;

/* The same as it is handed out; its DER is appended. */
struct evidence_offer {
	int64_t certification;
	bool has_digest; /* not in lists: it is that of the whole record */
	struct sha256 sha256;
	int64_t exists_since_us;
	int64_t renew_at_us; /* TIME_NONE: no longer, since it ended before it was renewed */
};
struct certification;
int certification_evidence_record(struct service *service,
                                  const struct certification *certification, struct buf *out,
                                  struct evidence_offer *ret_offer, struct error *error) MUST_CHECK;
/* What is offered of those of a chain of events that are numbered first to last and have a record,
 * in that order; no more of them than there is room for. No record is put together for that. */
struct evidence_offers {
	struct evidence_offer *items;
	size_t room, count;
};
int certification_list_offers(struct service *service, int64_t account, int64_t chain,
                              int64_t first, int64_t last, struct evidence_offers *offers,
                              struct error *error) MUST_CHECK;

/* When that token is to be renewed, by evidence.renew_before. */
int64_t evidence_renew_at_us(const struct settings *settings, const struct token_at_rest *token);

#endif
