/* The state of a request until its answer, with a clock that the test sets. */
#include "testing.h"
#include "base/clock.h"
#include "console/visit.h"
#include "sample.h"
#include "service/settings.h"

#define AHEAD_US (3600 * US_PER_SECOND)

/* The clock that all nodes share, which is not the clock of this machine. */
int64_t __real_store_now_us(const struct store *store);
int64_t __wrap_store_now_us(const struct store *store);
int64_t __wrap_store_now_us(const struct store *store)
{
	return __real_store_now_us(store) + AHEAD_US;
}

/* Sessions begin by that clock, so the age of a sign-in is measured by it. */
TEST_CASE(a_request_has_the_time_that_sessions_have)
{
	struct sample sample;
	struct error error = {0};
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	sample_open(&sample, MODALITY_CONTENT, 5);
	struct settings settings = {.service_public_url = "https://example.org"};
	struct service service = {.settings = &settings, .store = sample.store};
	struct admin admin = {.settings = &settings, .store = sample.store, .service = &service};
	struct console_request request = {.agent = "", .address = ""};
	struct console_answer answer = {0};
	struct visit visit = {
		.admin = &admin, .request = &request, .arena = &arena, .answer = &answer, .error = &error};
	int64_t now_us = clock_now_us();
	assert_int_equal(visit_begin(&visit), OK);
	assert_true(visit.now_us >= now_us + AHEAD_US);
	sample_close(&sample);
}

TEST_MAIN(NULL, NULL)
