/* Combines store, content, seal and proof for the HTTP interface, the jobs and the administration.
 * Everything here is thread safe unless stated otherwise. */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdatomic.h>

#include "base/fair_queue.h"
#include "content/composite.h"
#include "payment/payment.h"
#include "service/settings.h"
#include "store/store.h"
#include "tlog/note.h"

struct registrar;
struct key_cache;
struct key_uses;
struct request_sampler;
struct rate_limiter;
struct signer;
struct receipt_signer;
struct receipt_signature;
struct authorities;
struct renderer;
struct watch;
struct link_secrets;

/* Counters, updated by any thread; metrics.def describes each. They are totals since the start, or
 * the state at the last check. */
struct counters {
#define COUNTER(member, name, type, unit, help) atomic_int_fast64_t member;
#include "service/metrics.def"
};

/* The last logged state of this machine's clock. */
struct clock_watch {
	atomic_bool ahead, unsynchronized;
	atomic_int_fast64_t
		logged_behind_us; /* last log message about a chain, clock_boot_us; 0: never */
};

/* State of the clock comparison after a start (clock_start.h). */
enum clock_comparison_state {
	CLOCK_COMPARED, /* the clock agrees, or there is nothing to compare it with */
	CLOCK_COMPARING,
	CLOCK_DIFFERS,
	CLOCK_NOT_COMPARED, /* no authority has responded */
};
struct clock_comparison {
	atomic_int state;              /* enum clock_comparison_state */
	atomic_bool asked;             /* all authorities were asked since the start */
	atomic_int_fast64_t begun_us;  /* clock_boot_us */
	atomic_int_fast64_t latest_us; /* latest time given to registrations without a comparison */
};

/* Job that has new work. */
enum wake {
	WAKE_SEALER, /* a certification waits for a seal */
	WAKE_ISSUER,
	WAKE_TOPUP, /* a payment is due */
	WAKE_CLOCK, /* the clock is to be compared */
};
typedef void service_wake_function(void *context, enum wake which);

/* Log messages about expiring certificates of this node's keys, authorities and listeners. */
#define EXPIRING_MAX 12
#define SERVICE_LISTENERS 2 /* the public one and the operator's */
struct expiry_logged {
	int64_t at_us; /* clock_boot_us; 0: unused */
	struct sha256 which;
};
#define RECORDED_ROOTS_MAX 16
/* What is known of the path from a signing certificate to its root. */
enum path_state {
	PATH_UNKNOWN,
	PATH_COMPLETE,   /* each certificate below the root has revocation data */
	PATH_INCOMPLETE, /* one has none: signatures reach level T only */
	PATH_REVOKED,    /* one was revoked */
};
#define SERVICE_PATHS 9 /* the signer's and one for each authority */
#define DAMAGE_LOGGED_MAX 1024

struct service {
	/* Replaced by SIGHUP while threads read it. The former settings are freed by epoch-based
	 * reclamation (base/epoch.h): they live until all threads that may use them have left their
	 * read section. */
	const struct settings *_Atomic settings;
	atomic_uint_fast64_t reloads; /* incremented after everything has been replaced */
	struct store *store;
	struct content_store *content;
	struct signer *signer;                   /* the signing process, which holds the keys */
	struct receipt_signer *receipt_signer;   /* NULL: receipts are not signed */
	char log_origin[NOTE_NAME_MAX + 1];      /* name of the log, of log.origin */
	struct authorities *_Atomic authorities; /* used by the sealer and for signature timestamps */
	struct revocation_client *_Atomic revocation; /* NULL: revocation data is not fetched */
	struct payment_provider *_Atomic payments;
	const struct renderer *renderer; /* draws reports */
	struct registrar *registrar;
	struct key_cache *keys;
	struct key_uses *key_uses;
	struct request_sampler *requests;     /* rows of the request log that a job writes */
	struct rate_limiter *tries;           /* of event_try, one bucket per account */
	char installation[INSTALLATION_SIZE]; /* owner of the content store */
	struct sha256 cursor_secret;          /* MAC key of list cursors */
	struct link_secrets *link_secrets;    /* MAC keys of download links */
	atomic_bool store_rolled_back;        /* the store was rolled back; the program exits */
	atomic_bool trust_is_old;             /* trust.pem must be rewritten after a reload */
	struct counters counters;
	atomic_int_fast64_t read_only_since_us;  /* 0: not a read-only copy (read_only.h) */
	atomic_int_fast64_t read_only_logged_us; /* clock_boot_us */
	atomic_int_fast64_t woken_us;            /* 0: never (store/nodes/read_only_copy.h) */
	atomic_int_fast64_t copied_us;           /* time of the copy, set together with woken_us */
	struct clock_watch clock_watch;
	struct clock_comparison comparison;
	atomic_bool lacks_space;   /* the last batch failed because the disk was full */
	struct watch *watch;       /* watch.h */
	bool development;          /* `constancia dev`: development keys are expected */
	atomic_bool signing_fails; /* the key cannot be used, which was logged */
	atomic_uint_fast64_t damage_logged[DAMAGE_LOGGED_MAX];   /* of service_damage_is_new */
	struct expiry_logged expiry_logged[EXPIRING_MAX];        /* of service_watch_expiry */
	atomic_uint_fast64_t recorded_roots[RECORDED_ROOTS_MAX]; /* of timestamp_roots_record */
	atomic_int_fast64_t issuing_bytes; /* disk space reserved for certifications in progress */
	/* Whether the signer's path (index 0) and the paths of the authorities have revocation data, as
	 * last determined by jobs/validation.c: enum path_state. */
	atomic_int path_states[SERVICE_PATHS];
	/* Expiry of each listener's certificate, set by the HTTP server; 0: plain HTTP. */
	atomic_int_fast64_t tls_expires_us[SERVICE_LISTENERS];
	service_wake_function *wake; /* NULL: no jobs run; called only by service_wake */
	void *wake_context;
};

/* Opens the payment provider of the settings. */
int service_open_payments(const struct settings *settings, struct payment_provider **ret,
                          struct error *error) MUST_CHECK;
/* Opens store, content and payment provider, creates the installation's secrets and starts the
 * registrar. The caller passes a service that is zeroed but for receipt_signer and log_origin. It
 * sets signer, authorities, revocation and renderer before the service is used, and continues to
 * own all of them. On failure everything is closed again. */
int service_open(const struct settings *settings, bool create, struct service *ret_service,
                 struct error *error) MUST_CHECK;
/* Stops the registrar after it has processed the waiting registrations, and closes what
 * service_open opened. */
void service_close(struct service *service);
/* Wakes a job of this node. Does nothing without jobs or without a service (NULL); jobs find the
 * work when they start. */
void service_wake(const struct service *service, enum wake which);

/* Returns whether this state of an event's content is still to be logged. Each state is logged once
 * since the start, unless many events are damaged, so that repeated checks do not flood the log. */
bool service_damage_is_new(struct service *service, const char *event_id, const char *state);

/* ---- keys ---- */
#define KEY_TEXT_MAX 64
#define KEY_LIFE_US (2 * US_PER_SECOND) /* lifetime of a lookup result */
/* A key that must be looked up because the cache has no recent result. */
struct key_lookup_query {
	struct sha256 key_hash;
	bool familiar;       /* it was valid in its last lookup */
	uint64_t generation; /* generation of the cache at the time of the request; incremented each
	                        time the cache is cleared */
};
/* Checks a key without blocking. Format and checksum are checked first, so that a typing error
 * costs no lookup, then a cache whose entries are at most 2 seconds old, failed lookups 1 second.
 * Returns true: *ret_result is the result of service_find_key. Returns false: *ret_question must
 * be looked up. */
bool service_find_cached_key(struct service *service, struct slice key,
                             struct key_lookup_query *ret_question, int *ret_result,
                             struct key_identity *ret, struct error *error);
/* Looks up a key in the store and caches the result. ERR_INVALID_KEY, ERR_REVOKED_KEY,
 * ERR_ACCOUNT_DISABLED (the last two also fill in *ret), ERR_UNAVAILABLE. The caller checks for
 * suspension, because reading remains possible then. */
int service_find_key(struct service *service, const struct sha256 *key_hash,
                     struct key_identity *ret, struct error *error) MUST_CHECK;
/* Stores the times of last use seen by lookups; to be called every KEY_USES_INTERVAL_US. Times that
 * cannot be written are kept for the next call. */
#define KEY_USES_INTERVAL_US (60 * US_PER_SECOND)
int service_write_key_uses(struct service *service, struct error *error) MUST_CHECK;
/* Fills in the identity of a key of that mode on the channel, for callers who do not need a key;
 * its key number is 0. ERR_NOT_FOUND. */
int service_channel_identity(struct service *service, struct slice channel_id, enum mode mode,
                             struct key_identity *ret, struct error *error) MUST_CHECK;
/* Checks that the key may register and certify. ERR_ACCOUNT_DISABLED, ERR_SUSPENDED. */
int service_check_writes(const struct key_identity *key, struct error *error) MUST_CHECK;
/* Clears the cache after an administration command has changed something. */
void service_clear_key_cache(struct service *service);

/* ---- registration ---- */
/* A queued registration. `done` is called once on the sequencer's thread, after the commit or its
 * failure; then the caller owns the registration again. Everything it points to must live until
 * then. `done` must be quick. */
struct pending_registration {
	struct registration registration;
	void (*done)(struct pending_registration *pending);
	void *context;
	struct fair_queue_item turn; /* link in the queue */
	bool is_waiting;             /* in a queue */
};
/* Queues a registration. ERR_UNAVAILABLE: the node is stopping, the sequencer's queue is full
 * (16,384), or the account has used its share of the queue. */
int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error) MUST_CHECK;
/* Queues several registrations of one account in order, as one batch if the sequencer has capacity.
 * *ret_queued is the number of queued ones, the first ones of the list. Returns OK if all were
 * queued, else as register_submit, for the others. */
int register_submit_all(struct service *service, struct pending_registration **pending,
                        size_t count, size_t *ret_queued, struct error *error) MUST_CHECK;
/* Bracket code that may submit several registrations without blocking on them: they are gathered
 * into larger batches. */
void registrations_begin(struct service *service);
void registrations_end(struct service *service);

/* ---- formats of the API, shared by responses, archives and administration ---- */
void event_json(const struct event *event, struct buf *out); /* the Event record, an object */
/* The same with its receipt, as a registration is answered; NULL: the receipt is null. */
void registered_event_json(const struct event *event, const struct receipt_signature *receipt,
                           struct buf *out);

/* Finds an event by its identifier, in any chain. ERR_NOT_FOUND. */
struct event_found {
	int64_t account, chain;
	struct event event;
};
int event_find(struct store *store, struct slice id, struct arena *arena, struct event_found *ret,
               struct error *error) MUST_CHECK;
/* Checks that the stored content of an event has its hash. ERR_CORRUPT; ERR_NOT_FOUND: the content
 * is missing. */
int event_check_content(struct content_store *store, const struct event *event, struct error *error)
	MUST_CHECK;

/* ---- the clock (registration_clock.c) ---- */
/* Returns why this node refuses live registrations now, regardless of the chain. ERR_CLOCK: the
 * clock is ahead by more than seal.clock_bound; it is not synchronized while seal.strict_clock is
 * set; or it was not compared since the start, or was found to differ (clock_start.h). */
int service_clock_ready(const struct service *service, struct error *error) MUST_CHECK;
/* Logs when the clock starts or stops being ahead; returns true while it is. */
bool service_watch_clock(struct service *service);

/* ---- state for /readyz and /metrics ---- */
/* Returns ERR_UNAVAILABLE while the signing process does not respond, or after it has exited. */
int service_signer_ready(const struct service *service, struct error *error) MUST_CHECK;
/* Returns whether a development key signs, or an embedded authority is configured. */
bool service_has_development_keys(const struct service *service);
#define GAUGE_UNKNOWN INT64_MIN
struct gauges {
#define GAUGE(member, name, type, unit, help) int64_t member;
#include "service/metrics.def"
	bool clock_refuses; /* registrations were refused because of a chain within the last minute */
	int64_t writing_us; /* age of the oldest batch that a sequencer is writing; 0: none */
};

#endif
