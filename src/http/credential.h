/* Where a request's API key stands, and what is told to whom it stands nowhere or elsewhere for.
 * Pure. */
#ifndef HTTP_CREDENTIAL_H
#define HTTP_CREDENTIAL_H

#include "http/exchange.h"

#define CREDENTIAL_SCRATCH (KEY_TEXT_MAX + 4)

/* What may be a key: in the Authorization header, or in the service's own. It lies in the head or
 * in `scratch`, which the caller wipes. ERR_INVALID_KEY: there is none; the sentence says where it
 * belongs and never what came. `prefix` is the service's. */
int credential_find(const struct head *head, struct slice query, const char *prefix,
                    char scratch[CREDENTIAL_SCRATCH], struct slice *ret_key, struct error *error)
	MUST_CHECK;
/* Whether a header, none of those that are looked at, is where others look for a key, or has one of
 * this service. */
bool credential_misplaced(struct slice name, struct slice value, const char *prefix);

#endif
