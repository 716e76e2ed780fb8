#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "seal/authority.h"
#include "seal/clock_state.h"
#include "service/clock_start.h"
#include "service/registration_clock.h"
#include "service/service.h"

#define BEHIND_LOG_INTERVAL_US (60 * US_PER_SECOND)

/* Returns the name of the reference clock; NULL: none. */
static const char *compared_with(const struct service *service)
{
	if (store_is_shared(service->store))
		return "the store's";
	return service->authorities ? "the last timestamp's" : NULL;
}

int64_t service_clock_ahead_us(const struct service *service)
{
	if (!compared_with(service))
		return 0;
	/* Read first, so that a delay in between cannot increase the lead. */
	int64_t now_us = clock_now_us();
	int64_t latest_us =
		store_is_shared(service->store)
			? store_latest_now_us(service->store)
			: authorities_latest_time_us(service->authorities) + service->settings->tsa_time_bound;
	return now_us > latest_us ? now_us - latest_us : 0;
}

struct ledger_clock service_clock(struct service *service)
{
	struct ledger_clock clock = {
		.ahead_us = service_clock_ahead_us(service),
		.bound_us = service->settings->seal_clock_bound,
		.refused_for_us = clock_start_refusal_us(service),
	};
	clock.now_us = clock_now_us();
	clock_start_record_time(service, clock.now_us);
	return clock;
}

static int is_ahead(const struct service *service, struct error *error)
{
	int64_t ahead_us = service_clock_ahead_us(service);
	if (ahead_us <= service->settings->seal_clock_bound)
		return OK;
	return error_cause(error, ERR_CLOCK, "this clock is %" PRId64 " s ahead of %s",
	                   ahead_us / US_PER_SECOND, compared_with(service));
}

static int is_unsynchronized(const struct service *service, struct error *error)
{
	if (!service->settings->seal_strict_clock || clock_state_read().synchronized)
		return OK;
	return error_cause(error, ERR_CLOCK, "the system clock is not synchronized");
}

int service_clock_ready(const struct service *service, struct error *error)
{
	int result = is_unsynchronized(service, error);
	if (!result)
		result = clock_start_ready(service, error);
	return result ? result : is_ahead(service, error);
}

static void log_change(atomic_bool *logged, int result, const struct error *error,
                       const char *ended)
{
	bool now = result;
	if (atomic_load(logged) == now || atomic_exchange(logged, now) == now)
		return;
	if (result)
		log_error("clock_rejected", "cause", error->cause, "consequence",
		          "live registrations are refused");
	else
		log_info("clock_accepted", "cause", ended);
}

int service_clock_synchronized(struct service *service, struct error *error)
{
	struct error local = {0};
	int result = is_unsynchronized(service, &local);
	log_change(&service->clock_watch.unsynchronized, result, &local, "it is synchronized");
	if (result && error)
		*error = local;
	return result;
}

bool service_watch_clock(struct service *service)
{
	struct error error = {0};
	int result = is_ahead(service, &error);
	log_change(&service->clock_watch.ahead, result, &error, "it is no longer ahead");
	return result;
}

bool service_log_clock_refusal(struct service *service, const struct registration *refused)
{
	/* The clock may have been accepted or refused since the batch was decided. */
	if (service_watch_clock(service) || !refused->chain_is_ahead)
		return false;
	int64_t now_us = clock_boot_us();
	int64_t logged_us = atomic_load(&service->clock_watch.logged_behind_us);
	if ((logged_us && now_us - logged_us < BEHIND_LOG_INTERVAL_US) ||
	    !atomic_compare_exchange_strong(&service->clock_watch.logged_behind_us, &logged_us, now_us))
		return true;
	char account[24], chain[24];
	snprintf(account, sizeof account, "%" PRId64, refused->account);
	snprintf(chain, sizeof chain, "%" PRId64, refused->chain);
	log_error("clock_behind_chain", "account", account, "chain", chain, "cause",
	          "this clock is behind the reception time of its last event");
	return true;
}
