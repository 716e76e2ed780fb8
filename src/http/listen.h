/* Sockets that are listened on: the program's own, or such as its supervisor hands over, which go
 * on listening while the program is started anew. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The socket of that name among those that the supervisor hands over (LISTEN_FDS, LISTEN_FDNAMES);
 * without one, listens on "127.0.0.1:8080", "[::1]:8080" (port 0: a free one). ERR_VALIDATION for
 * an address or socket that cannot be used, ERR_IO. */
int listen_on(const char *setting, const char *text, const char *name, int *ret_descriptor,
              uint16_t *ret_port, struct error *error) MUST_CHECK;
bool listen_is_handed_over(const char *name);
/* Whether such an address, or the one that a socket is bound to, is reached from this machine
 * alone. */
bool listen_is_loopback(const char *text);
bool listen_is_bound_to_loopback(int descriptor);
/* The port that such an address names; -1: it is none. No names: what they stand for may change. */
int listen_port(const char *text) MUST_CHECK;
/* Whether an address could be listened on now, which nobody then does. ERR_VALIDATION, ERR_IO. */
int listen_try(const char *setting, const char *text, struct error *error) MUST_CHECK;

#endif
