/* Web origins (RFC 6454) in a canonical form for comparison. */
#ifndef NET_ORIGIN_H
#define NET_ORIGIN_H

#include <stdbool.h>

#include "base/must_check.h"

#define ORIGIN_SIZE 300

struct origin {
	char text[ORIGIN_SIZE]; /* "https://example.org:8443", in lower case, without a default port */
	char host[ORIGIN_SIZE]; /* "example.org"; an IPv6 address has brackets */
	bool secure;            /* https */
};
/* Gets the origin of a URL: "https://example.org" for "https://Example.org:443/x". Returns false
 * for other schemes or a URL with a user. */
bool origin_read(const char *address, struct origin *ret) MUST_CHECK;

#endif
