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

bool config_day_has_room(int64_t sealed_at_us, int64_t former_us)
{
	return former_us == TIME_NONE || time_day(former_us) < time_day(sealed_at_us);
}

bool bound_is_near(enum bound bound, int64_t used)
{
	const int64_t most = bounds[bound].most;
	return used >= most || used * 100 >= most * BOUND_WARN_PERCENT;
}
