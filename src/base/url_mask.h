/* Addresses as they may be shown and kept for ever: without what may be a secret in them. */
#ifndef BASE_URL_MASK_H
#define BASE_URL_MASK_H

#include "base/buf.h"

/* Appends the address with ******** for its user and password, for the value of each parameter of
 * its query (a parameter without '=' is a value), and for its fragment. Scheme, host, path and the
 * names of parameters stay: a secret in the path does, too. */
void url_mask(struct slice url, struct buf *out);

#endif
