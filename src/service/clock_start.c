#include "service/clock_start.h"

#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "service/authority_failures.h"
#include "service/read_only.h"
#include "store/nodes/unverified_clock.h"

/* Longer than the default tsa.timeout, so that after a hanging authority the response of the next
 * one is waited for. */
#define PATIENCE_US (15 * US_PER_SECOND)
#define REQUEST_INTERVAL_US (10 * US_PER_SECOND)      /* while registrations are refused */
#define REQUEST_INTERVAL_LONG_US (60 * US_PER_SECOND) /* otherwise */
#define COMPARING_TAKES_US US_PER_SECOND              /* usually less */
#define SETTING_RIGHT_TAKES_US (60 * US_PER_SECOND)
#define RECHECK_NS 5000000

static enum clock_comparison_state state_of(const struct service *service)
{
	return (enum clock_comparison_state)atomic_load(&service->comparison.state);
}

static void enter(struct service *service, enum clock_comparison_state state)
{
	atomic_store(&service->comparison.state, (int)state);
}

void clock_start_begin(struct service *service)
{
	if (!service->authorities)
		return;
	atomic_store(&service->comparison.begun_us, clock_boot_us());
	enter(service, CLOCK_COMPARING);
}

/* ---- asking ---- */

static bool agrees(const struct service *service, int64_t off_us)
{
	return llabs(off_us) <= service->settings->seal_clock_bound;
}

static bool has_agreed(const struct service *service)
{
	int64_t off_us;
	return authorities_compare_clock(service->authorities, &off_us) && agrees(service, off_us);
}

bool clock_start_query(struct service *service, const atomic_bool *stopping, int64_t *ret_pause_us)
{
	enum clock_comparison_state state = state_of(service);
	bool rarely = state == CLOCK_COMPARED || state == CLOCK_NOT_COMPARED;
	*ret_pause_us = rarely ? REQUEST_INTERVAL_LONG_US : REQUEST_INTERVAL_US;
	if (read_only_is_active(service))
		*ret_pause_us = READ_ONLY_POLL_US;
	if (state == CLOCK_COMPARED || read_only_is_active(service))
		return false;
	struct authorities *authorities = service->authorities;
	struct authority_failures failures = {0};
	for (size_t i = 0; !has_agreed(service) && !atomic_load(stopping); i++)
		if (!authorities_request_time_of(authorities, i, &failures))
			break;
	authority_failures_log(&failures);
	atomic_store(&service->comparison.asked, true);
	return true;
}

/* ---- deciding ---- */

static void log_not_recorded(int result, const struct error *error)
{
	log_warning("clock_comparison_not_recorded", "cause", error_reason(error, result));
}

/* Recorded in the store before the first registration without a comparison, because the sealer must
 * know. Recorded again if the comparison of another node has ended the record. */
static void continue_uncompared(struct service *service, enum clock_comparison_state state)
{
	struct error error = {0};
	int result = store_begin_unverified_clock(service->store, &error);
	if (result)
		log_not_recorded(result, &error);
	if (result || state == CLOCK_NOT_COMPARED)
		return;
	enter(service, CLOCK_NOT_COMPARED);
	log_warning(
		"clock_not_compared", "cause", "no timestamp authority has responded since the start",
		"meaning",
		"live registrations continue with a clock that may be wrong; their seals record that");
}

/* Also ends the record of an earlier process that stopped before it could compare its clock. */
static void accept_clock(struct service *service, enum clock_comparison_state state)
{
	struct error error = {0};
	int64_t until_us = clock_now_us();
	int64_t latest_us = atomic_load(&service->comparison.latest_us);
	int result = store_end_unverified_clock(service->store,
	                                        until_us > latest_us ? until_us : latest_us, &error);
	if (result) {
		log_not_recorded(result, &error);
		return;
	}
	enter(service, CLOCK_COMPARED);
	if (state == CLOCK_NOT_COMPARED)
		log_info("clock_compared", "meaning", "it agrees with a timestamp");
	if (state == CLOCK_DIFFERS)
		log_info("clock_accepted", "cause", "it agrees with a timestamp");
}

static void refuse(struct service *service, enum clock_comparison_state state)
{
	struct error error = {0};
	enter(service, CLOCK_DIFFERS);
	if (state != CLOCK_DIFFERS && clock_start_ready(service, &error))
		log_error("clock_rejected", "cause", error.cause, "consequence",
		          "live registrations are refused");
}

static bool may_continue(const struct service *service)
{
	const struct clock_comparison *comparison = &service->comparison;
	return atomic_load(&comparison->asked) ||
	       clock_boot_us() - atomic_load(&comparison->begun_us) >= PATIENCE_US;
}

void clock_start_decide(struct service *service)
{
	enum clock_comparison_state state = state_of(service);
	int64_t off_us;
	if (state == CLOCK_COMPARED)
		return;
	if (read_only_is_active(
			service)) /* nothing is asked; the comparison starts when the copy is resumed */
		atomic_store(&service->comparison.begun_us, clock_boot_us());
	else if (authorities_compare_clock(service->authorities, &off_us) && agrees(service, off_us))
		accept_clock(service, state);
	else if (authorities_compare_clock(service->authorities, &off_us))
		refuse(service, state);
	else if (may_continue(service))
		continue_uncompared(service, state);
}

void clock_start_await(const struct service *service, int64_t patience_us)
{
	int64_t end_us = clock_monotonic_us() + patience_us;
	while (state_of(service) == CLOCK_COMPARING && !read_only_is_active(service) &&
	       clock_monotonic_us() < end_us)
		nanosleep(&(struct timespec){.tv_nsec = RECHECK_NS}, NULL);
}

/* ---- what registrations see ---- */

int64_t clock_start_refusal_us(const struct service *service)
{
	switch (state_of(service)) {
	case CLOCK_COMPARING: return COMPARING_TAKES_US;
	case CLOCK_DIFFERS: return SETTING_RIGHT_TAKES_US;
	case CLOCK_COMPARED:
	case CLOCK_NOT_COMPARED: break;
	}
	return 0;
}

int clock_start_ready(const struct service *service, struct error *error)
{
	int64_t off_us = 0;
	switch (state_of(service)) {
	case CLOCK_COMPARING:
		if (read_only_is_active(service)) /* reported by the read-only mode */
			return OK;
		return error_cause(error, ERR_CLOCK, "this clock is being compared with a timestamp");
	case CLOCK_DIFFERS:
		(void)authorities_compare_clock(service->authorities, &off_us);
		return error_cause(error, ERR_CLOCK, "this clock is %lld s %s a new timestamp",
		                   llabs(off_us) / US_PER_SECOND, off_us < 0 ? "behind" : "ahead of");
	case CLOCK_COMPARED:
	case CLOCK_NOT_COMPARED: break;
	}
	return OK;
}

void clock_start_record_time(struct service *service, int64_t now_us)
{
	if (state_of(service) != CLOCK_NOT_COMPARED)
		return;
	int_fast64_t latest_us = atomic_load(&service->comparison.latest_us);
	while (latest_us < now_us &&
	       !atomic_compare_exchange_weak(&service->comparison.latest_us, &latest_us, now_us))
		;
}
