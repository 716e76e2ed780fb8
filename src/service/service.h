/* Where store, content, seal and proof meet: what the HTTP interface, the jobs and the
 * administration call. Everything here is thread safe unless it says otherwise. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdatomic.h>

#include "content/content.h"
#include "payment/payment.h"
#include "service/settings.h"
#include "store/store.h"

struct registrar;
struct key_cache;
struct signer;
struct authorities;
struct renderer;
struct link_secrets;

/* What is counted where it happens, by any thread; metrics.def says what each is. Since the start,
 * or the state at the last look. */
struct counters {
#define COUNTER(member, name, type, unit, help) atomic_int_fast64_t member;
#include "service/metrics.def"
};

/* What the log said last of this machine's clock. */
struct clock_watch {
	atomic_bool ahead, unsynchronized;
	atomic_int_fast64_t told_behind_us; /* a chain, clock_boot_us; 0: never */
};

/* Whose work there is. */
enum wake {
	WAKE_SEALER, /* a certification waits for a seal */
	WAKE_ISSUER,
	WAKE_TOPUP, /* a payment is to be tried */
};
typedef void service_wake_function(void *context, enum wake which);

/* What was said of certificates that come to their end: of this node's keys, and of authorities. */
#define EXPIRING_MAX 10
struct expiry_told {
	int64_t at_us; /* clock_boot_us; 0: nothing */
	struct sha256 which;
};
#define KEPT_ROOTS_MAX 16

struct service {
	const struct settings *settings;
	struct store *store;
	struct content_store *content;
	struct signer *signer;                /* the process that holds the keys */
	struct authorities *authorities;      /* used by the sealer and for signature timestamps */
	struct revocation_client *revocation; /* NULL: nobody is asked */
	struct payment_provider *payments;
	const struct renderer *renderer; /* of reports */
	struct registrar *registrar;
	struct key_cache *keys;
	char installation[INSTALLATION_SIZE]; /* whose content it is */
	struct sha256 cursor_secret;          /* MAC key of lists' cursors */
	struct link_secrets *link_secrets;    /* MAC keys of download links */
	atomic_bool went_back;                /* the store: the program has to end (history.h) */
	struct counters counters;
	struct clock_watch clock_watch;
	atomic_bool signing_fails; /* what holds the key does not sign, and the log was told */
	struct expiry_told expiry_told[EXPIRING_MAX];    /* service_watch_expiry's */
	atomic_uint_fast64_t kept_roots[KEPT_ROOTS_MAX]; /* timestamp_roots_keep's */
	atomic_int_fast64_t issuing_bytes;               /* on disk, for certifications being made */
	service_wake_function *wake; /* NULL: no jobs run; called by service_wake alone */
	void *wake_context;
};

/* Opens store, content and payment provider by the settings, makes the installation's secrets and
 * starts the registrar. The caller gives a zeroed service, and signer, authorities, revocation and
 * renderer, which stay his, before anything is asked of it. On failure all is closed again. */
int service_open(const struct settings *settings, bool create, struct service *ret_service,
                 struct error *error) MUST_CHECK;
/* Ends the registrar after it has answered what waits, and closes what service_open opened. */
void service_close(struct service *service);
/* Has a job of this node look at once; without jobs (and without a service: NULL) nothing happens,
 * and whoever starts them finds the work. */
void service_wake(const struct service *service, enum wake which);

/* ---- keys ---- */
#define KEY_TEXT_MAX 64
#define KEY_LIFE_US (2 * US_PER_SECOND) /* of what a look-up said */
/* What is to be looked up of a key that is not known well enough. */
struct key_question {
	struct sha256 key_hash;
	bool familiar;       /* it was a key of ours when it was last looked up */
	uint64_t generation; /* of what was known when it was asked: moved on by each forgetting */
};
/* Waits for nothing. Shape and checksum are looked at first, so that a typo costs no look-up; then
 * a cache whose entries are at most 2 seconds old, failed look-ups 1 second. True: *ret_result is
 * what service_look_up_key would say. False: *ret_question is to be looked up. */
bool service_key_known(struct service *service, struct slice key, struct key_question *ret_question,
                       int *ret_result, struct key_identity *ret, struct error *error);
/* Asks the store, and keeps in the cache what it says. ERR_INVALID_KEY, ERR_REVOKED_KEY,
 * ERR_ACCOUNT_DISABLED (the last two also fill *ret), ERR_UNAVAILABLE. Suspension is left to the
 * caller, for reading goes on. */
int service_look_up_key(struct service *service, const struct sha256 *key_hash,
                        struct key_identity *ret, struct error *error) MUST_CHECK;
/* Forgets what is cached, after an administration command changed something. */
void service_forget_keys(struct service *service);

/* ---- registration ---- */
/* Queues; `done` is called once, from the sequencer's thread, after the commit (or its failure);
 * then the registration is the caller's again. What it points to must live until then. done must
 * be quick. */
struct pending_registration {
	struct registration registration;
	void (*done)(struct pending_registration *pending);
	void *context;
	struct pending_registration *next; /* the queue's own */
};
/* ERR_UNAVAILABLE when stopping or when the sequencer's queue is full (16,384). */
int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error) MUST_CHECK;

/* ---- shapes of the interface, shared by answers, archives and administration ---- */
void event_json(const struct event *event, struct buf *out); /* the Event record, an object */

struct json_writer;
/* The `proof` member of one event: previous_chain_hash, and once sealed the segment, its seal
 * document, the path to the round's root, the token (base64) and its authority. */
int event_proof_json(struct service *service, int64_t account, int64_t chain,
                     const struct event *event, struct arena *arena, struct json_writer *writer,
                     struct error *error) MUST_CHECK;
/* Appends the event's evidence record (RFC 4998, DER), whose data object is the event's record.
 * ERR_NOT_FOUND for a test event, which has none, and for one that is not sealed yet. */
int event_evidence_record(struct service *service, int64_t account, int64_t chain,
                          const struct event *event, struct arena *arena, struct buf *out,
                          struct error *error) MUST_CHECK;

/* ---- certifications (certify.c) ---- */
/* Accepts a request: checks, freezes the range, charges the fee, writes the job. Gives the
 * Certification record as JSON.
 * With an idempotency key (NULL: none) that was accepted on the chain in the last 24 hours it does
 * nothing of that: *ret_replayed, and the record of that certification as it stands now; for
 * another range ERR_CONFLICT. */
int certification_request(struct service *service, const struct key_identity *key,
                          const struct certification_range *range, const char *idempotency_key,
                          enum language language, struct buf *out, bool *ret_replayed,
                          struct error *error) MUST_CHECK;
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

/* ---- download links ---- */
/* Looks which secrets are valid; to be called every LINKS_INTERVAL_US, so that a new one is known
 * to every node before it is used. ERR_* of the store: those known stay. */
#define LINKS_INTERVAL_US (2 * US_PER_SECOND)
#define LINKS_SPREAD_US (10 * US_PER_SECOND)
int service_refresh_links(struct service *service, struct error *error) MUST_CHECK;
/* False when altered or expired. */
bool link_check(const struct service *service, const char *certification_id, const char *name,
                struct slice expires, struct slice mac, int64_t now_us) MUST_CHECK;
/* The object in the content store behind an issued file, and what it is; ERR_NOT_FOUND. */
struct issued_file {
	char object[CONTENT_NAME_MAX];
	const char *content_type;
	const char *languages; /* as Content-Language has them; NULL: of declared content, unknown */
	uint64_t size;
	struct sha256 sha256;
};
int issued_file_find(struct service *service, struct slice certification_id, struct slice name,
                     struct issued_file *ret, struct error *error) MUST_CHECK;

/* What the public verification page says of a code or of a file's SHA-256; JSON, ERR_NOT_FOUND. */
int verification_lookup(struct service *service, struct slice code, const struct sha256 *digest,
                        struct buf *out, struct error *error) MUST_CHECK;

/* PEM, appended: the roots that whoever verifies this service's evidence has to trust. Asks the
 * store. */
int service_trust(struct service *service, struct buf *out, struct error *error) MUST_CHECK;
#define SERVICE_TRUST_MAX ((size_t)4 << 20)
/* Verifies an open file that anybody may have handed in, against these roots, in a process of its
 * own (proof/verifier.h): appends JSON as `constancia verify --json` has it. ERR_UNAVAILABLE when
 * that could not be done to its end. Waits. */
int service_check_file(struct service *service, int file, struct buf *out, struct error *error)
	MUST_CHECK;

/* ---- the clock (clock.c) ---- */
/* Why live registrations are refused at this node now, wherever their chains stand. ERR_CLOCK: the
 * clock is ahead by more than seal.clock_bound, or not synchronized where seal.strict_clock asks
 * for that. */
int service_clock_ready(const struct service *service, struct error *error) MUST_CHECK;
/* Tells the log when the clock comes to be ahead, and when no longer; true while it is. */
bool service_watch_clock(struct service *service);

/* ---- state for /readyz and /metrics ---- */
/* ERR_UNAVAILABLE while the signing process does not answer, or has ended. */
int service_signer_ready(const struct service *service, struct error *error) MUST_CHECK;
#define GAUGE_UNKNOWN INT64_MIN
struct gauges {
#define GAUGE(member, name, type, unit, help) int64_t member;
#include "service/metrics.def"
	bool clock_refuses; /* registrations, for a chain, within the last minute */
};
/* What neither the store nor the server has to be asked for; the rest stays. */
void service_read_gauges(struct service *service, struct gauges *ret);

#endif
