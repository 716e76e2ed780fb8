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

static void write_head(const char *name, const char *type, const char *help, struct buf *out)
{
	buf_printf(out, "# HELP constancia_%s %s\n# TYPE constancia_%s %s\n", name, help, name, type);
}

static void write_line(const char *name, const char *type, const char *help, double value,
                       struct buf *out)
{
	write_head(name, type, help, out);
	buf_printf(out, "constancia_%s %.17g\n", name, value);
}

static void write_by_status(const struct metrics *metrics, const char *name, struct buf *out)
{
	for (int status = 100; status < 600; status++) {
		uint64_t count = READ(metrics->by_status[status]);
		if (count)
			buf_printf(out, "constancia_%s{status=\"%d\"} %llu\n", name, status,
			           (unsigned long long)count);
	}
}

static void write_latency(const struct metrics *metrics, const char *name, struct buf *out)
{
	uint64_t sum = 0;
	for (int i = 0; i <= METRICS_BUCKETS; i++) {
		sum += READ(metrics->latency[i]);
		buf_printf(out, "constancia_%s_bucket{le=\"%s\"} %llu\n", name,
		           i < METRICS_BUCKETS ? bounds[i].text : "+Inf", (unsigned long long)sum);
	}
	buf_printf(out, "constancia_%s_sum %.6f\n", name, (double)READ(metrics->latency_sum_us) / 1e6);
	buf_printf(out, "constancia_%s_count %llu\n", name, (unsigned long long)sum);
}

void metrics_write(const struct metrics *metrics, const struct counters *counters,
                   const struct gauges *gauges, struct buf *out)
{
#define SERIES(member, name, type, help)                                                           \
	write_head(name, type, help, out);                                                             \
	write_##member(metrics, name, out);
#define HTTP_COUNTER(member, name, type, help)                                                     \
	write_line(name, type, help, (double)READ(metrics->member), out);
#define COUNTER(member, name, type, unit, help)                                                    \
	write_line(name, type, help, (double)READ(counters->member) / unit, out);
#define GAUGE(member, name, type, unit, help)                                                      \
	if (gauges->member != GAUGE_UNKNOWN)                                                           \
		write_line(name, type, help, (double)gauges->member / unit, out);
#include "service/metrics.def"
}
