/* The thread that accepts the connections of the public listener. It decides who may connect
 * (http/clients.h) and gives each to the loop that has the fewest. When descriptors or memory are
 * used up, or those that gave way are not closed yet, it makes room and waits for a moment before
 * it goes on. */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include <stdbool.h>

#include "base/error.h"

struct acceptor;
struct http_server;

/* Accepts from `listen_descriptor`, which stays the caller's, for the server's loops, which have to
 * run until acceptor_stop. */
int acceptor_start(struct http_server *server, int listen_descriptor, struct acceptor **ret,
                   struct error *error) MUST_CHECK;
/* Takes those who are connected already, and then no more. */
void acceptor_drain(struct acceptor *acceptor);
/* Whether it takes no more. */
bool acceptor_is_quiet(struct acceptor *acceptor);
/* Whether it has gone round since acceptor_seen. */
bool acceptor_has_turned(struct acceptor *acceptor);
void acceptor_seen(struct acceptor *acceptor);
void acceptor_stop(struct acceptor *acceptor); /* NULL-safe */

#endif
