/* Durations counted in buckets that grow with their size: any quantile to about 1.5 %, in constant
 * memory. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS 64 /* buckets for each doubling */
#define HISTOGRAM_BUCKETS (HISTOGRAM_STEPS * 40)

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t max_ns;
};

int64_t bench_now_ns(void);
void histogram_add(struct histogram *histogram, int64_t duration_ns);
/* The duration, in µs, that the share `quantile` (0 to 1) of all stayed at or below; 0 without
 * any. */
double histogram_quantile_us(const struct histogram *histogram, double quantile);

#endif
