/* Log lines about timestamp authorities that failed. */
#ifndef SERVICE_AUTHORITY_FAILURES_H
#define SERVICE_AUTHORITY_FAILURES_H

#include "seal/authority.h"

/* Writes "authority_failed" for each authority that was asked and failed. */
void authority_failures_log(const struct authority_failures *failures);

#endif
