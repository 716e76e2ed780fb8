/* A request on its way to an answer, by a clock that a test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "console/visit.h"
#include "sample.h"
#include "service/settings.h"

#define AHEAD_US (3600 * US_PER_SECOND)

/* The clock that all nodes share, which is not this machine's. */
int64_t __real_store_now_us(const struct store *store);
int64_t __wrap_store_now_us(const struct store *store);
int64_t __wrap_store_now_us(const struct store *store)
{
	return __real_store_now_us(store) + AHEAD_US;
}

/* Sessions are begun by that clock, so how old a sign-in is is told by it. */
static void a_request_has_the_time_that_sessions_have(void **state)
{
	struct sample sample;
	struct error error = {0};
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)1 << 20);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_the_time_that_sessions_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
