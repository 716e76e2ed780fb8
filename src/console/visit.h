/* What the files of the console share: one request on its way to an answer. */
#ifndef CONSOLE_VISIT_H
#define CONSOLE_VISIT_H

#include "console/console.h"
#include "console/fields.h"
#include "console/template.h"
#include "service/people.h"

#define PLACES_MAX 3 /* of a path's pattern */
#define DATA_MAX ((size_t)16 << 20)

struct visit {
	struct admin *admin;
	const struct console_request *request;
	struct arena *arena;
	struct buf *out;
	struct console_answer *answer;
	struct error *error;
	int64_t now_us; /* by the clock of the nodes, as all that sessions hold */
	enum language language;
	struct fields query;
	struct fields form;              /* of a POST */
	struct field places[PLACES_MAX]; /* of the path: "{user}" is named "user" */
	struct slice session_cookie;     /* as the browser sent it; what it is worth, session says */
	struct slice browser_cookie;     /* the same; a new one is made where it is none */
	struct slice known_cookie;       /* that is kept from a sign-in; the same */
	struct slice again;              /* where to go on behind a sign-in, with what was typed */
	bool signed_in;                  /* then `session` is there */
	bool stranger;                   /* whether he has a session was not asked, or not found out */
	struct session_view session;
	const struct console_page *page; /* that is shown, or a form's; NULL: none */
	const struct fields *typed;      /* shown in the page's forms again; NULL: nothing */
	const char *typed_form;          /* the path of the form that it was typed into */
	struct slice answered;           /* the answer of the form, for its page; empty: none */
	struct slice said;               /* a sentence about it; empty: none */
	struct slice done;               /* what a form of this browser has just done; empty: nothing */
	bool other_account;              /* the form was of a page of another account */
	struct slice form_number;        /* of the page that is drawn; empty: a new one */
	struct act_form *sent;           /* while a form's operation runs; NULL: nothing was sent */
};

/* ---- visit.c ---- */

/* Reads query, cookies and session. ERR_*: nothing can be answered but an error page. */
int visit_begin(struct visit *visit) MUST_CHECK;
/* That of the user, else of the browser's cookie, else of what the browser asks for. */
void visit_choose_language(struct visit *visit);
/* Whether the chosen account asks for passkeys, and the session was begun without one. */
bool visit_lacks_passkey(const struct visit *visit);
/* Whether a POST may be what it says: made by a page of this console for this browser. */
int visit_check_form(struct visit *visit) MUST_CHECK;
void visit_set_cookie(struct visit *visit, const char *name, const char *value, int64_t seconds);
/* Leads on to a path below CONSOLE_PATH, with 303. */
int visit_go(struct visit *visit, const char *path) MUST_CHECK;
/* The same behind a form: the page then says "done.…", once. */
int visit_go_done(struct visit *visit, const char *path, const char *done) MUST_CHECK;
/* Leads to an address elsewhere, such as a payment page's. Not from a form: the content security
 * policy lets none lead away from this site. ERR_REFUSED: it is no address of the web. */
int visit_leave(struct visit *visit, struct slice address) MUST_CHECK;
/* Whether the text leads to a page of the console: "/console", "/console/…" and nothing that a
 * browser could take for another place. */
bool visit_is_own(struct slice address);

/* Whether the field of a form is the console's and no argument: the token, the account and the
 * number of the page, and who typed what is remembered. */
bool is_own_field(struct slice name);

#define COOKIE_SESSION "constancia"
#define COOKIE_BROWSER "constancia-browser"
#define COOKIE_KNOWN "constancia-known"
#define COOKIE_AGAIN "constancia-again"
#define COOKIE_DONE "constancia-done"
#define COOKIE_LANGUAGE "constancia-language"
#define LANGUAGE_SECONDS (INT64_C(365) * 24 * 3600)
#define TYPED_BY "typed_by"
#define FORM_NUMBER "form_number"
/* Who is signed in, and for which account: whoever signs in next may be another. */
const char *visit_typist(struct visit *visit);
/* Keeps where to go on behind a sign-in: this path, and the fields of a form that are no secret,
 * with who typed them. */
int visit_remember(struct visit *visit, const char *path, const struct fields *typed) MUST_CHECK;

/* ---- draw.c ---- */

/* Draws a page over data, the text of a JSON object. */
int draw_page(struct visit *visit, int status, const struct template *page, struct slice data)
	MUST_CHECK;
/* What went wrong, in the visitor's language; fields are called as forms call them (field.… of
 * texts.txt). In the request's arena. */
const char *error_words(const struct visit *visit);
/* The page that says what is wrong: visit->error, or the general sentence of the code. */
int draw_error(struct visit *visit, int status, int code) MUST_CHECK;

/* ---- pages.c: what there is ---- */

struct console_source {
	const char *member;    /* of the page's data; NULL ends the list */
	const char *operation; /* whose answer it is */
	/* Its arguments: "limit=50 after=?after channel={channel}", from the query and the path; what
	 * the query does not have, or has empty, is not given. Numbers and "true" are such. */
	const char *arguments;
	/* The member of a row, a text or a number, behind which the next page of a list begins: that of
	 * the last row is
	 * "…_last" of the data. NULL: none. */
	const char *last;
};

struct console_page {
	const char *path; /* "/users/{user}"; NULL ends the table */
	const struct template *template;
	const char *section; /* of the navigation */
	/* NULL: none. The first decides who may see the page; others are left out where the user's role
	 * does not allow them. */
	const struct console_source *sources;
	/* Adds members to the data; NULL: none. */
	int (*more)(struct visit *visit, struct json_writer *data);
	/* Leads to another address, or gives a file, instead of drawing anything; NULL: it draws. */
	int (*leads)(struct visit *visit);
};

struct console_form {
	const char *path; /* NULL ends the table */
	const char *operation;
	/* A line that is taken away where its field was emptied, which otherwise counts as not given;
	 * NULL: none. */
	const char *empties;
	const char *page; /* the path of the page that it stands on */
	const char *done; /* what the page says then: "done.…" */
	/* The page that shows the answer, where it has what is shown this once; NULL: 303. */
	const struct template *shows;
	/* The page itself shows the answer, as its member "answered", beside what was typed. */
	bool answered;
	/* The path that is shown then, "/sales/{sale_id}" with a member of the answer; NULL: `page`. */
	const char *leads;
	/* What the page says instead of `done` when the answer's "changed" is false; NULL: the same. */
	const char *unchanged;
	/* Of a form that is sent again: the page that names what it made then, by its act's members
	 * "made" and "arguments", where `shows` has shown it; NULL: as `leads_again` or `leads` say,
	 * else `page`. */
	const struct template *again;
	const char *leads_again;
};

struct console_export {
	const char *path;      /* without ".csv" and ".json"; NULL ends the table */
	const char *operation; /* a list */
	const char *arguments; /* as of a source */
	const char *columns;   /* of the CSV: members, separated by spaces */
	const char *after;     /* the member of a row that the next page begins behind */
	const char *behind;    /* the argument that it is given as; NULL: "after" */
};

extern const struct console_page console_pages[], work_pages[];
extern const struct console_form console_forms[], work_forms[];
extern const struct console_export console_exports[];
/* pages_money.c */
extern const struct console_page money_pages[];
extern const struct console_form money_forms[];
extern const struct console_export money_exports[];
extern const char *const console_sections[]; /* paths of the navigation, closed by NULL */

const struct console_page *page_find(struct visit *visit, struct slice path);
const struct console_form *form_find(struct visit *visit, struct slice path);
/* Of all exports; NULL past the end. */
const struct console_export *export_at(size_t index);

/* ---- show.c ---- */

/* Runs the page's operations and draws it. */
int show_page(struct visit *visit, int status, const struct console_page *page) MUST_CHECK;
/* Runs an operation for the user and appends its answer. `arguments`: the text of an object. */
int run_operation(struct visit *visit, const char *operation, struct slice arguments,
                  struct buf *answer) MUST_CHECK;
/* The same; the answer's text, and its tree, live in the request's arena. */
int ask_operation(struct visit *visit, const char *operation, struct slice arguments,
                  struct slice *ret_text, struct json **ret) MUST_CHECK;
/* The same with the arguments of a source's text. */
int ask_source(struct visit *visit, const char *operation, const char *from, struct slice *ret_text,
               struct json **ret) MUST_CHECK;
/* Whether the user's role allows it at all. */
bool may_run(const struct visit *visit, const char *operation);
/* Makes the arguments' object of a source's text. */
int source_arguments(struct visit *visit, const char *operation, const char *arguments,
                     struct buf *out) MUST_CHECK;
/* Appends a member that is an argument of the operation, as its kind wants it. */
void put_argument(struct json_writer *writer, const char *operation, const char *name,
                  struct slice value);

/* ---- submit.c, export.c, sign_in.c ---- */

int submit_form(struct visit *visit, const struct console_form *form) MUST_CHECK;
/* Shows the form again, filled in, with the sentence of visit->error, and does nothing. ERR_*, the
 * code or another: its page cannot be shown. */
int refuse_form(struct visit *visit, const struct console_form *form, int code) MUST_CHECK;
/* The page's path, with the places of the path that was asked for. NULL: no memory. */
const char *form_page(struct visit *visit, const char *pattern);
/* Whether a form that failed so is shown again, filled in, with what is wrong: what he who typed
 * can mend or must know. Not what is a fault of ours, whose page names the incident, nor what he
 * may not do at all. */
bool is_told_on_page(int code);
/* OK and *ret_found false: the path is none of an export. */
int export_list(struct visit *visit, struct slice path, bool *ret_found) MUST_CHECK;
/* Answers with a file of that name, to be kept and not shown: of what is in visit->out, or of
 * base64. */
int answer_file(struct visit *visit, const char *type, const char *name) MUST_CHECK;
int answer_base64(struct visit *visit, const char *type, const char *name, struct slice base64)
	MUST_CHECK;
/* The pages and forms that need no session, and those of the session itself; *ret_found as
 * above. */
int sign_in_answer(struct visit *visit, struct slice path, bool *ret_found) MUST_CHECK;
/* The same of a form of theirs that is not done: its page again, with the sentence of visit->error.
 */
int sign_in_refused(struct visit *visit, struct slice path, bool *ret_found) MUST_CHECK;
/* What a session begins with, and what its browser keeps of it. */
struct entry {
	char cookie[PEOPLE_SECRET_SIZE]; /* of the session, once it has begun */
	char known[PEOPLE_SECRET_SIZE];
	struct people_client client;
};
void entry_prepare(struct visit *visit, struct entry *ret);
/* Gives the browser its cookies and leads it to where it was. */
int entry_done(struct visit *visit, struct entry *entry) MUST_CHECK;
/* Asks for a fresh sign-in, and goes on at `path` behind it. */
int sign_in_again(struct visit *visit, const char *path, const struct fields *typed) MUST_CHECK;

#endif
