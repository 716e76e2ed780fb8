/* Requests for certifications: accepted, estimated, shown. */
#ifndef ISSUE_CERTIFY_H
#define ISSUE_CERTIFY_H

#include "service/service.h"

struct certification;
struct certification_range;
struct certification_order {
	const struct key_identity *key;
	const struct certification_range *range;
	const char *idempotency_key; /* NULL: none */
	/* ERR_REFUSED if the estimate differs (store/certifications/certifications.h); NULL: not
	 * checked */
	const struct certification_expected *expected;
	bool seal_history; /* the archive has the seal documents of all segments before its own */
	enum language language;
	bool slow, fails;    /* in test mode, forced by a scenario (service/interface.h) */
	struct store *store; /* store handle with the audit record of the acceptance
	                        (store/audit/audit_log.h); NULL: no entry */
};
/* Accepts a request: checks it, freezes the range, charges the fee and writes the job. Returns the
 * Certification record as JSON.
 * If the idempotency key was accepted on the chain within the last 24 hours, nothing of that is
 * done: *ret_replayed is set, and the present record of that certification is returned; for another
 * range or seal_history ERR_CONFLICT. *ret_wait_seconds (may be NULL) is set as by
 * certification_get. */
int certification_request(struct service *service, const struct certification_order *order,
                          struct buf *out, bool *ret_replayed, int64_t *ret_wait_seconds,
                          struct error *error) MUST_CHECK;
/* Returns after how many seconds a client should ask again, from 1 to CERTIFICATION_WAIT_MAX; 0:
 * the certification is not in processing. An estimate: a second and one per 100,000 events, a tenth
 * of the time since the request, or until the next attempt, whichever is longest. */
#define CERTIFICATION_WAIT_MAX 60
int64_t certification_wait_seconds(const struct certification *certification, int64_t now_us);
/* Range and cost of a request, and whether it would be accepted now. */
struct certification_estimate {
	int64_t first_sequence, last_sequence;
	bool sealed;
	int64_t fee;
	/* Declared content: the totals of the days of the range, in proportion to the share of their
	 * events; exact if it includes all of them. */
	int64_t content_bytes;
	bool content_exact;
	int refusal;      /* ERR_* that a request would get; OK: none */
	struct error why; /* details of the refusal */
};
/* Estimates a request without changing anything. ERR_VALIDATION: the range is invalid. */
int certification_estimate(struct service *service, const struct certification_order *order,
                           struct certification_estimate *ret, struct error *error) MUST_CHECK;
/* Appends the record. *ret_wait_seconds (may be NULL): as certification_wait_seconds. */
int certification_get(struct service *service, const struct key_identity *key, struct slice id,
                      enum language language, struct buf *out, int64_t *ret_wait_seconds,
                      struct error *error) MUST_CHECK;
/* Appends the present evidence record (RFC 4998, DER) of the certification's documents.
 * ERR_NOT_FOUND: a test certification, or not created yet. */
int certification_get_evidence_record(struct service *service, const struct key_identity *key,
                                      struct slice id, struct buf *out, struct error *error)
	MUST_CHECK;
/* Lists certifications; status NULL: any. Appends the records, separated by commas; *ret_last: the
 * end of the page. */
int certification_list(struct service *service, const struct key_identity *key, const char *status,
                       const struct list_page *page, enum language language, struct buf *out,
                       bool *ret_more, int64_t *ret_last, struct error *error) MUST_CHECK;

#endif
