#include "http/prometheus.h"

#include <string.h>

#include "http/process.h"
#include "http/route.h"
#include "service/watch.h"

static const struct {
	int64_t us;
	const char *text;
} bounds[METRICS_BUCKETS] = {
	{500, "0.0005"},  {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},
	{25000, "0.025"}, {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
	{1000000, "1"},   {2500000, "2.5"}, {10000000, "10"},
};

static const char *const methods[METRICS_METHODS] = {"GET", "HEAD", "POST", "other"};

#define ADD(counter, value) atomic_fetch_add_explicit(&(counter), value, memory_order_relaxed)
#define READ(counter) atomic_load_explicit(&(counter), memory_order_relaxed)

unsigned metrics_method(const char *text)
{
	unsigned method = 0;
	while (method < METRICS_METHODS - 1 && (!text || strcmp(text, methods[method]) != 0))
		method++;
	return method;
}

void metrics_count(struct metrics *metrics, const struct answered *answered)
{
	size_t route = answered->route ? (size_t)(answered->route - public_routes) : METRICS_ROUTES_MAX;
	int bucket = 0;
	while (bucket < METRICS_BUCKETS && answered->duration_us > bounds[bucket].us)
		bucket++;
	if (answered->status >= 100 && answered->status < 600)
		ADD(metrics->answers[route][answered->method][answered->status - 100], 1);
	ADD(metrics->latency[route].buckets[bucket], 1);
	ADD(metrics->latency[route].sum_us, (uint64_t)answered->duration_us);
	if (answered->registers && answered->code > -ERROR_NUMBERS && answered->code < 0)
		ADD(metrics->refused[-answered->code], 1);
}

static void write_head(const char *name, const char *type, const char *help, struct buf *out)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_line(const char *name, const char *type, const char *help, double value,
                       struct buf *out)
{
	write_head(name, type, help, out);
	buf_printf(out, "%s %.17g\n", name, value);
}

/* Returns the route label at `index` of the arrays; NULL: unused. */
static const char *route_name(size_t index)
{
	if (index == METRICS_ROUTES_MAX)
		return "other";
	return index < public_route_count ? public_routes[index].pattern : NULL;
}

static void write_answers(const struct metrics_page *page, const char *name, struct buf *out)
{
	for (size_t route = 0; route <= METRICS_ROUTES_MAX; route++)
		for (size_t method = 0; method < METRICS_METHODS; method++)
			for (int status = 100; status < 600; status++) {
				uint64_t count = READ(page->metrics->answers[route][method][status - 100]);
				if (count)
					buf_printf(
						out, "constancia_%s{route=\"%s\",method=\"%s\",status=\"%d\"} %llu\n", name,
						route_name(route), methods[method], status, (unsigned long long)count);
			}
}

/* Writes the latency of all requested routes. */
static void write_latency(const struct metrics_page *page, const char *name, struct buf *out)
{
	for (size_t route = 0; route <= METRICS_ROUTES_MAX; route++) {
		uint64_t counts[METRICS_BUCKETS + 1], sum = 0;
		for (int i = 0; i <= METRICS_BUCKETS; i++)
			sum += counts[i] = READ(page->metrics->latency[route].buckets[i]);
		if (!sum)
			continue;
		const char *label = route_name(route);
		sum = 0;
		for (int i = 0; i <= METRICS_BUCKETS; i++) {
			sum += counts[i];
			buf_printf(out, "constancia_%s_bucket{route=\"%s\",le=\"%s\"} %llu\n", name, label,
			           i < METRICS_BUCKETS ? bounds[i].text : "+Inf", (unsigned long long)sum);
		}
		buf_printf(out, "constancia_%s_sum{route=\"%s\"} %.6f\n", name, label,
		           (double)READ(page->metrics->latency[route].sum_us) / 1e6);
		buf_printf(out, "constancia_%s_count{route=\"%s\"} %llu\n", name, label,
		           (unsigned long long)sum);
	}
}

/* Writes the refusals by API code. Several ERR_* share a code; a code without refusals is written
 * as 0. */
static void write_refused(const struct metrics_page *page, const char *name, struct buf *out)
{
	for (int first = 1; first < ERROR_NUMBERS; first++) {
		const char *code = error_code_text(-first);
		uint64_t sum = 0;
		bool written = !error_is_known(-first);
		for (int number = 1; number < ERROR_NUMBERS; number++) {
			bool same = error_is_known(-number) && strcmp(error_code_text(-number), code) == 0;
			written = written || (same && number < first);
			sum += same ? READ(page->metrics->refused[number]) : 0;
		}
		if (!written)
			buf_printf(out, "constancia_%s{code=\"%s\"} %llu\n", name, code,
			           (unsigned long long)sum);
	}
}

static void write_build(const struct metrics_page *page, const char *name, struct buf *out)
{
	const char *url = page->service->settings->store_url;
	buf_printf(out, "constancia_%s{version=\"%s\",schema=\"%s\",store=\"%.*s\"} 1\n", name,
	           CONSTANCIA_VERSION, store_schema_name(), (int)strcspn(url, ":"), url);
}

static void write_connection_states(const struct metrics_page *page, const char *name,
                                    struct buf *out)
{
	static const char *const states[CONNECTION_KINDS + 1] = {"unfinished", "idle", "slow", "busy"};
	for (int kind = 0; kind <= (int)CONNECTION_KINDS; kind++)
		buf_printf(out, "constancia_%s{state=\"%s\"} %zu\n", name, states[kind],
		           page->connections[kind]);
}

/* ---- inputs of readiness ---- */

static void write_findings(const struct metrics_page *page, const char *name, struct buf *out)
{
	for (enum concern concern = 0; concern < CONCERN_COUNT; concern++)
		buf_printf(out, "constancia_%s{kind=\"%s\"} %zu\n", name, concern_text(concern),
		           readiness_count(page->readiness, concern));
}

/* Writes a sample of an authority. Two may have the same host, so `number` is the position in
 * tsa.url. */
static void write_of_authority(const char *name, const struct authority_status *watched,
                               size_t number, const char *more, double value, struct buf *out)
{
	buf_printf(out, "constancia_%s{authority=\"%s\",number=\"%zu\"%s} %.17g\n", name, watched->host,
	           number + 1, more, value);
}

static void write_authority_answers(const struct metrics_page *page, const char *name,
                                    struct buf *out)
{
	struct authority_status watched;
	for (size_t i = 0; watch_get_authority(page->service, i, &watched); i++) {
		write_of_authority(name, &watched, i, ",outcome=\"good\"", (double)watched.successes, out);
		write_of_authority(name, &watched, i, ",outcome=\"failed\"", (double)watched.failures, out);
	}
}

static void write_authority_success(const struct metrics_page *page, const char *name,
                                    struct buf *out)
{
	struct authority_status watched;
	for (size_t i = 0; watch_get_authority(page->service, i, &watched); i++)
		write_of_authority(name, &watched, i, "", (double)watched.last_success_us / 1e6, out);
}

static void write_authority_fails(const struct metrics_page *page, const char *name,
                                  struct buf *out)
{
	struct authority_status watched;
	for (size_t i = 0; watch_get_authority(page->service, i, &watched); i++)
		write_of_authority(name, &watched, i, "", watched.fails, out);
}

static void write_disks(const struct metrics_page *page, const char *name,
                        double (*value)(const struct disk *disk), struct buf *out)
{
	struct observation seen = watch_get_observation(page->service);
	for (enum place place = 0; place < PLACE_COUNT; place++)
		if (seen.disks[place].known)
			buf_printf(out, "constancia_%s{directory=\"%s\"} %.17g\n", name, place_text(place),
			           value(&seen.disks[place]));
}

static double size_of(const struct disk *disk)
{
	return (double)disk->size_bytes;
}

static double free_of(const struct disk *disk)
{
	return (double)disk->free_bytes;
}

static double ratio_of(const struct disk *disk)
{
	return (double)disk->free_permille / 1000;
}

static void write_disk_size(const struct metrics_page *page, const char *name, struct buf *out)
{
	write_disks(page, name, size_of, out);
}

static void write_disk_free(const struct metrics_page *page, const char *name, struct buf *out)
{
	write_disks(page, name, free_of, out);
}

static void write_disk_ratio(const struct metrics_page *page, const char *name, struct buf *out)
{
	write_disks(page, name, ratio_of, out);
}

static void write_limit_used(const struct metrics_page *page, const char *name, struct buf *out)
{
	struct observation seen = watch_get_observation(page->service);
	for (enum bound bound = 0; seen.bounds_known && bound < BOUND_COUNT; bound++)
		buf_printf(out, "constancia_%s{limit=\"%s\"} %.17g\n", name, bound_label(bound),
		           (double)seen.bounds[bound].used / (double)bound_most(bound));
}

static void write_chains(const struct metrics_page *page, const char *name, enum path_state wanted,
                         struct buf *out)
{
	const struct service *service = page->service;
	struct authority_status watched;
	int state = atomic_load(&service->path_states[0]);
	if (state != PATH_UNKNOWN)
		buf_printf(out, "constancia_%s{signer=\"key\"} %d\n", name, state == (int)wanted);
	for (size_t i = 0; watch_get_authority(service, i, &watched); i++) {
		state = atomic_load(&service->path_states[1 + i]);
		if (state != PATH_UNKNOWN)
			write_of_authority(name, &watched, i, ",signer=\"authority\"", state == (int)wanted,
			                   out);
	}
}

static void write_chain_complete(const struct metrics_page *page, const char *name, struct buf *out)
{
	write_chains(page, name, PATH_COMPLETE, out);
}

static void write_chain_revoked(const struct metrics_page *page, const char *name, struct buf *out)
{
	write_chains(page, name, PATH_REVOKED, out);
}

static void write_tls_expires(const struct metrics_page *page, const char *name, struct buf *out)
{
	static const char *const labels[SERVICE_LISTENERS] = {"public", "operator"};
	for (int listener = 0; listener < SERVICE_LISTENERS; listener++) {
		int64_t until_us = READ(page->service->tls_expires_us[listener]);
		if (until_us)
			buf_printf(out, "constancia_%s{listener=\"%s\"} %.17g\n", name, labels[listener],
			           (double)until_us / 1e6);
	}
}

void metrics_write(const struct metrics_page *page, struct buf *out)
{
	const struct metrics *metrics = page->metrics;
	const struct counters *counters = &page->service->counters;
	const struct gauges *gauges = page->gauges;
	const struct process_state process = process_read_state();
#define SERIES(member, name, type, help)                                                           \
	write_head("constancia_" name, type, help, out);                                               \
	write_##member(page, name, out);
#define HTTP_COUNTER(member, name, type, help)                                                     \
	write_line("constancia_" name, type, help, (double)READ(metrics->member), out);
#define COUNTER(member, name, type, unit, help)                                                    \
	write_line("constancia_" name, type, help, (double)READ(counters->member) / unit, out);
#define GAUGE(member, name, type, unit, help)                                                      \
	if (gauges->member != GAUGE_UNKNOWN)                                                           \
		write_line("constancia_" name, type, help, (double)gauges->member / unit, out);
#define PROCESS(member, name, type, unit, help)                                                    \
	if (process.member >= 0)                                                                       \
		write_line(name, type, help, (double)process.member / unit, out);
#include "service/metrics.def"
}
