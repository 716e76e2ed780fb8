/* Choice of the fault that each request meets: by a script, then at random by a seed. The same seed
 * and order of requests give the same faults. One thread at a time. */
#ifndef TOOLS_FAULT_PLAN_H
#define TOOLS_FAULT_PLAN_H

#include "base/buf.h"
#include "base/error.h"

enum fault {
	FAULT_PASS,
	FAULT_LOST,        /* the request is sent on, and its answer dropped */
	FAULT_UNAVAILABLE, /* 503 with Retry-After; the request is not sent on */
	FAULT_HALF,        /* the answer ends in the middle of its body */
	FAULT_HANG,        /* the request is sent on; no answer for a time, then none at all */
	FAULT_COUNT
};

#define FAULT_SCRIPT_MAX 10000

struct fault_plan {
	double probability[FAULT_COUNT]; /* of all but FAULT_PASS; their sum is at most 1 */
	uint64_t seed;
	uint64_t drawn;
	unsigned char script[FAULT_SCRIPT_MAX];
	size_t script_size, script_used;
};

const char *fault_text(enum fault fault); /* "lost", … */
/* Parses "lost,pass,503". ERR_USAGE names the first word that is none. */
int fault_plan_script(struct fault_plan *plan, const char *text, struct error *error) MUST_CHECK;
enum fault fault_plan_next(struct fault_plan *plan);

#endif
