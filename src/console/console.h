/* The console: web pages for the users of an account, implemented as a function from a request to
 * an answer. It does not use sockets; http/console_routes.c calls it.
 *
 * Every page consists of a template and operations of the administration (admin/admin.h), which
 * the permission table authorises. Every form is one operation. A form that fails is shown again
 * with the entered values and an error message; a successful one redirects (303).
 * service/user_auth.h implements sign-in, sessions and their cookies.
 *
 * Not allowed: a POST from a page of another site (Sec-Fetch-Site, Origin, and a token that only a
 * page for the same cookie contains), a page in a frame, a script or style that is not a file of
 * this site, a cached page.
 *
 * Thread safe. Blocks on the store, and below "/events/{event}/content" on the content store. */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include "admin/admin.h"
#include "base/digest.h"
#include "base/json.h"

#define CONSOLE_PATH "/console"
#define CONSOLE_BODY_MAX ((size_t)256 * 1024)
#define CONSOLE_COOKIES_MAX 4

struct console_request {
	bool post;           /* otherwise GET */
	struct slice path;   /* after CONSOLE_PATH, as sent: "", "/", "/users" */
	struct slice query;  /* as sent, without '?' */
	struct slice body;   /* of a POST */
	struct slice cookie; /* headers; empty if absent, as are the following */
	struct slice content_type;
	struct slice origin;
	struct slice fetch_site;
	enum language language; /* preferred by the browser */
	const char *address;    /* client address as text */
	const char *agent;      /* User-Agent; "": absent */
	/* Seconds until the client address may send a form; the form is then shown again and not
	 * executed. 0: now. */
	int64_t wait_seconds;
	/* Counts a form of a user, who may have several sessions and addresses. Returns the seconds
	 * until the user may send a form; 0: now. NULL: unlimited. */
	int64_t (*count_form)(void *context, const char *user_id);
	void *context;
	const char *incident_id; /* identifier for a page about an internal error; NULL: none */
};

/* A file to download. */
struct console_file {
	const char *type;
	const char *name;   /* untrusted text */
	const char *object; /* object of the content store; NULL: the appended body */
	int64_t account;    /* owner of the object */
	uint64_t size;
	struct sha256 digest;
};

/* Texts are in the request's arena or static. */
struct console_answer {
	int status;
	int code;                        /* ERR_* of the page; 0: none */
	const char *type;                /* media type of the body */
	const char *location;            /* NULL: none */
	const struct console_file *file; /* NULL: the appended body */
	const char *disposition;         /* NULL: none */
	const char *allow;               /* NULL: none */
	/* values of Set-Cookie; terminated by NULL if not full */
	const char *cookies[CONSOLE_COOKIES_MAX];
	const char *policy;   /* Content-Security-Policy */
	const char *referrer; /* Referrer-Policy */
	enum language language;
};

/* Answers a request; appends the body to `out`, which is empty. `error` also receives the error
 * that the page reports, and ret->code its code. ERR_*: even the error page could not be drawn.
 * `admin` must have a service. */
int console_answer(struct admin *admin, const struct console_request *request, struct arena *arena,
                   struct buf *out, struct console_answer *ret, struct error *error) MUST_CHECK;
/* Draws the error page of a request that is refused before it is processed, for example by its rate
 * or deadline: in the language of the browser's cookie, and without navigation, because no session
 * is checked. Does not block. `error` has the code `code`. */
int console_answer_refused(struct admin *admin, const struct console_request *request, int code,
                           struct arena *arena, struct buf *out, struct console_answer *ret,
                           struct error *error) MUST_CHECK;

#endif
