/* The sections of a report. Internal to src/report. */
#ifndef REPORT_REPORT_BODY_H
#define REPORT_REPORT_BODY_H

#include "report/report_draft.h"

/* Returns the header, footer and banner of the pages, in the arena of the draft. */
struct sheet_frame report_frame(struct draft *draft);
/* Sets the whole on the draft's sheet. Out of memory shows in draft->failed. */
int report_compose(struct draft *draft, struct error *error) MUST_CHECK;

#endif
