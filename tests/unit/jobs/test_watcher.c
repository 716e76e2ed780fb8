/* The log entries about a store that hangs, while it hangs. */
#include <semaphore.h>

#include "testing.h"
#include "jobs/internal.h"
#include "office.h"

static struct office office;
static struct watcher watcher;
static struct error error;
static sem_t asked, answers, logged;
static _Atomic int64_t ahead_us; /* of the clock that measures how long it hangs */

int64_t __real_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void)
{
	return __real_clock_monotonic_us() + atomic_load(&ahead_us);
}

int __wrap_store_ready(struct store *store, struct error *why);
int __wrap_store_ready(struct store *store, struct error *why)
{
	(void)store, (void)why;
	sem_post(&asked);
	sem_wait(&answers);
	return OK;
}

void __wrap_readiness_log(struct service *service, struct readiness *ret);
void __wrap_readiness_log(struct service *service, struct readiness *ret)
{
	(void)ret;
	struct observation seen = watch_get_observation(service);
	if (seen.store == ERR_UNAVAILABLE && strstr(seen.store_cause, "the store does not respond"))
		sem_post(&logged);
}

TEST_CASE(it_is_told_while_it_hangs)
{
	assert_int_equal(watcher_start(&watcher, &office.service, &error), OK);
	sem_wait(&asked);
	assert_int_equal(watch_get_observation(&office.service).store, OK);
	atomic_store(&ahead_us, WATCH_ANSWER_LATE_US + US_PER_SECOND);
	sem_wait(&logged);
	for (int i = 0; i < 100; i++)
		sem_post(&answers);
	watcher_stop(&watcher);
	assert_int_equal(watch_get_observation(&office.service).store, OK);
}

static int set_up(void **state)
{
	sem_init(&asked, 0, 0);
	sem_init(&answers, 0, 0);
	sem_init(&logged, 0, 0);
	office_open(&office, MODALITY_HASH_ONLY, 1000);
	return 0;
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
