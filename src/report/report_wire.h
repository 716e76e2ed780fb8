/* Serialization of the facts of a report between two processes of the same build. It is not a
 * stable format. Internal to src/report. */
#ifndef REPORT_REPORT_WIRE_H
#define REPORT_REPORT_WIRE_H

#include "base/arena.h"
#include "report/report.h"

#define REPORT_WIRE_MAX ((size_t)64 << 20)

/* Returns 0 or ERR_NO_MEMORY. */
int report_wire_write(const struct report_facts *facts, enum language language, struct buf *out)
	MUST_CHECK;
/* The facts point into the arena or into `wire`. Returns 0, ERR_VALIDATION or ERR_NO_MEMORY. */
int report_wire_read(struct slice wire, struct arena *arena, struct report_facts *ret_facts,
                     enum language *ret_language, struct error *error) MUST_CHECK;

#endif
