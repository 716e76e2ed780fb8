/* What a running node tells the one who supervises it (base/notify.h): that its start makes
 * progress, that it serves, that it lives. Belongs to the main thread. */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include <stdint.h>

#include "base/must_check.h"

struct http_server;
struct supervision;

/* The start begins: as long as it makes progress (uses the processor, reads or writes) the
 * supervisor is asked for more time. NULL: nobody supervises, or there is no memory. */
struct supervision *supervise_start(void);
/* It serves. NULL-safe, as what follows. */
void supervise_ready(struct supervision *supervision, const char *listen);
/* To be called several times a second: says that the node lives, half as often as is asked for, if
 * every thread that polls sockets has gone round since it was last said. */
void supervise_look(struct supervision *supervision, struct http_server *http);
/* It ends: from here to supervise_free a thread says that it lives, since requests that are under
 * way are answered first. */
void supervise_stop(struct supervision *supervision);
void supervise_free(struct supervision *supervision);

#endif
