/* What /metrics says of HTTP. Any thread may count and read. */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"

#define METRICS_BUCKETS 13

struct metrics {
	_Atomic uint64_t by_status[600];
	_Atomic uint64_t latency[METRICS_BUCKETS + 1]; /* the last: longer than any bound */
	_Atomic uint64_t latency_sum_us;
	_Atomic uint64_t deadline_passed;
	_Atomic uint64_t refused_early; /* answered before the body was read */
	_Atomic int64_t connections;
	_Atomic uint64_t connections_cut; /* too many, idle or too slow */
	_Atomic int64_t body_bytes;       /* held of requests' bodies */
	_Atomic uint64_t body_memory_refused;
};

void metrics_count(struct metrics *metrics, int status, int64_t duration_us);
/* Appends the text format of Prometheus. */
void metrics_write(struct metrics *metrics, struct buf *out);
/* One metric with its two comment lines. */
void metrics_line(struct buf *out, const char *name, const char *type, const char *help,
                  double value);

#endif
