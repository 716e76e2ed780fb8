/* The state of a certification after an attempt, by the kind, number and duration of failures. A
 * fake store records the calls, and the test sets its clock. */
#include "testing.h"
#include "base/log.h"
#include "issue/issue_attempt.h"

#define HOUR_US (3600 * US_PER_SECOND)
#define DAY_US (24 * HOUR_US)
#define NOW_US (1000 * DAY_US)

enum told { NOTHING, COMPLETED, DELAYED, FAILED };

/* Calls to the store, and its answers. */
static struct {
	enum told told; /* last */
	int times;
	const char *holder;
	int64_t next_us;
	bool own_failure;
	char cause[256];
	int complete_result, delay_result, fail_result;
	int overdue; /* that many more are found */
	int64_t overdue_before_us, overdue_after;
	int discarded;
	const char *logged; /* last */
} store_now;
static int64_t now_us;

static atomic_bool stopping;
static struct settings settings = {.certification_give_up_after = 3 * DAY_US};
static struct service service = {.settings = &settings};
static struct certification certification;
static const struct issue_attempt attempt = {&service, &certification, "a node#0", &stopping};

int64_t __wrap_store_now_us(struct store *store);
int __wrap_store_complete_certification(struct store *store, const struct certification *of,
                                        const char *holder, int64_t issued_at_us,
                                        const struct document *documents, size_t count,
                                        struct error *error);
int __wrap_store_delay_certification(struct store *store, const struct certification *of,
                                     const char *holder, const struct certification_delay *delay,
                                     struct error *error);
int __wrap_store_fail_certification(struct store *store, const struct certification *of,
                                    const char *holder, const char *cause, int64_t at_us,
                                    char ret_incident_id[ID_SIZE], struct error *error);
int __wrap_store_find_overdue_certification(struct store *store, int64_t before_us, int64_t after,
                                            struct arena *arena, struct certification *ret,
                                            struct error *error);
void __wrap_content_discard(struct content_store *content, const char *name);
void __wrap_log_write(enum log_level level, const char *event, ...);

static void tell(enum told what, const char *holder, const char *cause)
{
	store_now.told = what;
	store_now.times++;
	store_now.holder = holder;
	snprintf(store_now.cause, sizeof store_now.cause, "%s", cause ? cause : "(none)");
}

int64_t __wrap_store_now_us(struct store *store)
{
	return now_us;
}

int __wrap_store_complete_certification(struct store *store, const struct certification *of,
                                        const char *holder, int64_t issued_at_us,
                                        const struct document *documents, size_t count,
                                        struct error *error)
{
	assert_ptr_equal(of, &certification);
	tell(COMPLETED, holder, NULL);
	return store_now.complete_result;
}

int __wrap_store_delay_certification(struct store *store, const struct certification *of,
                                     const char *holder, const struct certification_delay *delay,
                                     struct error *error)
{
	assert_ptr_equal(of, &certification);
	tell(DELAYED, holder, delay->cause);
	store_now.next_us = delay->next_us;
	store_now.own_failure = delay->own_failure;
	return store_now.delay_result;
}

int __wrap_store_fail_certification(struct store *store, const struct certification *of,
                                    const char *holder, const char *cause, int64_t at_us,
                                    char ret_incident_id[ID_SIZE], struct error *error)
{
	assert_int_equal(at_us, now_us);
	tell(FAILED, holder, cause);
	snprintf(ret_incident_id, ID_SIZE, "inc_1");
	return store_now.fail_result;
}

int __wrap_store_find_overdue_certification(struct store *store, int64_t before_us, int64_t after,
                                            struct arena *arena, struct certification *ret,
                                            struct error *error)
{
	store_now.overdue_before_us = before_us;
	store_now.overdue_after = after;
	if (store_now.overdue == 0)
		return ERR_NOT_FOUND;
	store_now.overdue--;
	*ret = (struct certification){.certification = after + 1};
	return OK;
}

void __wrap_content_discard(struct content_store *content, const char *name)
{
	store_now.discarded++;
}

void __wrap_log_write(enum log_level level, const char *event, ...)
{
	store_now.logged = event;
}

static int set_up(void **state)
{
	memset(&store_now, 0, sizeof store_now);
	memset(&service.counters, 0, sizeof service.counters);
	now_us = NOW_US;
	atomic_store(&stopping, false);
	certification = (struct certification){.requested_at_us = NOW_US, .attempts = 1};
	return 0;
}

/* Makes the `attempts`-th attempt fail with `result`, after `own_failures` of its own, at a request
 * of that age. */
static enum told after_own(int result, int64_t attempts, int64_t own_failures, int64_t age_us)
{
	struct error error = {0};
	certification.attempts = attempts;
	certification.own_failures = own_failures;
	certification.requested_at_us = now_us - age_us;
	error_cause(&error, result, "a cause");
	issue_record_failure(&attempt, result, &error);
	assert_ptr_equal(store_now.holder, attempt.holder);
	return store_now.told;
}

static enum told after(int result, int64_t attempts, int64_t age_us)
{
	return after_own(result, attempts, attempts - 1, age_us);
}

TEST_CASE(what_passes_by_waiting_is_put_off)
{
	static const int passing[] = {ERR_UNAVAILABLE, ERR_IO,      ERR_NO_SPACE,       ERR_NO_MEMORY,
	                              ERR_AUTHORITY,   ERR_NETWORK, ERR_UNKNOWN_OUTCOME};
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
		assert_int_equal(after(passing[i], 1, 0), DELAYED);
		assert_non_null(strstr(store_now.cause, ": a cause"));
		assert_false(store_now.own_failure);
		assert_int_equal(after(passing[i], 1000, settings.certification_give_up_after), DELAYED);
		assert_int_equal(after(passing[i], 2, settings.certification_give_up_after + 1), FAILED);
	}
	assert_int_equal(atomic_load(&service.counters.certifications_failed),
	                 sizeof passing / sizeof *passing);
}

TEST_CASE(pauses_grow)
{
	static const int64_t seconds[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600};
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		assert_int_equal(after(ERR_IO, (int64_t)i + 1, 0), DELAYED);
		assert_int_equal(store_now.next_us - now_us, seconds[i] * US_PER_SECOND);
	}
}

TEST_CASE(what_cannot_pass_fails_at_once)
{
	assert_int_equal(after(ERR_TOO_LARGE, 1, 0), FAILED);
	assert_int_equal(after(ERR_CORRUPT, 1, 0), FAILED);
	assert_non_null(strstr(store_now.cause, ": a cause"));
}

/* A wrong clock, mount or font: for an hour of attempts and of time. */
TEST_CASE(what_is_wrong_for_a_while_is_tried_for_an_hour)
{
	static const int wrong[] = {ERR_INVALID_EVIDENCE, ERR_NOT_FOUND, ERR_INTERNAL};
	/* 2 + 4 + … + 512 s are the first nine pauses, then 600 s each: an hour has passed after 14. */
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(after(wrong[i], 1, 0), DELAYED);
		assert_true(store_now.own_failure);
		assert_int_equal(after(wrong[i], 1, DAY_US), DELAYED);
		assert_int_equal(after(wrong[i], 14, DAY_US), DELAYED);
		assert_int_equal(after(wrong[i], 15, DAY_US), FAILED);
		assert_int_equal(after(wrong[i], 15, HOUR_US - 1), DELAYED);
		assert_int_equal(after(wrong[i], 15, HOUR_US), FAILED);
		assert_int_equal(after(wrong[i], 1, settings.certification_give_up_after + 1), FAILED);
	}
}

/* Time spent waiting, for example for an authority, does not count towards that hour. */
TEST_CASE(the_hour_is_its_own)
{
	assert_int_equal(after_own(ERR_NOT_FOUND, 100, 0, DAY_US), DELAYED);
	assert_int_equal(after_own(ERR_NOT_FOUND, 100, 5, DAY_US), DELAYED);
	assert_int_equal(after_own(ERR_NOT_FOUND, 100, 6, DAY_US), FAILED); /* 600 s each */
}

TEST_CASE(stopping_gives_it_back)
{
	atomic_store(&stopping, true);
	assert_int_equal(after(ERR_CORRUPT, 40, 10 * DAY_US), DELAYED);
	assert_int_equal(store_now.next_us, now_us);
	assert_string_equal(store_now.cause, "(none)");
}

/* Neither charged nor lost: a later attempt marks it as failed. */
TEST_CASE(what_cannot_be_failed_is_put_off)
{
	store_now.fail_result = ERR_UNAVAILABLE;
	assert_int_equal(after(ERR_CORRUPT, 1, 0), DELAYED);
	assert_int_equal(store_now.times, 2);
	assert_int_equal(atomic_load(&service.counters.certifications_failed), 0);
	store_now.fail_result = ERR_REFUSED; /* another node holds it */
	assert_int_equal(after(ERR_CORRUPT, 1, 0), FAILED);
	assert_int_equal(store_now.times, 3);
	assert_int_equal(atomic_load(&service.counters.certifications_failed), 0);
}

TEST_CASE(documents_are_issued_or_discarded)
{
	struct document documents[3] = {0};
	const struct issue_result issued = {NOW_US, documents, 3};
	issue_record_success(&attempt, &issued);
	assert_int_equal(store_now.told, COMPLETED);
	assert_int_equal(atomic_load(&service.counters.certifications_completed), 1);
	store_now.complete_result = ERR_UNKNOWN_OUTCOME; /* they may be the issued ones */
	issue_record_success(&attempt, &issued);
	assert_int_equal(store_now.told, DELAYED);
	assert_int_equal(store_now.discarded, 0);
	store_now.complete_result = ERR_REFUSED;
	issue_record_success(&attempt, &issued);
	assert_string_equal(store_now.logged, "certification_not_completed");
	assert_int_equal(store_now.told, COMPLETED);
	assert_int_equal(store_now.discarded, 3);
	assert_int_equal(atomic_load(&service.counters.certifications_completed), 1);
}

/* Its attempts end the process before they can be recorded as failed. */
TEST_CASE(what_never_comes_to_an_end_is_given_up)
{
	certification.attempts = 31;
	assert_false(issue_give_up_overdue(&attempt));
	certification.requested_at_us = now_us - settings.certification_give_up_after - 1;
	certification.attempts = 30;
	assert_false(issue_give_up_overdue(&attempt));
	assert_int_equal(store_now.told, NOTHING);
	certification.attempts = 31;
	assert_true(issue_give_up_overdue(&attempt));
	assert_int_equal(store_now.told, FAILED);
	assert_ptr_equal(store_now.holder, attempt.holder);
}

TEST_CASE(each_overdue_one_is_failed_once)
{
	store_now.overdue = 3;
	store_now.fail_result = ERR_UNAVAILABLE; /* does not delay the others */
	issue_fail_overdue(&service, &stopping);
	assert_int_equal(store_now.times, 3);
	assert_null(store_now.holder);
	assert_int_equal(store_now.overdue_after, 3);
	assert_int_equal(store_now.overdue_before_us, now_us - settings.certification_give_up_after);
	store_now.overdue = 3;
	atomic_store(&stopping, true);
	issue_fail_overdue(&service, &stopping);
	assert_int_equal(store_now.times, 3);
}

TEST_MAIN_EACH(set_up, NULL)
