/* Determines whether verified files come from this service. */
#ifndef ISSUE_FILE_ORIGIN_H
#define ISSUE_FILE_ORIGIN_H

#include "issue/check_file.h"
#include "service/service.h"

/* Classifies each file in the verifier's result: issued by this service (its SHA-256 is recorded),
 * or signed by one of its keys while the key was in force. A file that is neither makes the result
 * invalid, with a finding. A file that is signed but not recorded gets a warning. `digest` is the
 * digest of the uploaded file; for files in a container the verifier's digest is used. Adds
 * "certification_id" and "origin" to each file. Accesses the store; additions are allocated in the
 * arena. */
int file_origin_judge(struct service *service, const struct sha256 *digest, struct arena *arena,
                      struct file_check *check, struct error *error) MUST_CHECK;

#endif
