/* The HTTP server: the public listener, which serves docs/openapi.yaml, and the operators' listener
 * with /livez, /readyz and /metrics.
 *
 * Threads: one thread accepts the connections of the public listener and distributes them to
 * `http.loops` polling threads. The operators' listener has a polling thread of its own. Polling
 * threads parse, check, hash and answer. They never block on a disk or a network (base/thread.h).
 * Workers look up keys, read the store, write and read content, and serve the operators' listener;
 * each kind of task has separate threads. A sequencer returns registered batches and wakes the
 * polling threads. A request that has waited for `http.deadline` is answered 503, and a later
 * result is discarded. http_start, http_drain and http_stop must be called by one thread. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

/* Each listener has an address, and a certificate if it uses TLS. */
enum http_listener { HTTP_PUBLIC, HTTP_OPERATORS, HTTP_LISTENERS };

struct http_server;
struct admin;
struct service;
struct settings;

/* Listens on service.listen and service.admin_listen ("127.0.0.1:8080", "[::1]:8080"; port 0: any
 * free port; empty admin_listen: none) and serves until http_stop. The service, and `admin` for the
 * console (NULL: no console), must live until then. ERR_VALIDATION: a setting is not usable;
 * ERR_IO: an address is not available. */
int http_start(struct service *service, struct admin *admin, struct http_server **ret_server,
               struct error *error) MUST_CHECK;

/* Returns the port of a listen address such as "127.0.0.1:8080" or "[::1]:0"; -1: invalid. */
int http_listen_port(const char *text) MUST_CHECK;
/* Returns whether the listeners cannot both have these addresses. Sockets that the supervisor
 * passes never conflict. */
bool http_listeners_conflict(const char *listen, const char *admin_listen);
/* Checks whether an address can be bound, without listening on it; `setting` is its name.
 * ERR_VALIDATION, ERR_IO with the cause. */
int http_check_listen_address(const char *setting, const char *text, struct error *error)
	MUST_CHECK;

/* Returns whether the address needs a reverse proxy: the HTTP library is older than 1.0, and the
 * address is reachable from other machines. Sets `error` then. */
bool http_needs_proxy(const char *text, struct error *error);

/* Reports an error or a warning about the setting of that name. */
typedef void http_setting_problem(void *context, const char *setting, const char *what);
/* Reads the files of service.tls_* and service.admin_tls_* as at a start. */
void http_check_tls(const struct settings *settings, http_setting_problem *problem,
                    http_setting_problem *warning, void *context);
/* Time before the expiry of a listener's certificate from which a warning is reported. */
#define HTTP_TLS_WARN_US (14 * US_PER_DAY)

/* Applies service.trusted_proxies, the settings of the request log, and the TLS files while
 * serving. Open connections keep their accounting and their certificate. ERR_VALIDATION with
 * `ret_setting`, the name of the setting, ERR_NO_MEMORY, ERR_UNAVAILABLE: nothing has changed. */
int http_reload(struct http_server *server, const struct settings *settings,
                const char **ret_setting, struct error *error) MUST_CHECK;

/* Return the ports of the listeners; 0: none. */
uint16_t http_port(const struct http_server *server);
uint16_t http_monitor_port(const struct http_server *server);

/* Returns whether every polling thread has completed an iteration since the last call that returned
 * true. A thread that hangs or blocks does not. */
bool http_has_iterated(struct http_server *server);

/* Makes /readyz answer 503 and asks clients to close their connections. All requests are served. */
void http_announce_drain(struct http_server *server);
/* Stops accepting connections, makes /readyz answer 503, and asks clients to close their
 * connections. Blocks until no request is in progress or expected on a new connection, or until the
 * clock_monotonic_us time `deadline_us`. */
void http_drain(struct http_server *server, int64_t deadline_us);

/* Ends threads and connections and frees everything. The service's registrar must still run:
 * http_stop waits for it. NULL-safe. */
void http_stop(struct http_server *server);

#endif
