/* Whether what the verifier found in a file is this service's. */
#ifndef ISSUE_FILE_ORIGIN_H
#define ISSUE_FILE_ORIGIN_H

#include "issue/check_file.h"
#include "service/service.h"

/* Judges each file that the verifier names: whether this service issued it (its SHA-256 is on
 * record), or whether one of its keys signed it while it was in force. What is neither makes the
 * whole not valid, with a finding; what is signed without being on record gets a warning. `digest`
 * is that of the file handed in; for those in a container the verifier's word is taken. Each of
 * the files gets its "certification_id" and "origin". Asks the store; what is added lies in the
 * arena. */
int file_origin_judge(struct service *service, const struct sha256 *digest, struct arena *arena,
                      struct file_check *check, struct error *error) MUST_CHECK;

#endif
