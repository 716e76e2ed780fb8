#include "base/setting.h"

#include <inttypes.h>
#include <stdio.h>

void setting_fault(const struct setting_check *check, const char *setting, const char *what)
{
	check->problem(check->context, setting, what);
}

void setting_warn(const struct setting_check *check, const char *setting, const char *what)
{
	check->warning(check->context, setting, what);
}

void setting_check_range(const struct setting_check *check, const char *setting, int64_t value,
                         int64_t least, int64_t most)
{
	if (value >= least && value <= most)
		return;
	char what[128];
	snprintf(what, sizeof what, "must be from %" PRId64 " to %" PRId64, least, most);
	setting_fault(check, setting, what);
}

void setting_check_duration(const struct setting_check *check, const char *setting,
                            int64_t value_us, int64_t least_us, const char *least)
{
	if (value_us >= least_us)
		return;
	char what[128];
	snprintf(what, sizeof what, "must be at least %s", least);
	setting_fault(check, setting, what);
}
