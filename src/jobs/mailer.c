#include "jobs/mailer.h"

#include <stdio.h>

#include "base/log.h"
#include "service/read_only.h"

#define POLL_US (2 * US_PER_SECOND)
#define LEASE_US (30 * US_PER_SECOND)
#define JOB_MEMORY_MAX ((size_t)1 << 20)

int mailer_init(struct mailer *mailer, struct service *service, const char *node,
                struct error *error)
{
	mailer->service = service;
	mailer->claims_sign_in = false;
	snprintf(mailer->holder, sizeof mailer->holder, "%.*s#mail", HOLDER_SIZE - 16, node);
	mailer->reloads = atomic_load(&service->reloads);
	return mailing_init(&mailer->mailing, service, mailer->holder, error);
}

/* Reloaded settings apply from the next mail on. */
static int read_settings(struct mailer *mailer, struct error *error)
{
	uint64_t reloads = atomic_load(&mailer->service->reloads);
	if (reloads == mailer->reloads)
		return OK;
	int result = mailing_init(&mailer->mailing, mailer->service, mailer->holder, error);
	if (!result)
		mailer->reloads = reloads;
	return result;
}

/* Claims a mail. Users wait for "sign_in" mails, so every second claim is reserved for them. Such a
 * mail waits for at most one other mail, and any number of them does not block the others. */
static int claim(struct mailer *mailer, struct arena *arena, struct mail *ret, struct error *error)
{
	struct store *store = mailer->service->store;
	int result = ERR_NOT_FOUND;
	mailer->claims_sign_in = !mailer->claims_sign_in;
	if (mailer->claims_sign_in)
		result = store_claim_mail(store, MAIL_SIGN_IN, mailer->holder, store_now_us(store),
		                          LEASE_US, arena, ret, error);
	if (result == ERR_NOT_FOUND)
		result = store_claim_mail(store, NULL, mailer->holder, store_now_us(store), LEASE_US, arena,
		                          ret, error);
	return result;
}

int64_t mailer_run(void *context, const atomic_bool *stopping)
{
	struct mailer *mailer = context;
	if (read_only_is_active(mailer->service))
		return READ_ONLY_POLL_US;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, JOB_MEMORY_MAX);
	while (!atomic_load(stopping) && !read_only_is_active(mailer->service)) {
		struct mail mail;
		struct error error = {0};
		arena_reset(&arena);
		int result = read_settings(mailer, &error);
		if (!result)
			result = claim(mailer, &arena, &mail, &error);
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
