/* Notifies the supervisor (base/notify.h) that the start makes progress, that the node serves, and
 * that it is alive. Belongs to the main thread. */
#ifndef CLI_SUPERVISION_H
#define CLI_SUPERVISION_H

#include <stdint.h>

#include "base/must_check.h"

struct http_server;
struct supervision;

/* Begins the start. While it makes progress (uses the processor, reads or writes), the supervisor
 * is asked for more time. Returns NULL without a supervisor or without memory. */
struct supervision *supervision_start(void);
/* Notifies that the node serves. NULL-safe, like the following functions. */
void supervision_notify_ready(struct supervision *supervision, const char *listen);
/* Sends the keep-alive notification when half of the watchdog interval is over and every thread
 * that polls sockets has completed a loop since the last one. To be called several times a
 * second. */
void supervision_keep_alive(struct supervision *supervision, struct http_server *http);
/* Notifies that the node stops. Until supervision_free a thread sends keep-alive notifications,
 * since requests in progress are completed first. */
void supervision_begin_stop(struct supervision *supervision);
void supervision_free(struct supervision *supervision);

#endif
