#include "service/registrar.h"

#include <assert.h>
#include <stdlib.h>

#include "service/read_only.h"
#include "service/registration_clock.h"
#include "service/sequencer.h"

#define CLOCK_REFUSES_US (60 * US_PER_SECOND)

int register_submit_all(struct service *service, struct pending_registration **pending,
                        size_t count, size_t *ret_queued, struct error *error)
{
	assert(count > 0);
	struct registrar *registrar = service->registrar;
	const struct registration *first = &pending[0]->registration;
	bool live = first->chain % 2 == MODE_LIVE;
	*ret_queued = 0;
	int result = read_only_refuse(service, error);
	if (!result && live)
		result = service_clock_synchronized(service, error);
	if (result)
		return result;
	struct sequencer *sequencer =
		&registrar->sequencers[(uint64_t)first->account % registrar->count];
	*ret_queued = sequencer_add(sequencer, pending, count);
	if (*ret_queued < count)
		return error_cause(
			error, ERR_UNAVAILABLE,
			"the registration queue is closed or has no capacity left for the account");
	return OK;
}

int register_submit(struct service *service, struct pending_registration *pending,
                    struct error *error)
{
	size_t queued;
	return register_submit_all(service, &pending, 1, &queued, error);
}

void registrations_begin(struct service *service)
{
	atomic_fetch_add(&service->registrar->open_brackets, 1);
}

void registrations_end(struct service *service)
{
	struct registrar *registrar = service->registrar;
	int open_brackets = atomic_fetch_sub(&registrar->open_brackets, 1);
	assert(open_brackets > 0);
	for (unsigned i = 0; i < registrar->count; i++)
		sequencer_close_batch(&registrar->sequencers[i]);
}

int registrar_start(struct service *service, struct registrar **ret, struct error *error)
{
	unsigned count = store_sequencer_count(service->store);
	struct registrar *registrar =
		calloc(1, sizeof *registrar + count * sizeof *registrar->sequencers);
	if (!registrar)
		return ERR_NO_MEMORY;
	registrar->service = service;
	registrar->count = count;
	while (registrar->started < count && sequencer_start(registrar, registrar->started))
		registrar->started++;
	if (registrar->started < count) {
		registrar_stop(registrar);
		return error_cause(error, ERR_NO_MEMORY, "a sequencer's thread cannot be started");
	}
	*ret = registrar;
	return OK;
}

void registrar_stop(struct registrar *registrar)
{
	if (!registrar)
		return;
	for (unsigned i = 0; i < registrar->started; i++)
		sequencer_stop(&registrar->sequencers[i]);
	free(registrar);
}

void registrar_read_gauges(struct registrar *registrar, struct gauges *ret)
{
	int64_t refused_at_us = atomic_load(&registrar->clock_refused_at_us);
	ret->clock_refuses = refused_at_us && clock_monotonic_us() - refused_at_us < CLOCK_REFUSES_US;
	ret->queue_length = ret->writing_us = 0;
	ret->registration_chains_quarantined = 0;
	for (unsigned i = 0; i < registrar->started; i++) {
		struct sequencer *sequencer = &registrar->sequencers[i];
		pthread_mutex_lock(&sequencer->mutex);
		ret->queue_length += sequencer->waiting.length;
		ret->registration_chains_quarantined +=
			quarantine_count_recent(&sequencer->quarantine, clock_monotonic_us());
		pthread_mutex_unlock(&sequencer->mutex);
		int64_t since_us = atomic_load(&sequencer->writing_since_us);
		int64_t writing_us = since_us ? clock_monotonic_us() - since_us : 0;
		if (ret->writing_us < writing_us)
			ret->writing_us = writing_us;
	}
}
