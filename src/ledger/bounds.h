/* The bounds of all numbers that are packed together, written with a fixed width, or listed as a
 * whole. Whatever would exceed one is refused with ERR_FULL, and nothing of it is written. From
 * BOUND_WARN_PERCENT on, /readyz, the log and a metric warn. docs/operations.md has them as a
 * table, which a test compares with this one. */
#ifndef LEDGER_BOUNDS_H
#define LEDGER_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* The number of an event is its chain << EVENT_SEQUENCE_BITS | its sequence, and positive. */
#define EVENT_SEQUENCE_BITS 40
#define EVENT_SEQUENCE_MAX ((INT64_C(1) << EVENT_SEQUENCE_BITS) - 1)
#define CHAIN_MAX (INT64_MAX >> EVENT_SEQUENCE_BITS)
/* A channel's chains are twice its number, and the number after that. */
#define CHANNEL_MAX (CHAIN_MAX / 2)
#define CONFIG_VERSION_MAX 100000
/* So many are read at once, each with all its texts: for the interface, or a certification. */
#define CONFIG_VERSIONS_SHOWN_MAX 1000
/* Sealed in a UTC day, of a channel. */
#define CONFIG_VERSIONS_PER_DAY 1000
/* Seven digits of a certification's identifier. */
#define CERTIFICATION_NUMBER_MAX 9999999
/* Those that ever signed, and those that timestamps ever led to. */
#define SIGNERS_MAX 1000
#define TIMESTAMP_ROOTS_MAX 1000
/* Of an account's own bound, or the setting. */
#define STORED_PERCENT 100

/* BOUND(name, label of the metric, bound, what is counted) */
#define BOUNDS                                                                                     \
	BOUND(CHANNELS, "channels", CHANNEL_MAX, "channels of the store")                              \
	BOUND(EVENTS, "events", EVENT_SEQUENCE_MAX, "events of a chain")                               \
	BOUND(CONFIGS, "configurations", CONFIG_VERSION_MAX, "configuration versions of a channel")    \
	BOUND(LIVE_CERTIFICATIONS, "live_certifications", CERTIFICATION_NUMBER_MAX,                    \
	      "live certifications of a year")                                                         \
	BOUND(TEST_CERTIFICATIONS, "test_certifications", CERTIFICATION_NUMBER_MAX,                    \
	      "test certifications of a year")                                                         \
	BOUND(SIGNERS, "signers", SIGNERS_MAX, "signing certificates")                                 \
	BOUND(TIMESTAMP_ROOTS, "timestamp_roots", TIMESTAMP_ROOTS_MAX, "roots of timestamps")          \
	BOUND(STORED, "stored_bytes", STORED_PERCENT, "percent of what an account may have stored")
enum bound {
#define BOUND(name, label, most, counted) BOUND_##name,
	BOUNDS
#undef BOUND
		BOUND_COUNT
};
const char *bound_label(enum bound bound);
const char *bound_counted(enum bound bound);
int64_t bound_most(enum bound bound);

/* ---- of an account ---- */

/* What an account may have or do at most: its own bound, else the general setting. 0: none is set;
 * of both: any number. */
int64_t account_bound(int64_t own, int64_t general);
/* Whether one more than `used` would exceed `most`. */
bool account_bound_is_reached(int64_t most, int64_t used);
/* Requests per second of all live keys of an account together: `own` of it; else `general`, but
 * four times its keys' own rate where it has one, or where `general` is 0. `key_general`: the
 * setting for a key. At least 1. */
int64_t account_rate(int64_t own, int64_t key_own, int64_t general, int64_t key_general);
/* Whether a bound of N acts for a UTC day allows another act at `at_us`. `former_us`: the time of
 * the N-th last act; TIME_NONE: there are fewer. */
bool day_has_room(int64_t at_us, int64_t former_us);

#define BOUND_WARN_PERCENT 80
bool bound_is_near(enum bound bound, int64_t used);

#endif
