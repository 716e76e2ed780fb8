/* Rules of registration: a pure function from (state, requests) to (outcomes, new state, credit
 * entries, notices). No I/O, no clock, no store; memory only from the caller's arena.
 *
 * A batch belongs to one account. The store loads the state that the batch needs, calls
 * ledger_register, and writes the changes in one transaction. These invariants always hold.
 * invariants.h asserts them; a failed assertion ends the process before anything is acknowledged.
 *   - the sequences of a chain are gapless, received_at never decreases, and the hashes chain
 *   - no event is received before the end of a certified time range: range_close moves
 *     last_received_at there, so every later event is received after it
 *   - balance_after = balance_before + sum of the entries' credits
 *   - unpaid_after = unpaid_before + number of unpaid outcomes
 *   - a replay, a conflict and a refusal change nothing
 *   - each notice is issued once per crossing
 *   - no event whose content would raise stored_bytes above stored_max is added; an event without
 *     content is never refused for that reason
 *   - no sequence, and no chain with a new event, exceeds its limit (ledger/bounds.h)
 *   - no live event is added while the clock is not reliable (struct ledger_clock), or to a chain
 *     whose last event was received more than the clock's bound in the future
 * A request is checked in this order: repeated client_ref, clock, consumption limit, unpaid limit,
 * test quota, limit of the chain, stored bytes. Then it is registered. (The caller has already
 * checked the key, the state of account and channel, the rate, body, size and modality.) */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include "base/arena.h"
#include "ledger/bounds.h"
#include "ledger/record.h"

#define TEST_EVENTS_PER_DAY 10000
#define TEST_CONTENT_BYTES_PER_DAY INT64_C(100000000)
#define TEST_CERTIFICATIONS_PER_DAY 20
#define TEST_CERTIFICATION_EVENTS_MAX 10000

/* Balances are within the range that JSON parsers represent exactly. */
#define LEDGER_BALANCE_MAX ((INT64_C(1) << 53) - 1)

enum period { PERIOD_DAY, PERIOD_MONTH };
const char *period_text(enum period period); /* "day", "month" */
bool period_parse(struct slice text, enum period *ret) MUST_CHECK;
/* Writes "YYYY-MM-DD" or "YYYY-MM" for a time. */
#define PERIOD_KEY_SIZE 11
void period_key(enum period period, int64_t time_us, char key[PERIOD_KEY_SIZE]);
/* Gets the first and the last day of the period that contains a time, counted from 1970-01-01. */
void period_days(enum period period, int64_t time_us, int64_t *ret_first, int64_t *ret_last);
/* Returns the start of the period after the one that contains a time. */
int64_t period_end_us(enum period period, int64_t time_us);

enum event_status { STATUS_REGISTERED, STATUS_UNPAID, STATUS_TEST };
const char *event_status_text(enum event_status status);

struct ledger_chain {
	int64_t chain; /* the store's number */
	int64_t channel;
	const char *channel_id;
	enum mode mode;
	enum modality modality;
	int64_t config_version;
	struct sha256 config_hash;
	int64_t last_sequence;
	int64_t last_received_at_us; /* minimum for the next event: received_at of the last event, or
	                                the end of a certified range, if later */
	struct sha256 last_chain_hash;
	bool changed;              /* set by ledger_register */
	struct ledger_entry *paid; /* the entry of the current batch for this chain */
};

struct ledger_limit {
	const char *limit_id;
	int64_t channel;
	int64_t key; /* 0: limit of the whole channel */
	const char *key_id;
	const char *channel_id;
	enum period period;
	bool block;
	int64_t max_events;
	int64_t used; /* live events, before this batch, of the period in which the channel's next event
	                 is received: that of now, or of the chain's last received_at, if later */
	char notified_period[PERIOD_KEY_SIZE];
	bool changed; /* notified_period */
};

struct ledger_threshold {
	const char *threshold_id;
	int64_t credits;
	bool armed;
	bool changed;
};

struct ledger_account {
	int64_t account;
	int64_t balance;
	int64_t unpaid_events;
	int64_t unpaid_limit;
	int64_t last_entry;
	int64_t last_unpaid;
	int64_t test_events_today; /* in the UTC day of `now` */
	int64_t test_bytes_today;
	int64_t stored_bytes; /* content and issued documents */
	int64_t stored_max;   /* limit of stored_bytes; 0: unlimited */

	struct ledger_chain **chains;
	size_t chain_count;
	struct ledger_limit *limits;
	size_t limit_count;
	struct ledger_threshold *thresholds;
	size_t threshold_count;
};

/* Existing event with the request's client_ref. */
struct ledger_known {
	int64_t sequence; /* 0: none */
	enum hash_algorithm hash_algorithm;
	uint8_t hash[DIGEST_SIZE_MAX];
	int64_t occurred_at_us;
};

struct ledger_request {
	struct ledger_chain *chain;
	int64_t key;
	const struct declaration *declaration; /* belongs to the caller; its modality is the chain's */
	int64_t content_bytes; /* counted in test quotas and stored_bytes; 0 for hash-only */
	struct ledger_known known;

	/* Outcome: */
	int result; /* OK: registered or replayed; ERR_CONFLICT, ERR_CLOCK, ERR_LIMIT_BLOCKED,
	               ERR_UNPAID_LIMIT, ERR_TEST_QUOTA, ERR_FULL */
	bool replayed;
	bool beyond_stored; /* ERR_FULL because of stored_max */
	/* ERR_LIMIT_BLOCKED: when the last of the limits that block it begins its next period */
	int64_t blocked_until_us;
	int64_t original; /* replayed or ERR_CONFLICT: sequence of the event with this client_ref, in
	                     the store or earlier in this batch */
	int64_t sequence; /* this and the following: of a new event */
	int64_t received_at_us;
	int64_t config_version;
	enum event_status status;
	struct sha256 chain_hash;
	char event_id[ID_SIZE];
};

enum notice_type {
#define NOTICE_TYPE(name, text) NOTICE_##name,
#include "ledger/notice_types.def"
#undef NOTICE_TYPE
};
const char *notice_type_text(enum notice_type type);
/* Returns whether only endpoints whose types name it receive it. */
bool notice_type_is_opt_in(struct slice type);

struct ledger_notice {
	enum notice_type type;
	struct slice data; /* JSON of the API, in the arena */
	struct ledger_notice *next;
};

/* Movement of credits. The order gives its number within the account. */
struct ledger_entry {
	/* "events", "settlement", "purchase", "revert", "adjustment", "fee", "fee_refund", "refund". */
	const char *kind;
	int64_t credits;            /* signed */
	int64_t balance;            /* after this entry */
	struct ledger_chain *chain; /* "events" */
	int64_t first_sequence;
	int64_t last_sequence;
	const char *reference; /* may be NULL */
	struct ledger_entry *next;
};

struct ledger_result {
	struct ledger_entry *entries; /* in order */
	struct ledger_notice *notices;
	int64_t test_events_added; /* in addition, test_events_today is updated */
	int64_t test_bytes_added;
	int64_t live_events_added;
};

/* Clock for the received_at of a batch. Live events are added only while it is at most `bound_us`
 * ahead of its reference clock. So no correct clock is ever further than that behind a chain's last
 * received_at. Live events are also refused until the clock was compared with a timestamp after the
 * start, and while that comparison shows a difference. */
struct ledger_clock {
	int64_t now_us;
	int64_t ahead_us; /* minimum lead over the reference clock; 0: none */
	int64_t bound_us;
	int64_t refused_for_us; /* 0: the comparison is done; else the estimated time until it is */
};
/* Returns whether the clock refuses live events on all chains. */
static inline bool ledger_clock_is_refused(const struct ledger_clock *clock)
{
	return clock->refused_for_us > 0 || clock->ahead_us > clock->bound_us;
}
/* Returns how far a chain's last received_at is ahead of the clock; 0: not ahead. */
static inline int64_t ledger_clock_lag_us(int64_t last_received_at_us, int64_t now_us)
{
	return last_received_at_us > now_us ? last_received_at_us - now_us : 0;
}
/* Decides the requests in order and updates the state. Returns 0 or ERR_NO_MEMORY; the state is
 * invalid then. */
int ledger_register(struct ledger_account *account, struct ledger_request **requests, size_t count,
                    const struct ledger_clock *clock, struct arena *arena,
                    struct ledger_result *ret_result) MUST_CHECK;

/* Returns whether `more` bytes may be stored in addition; stored_max 0: unlimited. */
bool ledger_may_store(int64_t stored_bytes, int64_t stored_max, int64_t more) MUST_CHECK;

/* Adds credits (a purchase, a positive adjustment) or removes credits (a negative adjustment, a
 * revert, a fee). Added credits first raise a negative balance to zero, then settle unpaid events,
 * oldest first, one credit each, and then increase the balance. *ret_settled is the number of
 * events that the store must settle. Updates thresholds and issues notices of downward crossings.
 * `kind` and `reference` describe the entry. Returns 0, ERR_VALIDATION (the sum would overflow) or
 * ERR_NO_MEMORY. */
int ledger_move_credits(struct ledger_account *account, int64_t credits, const char *kind,
                        const char *reference, struct arena *arena,
                        struct ledger_result *ret_result, int64_t *ret_settled, struct error *error)
	MUST_CHECK;

/* Base-32 alphabet of identifiers, without letters that are easily confused. */
#define ID_DIGITS "0123456789abcdefghjkmnpqrstvwxyz"
/* Writes an event identifier: "evt_", the channel's own part, "l" or "t", and the sequence in base
 * 32. */
void event_id_make(const char *channel_id, enum mode mode, int64_t sequence, char id[ID_SIZE]);
/* Returns the sequence if `id` is of this chain, else 0. */
int64_t event_id_sequence(struct slice id, const char *channel_id, enum mode mode);
/* Gets the chain and the sequence of an event identifier. Returns false if `id` is not one. */
bool event_id_read(struct slice id, char ret_channel_id[ID_SIZE], enum mode *ret_mode,
                   int64_t *ret_sequence) MUST_CHECK;

/* Range of a certification, fixed when the request is accepted. */
struct certification_range {
	int64_t from_us; /* TIME_NONE: not given */
	int64_t to_us;
	int64_t seq_from; /* 0: not given */
	int64_t seq_to;
};
/* Returns 0, or ERR_VALIDATION if an end precedes its start, where both are given. */
int range_order_check(const struct certification_range *range, struct error *error) MUST_CHECK;
/* Returns 0, or ERR_VALIDATION unless the range has exactly one complete pair that is not inverted,
 * with sequences from 1 to the chain's last. */
int certification_range_check(const struct certification_range *range, int64_t last_sequence,
                              struct error *error) MUST_CHECK;

/* Returns the request time of a certification by the store's clock, which may be ahead of the
 * node's clock by at most the bound. Until then no registration can be in the range that the
 * certification closes. */
int64_t range_requested_us(int64_t store_now_us, int64_t node_now_us, int64_t bound_us);
/* Returns the end of a time range that is certified at `now_us`, for a chain whose last event was
 * received at `last_received_at_us`: the end of the range or now, whichever is earlier. If the
 * clock was set back, it is just after the last event. */
int64_t range_cut_us(const struct certification_range *range, int64_t last_received_at_us,
                     int64_t now_us);
/* Closes a range: no event is received before the cut any more. Returns true if last_received_at
 * changed; the change must be durable before the range is reported. */
bool range_close(int64_t cut_us, int64_t *last_received_at_us);

/* Returns the number of whole days until the balance is used up, if `used` credits per `days` days
 * continue. -1: no usage, or more than LEDGER_FORECAST_DAYS_MAX days; 0: today. */
#define LEDGER_FORECAST_DAYS_MAX 3650
int64_t ledger_days_left(int64_t balance, int64_t used, int64_t days);

#endif
