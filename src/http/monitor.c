/* The operator's listener: /livez, /readyz, /metrics. Stores are asked by a worker; when they do
 * not answer in time, the pages say so and everything else. */
#include <stdio.h>

#include "http/internal.h"
#include "service/signers.h"
#include "store/notices/deliveries.h"

#define SEAL_LATE_ROUNDS 5 /* sealing is called late after so many intervals */

/* What the stores said. */
struct state {
	int store, content;
	struct error store_error, content_error;
	bool counted;
	struct delivery_counts deliveries;
};

/* On a worker. */
static void ask_stores(struct http_server *server, struct state *state)
{
	struct service *service = server->service;
	state->store = store_ready(service->store, &state->store_error);
	if (!state->store)
		atomic_store(&server->store_ready_us, clock_monotonic_us());
	/* What needs no content store is registered and read without it. One worker alone waits for
	 * it, so that the store is always asked. */
	if (atomic_exchange(&server->content_asked, true)) {
		if (atomic_load(&server->content_failed))
			state->content = error_cause(&state->content_error, ERR_UNAVAILABLE,
			                             "the content store did not answer well");
		return;
	}
	state->content = content_ready(service->content, &state->content_error);
	atomic_store(&server->content_failed, state->content != 0);
	atomic_store(&server->content_asked, false);
}

/* They hang: the content store, if the store has answered this request. */
static void stores_are_late(const struct exchange *exchange, struct state *state)
{
	state->content =
		error_cause(&state->content_error, ERR_UNAVAILABLE, "the content store does not answer");
	if (atomic_load(&exchange->server->store_ready_us) < exchange->started_us)
		state->store =
			error_cause(&state->store_error, ERR_UNAVAILABLE, "the store does not answer");
}

static const char *reason(const struct error *error)
{
	return *error->cause ? error->cause : error_message(error, LANGUAGE_ENGLISH);
}

/* ---- /readyz ---- */

/* Registration goes on while sealing is late, so that this alone does not make us unready. */
static bool sealing_late(const struct service *service)
{
	int64_t interval_us = service->settings->seal_interval;
	int64_t last_seal_us = atomic_load(&service->counters.last_seal_us);
	return atomic_load(&service->counters.seal_failures) > 0 && last_seal_us > 0 &&
	       clock_now_us() - last_seal_us > SEAL_LATE_ROUNDS * interval_us;
}

static void warn_of_chains(const struct counters *counters, const struct gauges *gauges,
                           struct json_writer *writer)
{
	if (atomic_load(&counters->chains_apart))
		json_text(writer, NULL, "chains that cannot be sealed are set apart; the log says why");
	if (gauges->registration_chains_apart)
		json_text(writer, NULL, "registrations of some chains fail; the log says why");
	if (atomic_load(&counters->chains_ahead) || gauges->clock_refuses)
		json_text(writer, NULL,
		          "the clock stands before the last event of some chains: they stay pending, and "
		          "live registrations there are refused");
}

/* Registration goes on without a key, and so does what is issued already. */
static void warn_of_signers(const struct service *service, struct json_writer *writer)
{
	struct expiring items[EXPIRING_MAX];
	struct error error = {0};
	size_t count = service_list_expiring(service, items);
	char text[2 * SUBJECT_SIZE], until[TIME_TEXT_SIZE];
	if (signers_check(service, &error)) {
		snprintf(text, sizeof text, "certifications wait: %s", error.cause);
		json_text(writer, NULL, text);
	}
	for (size_t i = 0; i < count; i++) {
		if (!items[i].near)
			continue;
		time_format(items[i].until_us, until);
		snprintf(text, sizeof text, "%s (%s) ends on %s", items[i].what, items[i].subject, until);
		json_text(writer, NULL, text);
	}
}

static int write_ready(struct http_server *server, const struct state *state, struct buf *out)
{
	const struct counters *counters = &server->service->counters;
	struct gauges gauges = {0};
	struct error clock_error = {0};
	int clock = service_clock_ready(server->service, &clock_error);
	struct error signer_error = {0};
	int signer = service_signer_ready(server->service, &signer_error);
	bool draining = atomic_load(&server->draining);
	bool ready = !state->store && !clock && !signer && !draining;
	service_read_gauges(server->service, &gauges);
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "ready", ready);
	json_begin_array(&writer, "reasons");
	if (state->store)
		json_text(&writer, NULL, reason(&state->store_error));
	if (clock)
		json_text(&writer, NULL, clock_error.cause);
	if (signer)
		json_text(&writer, NULL, signer_error.cause);
	if (draining)
		json_text(&writer, NULL, "the service is stopping");
	json_end_array(&writer);
	json_begin_array(&writer, "warnings");
	if (sealing_late(server->service))
		json_text(&writer, NULL, "no segment could be sealed for a while; events stay pending");
	if (!clock && !gauges.clock_synchronized)
		json_text(&writer, NULL, "the system clock is not synchronized; seals say so");
	warn_of_chains(counters, &gauges, &writer);
	warn_of_signers(server->service, &writer);
	if (state->content)
		json_text(&writer, NULL, reason(&state->content_error));
	json_end_array(&writer);
	json_text(&writer, "promise", store_promise(server->service->store));
	json_integer(&writer, "queue_length", gauges.queue_length);
	int64_t last_seal_us = atomic_load(&counters->last_seal_us);
	if (last_seal_us)
		json_time(&writer, "last_seal_at", last_seal_us);
	else
		json_null(&writer, "last_seal_at");
	json_end_object(&writer);
	return ready ? 200 : 503;
}

/* ---- /metrics ---- */

static void write_metrics(struct http_server *server, const struct state *state, struct buf *out)
{
	const struct delivery_counts *deliveries = &state->deliveries;
	struct gauges gauges = {0};
	service_read_gauges(server->service, &gauges);
	gauges.worker_queue_length = (int64_t)worker_queue_length(server->workers);
	gauges.notices_waiting = state->counted ? deliveries->waiting : GAUGE_UNKNOWN;
	gauges.notices_held = state->counted ? deliveries->held : GAUGE_UNKNOWN;
	gauges.disabled_webhooks = state->counted ? deliveries->disabled : GAUGE_UNKNOWN;
	gauges.store_ready = state->store == 0;
	gauges.signer_ready = service_signer_ready(server->service, NULL) == 0;
	gauges.content_ready = state->content == 0;
	metrics_write(&server->metrics, &server->service->counters, &gauges, out);
}

/* ---- the operations ---- */

static bool live(struct exchange *exchange)
{
	buf_add_text(&exchange->out, "{\"live\":true}");
	answer_out(exchange, 200);
	return true;
}

static int ready(struct exchange *exchange, struct error *error)
{
	struct state state = {0};
	ask_stores(exchange->server, &state);
	answer_out(exchange, write_ready(exchange->server, &state, &exchange->out));
	return 0;
}

static void ready_late(struct exchange *exchange)
{
	struct state state = {0};
	stores_are_late(exchange, &state);
	answer_out(exchange, write_ready(exchange->server, &state, &exchange->out));
}

static void answer_metrics(struct exchange *exchange, const struct state *state)
{
	write_metrics(exchange->server, state, &exchange->out);
	answer_out(exchange, 200);
	if (exchange->answer.status == 200)
		exchange->answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
}

static int metrics(struct exchange *exchange, struct error *error)
{
	struct state state = {0};
	ask_stores(exchange->server, &state);
	struct store *store = exchange->service->store;
	state.counted = !store_count_deliveries(store, &state.deliveries, NULL);
	answer_metrics(exchange, &state);
	return 0;
}

static void metrics_late(struct exchange *exchange)
{
	struct state state = {0};
	stores_are_late(exchange, &state);
	answer_metrics(exchange, &state);
}

const struct operation operation_live = {.open = true, .finish = live};
const struct operation operation_ready = {.open = true, .work = ready, .late = ready_late};
const struct operation operation_metrics = {.open = true, .work = metrics, .late = metrics_late};
