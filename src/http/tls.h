/* TLS 1.2 and 1.3 of a listener (service.tls_certificate, service.admin_tls_certificate), with
 * libmicrohttpd and GnuTLS.
 *
 * The TLS state of a listener is a generation: a certificate with its issuers, its key, the roots
 * of client certificates, and a key for session tickets that is never shared. A connection keeps
 * the generation with which it started. After a reload, new connections use the new generation, and
 * the previous one is freed with its last connection.
 *
 * libmicrohttpd treats a connection whose handshake waits for the client as always ready. Until the
 * first request line has arrived, we therefore poll the socket ourselves, and the connection is
 * suspended in the library. */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "libmicrohttpd.h"
#include "http/server.h"

struct client;
struct loop;
struct tls_generation;
struct tls_session;

struct tls_listener {
	pthread_mutex_t lock;
	struct tls_generation *current; /* NULL: the listener uses plain HTTP */
};

/* Options with which libmicrohttpd is started. */
#define TLS_FLAGS (MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_TLS)
extern struct MHD_OptionItem tls_options[];

void tls_init(struct tls_listener *listener);
void tls_free(struct tls_listener *listener);
/* Replaces the generation; takes ownership. Any thread. */
void tls_replace(struct tls_listener *listener, struct tls_generation *fresh);

/* ---- in the loop's thread ---- */

/* Starts TLS for a new connection. False without memory: its handshake will fail. */
bool tls_begin(struct client *client, struct tls_listener *listener) MUST_CHECK;
/* Handles the end of the library's session. NULL-safe. */
void tls_session_closed(struct tls_session *session);
/* Frees the session of a closed connection. NULL-safe. */
void tls_end(struct tls_session *session);
/* Sends `text` if possible without blocking, and closes the sending direction. False: it was not
 * sent, or not in full. Before the end of the handshake, and after the end of the session, nothing
 * is sent. */
bool tls_send_last(struct tls_session *session, struct slice text);
/* Reads and discards received data, within bounds. */
void tls_discard(struct tls_session *session);
/* Resumes the session: its socket is ready, or must no longer be waited for. */
void tls_resume(struct tls_session *session);
/* Handles the first request line. NULL-safe, as are the following functions. */
void tls_begin_request(struct tls_session *session);
/* Resets the limit on unprocessed data, because the library has passed on a head or bytes of a
 * body. */
void tls_note_progress(struct tls_session *session);
/* Returns whether no request line has arrived. False for NULL. */
bool tls_has_no_request(const struct tls_session *session);
bool tls_is_established(const struct tls_session *session);
/* Returns the number of decrypted bytes that the library has not read. */
int tls_unread(const struct tls_session *session);

#endif
