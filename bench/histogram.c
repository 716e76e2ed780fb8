#include "histogram.h"

#include <math.h>
#include <time.h>

int64_t bench_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Below HISTOGRAM_STEPS one bucket is one nanosecond; above, its width doubles every
 * HISTOGRAM_STEPS buckets. */
static unsigned bucket_of(uint64_t duration_ns)
{
	if (duration_ns < HISTOGRAM_STEPS)
		return (unsigned)duration_ns;
	unsigned doublings = 63 - (unsigned)__builtin_clzll(duration_ns / HISTOGRAM_STEPS);
	uint64_t bucket = (duration_ns >> doublings) + (uint64_t)doublings * HISTOGRAM_STEPS;
	return bucket < HISTOGRAM_BUCKETS ? (unsigned)bucket : HISTOGRAM_BUCKETS - 1;
}

static double bucket_middle_ns(unsigned bucket)
{
	if (bucket < 2 * HISTOGRAM_STEPS)
		return bucket;
	unsigned doublings = bucket / HISTOGRAM_STEPS - 1;
	double first = bucket - doublings * HISTOGRAM_STEPS;
	return ldexp(first + 0.5, (int)doublings);
}

void histogram_add(struct histogram *histogram, int64_t duration_ns)
{
	uint64_t duration = duration_ns > 0 ? (uint64_t)duration_ns : 0;
	histogram->counts[bucket_of(duration)]++;
	histogram->total++;
	if (duration > histogram->max_ns)
		histogram->max_ns = duration;
}

double histogram_quantile_us(const struct histogram *histogram, double quantile)
{
	double wanted = quantile * (double)histogram->total, seen = 0;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && histogram->total; i++) {
		seen += (double)histogram->counts[i];
		if (seen >= wanted && histogram->counts[i])
			return bucket_middle_ns(i) / 1000;
	}
	return 0;
}
