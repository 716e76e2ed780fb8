/* A document being composed, and what every kind of one is made of: words of our own, and other
 * people's made fit to be shown. Internal to proof. */
#ifndef REPORT_REPORT_DRAFT_H
#define REPORT_REPORT_DRAFT_H

#include <stdbool.h>

#include "base/arena.h"
#include "report/report_finish.h"
#include "report/report_sheet.h"
#include "report/report_text.h"

struct draft {
	const struct report_facts *facts; /* of a certification's report; NULL: it is a receipt */
	const struct sale_facts *sale;    /* of a purchase's receipt; NULL: it is a report */
	enum language language;
	struct arena arena; /* of one pass */
	struct sheet sheet;
	bool failed;      /* out of memory */
	bool written_out; /* characters of a foreign text, since this was last reset */
	/* The page's header, footer and marking; they live in the draft's arena. */
	struct sheet_frame (*frame)(struct draft *draft);
	/* Sets the whole on the draft's sheet. Out of memory shows in draft->failed. */
	int (*compose)(struct draft *draft, struct error *error);
};

/* Draws it (report_draw.c): facts, sale, language, frame and compose are given. Writes the PDF to
 * an open, empty file. */
int draft_draw(struct draft *draft, const struct report_finishing *finishing, int file,
               struct error *error) MUST_CHECK;

/* The rest lives in the draft's arena; none gives NULL. */

/* The text, or "" with the draft failed where it is NULL. */
const char *draft_keep(struct draft *draft, const char *text);
const char *draft_say(const struct draft *draft, enum report_text text);
#define DRAFT_FILL(draft, text, ...)                                                               \
	draft_keep(draft, report_fill(&(draft)->arena, text, (draft)->language, __VA_ARGS__, NULL))
/* Foreign text; whether any of it was written out is noted in the draft. */
const char *draft_show_slice(struct draft *draft, struct slice text, bool lines);
const char *draft_show(struct draft *draft, const char *text);
/* How to read what was written out, where anything was. */
void draft_explain_written_out(struct draft *draft);
const char *draft_plain(struct draft *draft, int64_t number);
const char *draft_number(struct draft *draft, int64_t value);
const char *draft_moment(struct draft *draft, int64_t time_us);
/* A label and its value, in a list that is open. */
void draft_fact(struct draft *draft, enum report_text label, enum sheet_style style,
                const char *value);

#endif
