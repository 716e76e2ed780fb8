/* Shared by the files of the console: the state of one request. */
#ifndef CONSOLE_VISIT_H
#define CONSOLE_VISIT_H

#include "console/console.h"
#include "console/fields.h"
#include "console/template.h"
#include "service/user_auth.h"

#define PLACES_MAX 3 /* placeholders of a path pattern */
#define DATA_MAX ((size_t)16 << 20)

struct visit {
	struct admin *admin;
	const struct console_request *request;
	struct arena *arena;
	struct buf *out;
	struct console_answer *answer;
	struct error *error;
	int64_t now_us; /* by the clock of the nodes, as are all times of sessions */
	enum language language;
	struct fields query;
	struct fields form;              /* fields of a POST */
	struct field places[PLACES_MAX]; /* placeholders of the path: "{user}" is named "user" */
	struct slice session_cookie;     /* as sent by the browser; `session` is the checked session */
	struct slice browser_cookie;     /* as sent by the browser; replaced if it is not valid */
	struct slice known_cookie;       /* kept from an earlier sign-in, as sent by the browser */
	/* path to continue at after a sign-in, with the entered values */
	struct slice again;
	bool signed_in;   /* `session` is valid */
	bool stranger;    /* the session was not checked, or the check failed */
	bool is_sign_out; /* of a session that could not be checked */
	struct session_view session;
	const struct console_page *page; /* page of the request or of its form; NULL: none */
	const struct fields *typed;      /* values shown in the page's forms; NULL: none */
	const char *typed_form;          /* path of the form in which they were entered */
	struct slice answered;           /* answer of the form, for its page; empty: none */
	struct slice said;               /* message about the form; empty: none */
	/* confirmation of the last form of this browser; empty: none */
	struct slice done;
	bool other_account;          /* the form belongs to a page of another account */
	struct slice form_number;    /* form number of the page; empty: a new one */
	struct submitted_form *sent; /* set while a form's operation runs; NULL: no form */
};

/* ---- visit.c ---- */

/* Reads query, cookies and session. ERR_*: only an error page is possible. */
int visit_begin(struct visit *visit) MUST_CHECK;
/* Chooses the language of the user, else that of the browser's cookie, else that of the request. */
void visit_choose_language(struct visit *visit);
/* Returns whether the selected account requires passkeys and the session was started without
 * one. */
bool visit_lacks_passkey(const struct visit *visit);
/* Checks that a POST comes from a page of this console for this browser. */
int visit_check_form(struct visit *visit) MUST_CHECK;
void visit_set_cookie(struct visit *visit, const char *name, const char *value, int64_t seconds);
/* Redirects to a path below CONSOLE_PATH with 303. */
int visit_redirect(struct visit *visit, const char *path) MUST_CHECK;
/* Redirects after a form; the page then shows "done.…" once. */
int visit_redirect_done(struct visit *visit, const char *path, const char *done) MUST_CHECK;
/* Redirects to an external address, such as a payment page. Not from a form, because the content
 * security policy does not allow a form to leave this site. ERR_REFUSED: not an HTTP address. */
int visit_redirect_external(struct visit *visit, struct slice address) MUST_CHECK;
/* Returns whether the text is an address of the console: "/console" or "/console/…", without
 * anything that a browser could interpret as another site. */
bool visit_is_console_address(struct slice address);

/* Returns whether a form field belongs to the console and is not an argument: the token, the
 * account and the number of the page, and the user who entered remembered values. */
bool is_console_field(struct slice name);

#define COOKIE_SESSION "constancia"
#define COOKIE_BROWSER "constancia-browser"
#define COOKIE_KNOWN "constancia-known"
#define COOKIE_AGAIN "constancia-again"
#define COOKIE_DONE "constancia-done"
#define COOKIE_LANGUAGE "constancia-language"
#define LANGUAGE_SECONDS (INT64_C(365) * 24 * 3600)
#define TYPED_BY "typed_by"
#define FORM_NUMBER "form_number"
/* Returns an identifier of the signed-in user and account, because the next sign-in may be by
 * another user. */
const char *visit_current_user_key(struct visit *visit);
/* Remembers where to continue after a sign-in: this path, and the form fields that are not secret,
 * with the user who entered them. */
int visit_remember(struct visit *visit, const char *path, const struct fields *typed) MUST_CHECK;

/* ---- draw.c ---- */

/* Draws a page with the data, the text of a JSON object. */
int draw_page(struct visit *visit, int status, const struct template *page, struct slice data)
	MUST_CHECK;
/* Returns the error message in the user's language, with the form's names of fields (field.… of
 * texts.txt). In the request's arena. */
const char *error_words(const struct visit *visit);
/* Draws the error page with visit->error, or with the general message of the code. */
int draw_error(struct visit *visit, int status, int code) MUST_CHECK;

/* ---- page_tables.c: tables of pages, forms and exports ---- */

struct console_source {
	const char *member;    /* member of the page's data; NULL ends the list */
	const char *operation; /* operation that returns it */
	/* Its arguments: "limit=50 after=?after channel={channel}", with values of the query and the
	 * path. A parameter that is absent or empty in the query is omitted. Numbers and "true" are
	 * converted to their type. */
	const char *arguments;
	/* The member of a row, a text or a number, after which the next page of a list begins. Its
	 * value in the last row becomes "…_last" of the data. NULL: none. */
	const char *last;
};

struct console_page {
	const char *path; /* "/users/{user}"; NULL ends the table */
	const struct template *template;
	const char *section; /* section of the navigation */
	/* NULL: none. The permission for the first decides who may see the page. Others are omitted if
	 * the user's role does not allow them. */
	const struct console_source *sources;
	/* Adds members to the data; NULL: none. */
	int (*more)(struct visit *visit, struct json_writer *data);
	/* Redirects or answers with a file instead of drawing the page; NULL: draws it. */
	int (*leads)(struct visit *visit);
};

struct console_form {
	const char *path; /* NULL ends the table */
	const char *operation;
	/* A text field that is deleted if it was emptied; other empty fields count as absent. NULL:
	 * none. */
	const char *empties;
	const char *page; /* path of the page that contains the form */
	const char *done; /* confirmation that the page shows: "done.…" */
	/* The page that shows the answer if it contains data that is shown only once; NULL: 303. */
	const struct template *shows;
	/* The page itself shows the answer as its member "answered", with the entered values. */
	bool answered;
	/* The path that is shown afterwards, "/sales/{sale_id}" with a member of the answer; NULL:
	 * `page`. */
	const char *leads;
	/* Confirmation instead of `done` if the answer's "changed" is false; NULL: `done`. */
	const char *unchanged;
	/* For a resubmitted form if `shows` has shown the answer: the page that names what the first
	 * submission created, with the members "made" and "arguments" of its audit log entry. NULL: the
	 * path `leads_again`, `leads` or `page`. */
	const struct template *again;
	const char *leads_again;
};

struct console_export {
	const char *path;      /* without ".csv" and ".json"; NULL ends the table */
	const char *operation; /* a list operation */
	const char *arguments; /* as in a source */
	const char *columns;   /* members for the CSV columns, separated by spaces */
	const char *after;     /* member of a row after which the next page begins */
	const char *behind;    /* argument for it; NULL: "after" */
};

extern const struct console_page console_pages[], work_pages[];
extern const struct console_form console_forms[], work_forms[];
extern const struct console_export console_exports[];
/* billing_tables.c */
extern const struct console_page money_pages[];
extern const struct console_form money_forms[];
extern const struct console_export money_exports[];

const struct console_page *page_find(struct visit *visit, struct slice path);
const struct console_form *form_find(struct visit *visit, struct slice path);
/* Returns an export by index; NULL past the end. */
const struct console_export *export_at(size_t index);

/* ---- show.c ---- */

/* Runs the page's operations and draws the page. */
int show_page(struct visit *visit, int status, const struct console_page *page) MUST_CHECK;
/* Runs an operation for the user and appends its answer. `arguments`: text of a JSON object. */
int run_operation(struct visit *visit, const char *operation, struct slice arguments,
                  struct buf *answer) MUST_CHECK;
/* Same; the answer's text and its tree are in the request's arena. */
int ask_operation(struct visit *visit, const char *operation, struct slice arguments,
                  struct slice *ret_text, struct json **ret) MUST_CHECK;
/* Same with the arguments of a source. */
int ask_source(struct visit *visit, const char *operation, const char *from, struct slice *ret_text,
               struct json **ret) MUST_CHECK;
/* Returns whether the user's role allows the operation. */
bool is_operation_allowed(const struct visit *visit, const char *operation);
/* Writes the arguments of a source as a JSON object. */
int source_arguments(struct visit *visit, const char *operation, const char *arguments,
                     struct buf *out) MUST_CHECK;
/* Appends an argument of the operation with its type. */
void write_argument(struct json_writer *writer, const char *operation, const char *name,
                    struct slice value);

/* ---- submit.c, export.c, sign_in_pages.c ---- */

int submit_form(struct visit *visit, const struct console_form *form) MUST_CHECK;
/* Shows the form again with the entered values and the message of visit->error, without executing
 * it. ERR_*, `code` or another one: its page cannot be shown. */
int refuse_form(struct visit *visit, const struct console_form *form, int code) MUST_CHECK;
/* Returns the page's path with the placeholders of the requested path. NULL: no memory. */
const char *form_page(struct visit *visit, const char *pattern);
/* Returns whether a form that failed with this code is shown again with the values and the error,
 * because the user can correct it or must know it. Not for internal errors, whose page shows the
 * incident, nor for missing permissions. */
bool is_shown_on_form_page(int code);
/* Answers with an export. OK and *ret_found false: the path is not an export. */
int export_list(struct visit *visit, struct slice path, bool *ret_found) MUST_CHECK;
/* Answer with a file of that name as a download: with the contents of visit->out, or with decoded
 * base64. */
int answer_file(struct visit *visit, const char *type, const char *name) MUST_CHECK;
int answer_base64(struct visit *visit, const char *type, const char *name, struct slice base64)
	MUST_CHECK;
/* Handles the pages and forms without a session, and those of the session itself; *ret_found as
 * above. */
int sign_in_answer(struct visit *visit, struct slice path, bool *ret_found) MUST_CHECK;
/* Same for such a form that is not executed: shows its page with the message of visit->error. */
int sign_in_refused(struct visit *visit, struct slice path, bool *ret_found) MUST_CHECK;
/* State of a new session and its cookies. */
struct entry {
	char cookie[USER_AUTH_SECRET_SIZE]; /* cookie of the session after it has started */
	char known[USER_AUTH_SECRET_SIZE];
	struct user_auth_client client;
};
void new_session_prepare(struct visit *visit, struct entry *ret);
/* Sets the browser's cookies and redirects to the remembered page. */
int new_session_finish(struct visit *visit, struct entry *entry) MUST_CHECK;
/* Requests a new sign-in and then continues at `path`. */
int sign_in_again(struct visit *visit, const char *path, const struct fields *typed) MUST_CHECK;

#endif
