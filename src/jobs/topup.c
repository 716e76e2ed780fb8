#include <stdio.h>

#include "base/log.h"
#include "jobs/internal.h"
#include "service/purchase.h"

#define POLL_US US_PER_SECOND
#define TROUBLE_US (5 * US_PER_SECOND)

void topup_init(struct topup *topup, struct service *service, const char *node, int number)
{
	*topup = (struct topup){.service = service, .decides = number == 0};
	snprintf(topup->holder, sizeof topup->holder, "%.*s$%d", HOLDER_SIZE - 16, node, number);
}

int64_t topup_run(void *context, const atomic_bool *stopping)
{
	struct topup *topup = context;
	struct service *service = topup->service;
	struct error error = {0};
	int result = OK;
	if (topup->decides)
		result = service_decide_topups(service, store_now_us(service->store), stopping, &error);
	while (!result && !atomic_load(stopping))
		result = service_try_payment(service, topup->holder, &error);
	if (!result || result == ERR_NOT_FOUND)
		return POLL_US;
	log_warning("topup_interrupted", "error", error_code_text(result), "cause",
	            error_reason(&error, result));
	return TROUBLE_US;
}
