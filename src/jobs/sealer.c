/* The job that seals events in rounds. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/schedule.h"
#include "jobs/internal.h"
#include "service/authority_failures.h"
#include "service/history.h"
#include "service/read_only.h"

#define PAUSE_FIRST_US US_PER_SECOND
#define PAUSE_MAX_US (60 * US_PER_SECOND)

int sealer_init(struct sealer *sealer, struct service *service, const char *node,
                struct lease_renewer *lease_renewer)
{
	*sealer = (struct sealer){
		.service = service,
		.lease = {.store = service->store,
	              .lease_renewer = lease_renewer,
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

/* Checks for a rollback. A full disk is temporary: the mark lags, and sealing continues. */
static int check_history(struct sealer *sealer, struct error *error)
{
	struct service *service = sealer->service;
	struct history history = {0}; /* filled in only if the store could be read */
	int result = history_check(service->store, service->signer, &history, error);
	if (result == ERR_CORRUPT && !history_is_continuous(&history))
		atomic_store(&service->store_rolled_back, true);
	return result == ERR_NO_SPACE ? OK : result;
}

/* State of a pass through all unsealed chains. */
struct pass {
	struct sealer *sealer;
	struct unsealed_chain *chains; /* block_segments entries */
	struct error *error;
	int64_t after_account, after_chain;
	bool backlog; /* a chain has more to seal than its share */
	bool any;     /* the lease was taken */
	bool lost;    /* another node holds the lease */
	bool done;    /* all chains were visited */
	bool refused; /* no timestamp is available, or the round cannot be written */
};

static int take_lease(struct pass *pass)
{
	bool leased = false;
	int result = renewed_lease_take(&pass->sealer->lease, &leased, pass->error);
	pass->any = pass->any || (!result && leased);
	pass->lost = !leased;
	return result;
}

/* Seals everything that is staged under one timestamp. */
static int close_staged(struct pass *pass)
{
	struct sealer *sealer = pass->sealer;
	int result = take_lease(pass);
	if (result || pass->lost)
		return result;
	result = seal_close(&sealer->sealing, pass->error);
	renewed_lease_pause(&sealer->lease);
	pass->refused = result;
	/* Certifications that wait for this round need not wait for the whole pass. They also detect
	 * the result of an unknown outcome. */
	if (!result || result == ERR_UNKNOWN_OUTCOME)
		service_wake(sealer->service, WAKE_ISSUER);
	return result ? result : check_history(sealer, pass->error);
}

static int stage_chains(struct pass *pass, size_t count, size_t *ret_taken, size_t *ret_segments)
{
	assert(count > 0 && count <= pass->sealer->sealing.block_segments);
	struct sealer *sealer = pass->sealer;
	int result = take_lease(pass);
	if (result || pass->lost)
		return result;
	result = seal_stage(&sealer->sealing, pass->chains, count, ret_taken, ret_segments,
	                    &pass->backlog, pass->error);
	assert(result || *ret_taken <= count);
	renewed_lease_pause(&sealer->lease);
	return result;
}

/* Stages first what certifications wait for. *ret_awaited: a certification waits only for the
 * round. */
static int serve_certifications(struct pass *pass, const atomic_bool *stopping, bool *ret_awaited)
{
	struct store *store = pass->sealer->service->store;
	const size_t limit = pass->sealer->sealing.block_segments;
	size_t count = 0, segments;
	int result;
	do {
		size_t taken = 0;
		segments = 0;
		result = store_list_wanted(store, limit, pass->chains, &count, pass->error);
		if (!result && count > 0)
			result = stage_chains(pass, count, &taken, &segments);
	} while (!result && !pass->lost && segments > 0 && !atomic_load(stopping));
	return result || pass->lost ? result : store_round_is_awaited(store, ret_awaited, pass->error);
}

static int stage_next(struct pass *pass)
{
	struct sealer *sealer = pass->sealer;
	size_t count = 0, taken = 0, segments;
	int result =
		store_list_unsealed(sealer->service->store, pass->after_account, pass->after_chain,
	                        sealer->sealing.block_segments, pass->chains, &count, pass->error);
	if (result)
		return result;
	pass->done = count == 0;
	if (pass->done)
		return OK;
	result = stage_chains(pass, count, &taken, &segments);
	if (taken == 0)
		return result;
	assert(taken <= count);
	const struct unsealed_chain *last = &pass->chains[taken - 1];
	if (result && sealing_is_suspect(&sealer->sealing)) {
		sealer->resume_account = last->account;
		sealer->resume_chain = last->chain;
	}
	if (!result) {
		pass->after_account = last->account;
		pass->after_chain = last->chain;
	}
	return result;
}

/* Seals the audit log after all events, so that an error in it does not affect events. */
static int stage_audit_log(struct pass *pass, const atomic_bool *stopping)
{
	struct sealer *sealer = pass->sealer;
	int64_t after_account = -1, after_chain = 0;
	size_t count = 1;
	int result = OK;
	while (!result && count > 0 && !pass->lost && !atomic_load(stopping)) {
		size_t taken = 0, segments = 0;
		bool staged, full = false;
		result = store_list_unsealed_audit_records(sealer->service->store, after_account,
		                                           after_chain, sealer->sealing.block_segments,
		                                           pass->chains, &count, pass->error);
		if (!result && count > 0)
			result = stage_chains(pass, count, &taken, &segments);
		if (!result && taken > 0) {
			after_account = pass->chains[taken - 1].account;
			after_chain = pass->chains[taken - 1].chain;
		}
		if (!result && count > 0 && !pass->lost)
			result = sealing_get_capacity(&sealer->sealing, &staged, &full, pass->error);
		if (!result && full)
			result = close_staged(pass);
	}
	return result;
}

/* Stages a block of other chains, and closes the round if it is full or awaited. A round that
 * certifications wait for includes that block. With few chains it is then the only round; with
 * many, certifications wait for one block only. */
static int stage_some(struct pass *pass, bool awaited)
{
	bool staged, full = false;
	int result = stage_next(pass);
	if (!result && !pass->lost && !awaited)
		result = sealing_get_capacity(&pass->sealer->sealing, &staged, &full, pass->error);
	return !result && !pass->lost && (awaited || full) ? close_staged(pass) : result;
}

static int stage_all(struct pass *pass, const atomic_bool *stopping)
{
	int result = OK;
	while (!result && !pass->done && !pass->lost && !atomic_load(stopping)) {
		bool awaited = false;
		result = serve_certifications(pass, stopping, &awaited);
		if (!result && !pass->lost && !atomic_load(stopping))
			result = stage_some(pass, awaited);
	}
	return result;
}

static int run_pass(struct pass *pass, const atomic_bool *stopping)
{
	struct sealing *sealing = &pass->sealer->sealing;
	bool staged = false, full;
	int result = sealing_get_capacity(sealing, &staged, &full, pass->error);
	/* Closes the blocks of an earlier sealer first, without additions. While no authority responds,
	 * nothing is added to them, so that a long outage does not create more segments than a short
	 * one. */
	if (!result && staged)
		result = close_staged(pass);
	if (!result)
		result = stage_all(pass, stopping);
	if (!result && !pass->lost)
		result = stage_audit_log(pass, stopping);
	if (pass->lost || pass->refused || atomic_load(stopping))
		return result;
	/* What is staged is valid, regardless of a later error. */
	struct error met = *pass->error;
	int closed = sealing_get_capacity(sealing, &staged, &full, pass->error);
	if (!closed && staged)
		closed = close_staged(pass);
	if (result)
		*pass->error = met;
	return result ? result : closed;
}

static int seal_pass(struct sealer *sealer, struct unsealed_chain *chains,
                     const atomic_bool *stopping, bool *ret_backlog, struct error *error)
{
	struct pass pass = {.sealer = sealer,
	                    .chains = chains,
	                    .error = error,
	                    .after_account = sealer->resume_account,
	                    .after_chain = sealer->resume_chain};
	pass.backlog = pass.after_account != 0; /* the chains before that one follow in another pass */
	sealer->resume_account = sealer->resume_chain = 0;
	sealing_begin_pass(&sealer->sealing);
	int result = run_pass(&pass, stopping);
	sealing_end_pass(&sealer->sealing);
	if (pass.any) {
		int ended = renewed_lease_end(&sealer->lease, NULL);
		result = result ? result : ended;
	}
	*ret_backlog = pass.backlog;
	return result;
}

static int seal_all(struct sealer *sealer, const atomic_bool *stopping, struct error *error)
{
	assert(sealer->sealing.block_segments > 0);
	struct unsealed_chain *chains = malloc(sealer->sealing.block_segments * sizeof *chains);
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

/* Only a new timestamp shows that the clock was corrected, or that an authority's clock was wrong.
 * While nothing is registered, no timestamp is requested otherwise. */
static void watch_clock(struct sealer *sealer)
{
	struct service *service = sealer->service;
	if (!service_watch_clock(service) || store_is_shared(service->store))
		return;
	struct authority_failures failures;
	authorities_request_time(
		service->authorities,
		service->settings->seal_clock_bound + service->settings->tsa_time_bound, &failures);
	authority_failures_log(&failures);
	service_watch_clock(service);
}

/* Returns whether a refusal is temporary: another node sealed the same events, and the rest follows
 * in the next pass; or a chain failed, which was quarantined and logged. A repeated refusal for
 * neither reason is an error. */
static bool is_passing(struct sealer *sealer, int result)
{
	bool again = sealer->refused && !sealer->sealing.chain_failed;
	sealer->refused = result == ERR_REFUSED;
	return sealer->refused && !again;
}

int64_t sealer_run(void *context, const atomic_bool *stopping)
{
	struct sealer *sealer = context;
	if (read_only_is_active(sealer->service))
		return READ_ONLY_POLL_US;
	int64_t interval_us = sealer->service->settings->seal_interval;
	watch_clock(sealer);
	int64_t now_us = clock_monotonic_us();
	if (now_us < sealer->not_before_us)
		return sealer->not_before_us - now_us;
	struct error error = {0};
	int result = check_history(sealer, &error);
	if (!result)
		result = seal_all(sealer, stopping, &error);
	if (is_passing(sealer, result) || !result) {
		sealer->failures = 0;
		return result ? PAUSE_FIRST_US : interval_us;
	}
	atomic_fetch_add(&sealer->service->counters.seal_failures, 1);
	log_error("seal_failed", "error", error_code_text(result), "cause", error.cause);
	int64_t pause_us = backoff_us(++sealer->failures, PAUSE_FIRST_US, PAUSE_MAX_US);
	sealer->not_before_us = clock_monotonic_us() + pause_us;
	return pause_us;
}
