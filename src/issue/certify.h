/* Requests for certifications: accepted, estimated, shown. */
#ifndef ISSUE_CERTIFY_H
#define ISSUE_CERTIFY_H

#include "service/service.h"

struct certification_range;
struct certification_order {
	const struct key_identity *key;
	const struct certification_range *range;
	const char *idempotency_key; /* NULL: none */
	/* ERR_REFUSED if it is not this now (store/certifications/certifications.h); NULL: nothing */
	const struct certification_expected *expected;
	enum language language;
	struct store *store; /* that the acceptance is an act of (store/audit/acts.h); NULL: of none */
};
/* Accepts a request: checks, freezes the range, charges the fee, writes the job. Gives the
 * Certification record as JSON.
 * With an idempotency key that was accepted on the chain in the last 24 hours it does nothing of
 * that: *ret_replayed, and the record of that certification as it stands now; for another range
 * ERR_CONFLICT. */
int certification_request(struct service *service, const struct certification_order *order,
                          struct buf *out, bool *ret_replayed, struct error *error) MUST_CHECK;
/* What a request would mean now, and whether it would be accepted. */
struct certification_estimate {
	int64_t first_sequence, last_sequence;
	bool sealed;
	int64_t fee;
	/* Of the declared content: the totals of the days on which the range was received, in the
	 * proportion that it has of their events; exact where it has them all. */
	int64_t content_bytes;
	bool content_exact;
	int refusal;      /* ERR_* of a request; OK: none */
	struct error why; /* of a refusal */
};
/* Changes nothing. ERR_VALIDATION: the range means nothing. */
int certification_estimate(struct service *service, const struct certification_order *order,
                           struct certification_estimate *ret, struct error *error) MUST_CHECK;
int certification_get(struct service *service, const struct key_identity *key, struct slice id,
                      enum language language, struct buf *out, struct error *error) MUST_CHECK;
/* Appends the evidence record (RFC 4998, DER) of its documents, as renewed so far. ERR_NOT_FOUND:
 * of a test certification, or not made yet. */
int certification_get_evidence_record(struct service *service, const struct key_identity *key,
                                      struct slice id, struct buf *out, struct error *error)
	MUST_CHECK;
/* status NULL: any. Appends the records separated by commas; *ret_last: where the page ends. */
int certification_list(struct service *service, const struct key_identity *key, const char *status,
                       const struct list_page *page, enum language language, struct buf *out,
                       bool *ret_more, int64_t *ret_last, struct error *error) MUST_CHECK;

#endif
