#include "service/mailing.h"

#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_throttle.h"
#include "service/mail_templates.h"
#include "service/user_auth.h"

#define SEND_TIMEOUT_MS 20000
#define END_RETRY_NS 500000000
#define TEXT_MAX ((size_t)64 * 1024)
#define VALUES_MEMORY_MAX ((size_t)256 * 1024)

int mailing_init(struct mailing *mailing, struct service *service, const char *holder,
                 struct error *error)
{
	const struct settings *settings = service->settings;
	*mailing = (struct mailing){.service = service, .holder = holder};
	mailing->server = (struct mail_server){
		.url = settings->mail_url,
		.user = settings->mail_user,
		.password = settings->mail_password,
		.roots = settings->mail_roots,
		.require_tls = settings->mail_require_tls,
		.timeout_ms = SEND_TIMEOUT_MS,
		.guard = &mailing->guard,
	};
	const char *networks = settings->mail_allow_networks ? settings->mail_allow_networks : "";
	int result = network_list_parse(slice_of(networks), &mailing->guard.allowed, error);
	if (!result && !schedule_parse(settings->mail_schedule, &mailing->schedule))
		result = error_cause(error, ERR_VALIDATION, "mail.schedule");
	return result;
}

static int send_mail(const struct mailing *mailing, const struct mail *mail, struct error *error)
{
	BUF_AUTO struct buf subject;
	BUF_AUTO struct buf text;
	ARENA_AUTO struct arena arena;
	const char *values = NULL;
	const struct settings *settings = mailing->service->settings;
	arena_init(&arena, VALUES_MEMORY_MAX);
	int result = user_auth_mail_values(mailing->service, mail, &arena, &values, error);
	if (result)
		return result;
	struct mail_facts facts = {
		.template_name = mail->template_name,
		.values = values,
		.service = settings->service_name,
		.account_id = mail->account_id,
		.language = mail->language,
	};
	buf_init(&subject, MAIL_SUBJECT_MAX);
	buf_init(&text, TEXT_MAX);
	result = mail_template_fill(&facts, &subject, &text, error);
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
	return mail_send(&mailing->server, &message, error);
}

/* A sent mail without a recorded result would be sent again when its lease has expired. So the
 * function waits while the store is unavailable; no other mail could be claimed meanwhile. */
static void record_end(const struct mailing *mailing, const struct mail *mail, enum mail_end how,
                       const char *cause, const atomic_bool *stopping)
{
	for (;;) {
		struct error error = {0};
		int result = store_end_mail(mailing->service->store, mail, mailing->holder, how, cause,
		                            store_now_us(mailing->service->store), &error);
		if (!result || result == ERR_REFUSED)
			return;
		log_warning("mail_result_not_recorded", "mail_id", mail->mail_id, "cause",
		            error_reason(&error, result));
		bool passes =
			result == ERR_UNAVAILABLE || result == ERR_UNKNOWN_OUTCOME || result == ERR_NO_SPACE;
		if (!passes || atomic_load(stopping))
			return;
		nanosleep(&(struct timespec){.tv_nsec = END_RETRY_NS}, NULL);
	}
}

static void end(const struct mailing *mailing, const struct mail *mail, enum mail_end how,
                const char *cause, const atomic_bool *stopping)
{
	record_end(mailing, mail, how, cause, stopping);
	struct counters *counters = &mailing->service->counters;
	if (how == MAIL_DROPPED && strcmp(mail->template_name, MAIL_SIGN_IN) == 0) {
		static struct log_throttle pace = LOG_THROTTLE(10, 60);
		char omitted[LOG_THROTTLE_NUMBER_SIZE];
		if (log_throttle_take(&pace, clock_monotonic_us(), omitted))
			log_info("sign_in_not_mailed", "mail_id", mail->mail_id, "cause", cause, "omitted",
			         omitted);
		return; /* addresses typed by anyone must not cause alerts */
	}
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

/* Returns the delay before the next attempt; -1: that was the last one. */
static int64_t wait_after(const struct mailing *mailing, const struct mail *mail)
{
	uint32_t random;
	random_bytes(&random, sizeof random);
	return schedule_wait_us(&mailing->schedule, mail->attempts + 1, random);
}

static void delay(const struct mailing *mailing, const struct mail *mail, int64_t wait_us,
                  const char *cause)
{
	struct error error = {0};
	int64_t next_us = store_now_us(mailing->service->store) + wait_us;
	int result =
		store_delay_mail(mailing->service->store, mail, mailing->holder, next_us, cause, &error);
	/* A lease that cannot be released expires. */
	if (result && result != ERR_REFUSED)
		log_warning("mail_not_released", "mail_id", mail->mail_id, "cause",
		            error_reason(&error, result));
	log_warning("mail_delayed", "mail_id", mail->mail_id, "account_id", mail->account_id, "cause",
	            cause);
}

void mailing_deliver(const struct mailing *mailing, const struct mail *mail,
                     const atomic_bool *stopping)
{
	struct error error = {0};
	if (!mailing->server.url || !*mailing->server.url) {
		end(mailing, mail, MAIL_DROPPED, "mail.url is empty", stopping);
		return;
	}
	if (!mail->recipient || !*mail->recipient) {
		end(mailing, mail, MAIL_DROPPED, "the account has no e-mail address", stopping);
		return;
	}
	int result = send_mail(mailing, mail, &error);
	int64_t wait_us = wait_after(mailing, mail);
	if (!result)
		end(mailing, mail, MAIL_SENT, NULL, stopping);
	else if (result == ERR_NOT_FOUND)
		end(mailing, mail, MAIL_DROPPED, "it has no recipient any more", stopping);
	else if (result == ERR_REFUSED || result == ERR_VALIDATION || wait_us < 0)
		end(mailing, mail, MAIL_FAILED, error_reason(&error, result), stopping);
	else
		delay(mailing, mail, wait_us, error_reason(&error, result));
}
