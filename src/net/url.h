/* Internal to net: URL parsing without libcurl, which is loaded only for sending. libcurl accepts
 * every URL that is accepted here (tests/unit/net/test_url.c). */
#ifndef NET_URL_H
#define NET_URL_H

#include <stdbool.h>

#include "base/buf.h"

struct url {
	struct slice scheme; /* as written, in any case */
	struct slice path;   /* with the query; empty, or begins with '/' or '?' */
};

/* Parses SCHEME://HOST[:PORT][/…][?…] in printable ASCII, without user, fragment and escapes in the
 * host. The host is a name, an IPv4 address or an IPv6 address in brackets. The parts point into
 * `text`. */
bool url_read(struct slice text, struct url *ret_url) MUST_CHECK;
bool url_has_scheme(const struct url *url, const char *scheme);

#endif
