/* Finds the API key of a request, and states what is wrong if it is missing or misplaced. Pure
 * functions. */
#ifndef HTTP_CREDENTIAL_H
#define HTTP_CREDENTIAL_H

#include "http/exchange.h"

#define CREDENTIAL_SCRATCH (KEY_TEXT_MAX + 4)

/* Finds a candidate key in the Authorization header or in the service's own header. It points into
 * the head or into `scratch`, which the caller wipes. ERR_INVALID_KEY: there is none. The message
 * states where the key belongs and never contains received data. ERR_VALIDATION: the service's own
 * header is repeated. `prefix` is the prefix of the service. */
int credential_find(const struct head *head, struct slice query, const char *prefix,
                    char scratch[CREDENTIAL_SCRATCH], struct slice *ret_key, struct error *error)
	MUST_CHECK;
/* Returns whether a header that is not evaluated commonly carries keys in other APIs, or contains a
 * key of this service. */
bool credential_is_misplaced(struct slice name, struct slice value, const char *prefix);

#endif
