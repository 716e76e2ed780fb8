/* One outbound HTTP exchange, blocking (libcurl).
 *
 * Only http and https, redirects are never followed, no proxy, no cookies, no connection is reused,
 * and the guard sees the address really connected to, so a name that resolves to something else at
 * the second look gains nothing. Every function may be called from any thread; requests and answers
 * belong to one thread at a time. Nothing is global but libcurl's own initialization. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define HTTP_HEADERS_MAX 16384     /* bytes of an answer's header lines that are kept */
#define HTTP_URL_MAX 2048
#define HTTP_REQUEST_HEADERS_MAX 32

/* All text is the caller's and is only read during http_send. NULL or 0 means "not used" unless
 * said otherwise. */
struct http_request {
	const char *method; /* NULL: GET, or POST when there is a body */
	const char *url;
	const char *content_type;
	const char *const *headers; /* "Name: value", without line ends */
	size_t header_count;
	struct slice body;
	int timeout_ms;         /* for everything, resolution included; 0: 10,000 */
	int connect_timeout_ms; /* 0: timeout_ms */
	size_t answer_limit;    /* bytes of body; 0: 65,536 */
	bool cut_over_limit;    /* a longer body is cut there and the exchange counts; else it fails */
	bool allow_http;        /* plain http too; else https alone */
	const char *user;       /* Basic, with password */
	const char *password;
	const char *bearer;
	const char *client_certificate; /* PEM file, with client_key */
	const char *client_key;
	const char *authority_file;        /* PEM roots for TLS; NULL: the system's */
	const struct address_guard *guard; /* NULL: public addresses alone */
};

struct http_answer {
	int status; /* 100 to 599 */
	bool cut;   /* the body was longer than the limit */
	struct buf body;
	struct buf headers;                 /* header lines of the final answer, "Name: value\n" each */
	char address[ADDRESS_TEXT_SIZE];    /* connected to */
	int64_t duration_us;
};

/* 0 when a complete answer came, whatever its status; the answer is then the caller's
 * (http_answer_free). ERR_VALIDATION: the URL or a header cannot be used. ERR_REFUSED: the guard
 * refused every address. ERR_NETWORK: no complete answer (the cause says why). ERR_TOO_LARGE: body
 * over the limit without cut_over_limit. ERR_NO_MEMORY. */
int http_send(const struct http_request *request, struct http_answer *ret_answer,
              struct error *error) __attribute__((warn_unused_result));

/* Frees what the answer holds; NULL-safe, also for a zeroed answer. */
void http_answer_free(struct http_answer *answer);

#define HTTP_ANSWER_AUTO __attribute__((cleanup(http_answer_free)))

/* The first header of that name (any case), without surrounding blanks; size 0 and data NULL when
 * there is none. The slice points into the answer. */
struct slice http_answer_header(const struct http_answer *answer, const char *name);

/* Whether a URL could be used as a receiver: https (http too when allowed), a host, no user name or
 * password, no fragment, no control characters, at most HTTP_URL_MAX bytes. 0 or ERR_VALIDATION
 * with a sentence that names `field`. The address is judged when connecting, not here. */
int http_url_check(struct slice url, bool allow_http, const char *field, struct error *error)
    __attribute__((warn_unused_result));

#endif
