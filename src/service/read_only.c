#include "service/read_only.h"

#include <stdio.h>

#include "base/log.h"
#include "store/nodes/read_only_copy.h"

#define REMIND_US (60 * US_PER_SECOND)

bool read_only_is_active(const struct service *service)
{
	return atomic_load(&service->read_only_since_us) != 0;
}

void read_only_describe(const struct service *service, char text[READ_ONLY_TEXT_SIZE])
{
	char since[TIME_TEXT_SIZE];
	if (service->settings->service_quiet) {
		snprintf(
			text, READ_ONLY_TEXT_SIZE,
			"read-only copy because of service.quiet: nothing is sent, sealed or acknowledged");
		return;
	}
	time_format(atomic_load(&service->read_only_since_us), since);
	snprintf(text, READ_ONLY_TEXT_SIZE,
	         "read-only copy since %s: nothing is sent, sealed or acknowledged until "
	         "'constancia store wake'",
	         since);
}

int read_only_refresh(struct service *service, struct error *error)
{
	struct quiet quiet = {0};
	int result = store_get_copy_state(service->store, &quiet, error);
	if (result)
		return result;
	int64_t since_us = quiet.is ? quiet.since_us : 0;
	if (service->settings->service_quiet && !since_us)
		since_us = 1;
	atomic_store(&service->copied_us,
	             quiet.copied_us); /* set before the work that depends on them starts */
	atomic_store(&service->woken_us, quiet.woken_us);
	int64_t before_us = atomic_exchange(&service->read_only_since_us, since_us);
	int64_t now_us = clock_boot_us();
	int64_t logged_us = atomic_load(&service->read_only_logged_us);
	char text[READ_ONLY_TEXT_SIZE];
	if (since_us && (!before_us || now_us >= logged_us + REMIND_US)) {
		atomic_store(&service->read_only_logged_us, now_us);
		read_only_describe(service, text);
		log_warning("quiet", "meaning", text, "reason", quiet.reason);
	} else if (before_us && !since_us) {
		log_info("awake", "meaning", "pending work is sent, sealed and issued from now on");
	}
	return OK;
}

int read_only_refuse(const struct service *service, struct error *error)
{
	return read_only_is_active(service)
	           ? error_set(error, ERR_UNAVAILABLE, MSG_SERVICE_READ_ONLY, NULL)
	           : OK;
}

int64_t read_only_waiting_since(const struct service *service, int64_t since_us)
{
	int64_t woken_us = atomic_load(&service->woken_us);
	return since_us > woken_us ? since_us : woken_us;
}
