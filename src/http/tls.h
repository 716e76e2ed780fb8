/* TLS 1.2 and 1.3 of a listener (service.tls_certificate, service.admin_tls_certificate), by
 * libmicrohttpd and GnuTLS.
 *
 * What a listener shows is a generation: a certificate with its issuers, its key, the roots of its
 * clients' certificates, and a key of session tickets that is nowhere else. A connection keeps the
 * generation that it began with; when files are read again, new connections get the new one, and
 * the former is freed with the last connection that has it.
 *
 * libmicrohttpd takes a connection whose handshake waits for the client as ready all the time. So
 * until the first request line has come we watch the socket ourselves, and the library has it
 * suspended meanwhile. */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "http/libmicrohttpd.h"
#include "http/server.h"

struct client;
struct loop;
struct tls_generation;
struct tls_session;

struct tls_listener {
	pthread_mutex_t lock;
	struct tls_generation *current; /* NULL: the listener speaks plain HTTP */
};

/* What libmicrohttpd is started with. */
#define TLS_FLAGS (MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_TLS)
extern struct MHD_OptionItem tls_options[];

void tls_init(struct tls_listener *listener);
void tls_free(struct tls_listener *listener);
/* Takes the generation over. Any thread. */
void tls_replace(struct tls_listener *listener, struct tls_generation *fresh);

/* ---- in the loop's thread ---- */

/* For a connection that has just begun. False without memory: its handshake will fail. */
bool tls_begin(struct client *client, struct tls_listener *listener) MUST_CHECK;
/* The library has freed what it had of the session. NULL-safe. */
void tls_is_gone(struct tls_session *session);
/* The connection is gone. NULL-safe. */
void tls_end(struct tls_session *session);
/* Says `text`, if it can be said at once, and that nothing follows. False: it was not said, or not
 * whole: nothing is before the handshake is over, and once the session is gone. */
bool tls_say_last(struct tls_session *session, struct slice text);
/* Reads what has come, within bounds, and drops it. */
void tls_discard(struct tls_session *session);
/* The socket that `session` waited for is ready, or is not to be waited for. */
void tls_go_on(struct tls_session *session);
/* The first request line has come. NULL-safe, as what follows. */
void tls_has_request(struct tls_session *session);
/* The library has passed on a head, or bytes of a body: the client may send as much again. */
void tls_makes_progress(struct tls_session *session);
/* None has. False of NULL. */
bool tls_is_silent(const struct tls_session *session);
bool tls_has_shaken_hands(const struct tls_session *session);
/* Bytes that were decrypted and that the library has not read. */
int tls_unread(const struct tls_session *session);

#endif
