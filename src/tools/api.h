/* Client of the service's interface, for the tools of integrators: a key, one connection, and
 * retries.
 *
 * Requests are repeated as the client libraries do: after 429 and 503 when Retry-After says, and
 * after a lost connection or an incomplete answer with exponential back-off. So every request must
 * have the effect of one when it is repeated, unless it is sent `once`. Addresses are the user's
 * own choice and not guarded. An api belongs to one thread at a time. */
#ifndef TOOLS_API_H
#define TOOLS_API_H

#include "base/arena.h"
#include "base/json.h"
#include "net/http.h"

#define API_BASE_MAX 1024 /* bytes of the interface's address */
#define API_KEY_MAX 256
#define API_ANSWER_MAX ((size_t)8 << 20)

struct api_access {
	const char *url;       /* of the interface; "/v1" is appended if it is missing */
	const char *key;       /* NULL: only what needs no key */
	const char *tls_roots; /* PEM file; NULL: the system's */
};

struct api {
	char base[API_BASE_MAX + 4]; /* ends in "/v1" */
	char key[API_KEY_MAX];       /* empty: none */
	const char *tls_roots;
	struct http_session *session;
	struct address_guard guard; /* permits every address */
	unsigned attempts;          /* of one request; 1: no retry */
	int64_t patience_us;        /* the longest sum of the waits between them */
};

/* Checks the address and the key. Texts of `access` other than tls_roots are copied. ERR_VALIDATION
 * names --url or the key; ERR_NO_MEMORY. */
int api_open(struct api *api, const struct api_access *access, struct error *error) MUST_CHECK;
/* Wipes the key. Accepts a zeroed api. */
void api_close(struct api *api);
/* Makes a guard that permits every address. */
void api_guard_nothing(struct address_guard *guard);

struct api_request {
	const char *method; /* NULL: GET, or POST when there is a body */
	const char *path;   /* with the query, appended to the base: "/events?limit=1" */
	bool is_public;     /* appended to the base without "/v1", and sent without the key */
	const char *content_type;
	struct slice body;
	const struct http_upload *upload; /* instead of `body`; POST */
	const char *idempotency_key;      /* NULL: none */
	int timeout_ms;                   /* 0: 60,000; with an upload: the time without progress */
	bool once;                        /* do not repeat */
};

struct api_answer {
	int status;             /* 200 to 299 */
	struct json *json;      /* in the arena */
	struct slice text;      /* its source, in the arena */
	bool replayed;          /* Idempotent-Replayed: an earlier request had this effect */
	int64_t retry_after_us; /* 0: none */
};

/* Sends a request until it has a final answer. Returns 0 with a successful one; the error of the
 * interface with its message, when it refused; ERR_NETWORK without a usable answer; ERR_NO_MEMORY.
 */
int api_send(struct api *api, const struct api_request *request, struct arena *arena,
             struct api_answer *ret_answer, struct error *error) MUST_CHECK;

/* Records an error of a tool with its message in English, the language of the command line. Returns
 * `code`. */
int tool_fail(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns the time to wait after `attempts` failed attempts (from 1), with jitter: Retry-After and
 * up to a quarter more, or without one (0) a back-off from half a second to half a minute. */
int64_t api_pause_us(unsigned attempts, int64_t retry_after_us);
void api_sleep_us(int64_t duration_us);

#endif
