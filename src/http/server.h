/* The HTTP interface: the public listener with everything of docs/openapi.yaml, and the
 * operator's listener with /livez, /readyz and /metrics.
 *
 * Threads: one accepts the connections of the public listener and gives them to `http.loops`
 * polling threads; the operator's listener has a polling thread of its own. These parse, check,
 * hash and answer, and never wait for a disk or a network (base/thread.h): workers look up keys,
 * read the store, write and read content, or ask what the operator's listener answers, each kind
 * with threads of its own. A sequencer that has registered a batch hands it back and wakes the
 * polling threads. A request that has waited for `http.deadline` is answered 503, and what comes
 * later finds nobody. http_start, http_drain and http_stop belong to one thread. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

/* Each has an address, and a certificate if it speaks TLS. */
enum http_listener { HTTP_PUBLIC, HTTP_OPERATORS, HTTP_LISTENERS };

struct http_server;
struct admin;
struct service;
struct settings;

/* Listens on service.listen and service.admin_listen ("127.0.0.1:8080", "[::1]:8080"; port 0 takes
 * a free one; an empty admin_listen: none) and serves until http_stop. The service, and what the
 * console asks (NULL: there is no console), must live until then. ERR_VALIDATION for a setting that
 * cannot be used, ERR_IO when an address cannot be had. */
int http_start(struct service *service, struct admin *admin, struct http_server **ret_server,
               struct error *error) MUST_CHECK;

/* The port of an address that can be listened on, such as "127.0.0.1:8080" or "[::1]:0"; -1: it is
 * not one. */
int http_listen_port(const char *text) MUST_CHECK;
/* Whether an address could be listened on now, which nobody then does; `setting` is its name.
 * ERR_VALIDATION, ERR_IO with the cause. */
int http_check_listen(const char *setting, const char *text, struct error *error) MUST_CHECK;

/* Whether an address needs a proxy in front: the HTTP library is older than 1.0, and others than
 * this machine reach it. Tells so in `error`. */
bool http_needs_proxy(const char *text, struct error *error);

/* What is wrong, or questionable, with the setting of that name. */
typedef void http_problem(void *context, const char *setting, const char *what);
/* Reads the files of service.tls_* and service.admin_tls_* as a start does. */
void http_check_tls(const struct settings *settings, http_problem *problem, http_problem *warning,
                    void *context);
/* How long before the end of a listener's certificate that is said. */
#define HTTP_TLS_WARN_US (14 * US_PER_DAY)

/* Takes over service.trusted_proxies, what the log says of requests, and the files of TLS, while
 * serving; connections that are open keep what they were counted by, and their certificate.
 * ERR_VALIDATION with `ret_setting`, the name of the setting, ERR_NO_MEMORY, ERR_UNAVAILABLE:
 * nothing has changed. */
int http_reload(struct http_server *server, const struct settings *settings,
                const char **ret_setting, struct error *error) MUST_CHECK;

/* The ports that are listened on; 0: none. */
uint16_t http_port(const struct http_server *server);
uint16_t http_monitor_port(const struct http_server *server);

/* Whether every thread that polls sockets has gone round since it was last found so: one that
 * hangs, or waits for what it must not wait for, does not. */
bool http_has_turned(struct http_server *server);

/* Takes no new connections, has /readyz answer 503, asks clients to close theirs, and waits until
 * no request is under way, or about to be on a connection just taken, or the clock_monotonic_us
 * time `deadline_us` has come. */
void http_drain(struct http_server *server, int64_t deadline_us);

/* Ends threads and connections and frees everything. The service's registrar must still run: it is
 * waited for. NULL-safe. */
void http_stop(struct http_server *server);

#endif
