#include "service/service.h"

#include "seal/clock_state.h"
#include "service/keys.h"
#include "service/registrar.h"

int service_open(const struct settings *settings, bool create, struct service *ret_service,
                 struct error *error)
{
	struct service *service = ret_service;
	service->settings = settings;
	int result = store_open(settings->store_url, create, &service->store, error);
	if (result == OK)
		result = content_open(settings->content_url, create, &service->content, error);
	if (result == OK)
		result = store_get_secret(service->store, "link_secret", &service->link_secret, error);
	if (result == OK) {
		service->keys = key_cache_make();
		result = service->keys ? registrar_start(service, &service->registrar, error)
		                       : ERR_NO_MEMORY;
	}
	if (result != OK)
		service_close(service);
	return result;
}

void service_close(struct service *service)
{
	registrar_stop(service->registrar);
	key_cache_free(service->keys);
	content_close(service->content);
	store_close(service->store);
	service->registrar = NULL;
	service->keys = NULL;
	service->content = NULL;
	service->store = NULL;
}

int service_clock_ready(const struct service *service, struct error *error)
{
	if (!service->settings->seal_strict_clock || clock_state_read().synchronized)
		return OK;
	return error_cause(error, ERR_UNAVAILABLE, "the system clock is not synchronized");
}

void service_read_counts(struct service *service, struct service_counts *ret)
{
	registrar_read_counts(service->registrar, ret);
	const struct job_counters *jobs = &service->job_counters;
	ret->sealed_segments = atomic_load(&jobs->sealed_segments);
	ret->seal_rounds = atomic_load(&jobs->seal_rounds);
	ret->seal_failures = atomic_load(&jobs->seal_failures);
	ret->certifications_completed = atomic_load(&jobs->certifications_completed);
	ret->certifications_failed = atomic_load(&jobs->certifications_failed);
	ret->last_seal_us = atomic_load(&jobs->last_seal_us);
	struct clock_state clock = clock_state_read();
	ret->clock_synchronized = clock.synchronized;
	ret->clock_max_error_us = clock.max_error_us;
}
