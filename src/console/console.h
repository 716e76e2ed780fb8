/* The console: pages by which an account's owner governs it, as a function from a request to an
 * answer. It knows nothing of sockets; http/console.c is what calls it.
 *
 * Every page is a template and operations of the administration (admin/admin.h), which the
 * permission table judges; every form is one operation. A form that cannot be done is shown again,
 * with what was typed and a sentence; one that was done leads on (303). Sign-in, sessions and their
 * cookies are those of service/people.h.
 *
 * What may not be: a POST that another site's page made (Sec-Fetch-Site, Origin, and a token that
 * only a page for the same cookie has), a page in a frame, a script or style that is not a file of
 * this site, a page kept by a cache.
 *
 * Thread safe; waits for the store, and below "/events/{event}/content" for the content store. */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include "admin/admin.h"
#include "base/digest.h"
#include "base/json.h"

#define CONSOLE_PATH "/console"
#define CONSOLE_BODY_MAX ((size_t)256 * 1024)
#define CONSOLE_COOKIES_MAX 4

struct console_request {
	bool post;           /* or GET */
	struct slice path;   /* behind CONSOLE_PATH, as sent: "", "/", "/users" */
	struct slice query;  /* as sent, without '?' */
	struct slice body;   /* of a POST */
	struct slice cookie; /* of headers, empty where there is none, as are the following */
	struct slice content_type;
	struct slice origin;
	struct slice fetch_site;
	enum language language; /* that the browser asks for */
	const char *address;    /* the client's, as text */
	const char *agent;      /* what the browser says of itself; "" */
	/* A form that comes too soon, from its address: it is shown again and not done; 0: it does not.
	 */
	int64_t wait_seconds;
	/* Counts a form of a user, whose sessions and addresses may be many: seconds until he may send
	 * one, 0: now. NULL: as many as he likes. */
	int64_t (*count_form)(void *context, const char *user_id);
	void *context;
	const char *incident_id; /* that a page tells of a fault of ours; NULL: none */
};

/* Something that is downloaded. */
struct console_file {
	const char *type;
	const char *name;   /* anybody's text */
	const char *object; /* of the content store; NULL: what was appended */
	int64_t account;    /* whose object it is */
	uint64_t size;
	struct sha256 digest;
};

/* Texts live in the request's arena, or for ever. */
struct console_answer {
	int status;
	int code;                                 /* ERR_* of what is told; 0: none */
	const char *type;                         /* of the body */
	const char *location;                     /* NULL: none */
	const struct console_file *file;          /* NULL: what was appended is the body */
	const char *disposition;                  /* NULL: none */
	const char *allow;                        /* NULL: none */
	const char *cookies[CONSOLE_COOKIES_MAX]; /* values of Set-Cookie; NULL behind the last */
	const char *policy;                       /* the content security policy */
	const char *referrer; /* the policy of what other pages are told of this one */
	enum language language;
};

/* Answers; the body is appended to `out`, which is empty. What went wrong is in `error` too, and
 * ret->code tells of which the page is. ERR_*: not even that could be drawn. `admin` must have a
 * service. */
int console_answer(struct admin *admin, const struct console_request *request, struct arena *arena,
                   struct buf *out, struct console_answer *ret, struct error *error) MUST_CHECK;
/* The page that says what is wrong with a request that gets no answer of its own, such as one
 * beyond its rate or its deadline: in the language of the browser's cookie, without navigation, for
 * nobody is asked who it is. Waits for nothing. `error` is of that code. */
int console_refuse(struct admin *admin, const struct console_request *request, int code,
                   struct arena *arena, struct buf *out, struct console_answer *ret,
                   struct error *error) MUST_CHECK;

#endif
