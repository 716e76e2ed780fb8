#include "service/quarantine.h"

#include "base/clock.h"
#include "base/schedule.h"

#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (600 * US_PER_SECOND)
#define COUNTED_US (3600 * US_PER_SECOND)

static size_t find(const struct quarantine *apart, int64_t account, int64_t chain)
{
	size_t at = 0;
	while (at < apart->count &&
	       (apart->chains[at].account != account || apart->chains[at].chain != chain))
		at++;
	return at;
}

bool quarantine_has(const struct quarantine *apart, int64_t account, int64_t chain)
{
	return find(apart, account, chain) < apart->count;
}

bool quarantine_is_waiting(const struct quarantine *apart, int64_t account, int64_t chain,
                           int64_t monotonic_us)
{
	size_t at = find(apart, account, chain);
	return at < apart->count &&
	       monotonic_us - apart->chains[at].failed_at_us <
	           backoff_us(apart->chains[at].failures, PAUSE_FIRST_US, PAUSE_MAX_US);
}

static size_t make_room(struct quarantine *apart)
{
	if (apart->count < QUARANTINE_MAX)
		return apart->count++;
	size_t oldest = 0;
	for (size_t i = 1; i < apart->count; i++)
		if (apart->chains[i].failed_at_us < apart->chains[oldest].failed_at_us)
			oldest = i;
	return oldest;
}

unsigned quarantine_add(struct quarantine *apart, int64_t account, int64_t chain,
                        int64_t monotonic_us)
{
	size_t at = find(apart, account, chain);
	if (at == apart->count) {
		at = make_room(apart);
		apart->chains[at] = (struct quarantined_chain){.account = account, .chain = chain};
	}
	apart->chains[at].failed_at_us = monotonic_us;
	return ++apart->chains[at].failures;
}

bool quarantine_remove(struct quarantine *apart, int64_t account, int64_t chain)
{
	size_t at = find(apart, account, chain);
	if (at == apart->count)
		return false;
	apart->chains[at] = apart->chains[--apart->count];
	return true;
}

size_t quarantine_count_recent(const struct quarantine *apart, int64_t monotonic_us)
{
	size_t count = 0;
	for (size_t i = 0; i < apart->count; i++)
		count += monotonic_us - apart->chains[i].failed_at_us < COUNTED_US;
	return count;
}
