/* How long this disk takes to make 4 KiB durable: appends to a file and waits for fdatasync, as a
 * write-ahead log does. Prints one JSON document.
 *
 *     bench-fsync DIRECTORY
 * [SECONDS] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "histogram.h"

#define BLOCK_SIZE 4096

static int fail(const char *what)
{
	perror(what);
	return 2;
}

int main(int count, char **arguments)
{
	static char block[BLOCK_SIZE];
	static struct histogram histogram;
	char path[4096];
	double seconds = count > 2 ? atof(arguments[2]) : 2;
	if (count < 2 || count > 3 || seconds <= 0) {
		fprintf(stderr, "usage: %s DIRECTORY [SECONDS]\n", arguments[0]);
		return 2;
	}
	snprintf(path, sizeof path, "%s/fsync-XXXXXX", arguments[1]);
	int descriptor = mkstemp(path);
	if (descriptor < 0)
		return fail(path);
	unlink(path);
	memset(block, 'x', sizeof block);
	int64_t end_ns = bench_now_ns() + (int64_t)(seconds * 1e9);
	for (int64_t start_ns; (start_ns = bench_now_ns()) < end_ns;) {
		if (write(descriptor, block, sizeof block) != sizeof block)
			return fail("write");
		if (fdatasync(descriptor) < 0)
			return fail("fdatasync");
		histogram_add(&histogram, bench_now_ns() - start_ns);
	}
	printf("{\"count\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n",
	       (unsigned long long)histogram.total, histogram_quantile_us(&histogram, 0.5),
	       histogram_quantile_us(&histogram, 0.99), (double)histogram.max_ns / 1000);
	return 0;
}
