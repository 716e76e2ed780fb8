/* The places of a certification's segments in the log, for its archive. */
#ifndef ISSUE_ISSUE_LOG_H
#define ISSUE_ISSUE_LOG_H

#include "issue/issue_job.h"

/* Adds the checkpoints that cover the segments of these numbers, the newest checkpoint, and the
 * place of each segment. Adds nothing if none of the segments is in a published checkpoint. */
int issue_add_log(struct issue_job *issue, struct archive *archive, int64_t first_segment,
                  int64_t last_segment, struct error *error) MUST_CHECK;

#endif
