/* A report that is being composed, and the text functions shared by its parts.
 * Internal to src/report. */
#ifndef REPORT_REPORT_DRAFT_H
#define REPORT_REPORT_DRAFT_H

#include <stdbool.h>

#include "base/arena.h"
#include "report/report_finish.h"
#include "report/report_sheet.h"
#include "report/report_text.h"

struct draft {
	const struct report_facts *facts;
	enum language language;
	struct arena arena; /* reset for each pass */
	struct sheet sheet;
	bool failed;      /* out of memory */
	bool written_out; /* a character of a foreign text was shown by its number since the last reset
	                   */
};

/* Draws the report of the given facts and language (report_draw.c). Writes the PDF to an open,
 * empty file. */
int draft_draw(struct draft *draft, const struct report_finishing *finishing, int file,
               struct error *error) MUST_CHECK;

/* The functions below return text in the arena of the draft, never NULL. */

/* Returns `text`, or "" with draft->failed set if it is NULL. */
const char *draft_require_text(struct draft *draft, const char *text);
const char *draft_text(const struct draft *draft, enum report_text text);
#define DRAFT_FILL(draft, text, ...)                                                               \
	draft_require_text(draft,                                                                      \
	                   report_fill(&(draft)->arena, text, (draft)->language, __VA_ARGS__, NULL))
/* Returns foreign text with invisible characters shown by their numbers, and sets
 * draft->written_out if there was one. */
const char *draft_show_slice(struct draft *draft, struct slice text, bool lines);
const char *draft_show(struct draft *draft, const char *text);
/* Adds the explanation of characters shown by their numbers if draft->written_out is set. */
void draft_explain_written_out(struct draft *draft);
const char *draft_plain(struct draft *draft, int64_t number);
const char *draft_number(struct draft *draft, int64_t value);
const char *draft_moment(struct draft *draft, int64_t time_us);
/* Adds a label and its value to the open list. */
void draft_fact(struct draft *draft, enum report_text label, enum sheet_style style,
                const char *value);

#endif
