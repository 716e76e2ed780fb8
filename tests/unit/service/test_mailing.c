/* Mails delivered to a scripted mail server. */
#include "testing.h"
#include "faults.h"
#include "sample.h"
#include "service/mailing.h"
#include "smtp_script.h"
#include "store/notices/queue_mail.h"
#include "store/transaction.h"

#define HOLDER "a node"

struct post {
	struct sample sample;
	struct settings settings;
	struct service service;
	struct mailing mailing;
	struct smtp_script script;
	char url[64];
	struct arena arena;
};

static int set_up(void **state)
{
	struct post *post = calloc(1, sizeof *post);
	sample_open(&post->sample, MODALITY_CONTENT, 5);
	arena_init(&post->arena, (size_t)1 << 20);
	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = "owner@example.com";
	assert_int_equal(store_change_account(post->sample.store, slice_of(post->sample.account_id),
	                                      &change, 1, NULL),
	                 OK);
	post->settings = (struct settings){
		.service_name = "Constancia",
		.mail_url = post->url,
		.mail_from = "notices@example.org",
		.mail_allow_networks = "127.0.0.0/8",
		.mail_schedule = "1ms, 1ms",
	};
	post->service.settings = &post->settings;
	post->service.store = post->sample.store;
	*state = post;
	return 0;
}

static int tear_down(void **state)
{
	struct post *post = *state;
	sample_close(&post->sample);
	arena_free(&post->arena);
	free(post);
	return 0;
}

static void queue(struct post *post)
{
	struct db_connection *connection = begin_write(post->sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	int result = store_queue_mail(connection, post->sample.account, MAIL_ENDPOINT_DISABLED,
	                              slice_of("{\"endpoint_id\":\"whk_1\",\"url\":\"https://a\"}"),
	                              clock_now_us(), NULL);
	assert_int_equal(end_write(connection, result, NULL), OK);
}

static struct mail_row record_of(struct post *post)
{
	return sample_find_mail(&post->sample, &post->arena);
}

static void deliver_next(struct post *post)
{
	static const atomic_bool stopping;
	struct mail mail;
	struct store *store = post->sample.store;
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	int result = store_claim_mail(store, NULL, HOLDER, store_now_us(store), 30 * US_PER_SECOND,
	                              &arena, &mail, NULL);
	if (result != ERR_NOT_FOUND) { /* waits its millisecond */
		assert_int_equal(result, OK);
		mailing_deliver(&post->mailing, &mail, &stopping);
	}
}

/* Runs until the mail has ended. */
static struct mail_row run(struct post *post, int connections)
{
	post->script.connections = connections;
	if (connections) {
		smtp_start(&post->script);
		snprintf(post->url, sizeof post->url, "smtp://127.0.0.1:%d", post->script.port);
	}
	assert_int_equal(mailing_init(&post->mailing, &post->service, HOLDER, NULL), OK);
	queue(post);
	struct mail_row record;
	do {
		deliver_next(post);
		record = record_of(post);
	} while (strcmp(record.state, "waiting") == 0);
	if (connections)
		smtp_finish(&post->script);
	return record;
}

static int times_heard(const struct post *post, const char *text)
{
	int times = 0;
	for (const char *at = post->script.heard; (at = strstr(at, text)); at++)
		times++;
	return times;
}

TEST_CASE(test_sent_at_once)
{
	struct post *post = *state;
	struct mail_row record = run(post, 1);
	assert_string_equal(record.state, "sent");
	assert_int_equal(record.attempts, 1);
	assert_int_equal(times_heard(post, "RCPT TO:<owner@example.com>"), 1);
	assert_int_equal(times_heard(post, "endpoint whk_1"), 2); /* subject and text */
	assert_int_equal(atomic_load(&post->service.counters.mails_sent), 1);
}

TEST_CASE(test_a_lost_answer_gives_the_same_message_again)
{
	struct post *post = *state;
	char id[128];
	post->script.answers[0][SMTP_RCPT] = "451 try later";
	post->script.answers[1][SMTP_TEXT] = ""; /* cut after the last dot: accepted or not? */
	struct mail_row record = run(post, 3);
	assert_string_equal(record.state, "sent");
	assert_int_equal(record.attempts, 3);
	snprintf(id, sizeof id, "Message-ID: <%s@example.org>", record.mail_id);
	assert_int_equal(times_heard(post, id), 2);
	const char *first = strstr(post->script.heard, "Date: ");
	const char *second = strstr(first + 1, "Date: ");
	size_t size = (size_t)(strstr(first, "\r\n.\r\n") - first);
	assert_memory_equal(first, second, size);
}

TEST_CASE(test_what_was_sent_is_recorded_once_the_store_is_back)
{
	struct post *post = *state;
	fault_set(FAULT_COMMIT, 3); /* queued, claimed, ended */
	struct mail_row record = run(post, 1);
	assert_true(fault_take());
	assert_string_equal(record.state, "sent");
	assert_int_equal(record.attempts, 1);
	assert_int_equal(times_heard(post, "RCPT TO:"), 1);
}

TEST_CASE(test_tried_often_enough)
{
	struct post *post = *state;
	for (int i = 0; i < 3; i++)
		post->script.answers[i][SMTP_GREETING] = "421 not now";
	struct mail_row record = run(post, 3);
	assert_string_equal(record.state, "failed");
	assert_int_equal(record.attempts, 3);
	assert_non_null(strstr(record.last_error, "421"));
	assert_int_equal(atomic_load(&post->service.counters.mails_failed), 1);
}

TEST_CASE(test_refused_for_good)
{
	struct post *post = *state;
	post->script.answers[0][SMTP_RCPT] = "550 nobody here";
	struct mail_row record = run(post, 1);
	assert_string_equal(record.state, "failed");
	assert_int_equal(record.attempts, 1);
	assert_non_null(strstr(record.last_error, "550"));
}

TEST_CASE(test_no_server)
{
	struct post *post = *state;
	struct mail_row record = run(post, 0);
	assert_string_equal(record.state, "dropped");
	assert_string_equal(record.last_error, "mail.url is empty");
}

TEST_CASE_ON(test_bad_settings, struct post *post)
{
	post->settings.mail_schedule = "soon";
	assert_int_equal(mailing_init(&post->mailing, &post->service, HOLDER, NULL), ERR_VALIDATION);
	post->settings.mail_schedule = "1s";
	post->settings.mail_allow_networks = "somewhere";
	assert_int_equal(mailing_init(&post->mailing, &post->service, HOLDER, NULL), ERR_VALIDATION);
}

TEST_MAIN_EACH(set_up, tear_down)
