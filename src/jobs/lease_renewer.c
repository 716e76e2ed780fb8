#include "jobs/lease_renewer.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/tuned.h"
#include "jobs/job_thread.h"

struct holding {
	lease_renew_function *renew; /* NULL: free, or lost */
	void *context;
	bool taken;
};

struct lease_renewer {
	pthread_mutex_t mutex; /* held during a renewal */
	struct holding holdings[LEASE_RENEWER_LEASES_MAX];
	struct job_thread *thread;
};

int64_t renewed_lease_us(void)
{
	return tuned_up_to("lease_us", RENEWED_LEASE_US);
}

static_assert(RENEWED_LEASE_US / LEASE_RENEWER_INTERVAL_US * LEASE_RENEWER_INTERVAL_US ==
                  RENEWED_LEASE_US,
              "a shorter lease is renewed as often");

static int64_t renew_all(void *context, const atomic_bool *stopping)
{
	struct lease_renewer *lease_renewer = context;
	for (int i = 0; i < LEASE_RENEWER_LEASES_MAX && !atomic_load(stopping); i++) {
		pthread_mutex_lock(&lease_renewer->mutex);
		struct holding *holding = &lease_renewer->holdings[i];
		assert(holding->taken || !holding->renew);
		if (holding->renew && holding->renew(holding->context) == ERR_REFUSED)
			holding->renew = NULL;
		pthread_mutex_unlock(&lease_renewer->mutex);
	}
	return renewed_lease_us() / (RENEWED_LEASE_US / LEASE_RENEWER_INTERVAL_US);
}

int lease_renewer_start(struct lease_renewer **ret_renewer, struct error *error)
{
	assert(ret_renewer);
	struct lease_renewer *lease_renewer = calloc(1, sizeof *lease_renewer);
	if (!lease_renewer)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&lease_renewer->mutex, NULL);
	int result =
		job_thread_start("lease_renewer", renew_all, lease_renewer, &lease_renewer->thread, error);
	if (result) {
		lease_renewer_stop(lease_renewer);
		return result;
	}
	*ret_renewer = lease_renewer;
	return OK;
}

void lease_renewer_stop(struct lease_renewer *lease_renewer)
{
	if (!lease_renewer)
		return;
	job_thread_request_stop(lease_renewer->thread);
	job_thread_join(lease_renewer->thread);
	job_thread_free(lease_renewer->thread);
	for (int i = 0; i < LEASE_RENEWER_LEASES_MAX; i++)
		assert(!lease_renewer->holdings[i].taken); /* its holder would renew nothing */
	pthread_mutex_destroy(&lease_renewer->mutex);
	free(lease_renewer);
}

int lease_renewer_add(struct lease_renewer *lease_renewer, lease_renew_function *renew,
                      void *context)
{
	assert(renew);
	pthread_mutex_lock(&lease_renewer->mutex);
	int at = 0;
	while (lease_renewer->holdings[at].taken)
		if (++at == LEASE_RENEWER_LEASES_MAX)
			abort(); /* more leases than jobs in the program */
	lease_renewer->holdings[at] = (struct holding){renew, context, true};
	pthread_mutex_unlock(&lease_renewer->mutex);
	return at;
}

void lease_renewer_remove(struct lease_renewer *lease_renewer, int holding)
{
	assert(holding >= 0 && holding < LEASE_RENEWER_LEASES_MAX);
	pthread_mutex_lock(&lease_renewer->mutex);
	assert(lease_renewer->holdings[holding].taken);
	lease_renewer->holdings[holding] = (struct holding){0};
	pthread_mutex_unlock(&lease_renewer->mutex);
}

static int take(struct renewed_lease *kept, bool *ret_taken, struct error *error)
{
	return store_take_lease(kept->store, kept->name, kept->holder, store_now_us(kept->store),
	                        renewed_lease_us(), ret_taken, error);
}

static int renew(void *context)
{
	struct renewed_lease *kept = context;
	bool taken = false;
	int result = take(kept, &taken, NULL);
	if (!result && !taken)
		atomic_store(&kept->lost, true);
	return result || taken ? result : ERR_REFUSED;
}

int renewed_lease_take(struct renewed_lease *kept, bool *ret_taken, struct error *error)
{
	assert(kept->store && kept->lease_renewer && kept->holder);
	bool taken = false;
	int result = take(kept, &taken, error);
	if (result)
		return result;
	atomic_store(&kept->lost, false);
	if (taken)
		kept->holding = lease_renewer_add(kept->lease_renewer, renew, kept);
	*ret_taken = taken;
	return OK;
}

void renewed_lease_pause(struct renewed_lease *kept)
{
	lease_renewer_remove(kept->lease_renewer, kept->holding);
}

int renewed_lease_end(struct renewed_lease *kept, struct error *error)
{
	assert(kept->store && kept->holder);
	return store_end_lease(kept->store, kept->name, kept->holder, error);
}
