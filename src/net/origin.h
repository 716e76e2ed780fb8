/* Origins (RFC 6454): where an address begins, in the one form in which origins are compared. */
#ifndef NET_ORIGIN_H
#define NET_ORIGIN_H

#include <stdbool.h>

#include "base/must_check.h"

#define ORIGIN_SIZE 300

struct origin {
	char text[ORIGIN_SIZE]; /* "https://example.org:8443": in lower case, no port that is usual */
	char host[ORIGIN_SIZE]; /* "example.org"; of an address in brackets with these */
	bool secure;            /* https */
};
/* Of "https://Example.org:443/x" it is "https://example.org". False: no address of the web, or one
 * with a user. */
bool origin_read(const char *address, struct origin *ret) MUST_CHECK;

#endif
