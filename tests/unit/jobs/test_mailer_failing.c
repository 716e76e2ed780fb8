/* The mailer, with each call failing in turn: a mail is sent once, and no mail is given up for a
 * fault of the service. */
#include "testing.h"
#include "failing.h"
#include "jobs/mailer.h"
#include "sample.h"
#include "store/notices/queue_mail.h"
#include "store/people/console_users.h"
#include "store/transaction.h"

static const atomic_bool stopping;
static struct sample sample;
static struct settings settings;
static struct service service;
static struct mailer mailer;
static struct arena arena;
static struct error error;
static int64_t later_us;
static int sent, link_sent_as;

/* A server that accepts everything. */
int __wrap_mail_send(const struct mail_server *server, const struct mail_message *message,
                     struct error *unused);
int __wrap_mail_send(const struct mail_server *server, const struct mail_message *message,
                     struct error *unused)
{
	assert_string_equal(message->to, "owner@example.com");
	assert_true(message->subject.size > 0 && message->text.size > 0);
	sent++;
	if (memmem(message->subject.data, message->subject.size, "link to sign in", 15))
		link_sent_as = sent;
	return OK;
}

int64_t __real_store_now_us(struct store *store);
int64_t __wrap_store_now_us(struct store *store);
int64_t __wrap_store_now_us(struct store *store)
{
	return __real_store_now_us(store) + later_us;
}

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_CONTENT, 5);
	arena_init(&arena, (size_t)1 << 20);
	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = "owner@example.com";
	assert_int_equal(
		store_change_account(sample.store, slice_of(sample.account_id), &change, 1, NULL), OK);
	settings = (struct settings){.service_name = "Constancia",
	                             .service_public_url = "https://example.org",
	                             .mail_url = "smtp://127.0.0.1:1",
	                             .mail_from = "notices@example.org",
	                             .mail_schedule = "1s,1s,1s"};
	memset(&service, 0, sizeof service);
	service.settings = &settings;
	service.store = sample.store;
	return 0;
}

static int tear_down(void **state)
{
	sample_close(&sample);
	arena_free(&arena);
	return 0;
}

static void queue(void)
{
	struct db_connection *connection = begin_write(sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	int result = store_queue_mail(connection, sample.account, MAIL_ENDPOINT_DISABLED,
	                              slice_of("{\"endpoint_id\":\"whk_1\",\"url\":\"https://a\"}"),
	                              __real_store_now_us(sample.store), NULL);
	assert_int_equal(end_write(connection, result, NULL), OK);
}

static struct mail_row take_record(void)
{
	arena_reset(&arena);
	return sample_find_mail(&sample, &arena);
}

static void in_turn(unsigned kinds)
{
	assert_int_equal(mailer_init(&mailer, &service, "node", &error), OK);
	for (int at = 1;; at++) {
		queue();
		sent = 0;
		failing_arm(kinds, at);
		(void)mailer_run(&mailer, &stopping);
		const char *failed = failing_disarm();
		for (int i = 0; strcmp(take_record().state, "waiting") == 0 && i < 3; i++) {
			assert_non_null(failed);
			later_us += 60 * US_PER_SECOND; /* the lease has expired */
			(void)mailer_run(&mailer, &stopping);
		}
		struct mail_row record = take_record();
		if (strcmp(record.state, "sent") != 0 || sent != 1)
			fail_msg("call %d, %s: %s, %s; sent %d times", at, failed ? failed : "none",
			         record.state, record.last_error, sent);
		assert_int_equal(store_forget_mails(sample.store, INT64_MAX, &error), OK);
		if (!failed)
			break;
	}
}

TEST_CASE(mails_outlive_faults)
{
	in_turn(FAILING_MEMORY | FAILING_SQLITE | FAILING_ARENAS);
}

TEST_CASE(mails_outlive_a_store_that_is_away)
{
	in_turn(FAILING_PARTS);
}

static void queue_link(void)
{
	struct db_connection *connection;
	char user_id[ID_SIZE];
	const struct invitation invitation = {.account_id = slice_of(sample.account_id),
	                                      .email = "owner@example.com",
	                                      .role = ROLE_OWNER};
	const struct mail_to to = {"owner@example.com", LANGUAGE_ENGLISH};
	int64_t now_us = __real_store_now_us(sample.store);
	const char *values = arena_printf(&arena, "{\"browser\":\"%064d\",\"until\":%lld}", 0,
	                                  (long long)(now_us + 600 * US_PER_SECOND));
	assert_int_equal(store_invite_user(sample.store, &invitation, 1, user_id, NULL), OK);
	connection = begin_write(sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	int result =
		store_queue_mail_to(connection, 0, &to, MAIL_SIGN_IN, slice_of(values), now_us, NULL);
	assert_int_equal(end_write(connection, result, NULL), OK);
}

TEST_CASE(a_link_waits_for_one_other_mail_at_most)
{
	later_us = sent = link_sent_as = 0;
	for (int i = 0; i < 4; i++)
		queue();
	queue_link();
	assert_int_equal(mailer_init(&mailer, &service, "node", &error), OK);
	(void)mailer_run(&mailer, &stopping);
	assert_int_equal(sent, 5);
	assert_in_range(link_sent_as, 1, 2);
}

TEST_CASE(begins_only_when_it_can)
{
	for (int at = 1;; at++) {
		failing_arm(FAILING_MEMORY | FAILING_PARTS, at);
		int result = mailer_init(&mailer, &service, "node", &error);
		const char *failed = failing_disarm();
		assert_int_equal(result, failed ? ERR_UNAVAILABLE : OK);
		if (!failed)
			break;
	}
	settings.mail_schedule = " 1s , 2s ";
	assert_int_equal(mailer_init(&mailer, &service, "node", &error), OK);
	assert_int_equal(mailer.mailing.schedule.count, 2);
	settings.mail_schedule = NULL;
	assert_int_equal(mailer_init(&mailer, &service, "node", &error), OK);
	assert_int_equal(mailer.mailing.schedule.count, 0);
	settings.mail_schedule = "1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s";
	assert_int_equal(mailer_init(&mailer, &service, "node", &error), ERR_VALIDATION);
}

TEST_MAIN_EACH(set_up, tear_down)
