/* The lease renewer: when it renews, and when it stops. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "testing.h"
#include "jobs/lease_renewer.h"
#include "sample.h"

/* Posted when this thread finds a mutex locked. */
static _Thread_local sem_t *waits;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (waits) {
		if (!pthread_mutex_trylock(mutex))
			return 0;
		sem_post(waits);
	}
	return __real_pthread_mutex_lock(mutex);
}

/* A lease whose renewals are counted, and each of which waits at a gate. */
struct lease {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int renewals, running;
	bool closed;
	int answer;
	bool released; /* no renewal may follow */
};

static int renew(void *context)
{
	struct lease *lease = context;
	pthread_mutex_lock(&lease->mutex);
	assert_false(lease->released);
	lease->running++;
	pthread_cond_broadcast(&lease->changed);
	while (lease->closed)
		pthread_cond_wait(&lease->changed, &lease->mutex);
	assert_false(lease->released);
	lease->running--;
	lease->renewals++;
	int answer = lease->answer;
	pthread_cond_broadcast(&lease->changed);
	pthread_mutex_unlock(&lease->mutex);
	return answer;
}

static void wait_for(struct lease *lease, int renewals, int running)
{
	pthread_mutex_lock(&lease->mutex);
	while (lease->renewals < renewals || lease->running < running)
		pthread_cond_wait(&lease->changed, &lease->mutex);
	pthread_mutex_unlock(&lease->mutex);
}

static void open_gate(struct lease *lease, bool open)
{
	pthread_mutex_lock(&lease->mutex);
	lease->closed = !open;
	pthread_cond_broadcast(&lease->changed);
	pthread_mutex_unlock(&lease->mutex);
}

static int renewals_of(struct lease *lease)
{
	pthread_mutex_lock(&lease->mutex);
	int renewals = lease->renewals;
	pthread_mutex_unlock(&lease->mutex);
	return renewals;
}

#define LEASE(...)                                                                                 \
	{                                                                                              \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, __VA_ARGS__                           \
	}

static int set_up(void **state)
{
	struct lease_renewer *lease_renewer = NULL;
	assert_int_equal(lease_renewer_start(&lease_renewer, NULL), OK);
	*state = lease_renewer;
	return 0;
}

static int tear_down(void **state)
{
	lease_renewer_stop(*state);
	return 0;
}

/* Each lease is renewed repeatedly. A lost one is not renewed again; a temporary failure does not
 * end it. */
TEST_CASE(renews_until_a_lease_is_lost)
{
	static struct lease kept = LEASE(.answer = OK), lost = LEASE(.answer = ERR_REFUSED),
						failing = LEASE(.answer = ERR_UNAVAILABLE);
	int holdings[] = {lease_renewer_add(*state, renew, &lost),
	                  lease_renewer_add(*state, renew, &failing),
	                  lease_renewer_add(*state, renew, &kept)};
	wait_for(&kept, 2, 0); /* by then the earlier ones were renewed as often */
	assert_int_equal(renewals_of(&lost), 1);
	assert_true(renewals_of(&failing) >= 2);
	for (int i = 0; i < 3; i++)
		lease_renewer_remove(*state, holdings[i]);
}

struct releasing {
	struct lease_renewer *lease_renewer;
	struct lease *lease;
	int holding;
	sem_t waits_or_is_over;
};

static void *release(void *context)
{
	struct releasing *releasing = context;
	waits = &releasing->waits_or_is_over;
	lease_renewer_remove(releasing->lease_renewer, releasing->holding);
	waits = NULL;
	pthread_mutex_lock(&releasing->lease->mutex);
	releasing->lease->released = true;
	pthread_mutex_unlock(&releasing->lease->mutex);
	sem_post(&releasing->waits_or_is_over);
	return NULL;
}

/* A release waits for the renewal in progress, because the caller may then free what the renewal
 * uses. */
TEST_CASE(a_release_waits_for_the_renewal_under_way)
{
	static struct lease lease = LEASE(.closed = true), marker = LEASE(.answer = OK);
	struct releasing releasing = {.lease_renewer = *state,
	                              .lease = &lease,
	                              .holding = lease_renewer_add(*state, renew, &lease)};
	wait_for(&lease, 0, 1);
	pthread_t thread;
	sem_init(&releasing.waits_or_is_over, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, release, &releasing), 0);
	sem_wait(&releasing.waits_or_is_over); /* otherwise `renew` would detect it and fail */
	open_gate(&lease, true);
	pthread_join(thread, NULL);
	assert_int_equal(renewals_of(&lease), 1);
	int holding = lease_renewer_add(*state, renew, &marker);
	wait_for(&marker, 1, 0); /* the place is free again, and only its new lease is renewed */
	assert_int_equal(holding, releasing.holding);
	assert_int_equal(renewals_of(&lease), 1);
	lease_renewer_remove(*state, holding);
}

TEST_CASE(holds_as_many_as_it_says)
{
	static struct lease leases[LEASE_RENEWER_LEASES_MAX];
	int holdings[LEASE_RENEWER_LEASES_MAX];
	for (int i = 0; i < LEASE_RENEWER_LEASES_MAX; i++) {
		leases[i] = (struct lease)LEASE(.answer = OK);
		holdings[i] = lease_renewer_add(*state, renew, &leases[i]);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(holdings[i], holdings[j]);
	}
	for (int i = 0; i < LEASE_RENEWER_LEASES_MAX; i++)
		wait_for(&leases[i], 1, 0);
	for (int i = 0; i < LEASE_RENEWER_LEASES_MAX; i++)
		lease_renewer_remove(*state, holdings[i]);
}

static bool another_takes(struct sample *sample)
{
	bool taken = false;
	assert_int_equal(store_take_lease(sample->store, LEASE_SWEEP, "another",
	                                  store_now_us(sample->store), 3600 * US_PER_SECOND, &taken,
	                                  NULL),
	                 OK);
	return taken;
}

/* The holder learns that another node has taken a lease of the store, and cannot take it
 * meanwhile. */
TEST_CASE(a_kept_lease_is_lost_to_another)
{
	struct sample sample;
	sample_open(&sample, MODALITY_HASH_ONLY, 1);
	struct renewed_lease kept = {
		.store = sample.store, .lease_renewer = *state, .name = LEASE_SWEEP, .holder = "holder"};
	bool taken = false;
	assert_int_equal(renewed_lease_take(&kept, &taken, NULL), OK);
	assert_true(taken && !another_takes(&sample) && !atomic_load(&kept.lost));
	do /* as if it had expired; a renewal may come between the two */
		assert_int_equal(renewed_lease_end(&kept, NULL), OK);
	while (!another_takes(&sample));
	while (!atomic_load(&kept.lost))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	renewed_lease_pause(&kept);
	assert_int_equal(renewed_lease_take(&kept, &taken, NULL), OK);
	assert_false(taken);
	assert_int_equal(store_end_lease(sample.store, LEASE_SWEEP, "another", NULL), OK);
	assert_int_equal(renewed_lease_take(&kept, &taken, NULL), OK);
	assert_true(taken && !atomic_load(&kept.lost));
	renewed_lease_pause(&kept);
	sample_close(&sample);
}

TEST_CASE(ends_with_nothing_held)
{
	lease_renewer_stop(NULL);
	assert_true(LEASE_RENEWER_INTERVAL_US * 3 < RENEWED_LEASE_US); /* two renewals may fail */
}

TEST_MAIN_EACH(set_up, tear_down)
