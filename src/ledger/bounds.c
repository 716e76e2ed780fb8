#include "ledger/bounds.h"

#include "base/clock.h"

static const struct {
	const char *label, *counted;
	int64_t most;
} bounds[BOUND_COUNT] = {
#define BOUND(name, label, most, counted) {label, counted, most},
	BOUNDS
#undef BOUND
};

const char *bound_label(enum bound bound)
{
	return bounds[bound].label;
}

const char *bound_counted(enum bound bound)
{
	return bounds[bound].counted;
}

int64_t bound_most(enum bound bound)
{
	return bounds[bound].most;
}

bool day_has_room(int64_t at_us, int64_t former_us)
{
	return former_us == TIME_NONE || time_day(former_us) < time_day(at_us);
}

bool bound_is_near(enum bound bound, int64_t used)
{
	const int64_t most = bounds[bound].most;
	return used >= most || used * 100 >= most * BOUND_WARN_PERCENT;
}

/* ---- limits of an account ---- */

#define KEYS_AT_ONCE 4 /* keys that may use their full rate at once, by default */

int64_t account_bound(int64_t own, int64_t general)
{
	return own > 0 ? own : general;
}

bool account_bound_is_reached(int64_t most, int64_t used)
{
	return most > 0 && used >= most;
}

static int64_t of_keys(int64_t rate)
{
	return rate < INT64_MAX / KEYS_AT_ONCE ? rate * KEYS_AT_ONCE : INT64_MAX;
}

int64_t account_rate(int64_t own, int64_t key_own, int64_t general, int64_t key_general)
{
	int64_t rate = own > 0       ? own
	               : key_own > 0 ? of_keys(key_own)
	               : general > 0 ? general
	                             : of_keys(key_general);
	return rate > 0 ? rate : 1;
}
