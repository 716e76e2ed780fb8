/* Notifies the supervisor (base/notify.h) that the start makes progress, that the node serves, and
 * that it is alive. Belongs to the main thread. */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include <stdint.h>

#include "base/must_check.h"

struct http_server;
struct supervision;

/* Begins the start. While it makes progress (uses the processor, reads or writes), the supervisor
 * is asked for more time. Returns NULL without a supervisor or without memory. */
struct supervision *supervise_start(void);
/* Notifies that the node serves. NULL-safe, like the following functions. */
void supervise_ready(struct supervision *supervision, const char *listen);
/* Sends the keep-alive notification when half of the watchdog interval is over and every thread
 * that polls sockets has completed a loop since the last one. To be called several times a
 * second. */
void supervise_look(struct supervision *supervision, struct http_server *http);
/* Notifies that the node stops. Until supervise_free a thread sends keep-alive notifications, since
 * requests in progress are completed first. */
void supervise_stop(struct supervision *supervision);
void supervise_free(struct supervision *supervision);

#endif
