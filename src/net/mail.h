/* Sends a single e-mail (libcurl: SMTP, STARTTLS, SMTPS), blocking.
 *
 * The message follows RFC 5322 and RFC 2045 to 2047: plain text in UTF-8, quoted-printable, with
 * encoded headers where they are not ASCII. Input cannot end a header or add another one. The same
 * input always gives the same bytes, so receivers can recognize a repeated message by its
 * Message-ID. The guard checks the address actually connected to. Any thread may call. The only
 * global state is libcurl's initialization. */
#ifndef NET_MAIL_H
#define NET_MAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define MAIL_MESSAGE_MAX ((size_t)256 * 1024) /* encoded, with headers */
#define MAIL_ADDRESS_MAX 254
#define MAIL_SUBJECT_MAX 500
#define MAIL_TIMEOUT_MS 60000

/* Texts belong to the caller and are only read during the call. NULL counts as empty. */
struct mail_server {
	const char *url;  /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
	const char *user; /* empty: no authentication */
	const char *password;
	const char *roots; /* PEM file; empty: the system's */
	bool require_tls;  /* required for smtp: too; else STARTTLS is used if offered */
	int timeout_ms;    /* 0: MAIL_TIMEOUT_MS */
	const struct address_guard *guard; /* NULL: only public addresses */
};

struct mail_message {
	const char *from;      /* an address */
	const char *from_name; /* may be empty */
	const char *to;        /* an address */
	const char *id;        /* unique; letters, digits, '_', '-'; Message-ID: <id@domain of from> */
	int64_t time_us;       /* Date */
	enum language language;
	struct slice subject; /* UTF-8 */
	struct slice text;    /* UTF-8, lines ended by \n */
};

/* Sends a message. Returns 0 if the server accepted it. ERR_REFUSED: the server permanently refused
 * the recipient or the message (5xx). ERR_NETWORK: not delivered, or delivery unknown; retry with
 * the same id. ERR_VALIDATION: message or server URL not usable. ERR_NO_MEMORY. The cause contains
 * no password. */
int mail_send(const struct mail_server *server, const struct mail_message *message,
              struct error *error) MUST_CHECK;

/* Connects, encrypts and authenticates as mail_send does, without sending a message. The domain of
 * `from` is used in EHLO. ERR_NETWORK with the cause, ERR_VALIDATION, ERR_NO_MEMORY. */
int mail_check_server(const struct mail_server *server, const char *from, struct error *error)
	MUST_CHECK;

/* Returns whether an address is local@domain in ASCII without quotes, comments or blanks, of at
 * most MAIL_ADDRESS_MAX bytes. */
bool mail_address_usable(const char *address);
/* Checks that a URL has the form of mail_server.url, without user, path or query.
 * ERR_VALIDATION. */
int mail_url_check(const char *url) MUST_CHECK;

#endif
