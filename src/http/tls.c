#include "http/tls.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "http/gnutls.h"
#include "http/internal.h"

#define PEM_SIZE_MAX ((size_t)1 << 20)
#define ISSUED_MAX 16
#define RECORD_MAX ((size_t)16 * 1024)

/* Forward secrecy and authenticated encryption alone. What of groups and signatures the library
 * takes for good grows with it; SHA-1 is none of these any more, and is named for old ones. */
#define PRIORITIES                                                                                 \
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"                  \
	"-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:"                     \
	"-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:%SERVER_PRECEDENCE:%SAFE_RENEGOTIATION"

struct tls_generation {
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t ticket_key;
	bool asks_clients;
	int64_t expires_us;
	_Atomic int holders;
};

struct tls_session {
	struct client *client;
	gnutls_session_t session;
	struct tls_generation *generation;
	int descriptor;
	bool waits;        /* suspended, and its socket is watched */
	bool shaken_hands; /* the client's last word of the handshake has come */
};

/* ---- files ---- */

static const struct names {
	const char *certificate, *key, *clients;
} names[HTTP_LISTENERS] = {
	[HTTP_PUBLIC] = {"service.tls_certificate", "service.tls_key", NULL},
	[HTTP_OPERATORS] = {"service.admin_tls_certificate", "service.admin_tls_key",
                        "service.admin_tls_clients"},
};

struct files {
	const char *certificate, *key, *clients;
};

static struct files files_of(const struct settings *settings, enum http_listener listener)
{
	if (listener == HTTP_PUBLIC)
		return (struct files){settings->service_tls_certificate, settings->service_tls_key, ""};
	return (struct files){settings->service_admin_tls_certificate, settings->service_admin_tls_key,
	                      settings->service_admin_tls_clients};
}

static bool is_set(const char *path)
{
	return path && *path;
}

struct reading {
	const struct names *names;
	http_problem *problem;
	void *context;
	const char **ret_setting;
	struct error *error;
};

static int refuse(const struct reading *reading, const char *setting, const char *what)
{
	*reading->ret_setting = setting;
	return error_cause(reading->error, ERR_VALIDATION, "%s", what);
}

__attribute__((format(printf, 3, 4))) static void question(const struct reading *reading,
                                                           const char *setting, const char *format,
                                                           ...)
{
	char what[256];
	va_list list;
	if (!reading->problem)
		return;
	va_start(list, format);
	vsnprintf(what, sizeof what, format, list);
	va_end(list);
	reading->problem(reading->context, setting, what);
}

/* A key that others may read is none; its group may, as where a tool of root's renews it. */
static int check_key_file(const struct reading *reading, const char *path)
{
	struct stat facts;
	if (stat(path, &facts) == 0 && facts.st_mode & (S_IWGRP | S_IRWXO))
		return refuse(reading, reading->names->key,
		              "must be closed to others: mode 0600, 0400, or 0640 with a group of its own");
	return OK;
}

static int read_file(const struct reading *reading, const char *setting, const char *path,
                     struct buf *out)
{
	struct error error = {0};
	buf_init(out, PEM_SIZE_MAX);
	int result = file_read_whole(path, out, &error);
	if (!result)
		result = buf_check(out);
	if (!result)
		return out->size ? OK : refuse(reading, setting, "is empty");
	*reading->ret_setting = setting;
	return error_cause(reading->error, result == ERR_NO_MEMORY ? result : ERR_VALIDATION,
	                   "cannot be read: %s", error_reason(&error, result));
}

static gnutls_datum_t datum_of(const struct buf *buf)
{
	return (gnutls_datum_t){(unsigned char *)buf->data, (unsigned)buf->size};
}

/* ---- what a certificate says ---- */

static void question_times(const struct reading *reading, int64_t from_us, int64_t until_us)
{
	char text[TIME_TEXT_SIZE];
	int64_t now_us = clock_now_us();
	if (now_us < from_us) {
		time_format(from_us, text);
		question(reading, reading->names->certificate, "is valid only from %s on", text);
	} else if (now_us > until_us) {
		time_format(until_us, text);
		question(reading, reading->names->certificate, "ended on %s: clients refuse it", text);
	} else if (until_us - now_us < HTTP_TLS_WARN_US) {
		time_format(until_us, text);
		question(reading, reading->names->certificate, "ends on %s", text);
	}
}

static int look_at_chain(const struct reading *reading, gnutls_x509_crt_t *chain, unsigned count,
                         struct tls_generation *generation)
{
	int64_t from_us = INT64_MIN, until_us = INT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		int64_t begins_us = gnutls_x509_crt_get_activation_time(chain[i]) * US_PER_SECOND;
		int64_t ends_us = gnutls_x509_crt_get_expiration_time(chain[i]) * US_PER_SECOND;
		from_us = begins_us > from_us ? begins_us : from_us;
		until_us = ends_us < until_us ? ends_us : until_us;
		if (i && !gnutls_x509_crt_check_issuer(chain[i - 1], chain[i]))
			return refuse(reading, reading->names->certificate,
			              "must have the server's certificate first, and behind each its issuer's");
	}
	generation->expires_us = until_us;
	question_times(reading, from_us, until_us);
	if (count == 1 && !gnutls_x509_crt_check_issuer(chain[0], chain[0]))
		question(reading, reading->names->certificate,
		         "has no issuer's certificate behind the server's: clients that have its root "
		         "alone accept it only where that root issued it");
	return OK;
}

static int read_chain(const struct reading *reading, const gnutls_datum_t *pem,
                      struct tls_generation *generation)
{
	gnutls_x509_crt_t chain[ISSUED_MAX];
	unsigned count = ISSUED_MAX;
	int known = gnutls_x509_crt_list_import(chain, &count, pem, GNUTLS_X509_FMT_PEM,
	                                        GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
	if (known <= 0)
		return refuse(reading, reading->names->certificate,
		              "must be a PEM file of the server's certificate and its issuers, at most 16");
	int result = look_at_chain(reading, chain, (unsigned)known, generation);
	for (int i = 0; i < known; i++)
		gnutls_x509_crt_deinit(chain[i]);
	return result;
}

/* ---- generations ---- */

static void generation_free(struct tls_generation *generation)
{
	if (generation->credentials)
		gnutls_certificate_free_credentials(generation->credentials);
	gnutls_wipe(&generation->ticket_key);
	free(generation);
}

void tls_release(struct tls_generation *generation)
{
	if (generation && atomic_fetch_sub(&generation->holders, 1) == 1)
		generation_free(generation);
}

int64_t tls_expires_us(const struct tls_generation *generation)
{
	return generation->expires_us;
}

static int read_pair(const struct reading *reading, const struct files *files,
                     struct tls_generation *generation)
{
	BUF_AUTO struct buf certificate = {0}, key = {0};
	const struct names *name = reading->names;
	int result = read_file(reading, name->certificate, files->certificate, &certificate);
	if (!result)
		result = check_key_file(reading, files->key);
	if (!result)
		result = read_file(reading, name->key, files->key, &key);
	gnutls_datum_t certificate_pem = datum_of(&certificate), key_pem = datum_of(&key);
	if (!result)
		result = read_chain(reading, &certificate_pem, generation);
	int taken = result
	                ? 0
	                : gnutls_certificate_set_x509_key_mem(generation->credentials, &certificate_pem,
	                                                      &key_pem, GNUTLS_X509_FMT_PEM);
	if (key.data)
		explicit_bzero(key.data, key.capacity);
	if (taken == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return refuse(reading, name->key, "is not the key of the certificate");
	if (taken < 0)
		return refuse(reading, name->key, "must be a PEM file of the certificate's key, unlocked");
	return result;
}

static int read_clients(const struct reading *reading, const char *path,
                        struct tls_generation *generation)
{
	BUF_AUTO struct buf roots = {0};
	if (!is_set(path))
		return OK;
	int result = read_file(reading, reading->names->clients, path, &roots);
	gnutls_datum_t pem = datum_of(&roots);
	if (!result && gnutls_certificate_set_x509_trust_mem(generation->credentials, &pem,
	                                                     GNUTLS_X509_FMT_PEM) <= 0)
		result = refuse(reading, reading->names->clients,
		                "must be a PEM file of the roots of clients' certificates");
	generation->asks_clients = true;
	return result;
}

static int make(const struct reading *reading, const struct files *files,
                struct tls_generation *generation)
{
	generation->holders = 1;
	if (gnutls_certificate_allocate_credentials(&generation->credentials) < 0 ||
	    gnutls_session_ticket_key_generate(&generation->ticket_key) < 0)
		return ERR_NO_MEMORY;
	int result = read_pair(reading, files, generation);
	return result ? result : read_clients(reading, files->clients, generation);
}

int tls_read(const struct settings *settings, enum http_listener listener, http_problem *problem,
             void *context, struct tls_generation **ret, const char **ret_setting,
             struct error *error)
{
	struct files files = files_of(settings, listener);
	struct reading reading = {&names[listener], problem, context, ret_setting, error};
	bool certificate = is_set(files.certificate), key = is_set(files.key);
	*ret = NULL;
	if (certificate != key)
		return refuse(&reading, key ? reading.names->certificate : reading.names->key,
		              "must be given too: a certificate and its key belong together");
	if (!key && is_set(files.clients))
		return refuse(&reading, reading.names->clients,
		              "needs TLS: service.admin_tls_certificate and service.admin_tls_key");
	if (!key)
		return OK;
	*ret_setting = reading.names->certificate;
	int result = gnutls_load(error);
	struct tls_generation *generation = result ? NULL : calloc(1, sizeof *generation);
	if (!generation)
		return result ? result : ERR_NO_MEMORY;
	result = make(&reading, &files, generation);
	if (result)
		generation_free(generation);
	else
		*ret = generation;
	return result;
}

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

/* ---- what libmicrohttpd is started with ---- */

/* It asks for one; each session has credentials of its own before it could be called. */
static int have_none(gnutls_session_t session, const gnutls_datum_t *issuers, int issuer_count,
                     const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                     gnutls_pcert_st **certificates, unsigned *certificate_count,
                     gnutls_privkey_t *key)
{
	return -1;
}

struct MHD_OptionItem tls_options[] = {
	{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)have_none},
	{MHD_OPTION_HTTPS_PRIORITIES, 0, PRIORITIES},
	{MHD_OPTION_END, 0, NULL},
};

/* ---- sockets ---- */

/* The library is called from within its own reading or writing. */
static void wait_for(struct tls_session *session, uint32_t events)
{
	struct client *client = session->client;
	struct loop *loop = client->loop;
	struct epoll_event event = {.events = events | EPOLLRDHUP, .data.ptr = session};
	if (!client->is_fresh || client->is_cut || session->waits || loop->ending)
		return;
	if (epoll_ctl(loop->poll_descriptor, EPOLL_CTL_ADD, session->descriptor, &event) != 0)
		return;
	session->waits = true;
	MHD_suspend_connection(client->connection);
}

static void stop_watching(struct tls_session *session)
{
	session->waits = false;
	(void)epoll_ctl(session->client->loop->poll_descriptor, EPOLL_CTL_DEL, session->descriptor,
	                NULL);
}

void tls_go_on(struct tls_session *session)
{
	if (!session->waits)
		return;
	stop_watching(session);
	MHD_resume_connection(session->client->connection);
}

static ssize_t pull(gnutls_transport_ptr_t context, void *data, size_t size)
{
	struct tls_session *session = context;
	ssize_t got = recv(session->descriptor, data, size, MSG_DONTWAIT);
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

static int has_come(gnutls_transport_ptr_t context, unsigned wait_ms)
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

/* A ticket would stand for a client's certificate that is not looked at again. */
static bool set_up(struct tls_session *session)
{
	struct tls_generation *generation = session->generation;
	gnutls_session_t gnutls = session->session;
	gnutls_transport_set_ptr(gnutls, session);
	gnutls_transport_set_pull_function(gnutls, pull);
	gnutls_transport_set_pull_timeout_function(gnutls, has_come);
	gnutls_transport_set_vec_push_function(gnutls, push);
	gnutls_handshake_set_hook_function(gnutls, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
	                                   note_finished);
	if (gnutls_credentials_set(gnutls, GNUTLS_CRD_CERTIFICATE, generation->credentials) < 0)
		return false;
	return generation->asks_clients
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

void tls_end(struct tls_session *session)
{
	if (!session)
		return;
	if (session->waits)
		stop_watching(session);
	tls_release(session->generation);
	free(session);
}

bool tls_has_shaken_hands(const struct tls_session *session)
{
	return session && session->shaken_hands;
}

/* With what was begun before still unsent, something else would be told as sent. */
static bool has_unsent(struct tls_session *session)
{
	return gnutls_record_send(session->session, NULL, 0) != GNUTLS_E_INVALID_REQUEST;
}

void tls_say_last(struct tls_session *session, struct slice text)
{
	if (!session->shaken_hands || has_unsent(session))
		return;
	while (text.size) {
		ssize_t sent = gnutls_record_send(session->session, text.data,
		                                  text.size < RECORD_MAX ? text.size : RECORD_MAX);
		if (sent <= 0 && sent != GNUTLS_E_INTERRUPTED)
			return;
		if (sent > 0)
			text = slice_make(text.data + sent, text.size - (size_t)sent);
	}
	(void)gnutls_bye(session->session, GNUTLS_SHUT_WR);
}
