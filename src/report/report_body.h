/* What a report says, in its order. Internal to proof. */
#ifndef REPORT_REPORT_BODY_H
#define REPORT_REPORT_BODY_H

#include "report/report_draft.h"

/* Of a draft. */
struct sheet_frame report_frame(struct draft *draft);
int report_compose(struct draft *draft, struct error *error) MUST_CHECK;

#endif
