/* The operators' listener: /livez, /readyz, /metrics. A worker queries the stores. If they do not
 * respond in time, the pages report that together with all other data. */
#include <stdio.h>

#include "admin/readiness.h"
#include "http/http_internal.h"
#include "store/notices/deliveries.h"

/* Results of the stores. */
struct state {
	struct stores_state stores;
	bool counted;
	struct delivery_counts deliveries;
};

/* Queries the stores. On a worker. */
static void query_stores(struct http_server *server, struct state *state)
{
	struct service *service = server->service;
	state->stores.store = store_ready(service->store, &state->stores.store_error);
	if (!state->stores.store)
		atomic_store(&server->store_ready_us, clock_monotonic_us());
	/* Only one worker waits for the content store, so that the store is always queried. Without the
	 * content store, registrations and reads that do not need it continue. */
	if (atomic_exchange(&server->content_check_pending, true)) {
		if (atomic_load(&server->content_failed))
			state->stores.content = error_cause(&state->stores.content_error, ERR_UNAVAILABLE,
			                                    "the content store returned an error");
		return;
	}
	state->stores.content = content_ready(service->content, &state->stores.content_error);
	atomic_store(&server->content_failed, state->stores.content != 0);
	atomic_store(&server->content_check_pending, false);
}

/* Marks the stores that did not respond in time: always the content store, and the store unless it
 * has responded since the request started. */
static void mark_late_stores(const struct exchange *exchange, struct state *state)
{
	state->stores.content = error_cause(&state->stores.content_error, ERR_UNAVAILABLE,
	                                    "the content store does not respond");
	if (atomic_load(&exchange->server->store_ready_us) < exchange->started_us)
		state->stores.store =
			error_cause(&state->stores.store_error, ERR_UNAVAILABLE, "the store does not respond");
}

/* ---- /readyz ---- */

static void write_findings(const struct readiness *readiness, bool stops, struct json_writer *out)
{
	for (size_t i = 0; i < readiness->count; i++)
		if (readiness->items[i].stops == stops)
			json_text(out, NULL, readiness->items[i].text);
}

static void write_time(struct json_writer *out, const char *name, int64_t time_us)
{
	if (time_us == 0 || time_us == GAUGE_UNKNOWN)
		json_null(out, name);
	else
		json_time(out, name, time_us);
}

static bool is_ready(const struct http_server *server, const struct readiness *readiness)
{
	return readiness->ready && !atomic_load(&server->draining);
}

static int write_ready(struct http_server *server, const struct state *state, struct buf *out)
{
	struct gauges gauges = {0};
	struct readiness readiness;
	service_read_gauges(server->service, &gauges);
	readiness_read(server->service, &state->stores, &readiness);
	bool ready = is_ready(server, &readiness);
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "ready", ready);
	json_begin_array(&writer, "reasons");
	write_findings(&readiness, true, &writer);
	if (atomic_load(&server->draining))
		json_text(&writer, NULL, "the service is stopping");
	json_end_array(&writer);
	json_begin_array(&writer, "warnings");
	write_findings(&readiness, false, &writer);
	json_end_array(&writer);
	json_text(&writer, "promise", store_promise(server->service->store));
	json_integer(&writer, "queue_length", gauges.queue_length);
	write_time(&writer, "last_seal_at", gauges.last_seal_us);
	write_time(&writer, "oldest_pending_at", gauges.oldest_pending_us);
	write_time(&writer, "last_backup_at", gauges.last_backup_us);
	json_end_object(&writer);
	return ready ? 200 : 503;
}

/* ---- /metrics ---- */

static void write_metrics(struct http_server *server, const struct state *state, struct buf *out)
{
	const struct delivery_counts *deliveries = &state->deliveries;
	struct gauges gauges = {0};
	service_read_gauges(server->service, &gauges);
	gauges.worker_queue_length = (int64_t)worker_queue_length(server->workers[LANE_READERS]);
	gauges.bodies_waiting = (int64_t)worker_queue_length(server->workers[LANE_BODIES]);
	gauges.notices_waiting = state->counted ? deliveries->waiting : GAUGE_UNKNOWN;
	gauges.notices_held = state->counted ? deliveries->held : GAUGE_UNKNOWN;
	gauges.disabled_webhooks = state->counted ? deliveries->disabled : GAUGE_UNKNOWN;
	gauges.store_ready = state->stores.store == 0;
	gauges.signer_ready = service_signer_ready(server->service, NULL) == 0;
	gauges.content_ready = state->stores.content == 0;
	struct readiness readiness;
	readiness_read(server->service, &state->stores, &readiness);
	gauges.ready = is_ready(server, &readiness);
	struct metrics_page page = {&server->metrics, server->service, &gauges, &readiness, {0}};
	connection_count(server->connections, page.connections);
	metrics_write(&page, out);
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
	query_stores(exchange->server, &state);
	answer_out(exchange, write_ready(exchange->server, &state, &exchange->out));
	return 0;
}

static void ready_late(struct exchange *exchange)
{
	struct state state = {0};
	mark_late_stores(exchange, &state);
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
	query_stores(exchange->server, &state);
	struct store *store = exchange->service->store;
	state.counted = !store_count_deliveries(store, &state.deliveries, NULL);
	answer_metrics(exchange, &state);
	return 0;
}

static void metrics_late(struct exchange *exchange)
{
	struct state state = {0};
	mark_late_stores(exchange, &state);
	answer_metrics(exchange, &state);
}

const struct operation operation_live = {.open = true, .finish = live};
const struct operation operation_ready = {.open = true, .work = ready, .late = ready_late};
const struct operation operation_metrics = {.open = true, .work = metrics, .late = metrics_late};
