/* The outbox of e-mails: queued with their cause, leased, ended once. */
#include "testing.h"
#include "sample.h"
#include "store/notices/queue_mail.h"
#include "store/transaction.h"

#define LEASE_US (30 * US_PER_SECOND)
#define START INT64_C(1700000000000000)

struct fixture {
	struct sample sample;
	struct arena arena;
	struct error error;
};

static void set_email(struct fixture *fixture, const char *email, int language)
{
	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = email;
	change.language = language;
	assert_int_equal(store_change_account(fixture->sample.store,
	                                      slice_of(fixture->sample.account_id), &change, START,
	                                      NULL),
	                 OK);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)16 << 20);
	sample_open(&fixture->sample, MODALITY_CONTENT, 5);
	set_email(fixture, "owner@example.com", LANGUAGE_SPANISH);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sample_close(&fixture->sample);
	arena_free(&fixture->arena);
	free(fixture);
	return 0;
}

static void queue(struct fixture *fixture, const char *values, int64_t now_us, bool commits)
{
	struct db_connection *connection = begin_write(fixture->sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	assert_int_equal(store_queue_mail(connection, fixture->sample.account, MAIL_TOPUP_FAILED,
	                                  slice_of(values), now_us, NULL),
	                 OK);
	assert_int_equal(end_write(connection, commits ? OK : ERR_REFUSED, NULL),
	                 commits ? OK : ERR_REFUSED);
}

static int claim(struct fixture *fixture, const char *holder, int64_t now_us, struct mail *ret)
{
	return store_claim_mail(fixture->sample.store, NULL, holder, now_us, LEASE_US, &fixture->arena,
	                        ret, &fixture->error);
}

static struct mail_row record_of(struct fixture *fixture)
{
	return sample_find_mail(&fixture->sample, &fixture->arena);
}

TEST_CASE_ON(test_it_goes_with_its_cause, struct fixture *fixture)
{
	struct mail mail;
	queue(fixture, "{\"a\":\"never\"}", START, false);
	assert_int_equal(claim(fixture, "one", START, &mail), ERR_NOT_FOUND);
	queue(fixture, "{\"a\":\"ñ\"}", START, true);
	assert_int_equal(claim(fixture, "one", START - 1, &mail), ERR_NOT_FOUND);
	assert_int_equal(claim(fixture, "one", START, &mail), OK);
	assert_string_equal(mail.account_id, fixture->sample.account_id);
	assert_memory_equal(mail.mail_id, "eml_", 4);
	assert_string_equal(mail.template_name, "topup_failed");
	assert_string_equal(mail.values, "{\"a\":\"ñ\"}");
	assert_string_equal(mail.recipient, "owner@example.com");
	assert_int_equal(mail.language, LANGUAGE_SPANISH);
	assert_int_equal(mail.queued_at_us, START);
	assert_int_equal(mail.attempts, 0);
}

/* A node whose clock is ahead queues for all nodes. */
TEST_CASE_ON(test_due_at_once_by_the_clock_of_all, struct fixture *fixture)
{
	struct mail mail;
	queue(fixture, "{}", store_now_us(fixture->sample.store) + US_PER_DAY, true);
	assert_int_equal(claim(fixture, "one", store_now_us(fixture->sample.store), &mail), OK);
}

TEST_CASE_ON(test_nobody_to_tell, struct fixture *fixture)
{
	struct mail mail;
	set_email(fixture, "", -1);
	queue(fixture, "{}", START, true);
	assert_int_equal(claim(fixture, "one", START, &mail), ERR_NOT_FOUND);
	/* The address is removed while the mail waits; then another one is set. */
	set_email(fixture, "owner@example.com", -1);
	queue(fixture, "{}", START, true);
	set_email(fixture, "", LANGUAGE_ENGLISH);
	assert_int_equal(claim(fixture, "one", START, &mail), OK);
	assert_null(mail.recipient);
	set_email(fixture, "new@example.com", -1);
	assert_int_equal(claim(fixture, "two", START + LEASE_US, &mail), OK);
	assert_string_equal(mail.recipient, "new@example.com");
	assert_int_equal(mail.language, LANGUAGE_ENGLISH);
}

TEST_CASE(test_a_lease)
{
	struct fixture *fixture = *state;
	struct store *store = fixture->sample.store;
	struct mail mail, same;
	queue(fixture, "{}", START, true);
	assert_int_equal(claim(fixture, "one", START, &mail), OK);
	assert_int_equal(claim(fixture, "two", START + LEASE_US - 1, &same), ERR_NOT_FOUND);
	assert_int_equal(claim(fixture, "one", START + LEASE_US - 1, &same), ERR_NOT_FOUND);
	/* One node died; the other takes over, and a later result of the first one does not count. */
	assert_int_equal(claim(fixture, "two", START + LEASE_US, &same), OK);
	assert_string_equal(same.mail_id, mail.mail_id);
	assert_int_equal(store_end_mail(store, &mail, "one", MAIL_FAILED, "late", START, NULL),
	                 ERR_REFUSED);
	assert_int_equal(store_delay_mail(store, &mail, "one", START, "late", NULL), ERR_REFUSED);
	assert_int_equal(store_end_mail(store, &same, "two", MAIL_SENT, NULL, START + 7, NULL), OK);
	assert_int_equal(store_end_mail(store, &same, "two", MAIL_SENT, NULL, START + 8, NULL),
	                 ERR_REFUSED);
	struct mail_row record = record_of(fixture);
	assert_string_equal(record.state, "sent");
	assert_int_equal(record.ended_at_us, START + 7);
	assert_int_equal(record.attempts, 1);
	assert_null(record.last_error);
	assert_int_equal(claim(fixture, "one", START + 1000 * LEASE_US, &mail), ERR_NOT_FOUND);
}

TEST_CASE(test_tries)
{
	struct fixture *fixture = *state;
	struct store *store = fixture->sample.store;
	struct mail mail;
	queue(fixture, "{}", START, true);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(claim(fixture, "one", START + i * 1000, &mail), OK);
		assert_int_equal(mail.attempts, i);
		assert_int_equal(
			store_delay_mail(store, &mail, "one", START + (i + 1) * 1000, "busy", NULL), OK);
		assert_int_equal(claim(fixture, "one", START + i * 1000 + 999, &mail), ERR_NOT_FOUND);
	}
	struct mail_row record = record_of(fixture);
	assert_string_equal(record.state, "waiting");
	assert_string_equal(record.last_error, "busy");
	assert_int_equal(record.ended_at_us, TIME_NONE);
	assert_int_equal(claim(fixture, "one", START + 3000, &mail), OK);
	assert_int_equal(store_end_mail(store, &mail, "one", MAIL_DROPPED, "why", START + 3001, NULL),
	                 OK);
	record = record_of(fixture);
	assert_string_equal(record.state, "dropped");
	assert_string_equal(record.last_error, "why");
	assert_int_equal(record.attempts, 4);
}

TEST_CASE(test_old_ones_are_forgotten)
{
	struct fixture *fixture = *state;
	struct store *store = fixture->sample.store;
	struct mail mail;
	queue(fixture, "{}", START, true);
	assert_int_equal(claim(fixture, "one", START, &mail), OK);
	assert_int_equal(store_end_mail(store, &mail, "one", MAIL_SENT, NULL, START, NULL), OK);
	queue(fixture, "{}", START, true); /* waiting: kept, however old */
	assert_int_equal(store_forget_mails(store, START, NULL), OK);
	struct mail_row *mails;
	assert_int_equal(sample_list_mails(&fixture->sample, &fixture->arena, &mails), 2);
	assert_int_equal(store_forget_mails(store, START + 1, NULL), OK);
	assert_string_equal(record_of(fixture).state, "waiting");
}

TEST_CASE_ON(test_values_have_a_limit, struct fixture *fixture)
{
	struct db_connection *connection;
	char *values = calloc(1, MAIL_VALUES_MAX + 1);
	connection = begin_write(fixture->sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	assert_int_equal(store_queue_mail(connection, fixture->sample.account, MAIL_TOPUP_FAILED,
	                                  slice_make(values, MAIL_VALUES_MAX + 1), START, NULL),
	                 ERR_TOO_LARGE);
	assert_int_equal(end_write(connection, ERR_TOO_LARGE, NULL), ERR_TOO_LARGE);
	free(values);
}

TEST_MAIN_EACH(set_up, tear_down)
