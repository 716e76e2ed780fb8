/* The operator's listener: /livez, /readyz, /metrics. One thread, which may wait. */
#include <unistd.h>

#include "http/internal.h"
#include "store/deliveries.h"

#define ADMIN_CONNECTIONS 64
#define ADMIN_IDLE_SECONDS 30
#define SEAL_LATE_ROUNDS 5 /* sealing is called late after so many intervals */
#define PAGE_MAX ((size_t)256 * 1024)

/* ---- /readyz ---- */

/* Registration goes on while sealing is late, so that this alone does not make us unready. */
static bool sealing_late(const struct http_server *server, const struct service_counts *counts)
{
	int64_t interval_us = server->service->settings->seal_interval;
	return counts->seal_failures > 0 && counts->last_seal_us > 0 &&
	       clock_now_us() - counts->last_seal_us > SEAL_LATE_ROUNDS * interval_us;
}

static int write_ready(struct http_server *server, struct buf *out)
{
	struct error error = {0};
	struct service_counts counts = {0};
	int store = store_ready(server->service->store, &error);
	struct error clock_error = {0};
	int clock = service_clock_ready(server->service, &clock_error);
	struct error signer_error = {0};
	int signer = service_signer_ready(server->service, &signer_error);
	/* What needs no content store is registered and read without it. */
	struct error content_error = {0};
	int content = content_ready(server->service->content, &content_error);
	bool draining = atomic_load(&server->draining);
	bool ready = !store && !clock && !signer && !draining;
	service_read_counts(server->service, &counts);
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "ready", ready);
	json_begin_array(&writer, "reasons");
	if (store)
		json_text(&writer, NULL,
		          *error.cause ? error.cause : error_message(&error, LANGUAGE_ENGLISH));
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
	if (content)
		json_text(&writer, NULL,
		          *content_error.cause ? content_error.cause
		                               : error_message(&content_error, LANGUAGE_ENGLISH));
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

static void write_notice_metrics(struct http_server *server, const struct service_counts *counts,
                                 struct buf *out)
{
	struct delivery_counts deliveries = {0};
	(void)!store_count_deliveries(server->service->store, &deliveries, NULL);
	counter(out, "notices_delivered_total", "Notices that their receiver acknowledged.",
	        counts->notices_delivered);
	counter(out, "notice_attempts_failed_total", "Attempts to deliver that were not acknowledged.",
	        counts->notice_attempts_failed);
	counter(out, "notices_failed_total", "Notices whose retries are used up.",
	        counts->notices_failed);
	counter(out, "webhooks_disabled_total", "Webhook endpoints disabled for failures.",
	        counts->webhooks_disabled);
	metrics_line(out, "notices_waiting", "gauge", "Deliveries that wait, of enabled endpoints.",
	             (double)deliveries.waiting);
	metrics_line(out, "notices_held", "gauge", "Deliveries that wait, of disabled endpoints.",
	             (double)deliveries.held);
	metrics_line(out, "webhooks_disabled", "gauge", "Webhook endpoints that failures disabled.",
	             (double)deliveries.disabled);
}

static int write_metrics(struct http_server *server, struct buf *out)
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
	write_notice_metrics(server, &counts, out);
	metrics_line(out, "clock_synchronized", "gauge", "1 while the kernel calls its clock synchronized.",
	             counts.clock_synchronized);
	metrics_line(out, "clock_max_error_seconds", "gauge", "The kernel's bound of the clock's error.",
	             (double)counts.clock_max_error_us / 1e6);
	metrics_line(out, "store_ready", "gauge", "1 while the store can acknowledge writes.",
	             store_ready(server->service->store, NULL) == 0);
	metrics_line(out, "signer_ready", "gauge", "1 while the signing process answers.",
	             service_signer_ready(server->service, NULL) == 0);
	metrics_line(out, "content_ready", "gauge", "1 while the content store answers.",
	             content_ready(server->service->content, NULL) == 0);
	return 200;
}

static int write_live(struct http_server *server, struct buf *out)
{
	buf_add_text(out, "{\"live\":true}");
	return 200;
}

/* ---- the listener ---- */

static const struct page {
	const char *path;
	const char *content_type;
	int (*write)(struct http_server *server, struct buf *out);
} pages[] = {
	{"/livez", "application/json", write_live},
	{"/readyz", "application/json", write_ready},
	{"/metrics", "text/plain; version=0.0.4; charset=utf-8", write_metrics},
};

static enum MHD_Result send_page(struct MHD_Connection *connection, int status,
                                 const char *content_type, struct buf *body)
{
	size_t size = body->size;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(size, body->data ? body->data : "", MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", content_type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
	static int seen;
	struct http_server *server = context;
	BUF_AUTO struct buf body;
	buf_init(&body, PAGE_MAX);
	if (*size) {
		*size = 0;
		return MHD_YES;
	}
	if (!*state) {
		*state = &seen; /* answered in the second call, so that the connection stays */
		return MHD_YES;
	}
	if (method_parse(method) != METHOD_GET)
		return send_page(connection, 405, "application/json", &body);
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		if (strcmp(url, pages[i].path) == 0) {
			int status = pages[i].write(server, &body);
			return send_page(connection, status, pages[i].content_type, &body);
		}
	}
	return send_page(connection, 404, "application/json", &body);
}

int admin_start(struct http_server *server, struct error *error)
{
	server->admin = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle, server, MHD_OPTION_LISTEN_SOCKET,
		server->admin_descriptor, MHD_OPTION_CONNECTION_LIMIT, (unsigned)ADMIN_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)ADMIN_IDLE_SECONDS, MHD_OPTION_END);
	return server->admin ? 0 : error_cause(error, ERR_IO, "the operator's listener does not start");
}

void admin_stop(struct http_server *server)
{
	if (!server->admin)
		return;
	MHD_stop_daemon(server->admin);
	server->admin = NULL;
	server->admin_descriptor = -1; /* closed by the library */
}
