/* The texts of reports, and the visible form of foreign texts. Internal to src/report. */
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

/* Returns the text with its placeholders {0} to {3} replaced; NULL without memory. The variadic
 * arguments are `const char *`, terminated by NULL. */
const char *report_fill(struct arena *arena, enum report_text text, enum language language, ...)
	__attribute__((sentinel));

/* Appends foreign text in a visible and harmless form. Control, direction, invisible, private and
 * unassigned characters are written as ‹U+202E›, and bytes that are not UTF-8 as ‹0xFF›. Of
 * consecutive combining marks the first four are kept. A line feed is kept if `lines` is true.
 * Other text is appended unchanged. */
void report_visible(struct slice text, bool lines, struct buf *out);

/* Does the same into the arena, NUL terminated. Returns NULL without memory. */
const char *report_show(struct arena *arena, struct slice text, bool lines);

/* "21 November 2026, 09:15:02.123456 UTC", "21 de noviembre de 2026, 09:15:02.123456 UTC". */
const char *report_moment(struct arena *arena, int64_t time_us, enum language language);
/* "1,234,567" or "1.234.567"; in Spanish four digits are not separated. */
const char *report_number(struct arena *arena, int64_t number, enum language language);

#endif
