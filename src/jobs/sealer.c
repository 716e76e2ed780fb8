#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "jobs/internal.h"
#include "seal/authority.h"
#include "service/history.h"

#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (60 * US_PER_SECOND)

int sealer_init(struct sealer *sealer, struct service *service, const char *node,
                struct keeper *keeper)
{
	*sealer = (struct sealer){
		.service = service,
		.lease = {.store = service->store,
	              .keeper = keeper,
	              .name = LEASE_SEALER,
	              .holder = sealer->holder},
	};
	snprintf(sealer->holder, sizeof sealer->holder, "%s", node);
	return sealing_init(&sealer->sealing, service);
}

void sealer_free(struct sealer *sealer)
{
	sealing_free(&sealer->sealing);
}

/* Full disks pass: then the mark lags, and sealing goes on. */
static int check_history(struct sealer *sealer, struct error *error)
{
	struct service *service = sealer->service;
	struct history history = {0}; /* filled only when the store could be read */
	int result = history_check(service->store, service->signer, &history, error);
	if (result == ERR_CORRUPT && !history_goes_on(&history))
		atomic_store(&service->went_back, true);
	return result == ERR_NO_SPACE ? OK : result;
}

/* Goes once through all unsealed chains, in as many rounds as it takes. *ret_backlog: a chain had
 * more than fits into its share. */
static int seal_pass(struct sealer *sealer, struct unsealed_chain *chains,
                     const atomic_bool *stopping, bool *ret_backlog, struct error *error)
{
	struct store *store = sealer->service->store;
	int64_t after_account = sealer->behind_account, after_chain = sealer->behind_chain;
	bool any = false;
	int result = OK;
	*ret_backlog = after_account != 0; /* those before have their turn, too */
	sealer->behind_account = sealer->behind_chain = 0;
	sealing_begin_pass(&sealer->sealing);
	while (!result && !atomic_load(stopping)) {
		size_t count = 0, taken = 0;
		bool leased = false;
		result = store_list_unsealed(store, after_account, after_chain, ROUND_SEGMENTS_MAX, chains,
		                             &count, error);
		if (result || count == 0)
			break;
		result = kept_lease_take(&sealer->lease, &leased, error);
		if (result || !leased)
			break; /* another node is at it */
		any = true;
		result = seal_round(&sealer->sealing, chains, count, &taken, ret_backlog, error);
		kept_lease_rest(&sealer->lease);
		if (result && taken > 0 && sealing_doubts(&sealer->sealing)) {
			sealer->behind_account = chains[taken - 1].account;
			sealer->behind_chain = chains[taken - 1].chain;
		}
		if (!result)
			result = check_history(sealer, error);
		if (!result && taken > 0) {
			after_account = chains[taken - 1].account;
			after_chain = chains[taken - 1].chain;
			/* Certifications that wait for it need not wait for the whole pass. */
			service_wake(sealer->service, WAKE_ISSUER);
		}
	}
	sealing_end_pass(&sealer->sealing);
	if (any) {
		int ended = kept_lease_end(&sealer->lease, NULL);
		result = result ? result : ended;
	}
	return result;
}

static int seal_all(struct sealer *sealer, const atomic_bool *stopping, struct error *error)
{
	struct unsealed_chain *chains = malloc(ROUND_SEGMENTS_MAX * sizeof *chains);
	if (!chains)
		return ERR_NO_MEMORY;
	int result = OK;
	bool backlog = true;
	while (backlog && !result) {
		backlog = false;
		result = seal_pass(sealer, chains, stopping, &backlog, error);
		backlog = backlog && !atomic_load(stopping);
	}
	free(chains);
	return result;
}

/* Where the clock was set right, and where an authority's is wrong, only a new timestamp shows it;
 * while nothing is registered none is needed otherwise. */
static void watch_clock(struct sealer *sealer)
{
	struct service *service = sealer->service;
	if (!service_watch_clock(service) || store_is_shared(service->store))
		return;
	authorities_ask_time(service->authorities,
	                     service->settings->seal_clock_bound + service->settings->tsa_time_bound);
	service_watch_clock(service);
}

int64_t sealer_run(void *context, const atomic_bool *stopping)
{
	struct sealer *sealer = context;
	int64_t interval_us = sealer->service->settings->seal_interval;
	watch_clock(sealer);
	int64_t now_us = clock_monotonic_us();
	if (now_us < sealer->not_before_us)
		return sealer->not_before_us - now_us;
	struct error error = {0};
	int result = check_history(sealer, &error);
	if (!result)
		result = seal_all(sealer, stopping, &error);
	if (!result || result == ERR_REFUSED) {
		/* Refused: another node sealed the same; what is left comes with the next pass. */
		sealer->pause_us = 0;
		return result ? PAUSE_FIRST_US : interval_us;
	}
	atomic_fetch_add(&sealer->service->counters.seal_failures, 1);
	log_error("seal_failed", "error", error_code_text(result), "cause", error.cause);
	sealer->pause_us = sealer->pause_us ? sealer->pause_us * 2 : PAUSE_FIRST_US;
	if (sealer->pause_us > PAUSE_MAX_US)
		sealer->pause_us = PAUSE_MAX_US;
	sealer->not_before_us = clock_monotonic_us() + sealer->pause_us;
	return sealer->pause_us;
}
