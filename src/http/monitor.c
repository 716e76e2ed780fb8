/* The operator's listener: /livez, /readyz, /metrics. Stores are asked by a worker; when they do
 * not answer in time, the pages say so and everything else. */
#include "http/internal.h"
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
static bool sealing_late(const struct http_server *server, const struct service_counts *counts)
{
	int64_t interval_us = server->service->settings->seal_interval;
	return counts->seal_failures > 0 && counts->last_seal_us > 0 &&
	       clock_now_us() - counts->last_seal_us > SEAL_LATE_ROUNDS * interval_us;
}

static void warn_of_chains(const struct service_counts *counts, struct json_writer *writer)
{
	if (counts->seal_chains_apart)
		json_text(writer, NULL, "chains that cannot be sealed are set apart; the log says why");
	if (counts->registration_chains_apart)
		json_text(writer, NULL, "registrations of some chains fail; the log says why");
	if (counts->seal_chains_ahead || counts->clock_refuses)
		json_text(writer, NULL,
		          "the clock stands before the last event of some chains: they stay pending, and "
		          "live registrations there are refused");
}

static int write_ready(struct http_server *server, const struct state *state, struct buf *out)
{
	struct service_counts counts = {0};
	struct error clock_error = {0};
	int clock = service_clock_ready(server->service, &clock_error);
	struct error signer_error = {0};
	int signer = service_signer_ready(server->service, &signer_error);
	bool draining = atomic_load(&server->draining);
	bool ready = !state->store && !clock && !signer && !draining;
	service_read_counts(server->service, &counts);
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
	if (sealing_late(server, &counts))
		json_text(&writer, NULL, "no segment could be sealed for a while; events stay pending");
	if (!clock && !counts.clock_synchronized)
		json_text(&writer, NULL, "the system clock is not synchronized; seals say so");
	warn_of_chains(&counts, &writer);
	if (state->content)
		json_text(&writer, NULL, reason(&state->content_error));
	json_end_array(&writer);
	json_text(&writer, "promise", store_promise(server->service->store));
	json_integer(&writer, "queue_length", (int64_t)counts.queue_length);
	if (counts.last_seal_us)
		json_time(&writer, "last_seal_at", counts.last_seal_us);
	else
		json_null(&writer, "last_seal_at");
	json_end_object(&writer);
	return ready ? 200 : 503;
}

/* ---- /metrics ---- */

static void counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
	metrics_line(out, name, "counter", help, (double)value);
}

static void write_notice_metrics(const struct state *state, const struct service_counts *counts,
                                 struct buf *out)
{
	counter(out, "notices_delivered_total", "Notices that their receiver acknowledged.",
	        counts->notices_delivered);
	counter(out, "notice_attempts_failed_total", "Attempts to deliver that were not acknowledged.",
	        counts->notice_attempts_failed);
	counter(out, "notices_failed_total", "Notices whose retries are used up.",
	        counts->notices_failed);
	counter(out, "webhooks_disabled_total", "Webhook endpoints disabled for failures.",
	        counts->webhooks_disabled);
	if (!state->counted)
		return;
	metrics_line(out, "notices_waiting", "gauge", "Deliveries that wait, of enabled endpoints.",
	             (double)state->deliveries.waiting);
	metrics_line(out, "notices_held", "gauge", "Deliveries that wait, of disabled endpoints.",
	             (double)state->deliveries.held);
	metrics_line(out, "webhooks_disabled", "gauge", "Webhook endpoints that failures disabled.",
	             (double)state->deliveries.disabled);
}

static void write_metrics(struct http_server *server, const struct state *state, struct buf *out)
{
	struct service_counts counts = {0};
	service_read_counts(server->service, &counts);
	metrics_write(&server->metrics, out);
	metrics_line(out, "http_worker_queue_length", "gauge", "Requests that wait for a worker.",
	             (double)worker_queue_length(server->workers));
	counter(out, "events_registered_total", "Events registered.", counts.registered);
	counter(out, "events_replayed_total", "Declarations repeated and answered again.",
	        counts.replayed);
	counter(out, "events_conflicts_total", "Declarations refused for a used client_ref.",
	        counts.conflicts);
	counter(out, "events_refused_total", "Declarations refused for limits or quotas.",
	        counts.refused);
	counter(out, "batches_total", "Registration batches committed.", counts.batches);
	counter(out, "batch_failures_total", "Registration batches that failed.",
	        counts.batch_failures);
	counter(out, "registrations_clock_refused_total",
	        "Registrations refused because the clock is ahead, or before their chain's last event.",
	        counts.clock_refusals);
	metrics_line(out, "registration_chains_apart", "gauge",
	             "Chains whose registrations fail by themselves, within the last hour.",
	             (double)counts.registration_chains_apart);
	metrics_line(out, "seal_chains_apart", "gauge",
	             "Chains that could not be sealed at the last pass.",
	             (double)counts.seal_chains_apart);
	metrics_line(out, "seal_chains_ahead", "gauge",
	             "Chains ahead of the clock by more than seal.clock_bound, at the last pass.",
	             (double)counts.seal_chains_ahead);
	metrics_line(out, "registration_queue_length", "gauge", "Registrations that wait for a batch.",
	             (double)counts.queue_length);
	counter(out, "segments_sealed_total", "Segments sealed.", counts.sealed_segments);
	counter(out, "seal_rounds_total", "Sealing rounds that obtained a timestamp.",
	        counts.seal_rounds);
	counter(out, "seal_failures_total", "Sealing rounds that failed.", counts.seal_failures);
	metrics_line(out, "last_seal_timestamp_seconds", "gauge",
	             "When the last round was sealed; 0: never.", (double)counts.last_seal_us / 1e6);
	counter(out, "certifications_completed_total", "Certifications issued.",
	        counts.certifications_completed);
	counter(out, "certifications_failed_total", "Certifications failed for good.",
	        counts.certifications_failed);
	counter(out, "mails_sent_total", "E-mails that the mail server took.", counts.mails_sent);
	counter(out, "mails_failed_total", "E-mails given up or, without mail.url, dropped.",
	        counts.mails_failed);
	counter(out, "purchases_paid_total", "Purchases whose credits were added by payments.",
	        counts.purchases_paid);
	counter(out, "topups_completed_total", "Automatic top-ups completed.", counts.topups_completed);
	counter(out, "topups_failed_total", "Automatic top-ups failed and turned off.",
	        counts.topups_failed);
	counter(out, "payments_unknown_total", "Tries at a payment whose outcome was not known.",
	        counts.payments_unknown);
	metrics_line(out, "unbalanced_accounts", "gauge",
	             "Accounts whose balance was not the sum of their entries at the last look.",
	             (double)counts.unbalanced_accounts);
	metrics_line(out, "sweep_refused", "gauge",
	             "1 while content is not swept, since two databases claim it.",
	             counts.sweep_refused);
	write_notice_metrics(state, &counts, out);
	metrics_line(out, "clock_synchronized", "gauge",
	             "1 while the kernel calls its clock synchronized.", counts.clock_synchronized);
	metrics_line(out, "clock_max_error_seconds", "gauge",
	             "The kernel's bound of the clock's error.",
	             (double)counts.clock_max_error_us / 1e6);
	metrics_line(out, "clock_ahead_seconds", "gauge",
	             "By how much the clock is at least ahead of the one it is compared with.",
	             (double)counts.clock_ahead_us / 1e6);
	metrics_line(out, "store_ready", "gauge", "1 while the store can acknowledge writes.",
	             state->store == 0);
	metrics_line(out, "signer_ready", "gauge", "1 while the signing process answers.",
	             service_signer_ready(server->service, NULL) == 0);
	metrics_line(out, "content_ready", "gauge", "1 while the content store answers.",
	             state->content == 0);
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
	state.counted = store_count_deliveries(store, &state.deliveries, NULL) == OK;
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
