#include "http/metrics.h"

static const struct {
	int64_t us;
	const char *text;
} bounds[METRICS_BUCKETS] = {
	{500, "0.0005"},  {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},
	{25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
	{1000000, "1"},   {2500000, "2.5"}, {10000000, "10"},
};

#define ADD(counter, value) atomic_fetch_add_explicit(&(counter), value, memory_order_relaxed)
#define READ(counter) atomic_load_explicit(&(counter), memory_order_relaxed)

void metrics_count(struct metrics *metrics, int status, int64_t duration_us)
{
	int bucket = 0;
	while (bucket < METRICS_BUCKETS && duration_us > bounds[bucket].us)
		bucket++;
	if (status >= 100 && status < 600)
		ADD(metrics->by_status[status], 1);
	ADD(metrics->latency[bucket], 1);
	ADD(metrics->latency_sum_us, (uint64_t)duration_us);
}

void metrics_line(struct buf *out, const char *name, const char *type, const char *help,
                  double value)
{
	buf_printf(out, "# HELP constancia_%s %s\n# TYPE constancia_%s %s\nconstancia_%s %.17g\n", name,
	           help, name, type, name, value);
}

void metrics_write(struct metrics *metrics, struct buf *out)
{
	buf_add_text(out, "# HELP constancia_http_requests_total Answers by status.\n"
	                  "# TYPE constancia_http_requests_total counter\n");
	for (int status = 100; status < 600; status++) {
		uint64_t count = READ(metrics->by_status[status]);
		if (count)
			buf_printf(out, "constancia_http_requests_total{status=\"%d\"} %llu\n", status,
			           (unsigned long long)count);
	}
	buf_add_text(out, "# HELP constancia_http_request_seconds Time from request line to the last "
	                  "byte given to the system.\n"
	                  "# TYPE constancia_http_request_seconds histogram\n");
	uint64_t sum = 0;
	for (int i = 0; i <= METRICS_BUCKETS; i++) {
		sum += READ(metrics->latency[i]);
		buf_printf(out, "constancia_http_request_seconds_bucket{le=\"%s\"} %llu\n",
		           i < METRICS_BUCKETS ? bounds[i].text : "+Inf", (unsigned long long)sum);
	}
	buf_printf(out, "constancia_http_request_seconds_sum %.6f\n",
	           (double)READ(metrics->latency_sum_us) / 1e6);
	buf_printf(out, "constancia_http_request_seconds_count %llu\n", (unsigned long long)sum);
	metrics_line(out, "http_connections", "gauge", "Open connections of the public interface.",
	             (double)READ(metrics->connections));
	metrics_line(out, "http_connections_cut_total", "counter",
	             "Connections ended because they were too many, idle or too slow.",
	             (double)READ(metrics->connections_cut));
	metrics_line(out, "http_body_bytes", "gauge", "Memory that requests' bodies hold.",
	             (double)READ(metrics->body_bytes));
	metrics_line(out, "http_body_memory_refused_total", "counter",
	             "Requests answered 503 because http.body_memory was used up.",
	             (double)READ(metrics->body_memory_refused));
	metrics_line(out, "http_deadline_passed_total", "counter",
	             "Requests answered 503 because http.deadline passed.",
	             (double)READ(metrics->deadline_passed));
	metrics_line(out, "http_refused_early_total", "counter",
	             "Requests refused before their body was read.",
	             (double)READ(metrics->refused_early));
}
