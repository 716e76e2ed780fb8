/* Where store, content, seal and proof meet: what the HTTP interface, the jobs and the
 * administration call. Everything here is thread safe unless it says otherwise. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdatomic.h>

#include "base/turns.h"
#include "content/composite.h"
#include "payment/payment.h"
#include "service/receipt_rate.h"
#include "service/settings.h"
#include "store/store.h"

struct registrar;
struct key_cache;
struct key_uses;
struct rate_limiter;
struct signer;
struct authorities;
struct renderer;
struct watch;
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

/* How far the comparison of the clock has come that a start begins (clock_start.h). */
enum clock_comparison_state {
	CLOCK_COMPARED, /* it agrees, or there is nothing to compare it with */
	CLOCK_COMPARING,
	CLOCK_DIFFERS,
	CLOCK_NOT_COMPARED, /* no authority has answered */
};
struct clock_comparison {
	atomic_int state;              /* enum clock_comparison_state */
	atomic_bool asked;             /* all authorities, since the start */
	atomic_int_fast64_t begun_us;  /* clock_boot_us */
	atomic_int_fast64_t latest_us; /* that registrations were given without it */
};

/* Whose work there is. */
enum wake {
	WAKE_SEALER, /* a certification waits for a seal */
	WAKE_ISSUER,
	WAKE_TOPUP, /* a payment is to be tried */
	WAKE_CLOCK, /* it is to be compared */
};
typedef void service_wake_function(void *context, enum wake which);

/* What was said of certificates that come to their end: of this node's keys, and of authorities. */
#define EXPIRING_MAX 12
#define SERVICE_LISTENERS 2 /* the public one, the operator's */
struct expiry_told {
	int64_t at_us; /* clock_boot_us; 0: nothing */
	struct sha256 which;
};
#define KEPT_ROOTS_MAX 16
#define DAMAGE_TOLD_MAX 1024

struct service {
	/* What SIGHUP replaces while threads read it; the former ones live until nobody who was reading
	 * then (base/reading.h) still is, so that whoever has one may go on with it. */
	const struct settings *_Atomic settings;
	atomic_uint_fast64_t reloads; /* moved on behind all that is replaced */
	struct store *store;
	struct content_store *content;
	struct signer *signer;                   /* the process that holds the keys */
	struct authorities *_Atomic authorities; /* used by the sealer and for signature timestamps */
	struct revocation_client *_Atomic revocation; /* NULL: nobody is asked */
	struct payment_provider *_Atomic payments;
	const struct renderer *renderer; /* of reports */
	struct registrar *registrar;
	struct key_cache *keys;
	struct key_uses *key_uses;
	struct rate_limiter *tries;           /* event_try's, a bucket for each account */
	char installation[INSTALLATION_SIZE]; /* whose content it is */
	struct sha256 cursor_secret;          /* MAC key of lists' cursors */
	struct link_secrets *link_secrets;    /* MAC keys of download links */
	atomic_bool went_back;                /* the store: the program has to end (history.h) */
	atomic_bool trust_is_old;             /* what service_write_trust wrote, since a reload */
	struct counters counters;
	atomic_int_fast64_t quiet_since_us; /* 0: it is not (quiet.h) */
	atomic_int_fast64_t quiet_told_us;  /* clock_boot_us */
	atomic_int_fast64_t woken_us;       /* 0: never (store/quiet.h) */
	atomic_int_fast64_t copied_us;      /* with it */
	struct clock_watch clock_watch;
	struct clock_comparison comparison;
	atomic_bool lacks_space;   /* a batch failed for want of it, and none was written since */
	struct watch *watch;       /* watch.h */
	bool development;          /* `constancia dev`: development keys are what is wanted */
	atomic_bool signing_fails; /* what holds the key does not sign, and the log was told */
	atomic_uint_fast64_t damage_told[DAMAGE_TOLD_MAX]; /* service_damage_is_new's */
	struct expiry_told expiry_told[EXPIRING_MAX];      /* service_watch_expiry's */
	atomic_uint_fast64_t kept_roots[KEPT_ROOTS_MAX];   /* timestamp_roots_keep's */
	atomic_int_fast64_t issuing_bytes;                 /* on disk, for certifications being made */
	atomic_bool makes_receipt;                         /* sale_receipt_make's */
	struct receipt_rate receipt_rate;                  /* of the one who makes one */
	/* When the certificate that a listener shows ends; 0: it speaks plain HTTP. The server's. */
	atomic_int_fast64_t tls_expires_us[SERVICE_LISTENERS];
	service_wake_function *wake; /* NULL: no jobs run; called by service_wake alone */
	void *wake_context;
};

/* The payment provider that the settings name, as service_open makes it. */
int service_open_payments(const struct settings *settings, struct payment_provider **ret,
                          struct error *error) MUST_CHECK;
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

/* Whether the log has yet to be told that this event's content is in that state: once for each
 * since the start, as long as not too many are damaged, so that who looks again and again fills no
 * log. */
bool service_damage_is_new(struct service *service, const char *event_id, const char *state);

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
/* Writes down when keys were last used, as look-ups saw it; to be called every
 * KEY_USES_INTERVAL_US. What could not be written is kept for the next time. */
#define KEY_USES_INTERVAL_US (60 * US_PER_SECOND)
int service_write_key_uses(struct service *service, struct error *error) MUST_CHECK;
/* What a key of the mode would be on the channel, for who governs it and needs none: its number is
 * 0. ERR_NOT_FOUND. */
int service_channel_identity(struct service *service, struct slice channel_id, enum mode mode,
                             struct key_identity *ret, struct error *error) MUST_CHECK;
/* ERR_ACCOUNT_DISABLED, ERR_SUSPENDED: neither registers nor certifies. */
int service_check_writes(const struct key_identity *key, struct error *error) MUST_CHECK;
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
	struct turn turn; /* the queue's own */
};
/* ERR_UNAVAILABLE when stopping, when the sequencer's queue is full (16,384), or when the account
 * has as many waiting as there is room left for the others. */
int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error) MUST_CHECK;
/* Around what may submit several, and waits for none of them: they are gathered into larger
 * batches. */
void registrations_come(struct service *service);
void registrations_came(struct service *service);

/* ---- shapes of the interface, shared by answers, archives and administration ---- */
void event_json(const struct event *event, struct buf *out); /* the Event record, an object */

/* The event of that identifier, of whatever chain. ERR_NOT_FOUND. */
struct event_found {
	int64_t account, chain;
	struct event event;
};
int event_find(struct store *store, struct slice id, struct arena *arena, struct event_found *ret,
               struct error *error) MUST_CHECK;
/* Whether what is kept of its content has its hash. ERR_CORRUPT; ERR_NOT_FOUND: it is not there. */
int event_check_content(struct content_store *store, const struct event *event, struct error *error)
	MUST_CHECK;

struct json_writer;
/* The `proof` member of one event: previous_chain_hash, and once sealed the segment, its seal
 * document, the path to the round's root, the token (base64) and its authority. */
int event_proof_json(struct store *store, int64_t account, int64_t chain, const struct event *event,
                     struct arena *arena, struct json_writer *writer, struct error *error)
	MUST_CHECK;
/* Appends the event's evidence record (RFC 4998, DER), whose data object is the event's record,
 * with what validates it inside: `revocation` is asked for that, if it is not NULL, and may take
 * seconds. ERR_NOT_FOUND for a test event, which has none, and for one that is not sealed yet. */
int event_evidence_record(struct store *store, struct revocation_client *revocation,
                          int64_t account, int64_t chain, const struct event *event,
                          struct arena *arena, struct buf *out, struct error *error) MUST_CHECK;

/* ---- certifications (certify.c) ---- */
struct certification_range;
struct certification_order {
	const struct key_identity *key;
	const struct certification_range *range;
	const char *idempotency_key; /* NULL: none */
	/* ERR_REFUSED if it is not this now (store/certifications/certifications.h); NULL: nothing */
	const struct certification_expected *expected;
	enum language language;
	struct store *store; /* that the acceptance is an act of (store/acts.h); NULL: of none */
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

/* ---- download links ---- */
/* Looks which secrets are valid; to be called every LINKS_INTERVAL_US, so that a new one is known
 * to every node before it is used. ERR_* of the store: those known stay. */
#define LINKS_INTERVAL_US (2 * US_PER_SECOND)
#define LINKS_SPREAD_US (10 * US_PER_SECOND)
int service_refresh_links(struct service *service, struct error *error) MUST_CHECK;
struct document;
/* The link of an issued document as answers give it:
 * public_url/v1/downloads/<certification id>/<file name>?expires=<unix seconds>&mac=<hex>, or with
 * content.presigned_links one that leads to the content store itself. */
void document_link(const struct service *service, const char *certification_id,
                   const struct document *document, int64_t now_us, struct buf *out);
/* False when altered or expired. */
bool link_check(const struct service *service, const char *certification_id, const char *name,
                struct slice expires, struct slice mac, int64_t now_us) MUST_CHECK;
/* The objects in the content store behind an issued file (content/composite.h), and what it is;
 * ERR_NOT_FOUND. */
struct issued_file {
	int64_t account;
	char object[CONTENT_NAME_MAX];
	char shared[CONTENT_NAME_MAX + 1]; /* empty: the object is the whole file */
	char pieces[CONTENT_PIECES_SIZE];
	const char *content_type;
	const char *languages; /* as Content-Language has them; NULL: of declared content, unknown */
	uint64_t size;
	struct sha256 sha256;
};
int issued_file_find(struct service *service, struct slice certification_id, struct slice name,
                     struct issued_file *ret, struct error *error) MUST_CHECK;

/* What the public verification page says of a code, as people type and paste it
 * (verification_code.h), or (`digest` not NULL) of a file's SHA-256; JSON, ERR_NOT_FOUND. */
int verification_lookup(struct service *service, struct slice typed, const struct sha256 *digest,
                        struct buf *out, struct error *error) MUST_CHECK;

/* PEM, appended: the roots that whoever verifies this service's evidence has to trust. Asks the
 * store. */
int service_trust(struct service *service, struct buf *out, struct error *error) MUST_CHECK;
#define SERVICE_TRUST_MAX ((size_t)4 << 20)
/* Writes them to trust.pem in the data directory. Waits for store and disk. */
int service_write_trust(struct service *service, struct error *error) MUST_CHECK;
/* Verifies an open file that anybody may have handed in, with that SHA-256, in a process of its own
 * (proof/verifier.h), against these roots and the signers that the store lists: what is neither on
 * record nor signed by one of them while it was in force is not valid. ERR_UNAVAILABLE when that
 * could not be done to its end; ERR_TOO_LARGE. Waits. */
enum file_origin {
	FILE_FOREIGN, /* some of it is neither issued nor signed by this service */
	FILE_SIGNED,  /* all of it at least signed, some of it not on record */
	FILE_ISSUED,  /* all of it on record */
};
struct file_check {
	enum file_origin origin;
	bool is_container; /* of files, which are what is judged */
	bool is_intact;    /* nothing is wrong but that it is foreign */
	/* In the arena: as `constancia verify --json` has it, with the findings of this service and
	 * "certification_id" and "origin" ("foreign", "issued", "signed"), or null, in each of "files".
	 * Its form is not to be relied on. */
	struct json *verification;
};
int service_check_file(struct service *service, int file, const struct sha256 *digest,
                       struct arena *arena, struct file_check *ret_check, struct error *error)
	MUST_CHECK;

/* ---- the clock (clock.c) ---- */
/* Why live registrations are refused at this node now, wherever their chains stand. ERR_CLOCK: the
 * clock is ahead by more than seal.clock_bound, or not synchronized where seal.strict_clock asks
 * for that; or it was not compared since the start, or found to differ then (clock_start.h). */
int service_clock_ready(const struct service *service, struct error *error) MUST_CHECK;
/* Tells the log when the clock comes to be ahead, and when no longer; true while it is. */
bool service_watch_clock(struct service *service);

/* ---- state for /readyz and /metrics ---- */
/* ERR_UNAVAILABLE while the signing process does not answer, or has ended. */
int service_signer_ready(const struct service *service, struct error *error) MUST_CHECK;
/* Whether a development key signs, or an embedded authority is among those asked. */
bool service_has_development_keys(const struct service *service);
#define GAUGE_UNKNOWN INT64_MIN
struct gauges {
#define GAUGE(member, name, type, unit, help) int64_t member;
#include "service/metrics.def"
	bool clock_refuses; /* registrations, for a chain, within the last minute */
};
/* What neither the store nor the server has to be asked for; the rest stays. */
void service_read_gauges(struct service *service, struct gauges *ret);

#endif
