/* Limits of all numbers that are packed together, written with a fixed width, or listed as a whole.
 * An operation that would exceed a limit is refused with ERR_FULL and writes nothing. From
 * BOUND_WARN_PERCENT of a limit, /readyz, the log and a metric warn. docs/operate/limits.md lists
 * them in a table that a test compares with this file. */
#ifndef LEDGER_BOUNDS_H
#define LEDGER_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* An event number is chain << EVENT_SEQUENCE_BITS | sequence, and is positive. */
#define EVENT_SEQUENCE_BITS 40
#define EVENT_SEQUENCE_MAX ((INT64_C(1) << EVENT_SEQUENCE_BITS) - 1)
#define CHAIN_MAX (INT64_MAX >> EVENT_SEQUENCE_BITS)
/* The chains of channel N have the numbers 2N and 2N + 1. */
#define CHANNEL_MAX (CHAIN_MAX / 2)
#define CONFIG_VERSION_MAX 100000
/* Maximum number of versions that are read at once with all their texts, for the API or a
 * certification. */
#define CONFIG_VERSIONS_SHOWN_MAX 1000
/* Versions that a channel may seal in a UTC day. */
#define CONFIG_VERSIONS_PER_DAY 1000
/* A certification identifier has seven digits for its number. */
#define CERTIFICATION_NUMBER_MAX 9999999
/* Signing certificates that were ever in use, and roots of timestamps ever seen. */
#define SIGNERS_MAX 1000
#define TIMESTAMP_ROOTS_MAX 1000
/* Percent of the account's own limit, or of the setting. */
#define STORED_PERCENT 100

/* BOUND(name, label of the metric, limit, description of what is counted) */
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

/* ---- limits of an account ---- */

/* Returns the limit of an account: its own, else the general setting. 0: not set; if both are 0,
 * unlimited. */
int64_t account_bound(int64_t own, int64_t general);
/* Returns whether one more than `used` would exceed `most`. */
bool account_bound_is_reached(int64_t most, int64_t used);
/* Returns the requests per second of all live keys of an account together: `own` if set; else four
 * times `key_own` if the account's keys have their own rate; else `general`; or, if that is 0, four
 * times `key_general`, the setting for a key. At least 1. */
int64_t account_rate(int64_t own, int64_t key_own, int64_t general, int64_t key_general);
/* Returns whether a limit of N actions per UTC day allows another one at `at_us`. `former_us`: time
 * of the N-th last action; TIME_NONE: there were fewer. */
bool day_has_room(int64_t at_us, int64_t former_us);

#define BOUND_WARN_PERCENT 80
bool bound_is_near(enum bound bound, int64_t used);

#endif
