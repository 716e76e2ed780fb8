#include "service/authority_failures.h"

#include "base/log.h"

void authority_failures_log(const struct authority_failures *failures)
{
	for (size_t i = 0; i < failures->count; i++)
		if (!failures->items[i].in_backoff)
			log_warning("authority_failed", "authority", failures->items[i].name, "reason",
			            failures->items[i].reason);
}
