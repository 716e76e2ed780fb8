/* What /metrics says. Any thread may count and read. */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "service/service.h"

#define METRICS_BUCKETS 13

/* What the server counts: metrics.def. */
struct metrics {
	_Atomic uint64_t by_status[600];
	_Atomic uint64_t latency[METRICS_BUCKETS + 1]; /* the last: longer than any bound */
	_Atomic uint64_t latency_sum_us;
#define HTTP_COUNTER(member, name, type, help) _Atomic int64_t member;
#include "service/metrics.def"
};

void metrics_count(struct metrics *metrics, int status, int64_t duration_us);
/* Appends the whole page, in the text format of Prometheus; gauges that are GAUGE_UNKNOWN are left
 * out. */
void metrics_write(const struct metrics *metrics, const struct counters *counters,
                   const struct gauges *gauges, struct buf *out);

#endif
