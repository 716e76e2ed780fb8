#include "service/quiet.h"

#include <stdio.h>

#include "base/log.h"
#include "store/nodes/quiet.h"

#define REMIND_US (60 * US_PER_SECOND)

bool quiet_is(const struct service *service)
{
	return atomic_load(&service->quiet_since_us) != 0;
}

void quiet_tell(const struct service *service, char text[QUIET_TEXT_SIZE])
{
	char since[TIME_TEXT_SIZE];
	if (service->settings->service_quiet) {
		snprintf(
			text, QUIET_TEXT_SIZE,
			"read-only copy because of service.quiet: nothing is sent, sealed or acknowledged");
		return;
	}
	time_format(atomic_load(&service->quiet_since_us), since);
	snprintf(text, QUIET_TEXT_SIZE,
	         "read-only copy since %s: nothing is sent, sealed or acknowledged until "
	         "'constancia store wake'",
	         since);
}

int quiet_look(struct service *service, struct error *error)
{
	struct quiet quiet = {0};
	int result = store_get_quiet(service->store, &quiet, error);
	if (result)
		return result;
	int64_t since_us = quiet.is ? quiet.since_us : 0;
	if (service->settings->service_quiet && !since_us)
		since_us = 1;
	atomic_store(&service->copied_us,
	             quiet.copied_us); /* set before the work that depends on them starts */
	atomic_store(&service->woken_us, quiet.woken_us);
	int64_t before_us = atomic_exchange(&service->quiet_since_us, since_us);
	int64_t now_us = clock_boot_us();
	int64_t told_us = atomic_load(&service->quiet_told_us);
	char text[QUIET_TEXT_SIZE];
	if (since_us && (!before_us || now_us >= told_us + REMIND_US)) {
		atomic_store(&service->quiet_told_us, now_us);
		quiet_tell(service, text);
		log_warning("quiet", "meaning", text, "reason", quiet.reason);
	} else if (before_us && !since_us) {
		log_info("awake", "meaning", "pending work is sent, sealed and issued from now on");
	}
	return OK;
}

int quiet_refuse(const struct service *service, struct error *error)
{
	return quiet_is(service) ? error_set(error, ERR_UNAVAILABLE, MSG_SERVICE_QUIET, NULL) : OK;
}

int64_t quiet_counted_from(const struct service *service, int64_t since_us)
{
	int64_t woken_us = atomic_load(&service->woken_us);
	return since_us > woken_us ? since_us : woken_us;
}
