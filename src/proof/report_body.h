/* What a report says, in its order. Internal to proof. */
#ifndef PROOF_REPORT_BODY_H
#define PROOF_REPORT_BODY_H

#include <stdbool.h>

#include "base/arena.h"
#include "proof/report.h"
#include "proof/report_sheet.h"
#include "proof/report_text.h"

/* A report being composed. */
struct draft {
	const struct report_facts *facts;
	enum language language;
	struct arena arena; /* of one pass */
	struct sheet sheet;
	bool failed;      /* out of memory */
	bool written_out; /* characters of a foreign text, since this was last reset */
};

/* The page's header, footer and marking; they live in the draft's arena. */
struct sheet_frame report_frame(struct draft *draft);
/* Sets the whole report on the draft's sheet. Out of memory shows in draft->failed. */
int report_compose(struct draft *draft, struct error *error) MUST_CHECK;

#endif
