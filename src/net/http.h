/* One outbound HTTP exchange, blocking (libcurl).
 *
 * Only http and https, redirects are never followed, no proxy, no cookies, no connection is reused
 * but within a session, and the guard sees the address really connected to, so a name that resolves
 * to something else at the second look gains nothing. Every function may be called from any thread;
 * requests, answers and sessions belong to one thread at a time. Nothing is global but libcurl's
 * own initialization. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define HTTP_HEADERS_MAX 16384 /* bytes of an answer's header lines that are kept */
#define HTTP_URL_MAX 2048
#define HTTP_REQUEST_HEADERS_MAX 32

/* Keeps connections open from one exchange to the next with the same server. Every exchange of a
 * session must have the same guard: a connection that is used again is not judged again. */
struct http_session;
/* NULL without memory. */
struct http_session *http_session_open(void) MUST_CHECK;
void http_session_close(struct http_session *session); /* NULL-safe */

/* A body that is not in memory: `read` fills `data` from `offset` of the body on and gives how many
 * bytes it put there, 0 when it cannot go on (ERR_NETWORK). Parts may be asked for again, when the
 * connection was cut and opened anew. */
struct http_upload {
	size_t (*read)(void *context, uint64_t offset, void *data, size_t size);
	void *context;
	uint64_t size;
};

/* All text is the caller's and is only read during http_send. NULL or 0 means "not used" unless
 * said otherwise. */
struct http_request {
	const char *method; /* NULL: GET, or POST when there is a body */
	const char *url;
	const char *content_type;
	const char *const *headers; /* "Name: value", without line ends */
	size_t header_count;
	struct slice body;
	const struct http_upload *upload; /* instead of `body` */
	/* The body of an answer of 200 to 299 goes here, not into the answer, as it comes; false ends
	 * the exchange (ERR_NETWORK). What came before an exchange failed was given too. */
	bool (*take)(void *context, struct slice part);
	void *take_context;
	struct http_session *session; /* NULL: a connection of its own */
	int timeout_ms;               /* for everything, resolution included; 0: 10,000 */
	int connect_timeout_ms;       /* 0: timeout_ms */
	int stall_timeout_ms;         /* while nothing moves, to a second; 0: timeout_ms */
	size_t answer_limit;          /* bytes of body; 0: 65,536 */
	bool cut_over_limit; /* a longer body is cut there and the exchange counts; else it fails */
	bool allow_http;     /* plain http too; else https alone */
	const char *user;    /* Basic, with password */
	const char *password;
	const char *bearer;
	/* "aws:amz:REGION:s3": user and password are an access key and its secret, and sign the request
	 * (AWS Signature Version 4). libcurl 7.88 signs the path and the query as they stand, so the
	 * query must be sorted, with '=' behind every name, and escaped as that standard wants; and the
	 * header x-amz-content-sha256 must be among `headers`. */
	const char *aws_sigv4;
	const char *client_certificate; /* PEM file, with client_key */
	const char *client_key;
	const char *authority_file;        /* PEM roots for TLS; NULL: the system's */
	const struct address_guard *guard; /* NULL: public addresses alone */
};

struct http_answer {
	int status; /* 100 to 599 */
	bool cut;   /* the body was longer than the limit */
	struct buf body;
	struct buf headers;              /* header lines of the final answer, "Name: value\n" each */
	char address[ADDRESS_TEXT_SIZE]; /* connected to */
};

/* 0 when a complete answer came, whatever its status; the answer is then the caller's
 * (http_answer_free). ERR_VALIDATION: the URL or a header cannot be used. ERR_REFUSED: the guard
 * refused every address. ERR_NETWORK: no complete answer (the cause says why). ERR_TOO_LARGE: body
 * over the limit without cut_over_limit. ERR_NO_MEMORY. */
int http_send(const struct http_request *request, struct http_answer *ret_answer,
              struct error *error) MUST_CHECK;

/* Frees what the answer holds; NULL-safe, also for a zeroed answer. */
void http_answer_free(struct http_answer *answer);

#define HTTP_ANSWER_AUTO __attribute__((cleanup(http_answer_free)))

/* The first header of that name (any case), without surrounding blanks; size 0 and data NULL when
 * there is none. The slice points into the answer. */
struct slice http_answer_header(const struct http_answer *answer, const char *name);

/* Whether a URL could be used as a receiver: https (http too when allowed), a host, no user name or
 * password, no fragment, no control characters, no escapes in the host, at most HTTP_URL_MAX bytes.
 * 0, ERR_VALIDATION with a sentence that names `field`. The address is judged when connecting, not
 * here. */
int http_url_check(struct slice url, bool allow_http, const char *field, struct error *error)
	MUST_CHECK;

#endif
