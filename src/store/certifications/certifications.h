/* Certifications: acceptance, job leases, completion or failure, and the issued files. Thread safe.
 *
 * A job has no state of its own: it is the row of a certification that is in processing. A worker
 * claims it with a lease, renews the lease, and ends the job in one transaction. A worker that lost
 * the lease cannot end the job. Results live in the caller's arena. */
#ifndef STORE_CERTIFICATIONS_H
#define STORE_CERTIFICATIONS_H

#include "store/store.h"

#define VERIFICATION_CODE_SIZE 40
#define DOCUMENT_NAME_SIZE 64
#define OBJECT_NAME_SIZE 201
#define DOCUMENT_PIECES_SIZE 512
#define CERTIFICATION_LIST_MAX 500

enum certification_status {
	CERTIFICATION_PROCESSING,
	CERTIFICATION_COMPLETED,
	CERTIFICATION_FAILED,
};
const char *certification_status_text(enum certification_status status);
bool certification_status_parse(struct slice text, enum certification_status *ret_status)
	MUST_CHECK;

/* The values that were shown to the requester; each below 0: not shown. */
struct certification_expected {
	int64_t fee;
	int64_t first_sequence, last_sequence;
};

struct certification {
	int64_t account;
	int64_t channel;
	int64_t chain;
	int64_t certification; /* number, ascending */
	int64_t key;
	char certification_id[ID_SIZE];
	char channel_id[ID_SIZE];
	enum mode mode;
	enum certification_status status;
	int64_t progress_permille;
	int64_t requested_at_us;
	int64_t completed_at_us; /* TIME_NONE while processing */
	enum language language;
	struct certification_range range; /* as requested */
	int64_t first_sequence;           /* fixed at acceptance; a range by time is closed first */
	int64_t last_sequence;
	const char *config_versions; /* JSON array of integers */
	int64_t fee;
	char verification_code[VERIFICATION_CODE_SIZE];
	char incident_id[ID_SIZE]; /* empty unless failed */
	int64_t attempts;
	int64_t own_failures;   /* consecutive attempts that failed through their own fault */
	const char *last_error; /* may be NULL */
	int64_t
		next_attempt_at_us; /* by the store's clock; during an attempt, when the lease expires */
	bool worked_on;         /* leased, or its last worker ended without releasing the lease */
	bool fails;             /* a test certification that a scenario forces to fail */
	bool seal_history;      /* the archive has the seal documents of all segments before its own */
	/* For acceptance only, not read back: earliest time of the first attempt; 0: at once. */
	int64_t not_before_us;
	/* For acceptance only, not read back: the maximum number of live certifications in a UTC day of
	 * an account without its own limit; 0: no limit. */
	int64_t daily_max;
	/* For acceptance only; NULL: none. */
	const char *idempotency_key;
	const struct certification_expected *expected;
	/* For acceptance only: the maximum size of the documents, and the maximum stored bytes of an
	 * account without its own limit (0: no limit). */
	int64_t expected_bytes;
	int64_t stored_max;
};

/* Accepts a certification whose range the caller has checked and closed. The caller sets all
 * members except certification, certification_id, status, progress, verification_code, incident_id
 * and attempts, which the function sets. `prefix` (upper case) begins the verification code. At
 * most `open_max` certifications of an account may be in processing in one mode (0: no limit), else
 * ERR_RATE_LIMITED with retry_after_seconds. Does all of this in one durable transaction:
 *   ERR_CONFLICT when the idempotency key is in use on the chain (idempotency.h);
 *   ERR_REFUSED when the fee or the events differ from `expected`;
 *   ERR_FULL when the documents, together with those of certifications in processing, may exceed
 *   the account's limit of stored bytes;
 *   live: ERR_RATE_LIMITED with retry_after_seconds when the daily limit is reached;
 *   ERR_NOT_OPERATIONAL, then the fee, ERR_INSUFFICIENT_BALANCE;
 *   test: the daily count, ERR_TEST_QUOTA with retry_after_seconds; no fee. */
int store_accept_certification(struct store *store, const char *prefix, int64_t open_max,
                               struct certification *certification, struct error *error) MUST_CHECK;

/* Closes the range of a certification by time that is requested at `now_us` (ledger.h). All events
 * that the chain received before *ret_cut_us are committed, and none is received before it later.
 * Durable. Returns ERR_CLOCK when `clock` of a live chain is not reliable and would be used. */
int store_close_range(struct store *store, int64_t account, int64_t chain,
                      const struct certification_range *range, const struct ledger_clock *clock,
                      int64_t *ret_cut_us, struct error *error) MUST_CHECK;

/* Reads whether store_accept_certification would accept the certification now. Makes the same
 * checks except those of the idempotency key and of `expected`. The members are set as there. */
int store_check_certification(struct store *store, int64_t open_max,
                              const struct certification *certification, struct error *error)
	MUST_CHECK;

/* Lists the configuration versions under which the events first to last were registered, ascending.
 * Along a chain versions never decrease. Returns ERR_TOO_LARGE when there are more than `limit`. */
int store_list_config_versions(struct store *store, int64_t account, int64_t chain, int64_t first,
                               int64_t last, size_t limit, int64_t *ret_versions, size_t *ret_count,
                               struct error *error) MUST_CHECK;

/* Sums the declared content bytes of the events first to last. */
int store_sum_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                      int64_t last, int64_t *ret_bytes, struct error *error) MUST_CHECK;

/* Estimate from the daily totals of the days on which the events were received (usage.h). */
struct content_estimate {
	int64_t bytes; /* the share of these events in the totals of those days */
	int64_t most;  /* upper bound */
	bool exact;    /* the totals cover exactly these events: both values are exact */
};
/* Estimates the content bytes of a range. Reads two events, whatever the size of the range. */
int store_estimate_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last, struct content_estimate *ret, struct error *error)
	MUST_CHECK;

int store_find_certification(struct store *store, int64_t account, int64_t chain, struct slice id,
                             struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;
/* Lists certifications in order of their numbers, which is the order of their requests. status -1:
 * any. The limit of the page is at most CERTIFICATION_LIST_MAX. */
int store_list_certifications(struct store *store, int64_t account, int64_t chain, int status,
                              const struct list_page *page, struct arena *arena,
                              struct certification **ret_items, size_t *ret_count, bool *ret_more,
                              struct error *error) MUST_CHECK;

/* ---- jobs ---- */

struct certification_claim {
	const char *holder;
	int64_t now_us;
	int64_t lease_us;
	/* Round-robin over accounts: accounts with the fewest certifications being worked on come
	 * first, and among these the next one after this account. */
	int64_t after_account;
	/* Maximum number of certifications of an account that holders whose names begin with `node` may
	 * work on at a time; 0: no limit. */
	const char *node;
	int64_t account_max;
};
/* Leases to the holder, until now_us + lease_us, the next due certification in processing that is a
 * test one or whose range is sealed. Returns ERR_NOT_FOUND when there is none. A holder works on
 * one certification at a time. A lease that it still holds is left from a crash; the job is resumed
 * at once unless that has happened many times (store/nodes/job_claims.h). */
int store_claim_certification(struct store *store, const struct certification_claim *claim,
                              struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;
/* Renews the lease. Returns ERR_REFUSED when another holder has the lease or the job is over. */
int store_renew_certification(struct store *store, const struct certification *certification,
                              const char *holder, int64_t until_us, int64_t progress_permille,
                              struct error *error) MUST_CHECK;
/* Result of a failed attempt: the cause, and whether the attempt failed through its own fault
 * rather than because of a temporary condition. */
struct certification_delay {
	int64_t next_us;
	const char *cause; /* NULL: the attempt does not count */
	bool own_failure;
};
/* Releases the lease; the next attempt is due at next_us. */
int store_delay_certification(struct store *store, const struct certification *certification,
                              const char *holder, const struct certification_delay *delay,
                              struct error *error) MUST_CHECK;

enum document_kind { DOCUMENT_REPORT, DOCUMENT_EVIDENCE, DOCUMENT_PART };
struct document {
	int64_t account; /* set by the store; ignored as input */
	enum document_kind kind;
	enum language language;        /* of a report */
	char name[DOCUMENT_NAME_SIZE]; /* name of the downloaded file */
	char object[OBJECT_NAME_SIZE]; /* in the content store */
	int64_t size_bytes;
	struct sha256 sha256;
	/* If not empty, the rest of the document is in this object, which belongs to another document,
	 * and `pieces` lists the parts (content/composite.h). own_bytes is the size of `object`. */
	char shared[OBJECT_NAME_SIZE];
	char pieces[DOCUMENT_PIECES_SIZE];
	int64_t own_bytes;
};
/* Completes a certification: writes status, files and notice in one durable transaction. Returns
 * ERR_REFUSED when another holder has the lease or the job is over, and ERR_UNAVAILABLE when a
 * shared object no longer belongs to a document. */
int store_complete_certification(struct store *store, const struct certification *certification,
                                 const char *holder, int64_t issued_at_us,
                                 const struct document *documents, size_t count,
                                 struct error *error) MUST_CHECK;
/* Fails a certification permanently: writes the status with a new incident, refunds the fee and
 * sends the notice. `holder` NULL: for a certification that is not leased. Returns ERR_REFUSED as
 * above. */
int store_fail_certification(struct store *store, const struct certification *certification,
                             const char *holder, const char *cause, int64_t now_us,
                             char ret_incident_id[ID_SIZE], struct error *error) MUST_CHECK;

/* Finds the first certification with a number above `after` that is in processing, was requested
 * before before_us and has an unsealed range, so that it cannot be claimed. Returns ERR_NOT_FOUND
 * when there is none. */
int store_find_overdue_certification(struct store *store, int64_t before_us, int64_t after,
                                     struct arena *arena, struct certification *ret,
                                     struct error *error) MUST_CHECK;

/* ---- issued files ---- */

/* Lists the documents of a certification: reports (Spanish first), evidence, then parts in
 * order. */
int store_list_documents(struct store *store, int64_t account, int64_t certification,
                         struct arena *arena, struct document **ret_documents, size_t *ret_count,
                         struct error *error) MUST_CHECK;
/* Reads whether store_list_same_range_documents would return documents. */
int store_has_same_range_certification(struct store *store,
                                       const struct certification *certification, int64_t since_us,
                                       bool *ret_has, struct error *error) MUST_CHECK;
/* Lists the documents of the last certification of the same events that was completed since
 * since_us. *ret_count is 0 when there is none. */
int store_list_same_range_documents(struct store *store, const struct certification *certification,
                                    int64_t since_us, struct arena *arena,
                                    struct document **ret_documents, size_t *ret_count,
                                    struct error *error) MUST_CHECK;
/* Finds a document by the certification's public identifier and the file name. Returns
 * ERR_NOT_FOUND when it does not exist. */
int store_find_document(struct store *store, struct slice certification_id, struct slice name,
                        struct document *ret, struct error *error) MUST_CHECK;
/* Finds a completed certification by its verification code or, if `digest` is not NULL, by the
 * SHA-256 of one of its files. Returns ERR_NOT_FOUND when it does not exist. */
int store_find_issued(struct store *store, struct slice code, const struct sha256 *digest,
                      struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;

/* ---- housekeeping ---- */

/* Reads whether an event or an issued file refers to the object. */
int store_is_object_referenced(struct store *store, const char *object, bool *ret_named,
                               struct error *error) MUST_CHECK;

#endif
