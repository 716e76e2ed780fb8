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
	atomic_int_fast64_t woken_us;       /* 0: never (store/nodes/quiet.h) */
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

#endif
