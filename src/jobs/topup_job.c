/* The job that decides automatic top-ups and attempts payments. */
#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "jobs/internal.h"
#include "service/purchase.h"
#include "service/read_only.h"

#define POLL_US US_PER_SECOND
#define TROUBLE_US (5 * US_PER_SECOND)

void topup_init(struct topup *topup, struct service *service, const char *node, int number)
{
	assert(number >= 0 && number < TOPUP_COUNT);
	*topup = (struct topup){.service = service, .decides = number == 0};
	snprintf(topup->holder, sizeof topup->holder, "%.*s$%d", HOLDER_SIZE - 16, node, number);
}

int64_t topup_run(void *context, const atomic_bool *stopping)
{
	struct topup *topup = context;
	if (read_only_is_active(topup->service))
		return READ_ONLY_POLL_US;
	struct service *service = topup->service;
	struct error error = {0}, first_error = {0};
	int result = OK;
	if (topup->decides)
		result = service_decide_topups(service, store_now_us(service->store), stopping, &error);
	/* Accounts whose payments are unknown must not delay the payments of others. */
	if (result == ERR_NETWORK) {
		first_error = error;
		result = OK;
	}
	while (!result && !atomic_load(stopping) && !read_only_is_active(service))
		result = service_attempt_payment(service, topup->holder, &error);
	if (!result || result == ERR_NOT_FOUND) {
		if (!first_error.code)
			return POLL_US;
		result = first_error.code;
		error = first_error;
	}
	log_warning("topup_interrupted", "error", error_code_text(result), "cause",
	            error_reason(&error, result));
	return TROUBLE_US;
}
