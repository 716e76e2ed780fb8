#include "jobs/keeper.h"

#include <pthread.h>
#include <stdlib.h>

#include "jobs/job_thread.h"

struct holding {
	keeper_renew_function *renew; /* NULL: free, or lost */
	void *context;
	bool taken;
};

struct keeper {
	pthread_mutex_t mutex; /* held during a renewal */
	struct holding holdings[KEEPER_HOLDINGS_MAX];
	struct job_thread *thread;
};

static int64_t renew_all(void *context, const atomic_bool *stopping)
{
	struct keeper *keeper = context;
	for (int i = 0; i < KEEPER_HOLDINGS_MAX && !atomic_load(stopping); i++) {
		pthread_mutex_lock(&keeper->mutex);
		struct holding *holding = &keeper->holdings[i];
		if (holding->renew && holding->renew(holding->context) == ERR_REFUSED)
			holding->renew = NULL;
		pthread_mutex_unlock(&keeper->mutex);
	}
	return KEEPER_INTERVAL_US;
}

int keeper_start(struct keeper **ret_keeper, struct error *error)
{
	struct keeper *keeper = calloc(1, sizeof *keeper);
	if (!keeper)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&keeper->mutex, NULL);
	int result = job_thread_start("keeper", renew_all, keeper, &keeper->thread, error);
	if (result) {
		keeper_end(keeper);
		return result;
	}
	*ret_keeper = keeper;
	return OK;
}

void keeper_end(struct keeper *keeper)
{
	if (!keeper)
		return;
	job_thread_ask_to_stop(keeper->thread);
	job_thread_join(keeper->thread);
	job_thread_free(keeper->thread);
	pthread_mutex_destroy(&keeper->mutex);
	free(keeper);
}

int keeper_hold(struct keeper *keeper, keeper_renew_function *renew, void *context)
{
	pthread_mutex_lock(&keeper->mutex);
	int at = 0;
	while (keeper->holdings[at].taken)
		if (++at == KEEPER_HOLDINGS_MAX)
			abort(); /* more leases than jobs in the program */
	keeper->holdings[at] = (struct holding){renew, context, true};
	pthread_mutex_unlock(&keeper->mutex);
	return at;
}

void keeper_release(struct keeper *keeper, int holding)
{
	pthread_mutex_lock(&keeper->mutex);
	keeper->holdings[holding] = (struct holding){0};
	pthread_mutex_unlock(&keeper->mutex);
}

static int take(struct kept_lease *kept, bool *ret_taken, struct error *error)
{
	return store_take_lease(kept->store, kept->name, kept->holder, store_now_us(kept->store),
	                        KEPT_LEASE_US, ret_taken, error);
}

static int renew(void *context)
{
	struct kept_lease *kept = context;
	bool taken = false;
	int result = take(kept, &taken, NULL);
	if (!result && !taken)
		atomic_store(&kept->lost, true);
	return result || taken ? result : ERR_REFUSED;
}

int kept_lease_take(struct kept_lease *kept, bool *ret_taken, struct error *error)
{
	bool taken = false;
	int result = take(kept, &taken, error);
	if (result)
		return result;
	atomic_store(&kept->lost, false);
	if (taken)
		kept->holding = keeper_hold(kept->keeper, renew, kept);
	*ret_taken = taken;
	return OK;
}

void kept_lease_rest(struct kept_lease *kept)
{
	keeper_release(kept->keeper, kept->holding);
}

int kept_lease_end(struct kept_lease *kept, struct error *error)
{
	return store_end_lease(kept->store, kept->name, kept->holder, error);
}
