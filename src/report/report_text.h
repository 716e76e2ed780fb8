/* The report's own words, and other people's words made fit to be shown. Internal to proof. */
#ifndef REPORT_REPORT_TEXT_H
#define REPORT_REPORT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum report_text {
#define REPORT_TEXT(name, english, spanish) TEXT_##name,
#include "report/report_text.def"
#undef REPORT_TEXT
	TEXT_COUNT
};

const char *report_text(enum report_text text, enum language language);

/* The sentence with its places {0} to {3} filled; NULL without memory. The variadic part is
 * `const char *`, closed by NULL. */
const char *report_fill(struct arena *arena, enum report_text text, enum language language, ...)
	__attribute__((sentinel));

/* Appends foreign text so that everything in it can be seen and nothing in it can act: control,
 * direction, invisible, private and unassigned characters, and bytes that are no UTF-8, are written
 * as ‹U+202E› or ‹0xFF›; of a pile of combining marks the first four stay marks. A line feed stays
 * one where `lines` is true. Appends nothing else, so text without such characters is unchanged. */
void report_visible(struct slice text, bool lines, struct buf *out);

/* The same into the arena, NUL terminated; NULL without memory. */
const char *report_show(struct arena *arena, struct slice text, bool lines);

/* "21 November 2026, 09:15:02.123456 UTC", "21 de noviembre de 2026, 09:15:02.123456 UTC". */
const char *report_moment(struct arena *arena, int64_t time_us, enum language language);
/* "1,234,567" or "1.234.567"; in Spanish four digits stay together. */
const char *report_number(struct arena *arena, int64_t number, enum language language);

#endif
