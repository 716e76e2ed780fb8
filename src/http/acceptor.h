/* The acceptor: the thread that accepts the connections of the public listener. It decides which
 * clients may connect (http/clients.h) and gives each connection to the loop with the fewest
 * connections. If descriptors or memory are exhausted, or evicted connections are not closed yet,
 * it evicts a connection and pauses briefly before it accepts again. */
#ifndef HTTP_ACCEPTOR_H
#define HTTP_ACCEPTOR_H

#include <stdbool.h>

#include "base/error.h"

struct acceptor;
struct http_server;

/* Accepts from `listen_descriptor`, which the caller keeps, for the loops of the server. The loops
 * must run until acceptor_stop. */
int acceptor_start(struct http_server *server, int listen_descriptor, struct acceptor **ret,
                   struct error *error) MUST_CHECK;
/* Accepts the connections that are already established, then no more. */
void acceptor_drain(struct acceptor *acceptor);
/* Returns whether acceptor_drain has completed and no more connections are accepted. */
bool acceptor_is_drained(struct acceptor *acceptor);
/* Returns whether the thread has completed an iteration since acceptor_mark_seen. */
bool acceptor_has_iterated(struct acceptor *acceptor);
void acceptor_mark_seen(struct acceptor *acceptor);
void acceptor_stop(struct acceptor *acceptor); /* NULL-safe */

#endif
