/* What /metrics says. Any thread may count and read. */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "admin/readiness.h"
#include "base/buf.h"
#include "base/error.h"
#include "http/connection_table.h"

#define METRICS_BUCKETS 13
#define METRICS_ROUTES_MAX 40 /* of route.h; what none fits is counted behind them */
#define METRICS_METHODS 4

struct route;

/* What the server counts: metrics.def. Apart for each route, and added to without a lock. */
struct metrics {
	_Atomic uint64_t answers[METRICS_ROUTES_MAX + 1][METRICS_METHODS][500]; /* status - 100 */
	struct {
		_Atomic uint64_t buckets[METRICS_BUCKETS + 1]; /* the last: longer than any bound */
		_Atomic uint64_t sum_us;
	} latency[METRICS_ROUTES_MAX + 1];
	_Atomic uint64_t refused[ERROR_NUMBERS]; /* by -ERR_* */
#define HTTP_COUNTER(member, name, type, help) _Atomic int64_t member;
#include "service/metrics.def"
};

/* The number of a method: of GET, HEAD, POST, or of any other, and of NULL. */
unsigned metrics_method(const char *text);

/* A request of the public interface, and its answer. */
struct answered {
	const struct route *route; /* of public_routes; NULL: none fits */
	unsigned method;
	int status;
	int code;       /* ERR_* that it tells; 0: none */
	bool registers; /* it was to register an event */
	int64_t duration_us;
};
void metrics_count(struct metrics *metrics, const struct answered *answered);

/* What the page is made of beside what is counted. */
struct metrics_page {
	const struct metrics *metrics;
	struct service *service;
	const struct gauges *gauges; /* those that are GAUGE_UNKNOWN are left out */
	const struct readiness *readiness;
	size_t connections[CONNECTION_KINDS + 1]; /* of the public interface, by enum connection_kind */
};
/* Appends the whole page, in the text format of Prometheus. */
void metrics_write(const struct metrics_page *page, struct buf *out);

#endif
