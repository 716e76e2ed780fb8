/* The metrics of /metrics. Any thread may count and read. */
#ifndef HTTP_PROMETHEUS_H
#define HTTP_PROMETHEUS_H

#include <stdatomic.h>
#include <stdint.h>

#include "admin/readiness.h"
#include "base/buf.h"
#include "base/error.h"
#include "http/connection_table.h"

#define METRICS_BUCKETS 13
/* routes of route.h; requests without a route are counted after them */
#define METRICS_ROUTES_MAX 48
#define METRICS_METHODS 4

struct route;

/* Counters of the server (metrics.def), per route, updated without a lock. */
struct metrics {
	_Atomic uint64_t answers[METRICS_ROUTES_MAX + 1][METRICS_METHODS][500]; /* status - 100 */
	struct {
		_Atomic uint64_t buckets[METRICS_BUCKETS + 1]; /* the last: above all bounds */
		_Atomic uint64_t sum_us;
	} latency[METRICS_ROUTES_MAX + 1];
	_Atomic uint64_t refused[ERROR_NUMBERS]; /* by -ERR_* */
#define HTTP_COUNTER(member, name, type, help) _Atomic int64_t member;
#include "service/metrics.def"
};

/* Returns the number of a method: GET, HEAD, POST, or any other or NULL. */
unsigned metrics_method(const char *text);

/* A request of the public interface with its result. */
struct answered {
	const struct route *route; /* of public_routes; NULL: no match */
	unsigned method;
	int status;
	int code;       /* ERR_* of the answer; 0: none */
	bool registers; /* the request registers an event */
	int64_t duration_us;
};
void metrics_count(struct metrics *metrics, const struct answered *answered);

/* Input of the metrics page in addition to the counters. */
struct metrics_page {
	const struct metrics *metrics;
	struct service *service;
	const struct gauges *gauges; /* gauges that are GAUGE_UNKNOWN are omitted */
	const struct readiness *readiness;
	size_t connections[CONNECTION_KINDS + 1]; /* of the public interface, by enum connection_kind */
};
/* Appends the complete page in the text format of Prometheus. */
void metrics_write(const struct metrics_page *page, struct buf *out);

#endif
