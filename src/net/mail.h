/* Sending one e-mail (libcurl: SMTP, STARTTLS, SMTPS), blocking.
 *
 * The message is built here by RFC 5322 and 2045 to 2047: plain text in UTF-8, quoted-printable,
 * headers encoded where they are not ASCII; nothing that is given can end a header or begin another
 * one. The same message gives the same bytes each time, so a copy that is sent again after a lost
 * answer can be known by its Message-ID. The guard sees the address really connected to. Any thread
 * may call; nothing is global but libcurl's own initialization. */
#ifndef NET_MAIL_H
#define NET_MAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define MAIL_MESSAGE_MAX ((size_t)256 * 1024) /* with headers, encoded */
#define MAIL_ADDRESS_MAX 254
#define MAIL_SUBJECT_MAX 500
#define MAIL_TIMEOUT_MS 60000

/* All text is the caller's and is only read during the call; NULL counts as empty. */
struct mail_server {
	const char *url;  /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
	const char *user; /* empty: without */
	const char *password;
	const char *roots;                 /* PEM file; empty: the system's */
	bool require_tls;                  /* smtp: too; else STARTTLS is used when it is offered */
	int timeout_ms;                    /* 0: MAIL_TIMEOUT_MS */
	const struct address_guard *guard; /* NULL: public addresses alone */
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

/* 0: the server took the message. ERR_REFUSED: it refused recipient or message for good (5xx).
 * ERR_NETWORK: not delivered, or not known to be: try again, with the same id. ERR_VALIDATION: the
 * message or the server's URL cannot be used. ERR_NO_MEMORY. The cause holds no password. */
int mail_send(const struct mail_server *server, const struct mail_message *message,
              struct error *error) MUST_CHECK;

/* Connects, encrypts and logs in as mail_send does, and sends no message. `from`: whose domain is
 * said in EHLO. ERR_NETWORK with the cause, ERR_VALIDATION, ERR_NO_MEMORY. */
int mail_try(const struct mail_server *server, const char *from, struct error *error) MUST_CHECK;

/* local@domain in ASCII without quotes, comments or blanks, at most MAIL_ADDRESS_MAX bytes. */
bool mail_address_usable(const char *address);
/* Whether it is as in struct mail_server, without user, path or query. ERR_VALIDATION. */
int mail_url_check(const char *url) MUST_CHECK;

#endif
