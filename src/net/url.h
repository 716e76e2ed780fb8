/* The folder's own: what an address is made of, read without libcurl, which is loaded only where
 * something is sent. What is taken here libcurl takes too (tests/unit/net/test_url.c). */
#ifndef NET_URL_H
#define NET_URL_H

#include <stdbool.h>

#include "base/buf.h"

struct url {
	struct slice scheme; /* as it is written, in whatever case */
	struct slice path;   /* with the query; empty, or from '/' or '?' on */
};

/* SCHEME://HOST[:PORT][/…][?…] of printable ASCII, without user, fragment and escapes in its host,
 * which is a name, an IPv4 address or an IPv6 address in brackets. The parts point into `text`. */
bool url_read(struct slice text, struct url *ret_url) MUST_CHECK;
bool url_has_scheme(const struct url *url, const char *scheme);

#endif
