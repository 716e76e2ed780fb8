#include "http/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "libgnutls.h"
#include "http/http_internal.h"
#include "http/tls_files.h"

#define RECORD_MAX ((size_t)16 * 1024)
#define RECORD_HEADER_SIZE 5
#define APPLICATION_DATA 23          /* ContentType, RFC 8446 section 5.1 */
#define RECORD_OVERHEAD ((size_t)17) /* of a protected record: tag and type */
/* Maximum data that a client may send without completing its handshake or making progress with a
 * request. GnuTLS buffers handshake messages until they are complete, at any time, and a message
 * may declare up to 16 MiB. */
#define HELLO_MAX ((size_t)16 * 1024)
#define CERTIFICATES_MAX ((size_t)64 * 1024) /* if clients present certificates */
#define AHEAD_MAX ((size_t)64 * 1024)        /* after the handshake */
#define DISCARDED_PIECE 4096
#define DISCARDED_PIECES 64 /* maximum reads, because even small records cost CPU */

/* Only forward secrecy and authenticated encryption. The library's defaults for groups and
 * signatures evolve with it. They no longer include SHA-1, which is excluded explicitly for old
 * versions. */
#define PRIORITIES                                                                                 \
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"                  \
	"-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:"                     \
	"-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:%SERVER_PRECEDENCE:%SAFE_RENEGOTIATION"

struct tls_session {
	struct client *client;
	gnutls_session_t session; /* NULL: freed by the library */
	struct tls_generation *generation;
	int descriptor;
	bool has_request;  /* the first request line has arrived */
	bool waits;        /* suspended, and its socket is polled */
	bool shaken_hands; /* the client's Finished message has arrived */
	/* Payload bytes since the last progress, and the position in the current record. */
	size_t ahead, header_used, record_left;
	uint8_t header[RECORD_HEADER_SIZE];
};

void tls_init(struct tls_listener *listener)
{
	pthread_mutex_init(&listener->lock, NULL);
	listener->current = NULL;
}

void tls_free(struct tls_listener *listener)
{
	tls_release(listener->current);
	listener->current = NULL;
	pthread_mutex_destroy(&listener->lock);
}

void tls_replace(struct tls_listener *listener, struct tls_generation *fresh)
{
	pthread_mutex_lock(&listener->lock);
	struct tls_generation *former = listener->current;
	listener->current = fresh;
	pthread_mutex_unlock(&listener->lock);
	tls_release(former);
}

static struct tls_generation *hold(struct tls_listener *listener)
{
	pthread_mutex_lock(&listener->lock);
	struct tls_generation *generation = listener->current;
	atomic_fetch_add(&generation->holders, 1);
	pthread_mutex_unlock(&listener->lock);
	return generation;
}

/* ---- options of libmicrohttpd ---- */

/* The library requires a callback. It is never called, because each session has its own
 * credentials. */
static int refuse_callback(gnutls_session_t session, const gnutls_datum_t *issuers,
                           int issuer_count, const gnutls_pk_algorithm_t *algorithms,
                           int algorithm_count, gnutls_pcert_st **certificates,
                           unsigned *certificate_count, gnutls_privkey_t *key)
{
	return -1;
}

struct MHD_OptionItem tls_options[] = {
	{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)refuse_callback},
	{MHD_OPTION_HTTPS_PRIORITIES, 0, PRIORITIES},
	{MHD_OPTION_END, 0, NULL},
};

/* ---- sockets ---- */

/* Suspends the connection until the socket is ready. Called within the library's own reads and
 * writes. */
static void wait_for(struct tls_session *session, uint32_t events)
{
	struct client *client = session->client;
	struct loop *loop = client->loop;
	struct epoll_event event = {.events = events | EPOLLRDHUP, .data.ptr = session};
	if (session->has_request || client_is_cut(client) || session->waits || loop->ending)
		return;
	if (epoll_ctl(loop->poll_descriptor, EPOLL_CTL_ADD, session->descriptor, &event) != 0)
		return;
	session->waits = true;
	loop->handshakes++;
	MHD_suspend_connection(client->connection);
}

static void stop_watching(struct tls_session *session)
{
	struct loop *loop = session->client->loop;
	session->waits = false;
	loop->handshakes--;
	(void)epoll_ctl(loop->poll_descriptor, EPOLL_CTL_DEL, session->descriptor, NULL);
}

void tls_resume(struct tls_session *session)
{
	if (!session->waits)
		return;
	stop_watching(session);
	MHD_resume_connection(session->client->connection);
}

static void begin_record(struct tls_session *session)
{
	const uint8_t *header = session->header;
	size_t size = (size_t)header[3] << 8 | header[4];
	size_t overhead = header[0] == APPLICATION_DATA ? RECORD_OVERHEAD : 0;
	session->record_left = size;
	session->ahead += size > overhead ? size - overhead : 0;
	session->header_used = 0;
}

/* Counts the payload of the records (RFC 8446 section 5.1). False: the client has sent too much. */
static bool count(struct tls_session *session, const uint8_t *data, size_t size)
{
	size_t most = session->shaken_hands                        ? AHEAD_MAX
	              : session->generation->requests_certificates ? CERTIFICATES_MAX
	                                                           : HELLO_MAX;
	while (size > 0) {
		size_t skipped = size < session->record_left ? size : session->record_left;
		session->record_left -= skipped;
		data += skipped;
		size -= skipped;
		if (!size)
			break;
		session->header[session->header_used++] = *data++;
		size--;
		if (session->header_used == RECORD_HEADER_SIZE)
			begin_record(session);
	}
	return session->ahead <= most;
}

static ssize_t pull(gnutls_transport_ptr_t context, void *data, size_t size)
{
	struct tls_session *session = context;
	ssize_t got = recv(session->descriptor, data, size, MSG_DONTWAIT);
	if (got > 0 && !count(session, data, (size_t)got)) {
		errno = EPROTO;
		return -1;
	}
	if (got < 0 && errno == EAGAIN) {
		wait_for(session, EPOLLIN);
		errno = EAGAIN;
	}
	return got;
}

static ssize_t push(gnutls_transport_ptr_t context, const giovec_t *pieces, int count)
{
	struct tls_session *session = context;
	struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
	ssize_t sent = sendmsg(session->descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && errno == EAGAIN) {
		wait_for(session, EPOLLOUT);
		errno = EAGAIN;
	}
	return sent;
}

static int is_readable(gnutls_transport_ptr_t context, unsigned wait_ms)
{
	struct tls_session *session = context;
	struct pollfd look = {.fd = session->descriptor, .events = POLLIN};
	return poll(&look, 1, 0);
}

/* ---- sessions ---- */

static int note_finished(gnutls_session_t gnutls, unsigned type, unsigned when, unsigned incoming,
                         const gnutls_datum_t *message)
{
	struct tls_session *session = gnutls_transport_get_ptr(gnutls);
	session->shaken_hands = session->shaken_hands || incoming;
	if (incoming)
		session->ahead = 0;
	return 0;
}

static bool ask_clients(gnutls_session_t gnutls)
{
	static gnutls_typed_vdata_st purpose[] = {
		{GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0}};
	gnutls_certificate_server_set_request(gnutls, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_cert2(gnutls, purpose, 1, 0);
	return true;
}

/* Configures the session. No tickets with client certificates, because a resumed session would not
 * verify the certificate again. */
static bool set_up(struct tls_session *session)
{
	struct tls_generation *generation = session->generation;
	gnutls_session_t gnutls = session->session;
	gnutls_transport_set_ptr(gnutls, session);
	gnutls_transport_set_pull_function(gnutls, pull);
	gnutls_transport_set_pull_timeout_function(gnutls, is_readable);
	gnutls_transport_set_vec_push_function(gnutls, push);
	gnutls_handshake_set_hook_function(gnutls, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
	                                   note_finished);
	if (gnutls_credentials_set(gnutls, GNUTLS_CRD_CERTIFICATE, generation->credentials) < 0)
		return false;
	return generation->requests_certificates
	           ? ask_clients(gnutls)
	           : gnutls_session_ticket_enable_server(gnutls, &generation->ticket_key) == 0;
}

bool tls_begin(struct client *client, struct tls_listener *listener)
{
	const union MHD_ConnectionInfo *session_info =
		MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	gnutls_session_t gnutls = session_info ? session_info->tls_session : NULL;
	const union MHD_ConnectionInfo *socket_info =
		MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct tls_session *session = calloc(1, sizeof *session);
	if (!gnutls || !socket_info || !session) {
		free(session);
		return false;
	}
	session->client = client;
	session->session = gnutls;
	session->descriptor = socket_info->connect_fd;
	session->generation = hold(listener);
	client->tls = session;
	return set_up(session);
}

void tls_session_closed(struct tls_session *session)
{
	if (session)
		session->session = NULL;
}

void tls_end(struct tls_session *session)
{
	if (!session)
		return;
	if (session->waits)
		stop_watching(session);
	tls_release(session->generation);
	free(session);
}

void tls_begin_request(struct tls_session *session)
{
	if (session)
		session->has_request = true;
	tls_note_progress(session);
}

void tls_note_progress(struct tls_session *session)
{
	if (session)
		session->ahead = 0;
}

bool tls_has_no_request(const struct tls_session *session)
{
	return session && !session->has_request;
}

bool tls_is_established(const struct tls_session *session)
{
	return session && session->shaken_hands;
}

static bool can_send(const struct tls_session *session)
{
	return session->session && session->shaken_hands;
}

int tls_unread(const struct tls_session *session)
{
	return session ? (int)gnutls_record_check_pending(session->session) : 0;
}

/* Returns whether an earlier write is incomplete. A new write would then report the earlier data as
 * its own. */
static bool has_unsent(struct tls_session *session)
{
	return gnutls_record_send(session->session, NULL, 0) != GNUTLS_E_INVALID_REQUEST;
}

bool tls_send_last(struct tls_session *session, struct slice text)
{
	if (!can_send(session) || has_unsent(session))
		return false;
	while (text.size) {
		ssize_t sent = gnutls_record_send(session->session, text.data,
		                                  text.size < RECORD_MAX ? text.size : RECORD_MAX);
		if (sent <= 0 && sent != GNUTLS_E_INTERRUPTED)
			return false;
		if (sent > 0)
			text = slice_make(text.data + sent, text.size - (size_t)sent);
	}
	(void)gnutls_bye(session->session, GNUTLS_SHUT_WR);
	return true;
}

void tls_discard(struct tls_session *session)
{
	char data[DISCARDED_PIECE];
	bool more = can_send(session);
	for (int i = 0; more && i < DISCARDED_PIECES; i++) {
		more = gnutls_record_recv(session->session, data, sizeof data) > 0;
		session->ahead = 0;
	}
}
