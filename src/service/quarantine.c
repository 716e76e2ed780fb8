#include "service/quarantine.h"

#include "base/clock.h"
#include "base/schedule.h"
#include "base/tuned.h"

#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (600 * US_PER_SECOND)
#define COUNTED_US (3600 * US_PER_SECOND)

static size_t find(const struct quarantine *quarantine, int64_t account, int64_t chain)
{
	size_t at = 0;
	while (at < quarantine->count &&
	       (quarantine->chains[at].account != account || quarantine->chains[at].chain != chain))
		at++;
	return at;
}

bool quarantine_has(const struct quarantine *quarantine, int64_t account, int64_t chain)
{
	return find(quarantine, account, chain) < quarantine->count;
}

bool quarantine_is_waiting(const struct quarantine *quarantine, int64_t account, int64_t chain,
                           int64_t monotonic_us)
{
	size_t at = find(quarantine, account, chain);
	return at < quarantine->count &&
	       monotonic_us - quarantine->chains[at].failed_at_us <
	           backoff_us(quarantine->chains[at].failures, PAUSE_FIRST_US, PAUSE_MAX_US);
}

static size_t make_room(struct quarantine *quarantine)
{
	if (quarantine->count < (size_t)tuned_up_to("quarantine", QUARANTINE_MAX))
		return quarantine->count++;
	size_t oldest = 0;
	for (size_t i = 1; i < quarantine->count; i++)
		if (quarantine->chains[i].failed_at_us < quarantine->chains[oldest].failed_at_us)
			oldest = i;
	return oldest;
}

unsigned quarantine_add(struct quarantine *quarantine, int64_t account, int64_t chain,
                        int64_t monotonic_us)
{
	size_t at = find(quarantine, account, chain);
	if (at == quarantine->count) {
		at = make_room(quarantine);
		quarantine->chains[at] = (struct quarantined_chain){.account = account, .chain = chain};
	}
	quarantine->chains[at].failed_at_us = monotonic_us;
	return ++quarantine->chains[at].failures;
}

bool quarantine_remove(struct quarantine *quarantine, int64_t account, int64_t chain)
{
	size_t at = find(quarantine, account, chain);
	if (at == quarantine->count)
		return false;
	quarantine->chains[at] = quarantine->chains[--quarantine->count];
	return true;
}

size_t quarantine_count_recent(const struct quarantine *quarantine, int64_t monotonic_us)
{
	size_t count = 0;
	for (size_t i = 0; i < quarantine->count; i++)
		count += monotonic_us - quarantine->chains[i].failed_at_us < COUNTED_US;
	return count;
}
