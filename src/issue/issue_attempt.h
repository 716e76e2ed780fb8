/* How an attempt at a certification ends: issued; put off, to be tried again after a pause that
 * grows; or failed for good, with its fee given back. What does not pass by waiting is tried for an
 * hour all the same, anything else until certification.give_up_after. What cannot be recorded is
 * told to the log: then the lease runs out, and the certification is claimed again. */
#ifndef ISSUE_ISSUE_ATTEMPT_H
#define ISSUE_ISSUE_ATTEMPT_H

#include "issue/issue.h"

struct issue_attempt {
	struct service *service;
	const struct certification *certification; /* as claimed */
	const char *holder;                        /* of its lease */
	const atomic_bool *stopping;
};

/* Before the attempt. True: it is old, and its attempts seem to end the process, so that it was
 * failed instead. */
bool issue_is_given_up(const struct issue_attempt *attempt);
/* Its documents are the issued ones, or, when the lease went to another, discarded. */
void issue_succeeded(const struct issue_attempt *attempt, const struct issue_result *issued);
/* `result` decides; while stopping it is given back at once, and the attempt does not count. */
void issue_failed(const struct issue_attempt *attempt, int result, const struct error *error);

/* Fails those that have waited too long for a seal: these are never claimed. */
void issue_fail_overdue(struct service *service, const atomic_bool *stopping);

#endif
