/* The rules of registration: one pure function from (state, requests) to (outcomes, new state,
 * credit entries, notices). No I/O, no clock, no store, no memory but the caller's arena.
 *
 * A batch belongs to one account. The store loads the state of what the batch touches, calls
 * ledger_register, and writes what changed in one transaction. Invariants that always hold; invariants.h
 * asserts them, and a failed assertion ends the process before anything is acknowledged:
 *   - sequences of a chain are gapless, received_at never decreases, hashes chain
 *   - nothing is received before the end of a range by time that was certified: range_close moves
 *     last_received_at there, behind which every later event is received
 *   - balance_after = balance_before + sum of the entries' credits
 *   - unpaid_after = unpaid_before + number of unpaid outcomes
 *   - a replay, a conflict and a refusal change nothing
 *   - each notice is given once per crossing
 *   - no event is added whose content brings stored_bytes above stored_max; what has no content is
 *     never refused for that
 *   - no sequence, and no chain that gets an event, is beyond its bound (ledger/bounds.h)
 *   - no live event is added while the clock is not to be relied on (struct ledger_clock), nor to a
 *     chain whose last one was received more than the clock's bound later
 * Order of the checks of one request: repeated client_ref, the clock, consumption limit, unpaid
 * limit, test quota, room in the chain, stored bytes, registration. (Key, state of account and
 * channel, rate, body, size and modality come before, outside.) */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include "base/arena.h"
#include "ledger/bounds.h"
#include "ledger/record.h"

#define TEST_EVENTS_PER_DAY 10000
#define TEST_CONTENT_BYTES_PER_DAY INT64_C(100000000)
#define TEST_CERTIFICATIONS_PER_DAY 20
#define TEST_CERTIFICATION_EVENTS_MAX 10000

/* Balances stay within what JSON readers keep exact. */
#define LEDGER_BALANCE_MAX ((INT64_C(1) << 53) - 1)

enum period { PERIOD_DAY, PERIOD_MONTH };
const char *period_text(enum period period); /* "day", "month" */
bool period_parse(struct slice text, enum period *ret) MUST_CHECK;
/* "YYYY-MM-DD" or "YYYY-MM" of a time. */
#define PERIOD_KEY_SIZE 11
void period_key(enum period period, int64_t time_us, char key[PERIOD_KEY_SIZE]);
/* The first and the last day of the period that a time lies in, counted from 1970-01-01. */
void period_days(enum period period, int64_t time_us, int64_t *ret_first, int64_t *ret_last);

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
	int64_t last_received_at_us; /* the next one's is not before it: of the last event, or the end
	                                of a range that was certified, if that is later */
	struct sha256 last_chain_hash;
	bool changed;              /* set by ledger_register */
	struct ledger_entry *paid; /* of the batch under way: what it charged for this chain */
};

struct ledger_limit {
	const char *limit_id;
	int64_t channel;
	int64_t key; /* 0: of the whole channel */
	const char *key_id;
	const char *channel_id;
	enum period period;
	bool block;
	int64_t max_events;
	int64_t used; /* live events of the period in which the channel's next event is received:
	               * now, or the chain's last received_at if that is later; before this batch */
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
	int64_t test_events_today; /* of the UTC day of `now` */
	int64_t test_bytes_today;
	int64_t stored_bytes; /* content and issued documents */
	int64_t stored_max;   /* of them; 0: any number */

	struct ledger_chain **chains;
	size_t chain_count;
	struct ledger_limit *limits;
	size_t limit_count;
	struct ledger_threshold *thresholds;
	size_t threshold_count;
};

/* What the store already holds under the request's client_ref. */
struct ledger_known {
	int64_t sequence; /* 0: nothing */
	enum hash_algorithm hash_algorithm;
	uint8_t hash[DIGEST_SIZE_MAX];
	int64_t occurred_at_us;
};

struct ledger_request {
	struct ledger_chain *chain;
	int64_t key;
	const struct declaration *declaration; /* the caller's; its modality is the chain's */
	int64_t content_bytes; /* what test quotas and stored_bytes count; 0 for hash-only */
	struct ledger_known known;

	/* The outcome. */
	int result; /* OK: registered or replayed; ERR_CONFLICT, ERR_CLOCK, ERR_LIMIT_BLOCKED,
	               ERR_UNPAID_LIMIT, ERR_TEST_QUOTA, ERR_FULL */
	bool replayed;
	bool beyond_stored; /* ERR_FULL: for stored_max */
	int64_t original; /* replayed or ERR_CONFLICT: the sequence of the event that holds client_ref,
	                     the store's or an earlier one of this batch */
	int64_t sequence; /* this and what follows: of a new event */
	int64_t received_at_us;
	int64_t config_version;
	enum event_status status;
	struct sha256 chain_hash;
	char event_id[ID_SIZE];
};

enum notice_type {
	NOTICE_CERTIFICATION_COMPLETED,
	NOTICE_CERTIFICATION_FAILED,
	NOTICE_BALANCE_LOW,
	NOTICE_BALANCE_EXHAUSTED,
	NOTICE_UNPAID_LIMIT_REACHED,
	NOTICE_CONSUMPTION_LIMIT_REACHED,
	NOTICE_RECHARGE_COMPLETED,
	NOTICE_RECHARGE_FAILED,
	NOTICE_WEBHOOK_TEST,
};
const char *notice_type_text(enum notice_type type);

struct ledger_notice {
	enum notice_type type;
	struct slice data; /* the JSON of the interface, in the arena */
	struct ledger_notice *next;
};

/* A movement of credits; the number within the account is given by its order. */
struct ledger_entry {
	/* "events", "settlement", "purchase", "revert", "adjustment", "fee", "fee_refund", "refund". */
	const char *kind;
	int64_t credits;            /* signed */
	int64_t balance;            /* after it */
	struct ledger_chain *chain; /* "events" */
	int64_t first_sequence;
	int64_t last_sequence;
	const char *reference; /* may be NULL */
	struct ledger_entry *next;
};

struct ledger_result {
	struct ledger_entry *entries; /* in order */
	struct ledger_notice *notices;
	int64_t test_events_added; /* beside test_events_today, which is moved on too */
	int64_t test_bytes_added;
	int64_t live_events_added;
};

/* The clock that a batch is received by. Live events are added only while it is at most `bound_us`
 * ahead of the clock that it is compared with: then no clock that shows the right time is ever
 * further than that after the chain's last received_at. None are added either before it was
 * compared with a timestamp since the start, nor while it was found to differ then. */
struct ledger_clock {
	int64_t now_us;
	int64_t ahead_us; /* of what it is compared with, at least; 0: it is not */
	int64_t bound_us;
	int64_t refused_for_us; /* 0: that comparison is made; else about how long it may take */
};
/* Whether no live event may be received by it, on whatever chain. */
static inline bool ledger_clock_is_refused(const struct ledger_clock *clock)
{
	return clock->refused_for_us > 0 || clock->ahead_us > clock->bound_us;
}
/* How far a chain's last received_at lies ahead of the clock; 0: it does not. */
static inline int64_t ledger_clock_lag_us(int64_t last_received_at_us, int64_t now_us)
{
	return last_received_at_us > now_us ? last_received_at_us - now_us : 0;
}
/* Decides the requests in order and moves the state on. 0 or ERR_NO_MEMORY (the state is then
 * void). */
int ledger_register(struct ledger_account *account, struct ledger_request **requests, size_t count,
                    const struct ledger_clock *clock, struct arena *arena,
                    struct ledger_result *ret_result) MUST_CHECK;

/* Whether `more` bytes may be stored beside what is; stored_max 0: any number. */
bool ledger_may_store(int64_t stored_bytes, int64_t stored_max, int64_t more) MUST_CHECK;

/* Credits come (a purchase, a positive adjustment) or go (a negative adjustment, a revert, a fee).
 * Coming credits first lift a negative balance to zero, then settle unpaid events, oldest first,
 * one credit each, then add. The number of events to settle is given back; the store settles that
 * many. Thresholds are armed again or moved on, notices of downward crossings given.
 * `kind` and `reference` describe the entry. 0, ERR_VALIDATION (the sum would overflow) or
 * ERR_NO_MEMORY. */
int ledger_move_credits(struct ledger_account *account, int64_t credits, const char *kind,
                        const char *reference, struct arena *arena,
                        struct ledger_result *ret_result, int64_t *ret_settled, struct error *error)
	MUST_CHECK;

/* Base 32 without letters that are easily confused, of which identifiers consist. */
#define ID_DIGITS "0123456789abcdefghjkmnpqrstvwxyz"
/* Identifiers of events: "evt_", the channel's own part, "l" or "t", the sequence in base 32. */
void event_id_make(const char *channel_id, enum mode mode, int64_t sequence, char id[ID_SIZE]);
/* The sequence when `id` is one of this chain, else 0. */
int64_t event_id_sequence(struct slice id, const char *channel_id, enum mode mode);
/* The chain and the sequence that an identifier names; false: it is none of an event. */
bool event_id_read(struct slice id, char ret_channel_id[ID_SIZE], enum mode *ret_mode,
                   int64_t *ret_sequence) MUST_CHECK;

/* Certification ranges, frozen at acceptance. */
struct certification_range {
	int64_t from_us; /* TIME_NONE: not given */
	int64_t to_us;
	int64_t seq_from; /* 0: not given */
	int64_t seq_to;
};
/* 0 or ERR_VALIDATION: an end that lies before its beginning, where both are given. */
int range_order_check(const struct certification_range *range, struct error *error) MUST_CHECK;
/* 0 or ERR_VALIDATION: exactly one whole pair, not inverted, sequences from 1 and not beyond the
 * chain's last. */
int certification_range_check(const struct certification_range *range, int64_t last_sequence,
                              struct error *error) MUST_CHECK;

/* When a certification is requested: by the store's clock, which is believed to be ahead of the
 * node's by the bound at most. Until then no registration can fall into what is closed by it. */
int64_t range_requested_us(int64_t store_now_us, int64_t node_now_us, int64_t bound_us);
/* Until when a range by time reaches that is certified at `now_us`, of a chain that received its
 * last event at `last_received_at_us`: to its end, or to now if that is sooner; where the clock was
 * set back, to just after the last event. */
int64_t range_cut_us(const struct certification_range *range, int64_t last_received_at_us,
                     int64_t now_us);
/* Closes it: nothing is received before the cut any more. True: last_received_at was moved for
 * that, which has to be durable before the range is reported. */
bool range_close(int64_t cut_us, int64_t *last_received_at_us);

/* In how many whole days the balance is used up when it goes on as it did: `used` credits in `days`
 * days. -1: nothing was used, or it lasts for longer than LEDGER_FORECAST_DAYS_MAX; 0: today. */
#define LEDGER_FORECAST_DAYS_MAX 3650
int64_t ledger_days_left(int64_t balance, int64_t used, int64_t days);

#endif
