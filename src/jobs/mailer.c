#include "jobs/mailer.h"

#include <stdio.h>

#include "base/log.h"

#define POLL_US (2 * US_PER_SECOND)
#define LEASE_US (30 * US_PER_SECOND)
#define JOB_MEMORY_MAX ((size_t)1 << 20)

int mailer_init(struct mailer *mailer, struct service *service, const char *node,
                struct error *error)
{
	mailer->service = service;
	snprintf(mailer->holder, sizeof mailer->holder, "%.*s#mail", HOLDER_SIZE - 16, node);
	return mailing_init(&mailer->mailing, service, mailer->holder, error);
}

int64_t mailer_run(void *context, const atomic_bool *stopping)
{
	struct mailer *mailer = context;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, JOB_MEMORY_MAX);
	while (!atomic_load(stopping)) {
		struct mail mail;
		struct error error = {0};
		arena_reset(&arena);
		int result =
			store_claim_mail(mailer->service->store, mailer->holder,
		                     store_now_us(mailer->service->store), LEASE_US, &arena, &mail, &error);
		if (result == ERR_NOT_FOUND)
			break;
		if (result) {
			log_warning("mails_not_read", "cause", error_reason(&error, result));
			break;
		}
		mailing_deliver(&mailer->mailing, &mail, stopping);
	}
	return POLL_US;
}
