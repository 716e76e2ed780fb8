/* Certifications: accepted, worked on, issued or failed, and the files issued. Thread safe.
 *
 * A job has no state of its own: it is the row of a certification in processing. A worker claims it
 * for a while (a lease that it renews), and ends it in one transaction; whoever lost the lease ends
 * nothing. What is given back lives in the caller's arena. */
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

/* What whoever asks was shown of it; each below 0: nothing. */
struct certification_expected {
	int64_t fee;
	int64_t first_sequence, last_sequence;
};

struct certification {
	int64_t account;
	int64_t channel;
	int64_t chain;
	int64_t certification; /* number; later ones are larger */
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
	int64_t first_sequence;           /* as frozen; a range by time is closed */
	int64_t last_sequence;
	const char *config_versions; /* JSON array of integers */
	int64_t fee;
	char verification_code[VERIFICATION_CODE_SIZE];
	char incident_id[ID_SIZE]; /* empty unless failed */
	int64_t attempts;
	int64_t own_failures;   /* of the last attempts, in a row */
	const char *last_error; /* may be NULL */
	int64_t
		next_attempt_at_us; /* by the store's clock; while it is worked on, until when that holds */
	bool worked_on;         /* or was, by whoever did not say how it ended */
	/* At acceptance, not read again: live ones that an account without a bound of its own may ask
	 * for on a UTC day, 0: any number. */
	int64_t daily_max;
	/* The same; NULL: none. */
	const char *idempotency_key;
	const struct certification_expected *expected;
	/* At acceptance: what the documents may need at most, and what an account without a bound of
	 * its own may have stored (0: any number). */
	int64_t expected_bytes;
	int64_t stored_max;
};

/* Accepts what the caller has checked and frozen; given: everything but certification,
 * certification_id, status, progress, verification_code, incident_id and attempts, which are filled
 * in. `prefix` (upper case) begins the verification code. `open_max` of an account may be in
 * processing in one mode (0: any number), else ERR_RATE_LIMITED with retry_after_seconds. In one
 * durable transaction:
 *   ERR_CONFLICT when its idempotency key is in use on the chain (idempotency.h);
 *   ERR_REFUSED when its fee or its events are not those expected;
 *   ERR_FULL when its documents, with those of what is in processing, may bring the account above
 *   what it may have stored;
 *   live: ERR_NOT_OPERATIONAL, then the fee, ERR_INSUFFICIENT_BALANCE;
 *   live: ERR_RATE_LIMITED with retry_after_seconds when the account asked for as many on this day
 *   as it may; ERR_NOT_OPERATIONAL, then the fee, ERR_INSUFFICIENT_BALANCE;
 *   test: the daily count, ERR_TEST_QUOTA with retry_after_seconds; no fee. */
int store_accept_certification(struct store *store, const char *prefix, int64_t open_max,
                               struct certification *certification, struct error *error) MUST_CHECK;

/* Closes the range of a certification by time that is requested at `now_us` (ledger.h): all that
 * the chain received before *ret_cut_us is committed, and nothing is received before it any more.
 * Durable. ERR_CLOCK: a live one's `clock` is not to be relied on, and would be believed. */
int store_close_range(struct store *store, int64_t account, int64_t chain,
                      const struct certification_range *range, const struct ledger_clock *clock,
                      int64_t *ret_cut_us, struct error *error) MUST_CHECK;

/* Whether store_accept_certification would accept it as it stands now: the same checks, but for the
 * idempotency key and what is expected, by a reader. Given as there. */
int store_judge_certification(struct store *store, int64_t open_max,
                              const struct certification *certification, struct error *error)
	MUST_CHECK;

/* The configuration versions that the events first to last were registered under, ascending; a
 * chain's versions never decrease. At most `limit`, else ERR_TOO_LARGE. */
int store_list_config_versions(struct store *store, int64_t account, int64_t chain, int64_t first,
                               int64_t last, size_t limit, int64_t *ret_versions, size_t *ret_count,
                               struct error *error) MUST_CHECK;

/* The bytes of declared content of the events first to last. */
int store_sum_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                      int64_t last, int64_t *ret_bytes, struct error *error) MUST_CHECK;

/* From the totals of the days on which these events were received (usage.h). */
struct content_estimate {
	int64_t bytes; /* in the proportion that they are of the events of these days */
	int64_t most;  /* no more than these events can have */
	bool exact;    /* they are all of them: both are what they have */
};
/* About how many. Reads two events, however many there are. */
int store_estimate_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last, struct content_estimate *ret, struct error *error)
	MUST_CHECK;

int store_find_certification(struct store *store, int64_t account, int64_t chain, struct slice id,
                             struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;
/* In order of their numbers, which is that of their requests; status -1: any; the page's limit is
 * at most CERTIFICATION_LIST_MAX. */
int store_list_certifications(struct store *store, int64_t account, int64_t chain, int status,
                              const struct list_page *page, struct arena *arena,
                              struct certification **ret_items, size_t *ret_count, bool *ret_more,
                              struct error *error) MUST_CHECK;

/* ---- jobs ---- */

struct certification_claim {
	const char *holder;
	int64_t now_us;
	int64_t lease_us;
	/* Accounts take turns: those with the fewest certifications being worked on come first, of
	 * these the next one after this account, round and round. */
	int64_t after_account;
	/* How many of an account the holders whose names begin with `node` may work on at a time; 0:
	 * any number. */
	const char *node;
	int64_t account_max;
};
/* The next certification in processing that is due, whose range is sealed (or a test one), leased
 * to the holder until now_us + lease_us; ERR_NOT_FOUND when there is none. A holder works on one at
 * a time: what it still holds is left from before a crash, and is taken up at once, unless that
 * happened many times. */
int store_claim_certification(struct store *store, const struct certification_claim *claim,
                              struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;
/* ERR_REFUSED: the lease is another's, or the job is over. */
int store_renew_certification(struct store *store, const struct certification *certification,
                              const char *holder, int64_t until_us, int64_t progress_permille,
                              struct error *error) MUST_CHECK;
/* Why an attempt is over: its cause, and whether it failed in itself rather than for something that
 * passes by waiting. */
struct certification_delay {
	int64_t next_us;
	const char *cause; /* NULL: the attempt does not count */
	bool own_failure;
};
/* Gives it back, to be tried again from next_us on. */
int store_delay_certification(struct store *store, const struct certification *certification,
                              const char *holder, const struct certification_delay *delay,
                              struct error *error) MUST_CHECK;

enum document_kind { DOCUMENT_REPORT, DOCUMENT_EVIDENCE, DOCUMENT_PART };
struct document {
	int64_t account; /* of what the store gives; not looked at in what it takes */
	enum document_kind kind;
	enum language language;        /* of a report */
	char name[DOCUMENT_NAME_SIZE]; /* as downloads show it */
	char object[OBJECT_NAME_SIZE]; /* in the content store */
	int64_t size_bytes;
	struct sha256 sha256;
	/* Unless empty: the rest of the document is in this object, which another document has for its
	 * own, and the pieces are listed (content/composite.h); own_bytes is the size of `object`. */
	char shared[OBJECT_NAME_SIZE];
	char pieces[DOCUMENT_PIECES_SIZE];
	int64_t own_bytes;
};
/* Makes the documents the issued ones: status, files and notice in one durable transaction.
 * ERR_REFUSED: the lease is another's, or the job is over. ERR_UNAVAILABLE: a shared object is no
 * document's own. */
int store_complete_certification(struct store *store, const struct certification *certification,
                                 const char *holder, int64_t issued_at_us,
                                 const struct document *documents, size_t count,
                                 struct error *error) MUST_CHECK;
/* Fails it for good: status, refund of the fee and notice, with a fresh incident. `holder` NULL:
 * one that nobody works on. ERR_REFUSED as above. */
int store_fail_certification(struct store *store, const struct certification *certification,
                             const char *holder, const char *cause, int64_t now_us,
                             char ret_incident_id[ID_SIZE], struct error *error) MUST_CHECK;

/* The first one numbered above `after` in processing, requested before before_us, whose range is
 * still not sealed, so that nobody can claim it; ERR_NOT_FOUND. */
int store_find_overdue_certification(struct store *store, int64_t before_us, int64_t after,
                                     struct arena *arena, struct certification *ret,
                                     struct error *error) MUST_CHECK;

/* ---- issued files ---- */

/* Reports (Spanish first), evidence, then parts in their order. */
int store_list_documents(struct store *store, int64_t account, int64_t certification,
                         struct arena *arena, struct document **ret_documents, size_t *ret_count,
                         struct error *error) MUST_CHECK;
/* Whether there is one whose documents store_list_like_documents may give. */
int store_has_like_certification(struct store *store, const struct certification *certification,
                                 int64_t since_us, bool *ret_has, struct error *error) MUST_CHECK;
/* The documents of the last certification of the same events that was completed from since_us on;
 * none: *ret_count is 0. */
int store_list_like_documents(struct store *store, const struct certification *certification,
                              int64_t since_us, struct arena *arena,
                              struct document **ret_documents, size_t *ret_count,
                              struct error *error) MUST_CHECK;
/* By the public identifier and the file's name; ERR_NOT_FOUND. */
int store_find_document(struct store *store, struct slice certification_id, struct slice name,
                        struct document *ret, struct error *error) MUST_CHECK;
/* A completed certification by its verification code, or (digest not NULL) by the SHA-256 of one of
 * its files; ERR_NOT_FOUND. */
int store_find_issued(struct store *store, struct slice code, const struct sha256 *digest,
                      struct arena *arena, struct certification *ret, struct error *error)
	MUST_CHECK;

/* ---- housekeeping ---- */

/* Whether an event or an issued file names the object. */
int store_object_is_named(struct store *store, const char *object, bool *ret_named,
                          struct error *error) MUST_CHECK;

#endif
