/* Listening sockets: created by the program, or passed by its supervisor. Passed sockets stay open
 * while the program restarts. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Returns the socket of that name passed by the supervisor (LISTEN_FDS, LISTEN_FDNAMES). If there
 * is none, listens on "127.0.0.1:8080" or "[::1]:8080" (port 0: any free port). ERR_VALIDATION: the
 * address or socket is not usable; ERR_IO. */
int listen_on(const char *setting, const char *text, const char *name, int *ret_descriptor,
              uint16_t *ret_port, struct error *error) MUST_CHECK;
bool listen_is_inherited(const char *name);
/* Return whether an address, or the address of a bound socket, is reachable only from this
 * machine. */
bool listen_is_loopback(const char *text);
bool listen_is_bound_to_loopback(int descriptor);
/* Returns whether sockets at both addresses conflict: the same port, not 0, and the same address,
 * or one that stands for all of this machine. */
bool listen_conflicts(const char *one, const char *other);
/* Returns the port of an address; -1: invalid. Host names are not accepted because their addresses
 * can change. */
int listen_port(const char *text) MUST_CHECK;
/* Checks whether the address can be bound, without listening on it. ERR_VALIDATION, ERR_IO. */
int listen_check(const char *setting, const char *text, struct error *error) MUST_CHECK;

#endif
