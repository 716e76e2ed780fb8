/* The sections of a report. Internal to src/report. */
#ifndef REPORT_REPORT_BODY_H
#define REPORT_REPORT_BODY_H

#include "report/report_draft.h"

/* These functions are the frame and compose functions of a draft (report_draft.h). */
struct sheet_frame report_frame(struct draft *draft);
int report_compose(struct draft *draft, struct error *error) MUST_CHECK;

#endif
