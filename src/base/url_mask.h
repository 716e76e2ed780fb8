/* Masks secrets in URLs that are shown or stored permanently. */
#ifndef BASE_URL_MASK_H
#define BASE_URL_MASK_H

#include "base/buf.h"

/* Appends the URL with ******** in place of user and password, the value of each query parameter (a
 * parameter without '=' is a value) and the fragment. Scheme, host, path and parameter names are
 * kept, so a secret in the path remains. */
void url_mask(struct slice url, struct buf *out);

#endif
