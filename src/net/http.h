/* Client for a single outbound HTTP exchange, blocking (libcurl).
 *
 * Only http and https; no redirects, no proxy, no cookies. Connections are reused only within a
 * session. The guard checks the address actually connected to, so DNS rebinding is ineffective.
 * Every function may be called from any thread; a request, an answer or a session belongs to one
 * thread at a time. The only global state is libcurl's initialization. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

#define HTTP_HEADERS_MAX 16384 /* bytes of response header lines that are stored */
#define HTTP_URL_MAX 2048
#define HTTP_REQUEST_HEADERS_MAX 32

/* Keeps connections to a server open between exchanges. All exchanges of a session must use the
 * same guard, because a reused connection is not checked again. */
struct http_session;
/* Returns NULL without memory. */
struct http_session *http_session_open(void) MUST_CHECK;
void http_session_close(struct http_session *session); /* NULL-safe */

/* Request body that is not in memory. `read` copies bytes from `offset` into `data` and returns
 * their number, or 0 to fail the exchange (ERR_NETWORK). A range may be requested again after a
 * reconnect. */
struct http_upload {
	size_t (*read)(void *context, uint64_t offset, void *data, size_t size);
	void *context;
	uint64_t size;
};

/* Texts belong to the caller and are only read during http_send. NULL or 0 means "not used" unless
 * stated otherwise. */
struct http_request {
	const char *method; /* NULL: GET, or POST when there is a body; an upload must name its own */
	const char *url;
	const char *content_type;
	const char *const *headers; /* "Name: value", without line ends */
	size_t header_count;
	struct slice body;
	const struct http_upload *upload; /* instead of `body` */
	/* Receives the body of a 2xx response in chunks; the answer's body stays empty. Returning false
	 * fails the exchange (ERR_NETWORK). Chunks received before a failure were passed too. */
	bool (*take)(void *context, struct slice part);
	void *take_context;
	struct http_session *session; /* NULL: a separate connection */
	int timeout_ms;               /* total, including name resolution; 0: 10,000 */
	int connect_timeout_ms;       /* 0: timeout_ms */
	int stall_timeout_ms; /* maximum time without progress, precise to a second; 0: timeout_ms */
	size_t answer_limit;  /* maximum bytes of body; 0: 65,536 */
	bool cut_over_limit;  /* truncate a longer body instead of failing the exchange */
	bool allow_http;      /* permit plain http; else only https */
	const char *user;     /* for Basic authentication, with password */
	const char *password;
	const char *bearer;
	/* "aws:amz:REGION:s3": user and password are an access key and its secret, and sign the request
	 * (AWS Signature Version 4). libcurl 7.88 signs path and query unchanged. So the query must be
	 * sorted and escaped as that standard requires, with '=' after every name, and `headers` must
	 * contain x-amz-content-sha256. */
	const char *aws_sigv4;
	const char *client_certificate; /* PEM file, with client_key */
	const char *client_key;
	const char *authority_file;        /* PEM file of TLS roots; NULL: the system's */
	const struct address_guard *guard; /* NULL: only public addresses */
};

struct http_answer {
	int status; /* 100 to 599 */
	bool cut;   /* the body was truncated at the limit */
	struct buf body;
	struct buf headers;              /* header lines of the final response, "Name: value\n" each */
	char address[ADDRESS_TEXT_SIZE]; /* address connected to */
};

/* Performs the exchange. Returns 0 if a complete response arrived, whatever its status; the caller
 * frees the answer (http_answer_free). ERR_VALIDATION: URL or header not usable. ERR_REFUSED: the
 * guard refused every address. ERR_NETWORK: no complete response, reason in the cause.
 * ERR_TOO_LARGE: body over the limit without cut_over_limit. ERR_NO_MEMORY. */
int http_send(const struct http_request *request, struct http_answer *ret_answer,
              struct error *error) MUST_CHECK;

/* Frees the contents of an answer. Accepts NULL and a zeroed answer. */
void http_answer_free(struct http_answer *answer);

#define HTTP_ANSWER_AUTO __attribute__((cleanup(http_answer_free)))

/* Returns the value of the first header of that name (case-insensitive), without surrounding
 * blanks. Size 0 and data NULL: no such header. The slice points into the answer. */
struct slice http_answer_header(const struct http_answer *answer, const char *name);

/* Reads the value of Retry-After (RFC 9110 section 10.2.3), a number of seconds or a date in any of
 * the three forms. Returns the time from now_us on, at most HTTP_RETRY_AFTER_MAX_US; 0: malformed,
 * zero or past. Pure. */
#define HTTP_RETRY_AFTER_MAX_US (INT64_C(366) * 86400 * 1000000)
int64_t http_retry_after_us(struct slice value, int64_t now_us);

/* Checks that a URL can be used as a receiver: https (or http if allowed), a host, no user name,
 * password or fragment, no control characters, no escapes in the host, at most HTTP_URL_MAX bytes.
 * Returns 0 or ERR_VALIDATION with a message that names `field`. The address is checked on
 * connection, not here. */
int http_url_check(struct slice url, bool allow_http, const char *field, struct error *error)
	MUST_CHECK;

#endif
