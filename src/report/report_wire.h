/* The facts of a report, or of a receipt, as bytes, from one process of this program to another.
 * Inside src/report only. Not a format: both ends are of one build. */
#ifndef REPORT_REPORT_WIRE_H
#define REPORT_REPORT_WIRE_H

#include "base/arena.h"
#include "report/report.h"
#include "report/sale.h"

#define REPORT_WIRE_MAX ((size_t)64 << 20)

/* ERR_NO_MEMORY. */
int report_wire_write(const struct report_facts *facts, enum language language, struct buf *out)
	MUST_CHECK;
/* What the facts point to lives in the arena, or in `wire`. ERR_VALIDATION, ERR_NO_MEMORY. */
int report_wire_read(struct slice wire, struct arena *arena, struct report_facts *ret_facts,
                     enum language *ret_language, struct error *error) MUST_CHECK;
/* The same of a purchase's receipt. */
int sale_wire_write(const struct sale_facts *facts, enum language language, struct buf *out)
	MUST_CHECK;
int sale_wire_read(struct slice wire, struct arena *arena, struct sale_facts *ret_facts,
                   enum language *ret_language, struct error *error) MUST_CHECK;

#endif
