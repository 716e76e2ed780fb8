/* Ends an attempt at a certification: issued; delayed with exponential back-off; or failed
 * permanently, with its fee refunded. Permanent errors are also retried, for one hour; temporary
 * ones until certification.give_up_after. A result that cannot be recorded is logged; the lease
 * then expires, and the certification is claimed again. */
#ifndef ISSUE_ISSUE_ATTEMPT_H
#define ISSUE_ISSUE_ATTEMPT_H

#include "issue/issue.h"

struct issue_attempt {
	struct service *service;
	const struct certification *certification; /* as claimed */
	const char *holder;                        /* holder of its lease */
	const atomic_bool *stopping;
};

/* To be called before an attempt. Returns true if a test scenario forces the certification to fail;
 * it was failed. */
bool issue_fail_forced(const struct issue_attempt *attempt);
/* To be called before an attempt. Returns true if the certification is overdue and its attempts
 * appear to crash the process; it was failed instead. */
bool issue_give_up_overdue(const struct issue_attempt *attempt);
/* Completes the certification with these documents. If another node holds the lease now, the
 * documents are discarded. */
void issue_record_success(const struct issue_attempt *attempt, const struct issue_result *issued);
/* Delays or fails the certification, depending on `result`. While the node is stopping it is
 * released immediately, and the attempt is not counted. */
void issue_record_failure(const struct issue_attempt *attempt, int result,
                          const struct error *error);

/* Fails certifications that have waited too long for a seal. Such certifications are never
 * claimed. */
void issue_fail_overdue(struct service *service, const atomic_bool *stopping);

#endif
