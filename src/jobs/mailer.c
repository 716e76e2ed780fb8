#include "jobs/mailer.h"

#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "service/mail_templates.h"
#include "store/notices/mails.h"

#define POLL_US (2 * US_PER_SECOND)
#define SEND_TIMEOUT_MS 20000
#define END_RETRY_NS 500000000
#define LEASE_US (30 * US_PER_SECOND)
#define JOB_MEMORY_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)64 * 1024)

int mailer_init(struct mailer *mailer, struct service *service, const char *node,
                struct error *error)
{
	const struct settings *settings = service->settings;
	*mailer = (struct mailer){.service = service};
	snprintf(mailer->holder, sizeof mailer->holder, "%.*s#mail", HOLDER_SIZE - 16, node);
	mailer->server = (struct mail_server){
		.url = settings->mail_url,
		.user = settings->mail_user,
		.password = settings->mail_password,
		.roots = settings->mail_roots,
		.require_tls = settings->mail_require_tls,
		.timeout_ms = SEND_TIMEOUT_MS,
		.guard = &mailer->guard,
	};
	const char *networks = settings->mail_allow_networks ? settings->mail_allow_networks : "";
	int result = network_list_parse(slice_of(networks), &mailer->guard.allowed, error);
	if (!result && !schedule_parse(settings->mail_schedule, &mailer->schedule))
		result = error_cause(error, ERR_VALIDATION, "mail.schedule");
	return result;
}

/* ---- one mail ---- */

static int send_mail(struct mailer *mailer, const struct mail *mail, struct error *error)
{
	BUF_AUTO struct buf subject;
	BUF_AUTO struct buf text;
	const struct settings *settings = mailer->service->settings;
	struct mail_facts facts = {
		.template_name = mail->template_name,
		.values = mail->values,
		.service = settings->service_name,
		.account_id = mail->account_id,
		.language = mail->language,
	};
	buf_init(&subject, MAIL_SUBJECT_MAX);
	buf_init(&text, TEXT_MAX);
	int result = mail_template_fill(&facts, &subject, &text, error);
	if (result)
		return result;
	struct mail_message message = {
		.from = settings->mail_from,
		.from_name = settings->service_name,
		.to = mail->recipient,
		.id = mail->mail_id,
		.time_us = mail->queued_at_us,
		.language = mail->language,
		.subject = buf_slice(&subject),
		.text = buf_slice(&text),
	};
	return mail_send(&mailer->server, &message, error);
}

/* What was sent and is not recorded would be sent again once its lease has run out, so a store that
 * is away is waited for; nothing else could be claimed meanwhile. */
static void record_end(struct mailer *mailer, const struct mail *mail, enum mail_end how,
                       const char *cause, const atomic_bool *stopping)
{
	for (;;) {
		struct error error = {0};
		int result = store_end_mail(mailer->service->store, mail, mailer->holder, how, cause,
		                            store_now_us(mailer->service->store), &error);
		if (!result || result == ERR_REFUSED)
			return;
		log_warning("mail_not_ended", "mail_id", mail->mail_id, "cause",
		            error_reason(&error, result));
		bool passes =
			result == ERR_UNAVAILABLE || result == ERR_UNKNOWN_OUTCOME || result == ERR_NO_SPACE;
		if (!passes || atomic_load(stopping))
			return;
		nanosleep(&(struct timespec){.tv_nsec = END_RETRY_NS}, NULL);
	}
}

static void end(struct mailer *mailer, const struct mail *mail, enum mail_end how,
                const char *cause, const atomic_bool *stopping)
{
	record_end(mailer, mail, how, cause, stopping);
	struct counters *counters = &mailer->service->counters;
	if (how == MAIL_SENT) {
		atomic_fetch_add(&counters->mails_sent, 1);
		log_info("mail_sent", "mail_id", mail->mail_id, "account_id", mail->account_id, "template",
		         mail->template_name);
		return;
	}
	atomic_fetch_add(&counters->mails_failed, 1);
	log_warning(how == MAIL_FAILED ? "mail_failed" : "mail_dropped", "mail_id", mail->mail_id,
	            "account_id", mail->account_id, "template", mail->template_name, "cause", cause);
}

/* Before the next try; -1: that was the last. */
static int64_t wait_after(const struct mailer *mailer, const struct mail *mail)
{
	uint32_t random;
	random_bytes(&random, sizeof random);
	return schedule_wait_us(&mailer->schedule, mail->attempts + 1, random);
}

static void delay(struct mailer *mailer, const struct mail *mail, int64_t wait_us,
                  const char *cause)
{
	struct error error = {0};
	int64_t next_us = store_now_us(mailer->service->store) + wait_us;
	int result =
		store_delay_mail(mailer->service->store, mail, mailer->holder, next_us, cause, &error);
	/* A lease that cannot be given back runs out. */
	if (result && result != ERR_REFUSED)
		log_warning("mail_not_released", "mail_id", mail->mail_id, "cause",
		            error_reason(&error, result));
	log_warning("mail_delayed", "mail_id", mail->mail_id, "account_id", mail->account_id, "cause",
	            cause);
}

static void deliver(struct mailer *mailer, const struct mail *mail, const atomic_bool *stopping)
{
	struct error error = {0};
	if (!mailer->server.url || !*mailer->server.url) {
		end(mailer, mail, MAIL_DROPPED, "mail.url is empty", stopping);
		return;
	}
	if (!mail->recipient || !*mail->recipient) {
		end(mailer, mail, MAIL_DROPPED, "the account has no e-mail address", stopping);
		return;
	}
	int result = send_mail(mailer, mail, &error);
	int64_t wait_us = wait_after(mailer, mail);
	if (!result)
		end(mailer, mail, MAIL_SENT, NULL, stopping);
	else if (result == ERR_REFUSED || result == ERR_VALIDATION || wait_us < 0)
		end(mailer, mail, MAIL_FAILED, error_reason(&error, result), stopping);
	else
		delay(mailer, mail, wait_us, error_reason(&error, result));
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
		deliver(mailer, &mail, stopping);
	}
	return POLL_US;
}
