/* Web origins (RFC 6454) in a canonical form for comparison. */
#ifndef NET_ORIGIN_H
#define NET_ORIGIN_H

#include <stdbool.h>

#include "base/buf.h"
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

/* Checks a list of origins such as "https://app.example.org,http://localhost:5173": each as
 * browsers send it, in lower case, without a default port and without a path. False with the first
 * entry that is none. */
bool origin_list_is_valid(const char *list, struct slice *ret_wrong);
/* Returns whether the list has exactly this origin. */
bool origin_list_has(const char *list, struct slice origin);

#endif
