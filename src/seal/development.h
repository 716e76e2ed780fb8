/* Keys and certificates for development. Inside src/seal only; called in the signer process. */
#ifndef SEAL_DEVELOPMENT_H
#define SEAL_DEVELOPMENT_H

#include "base/error.h"

/* Makes what is missing in the directory: report-root.pem and report.pem, timestamp-root.pem and
 * timestamp.pem. The roots' keys are forgotten once they have signed. 0, ERR_IO or ERR_INTERNAL. */
int development_create(const char *directory, struct error *error) MUST_CHECK;

#endif
