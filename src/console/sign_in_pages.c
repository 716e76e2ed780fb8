/* Sign-in and sign-out. The user requests a link, opens it, and confirms it with a button, because
 * e-mail scanners open every link. Alternatively the user presents a passkey (passkey_forms.h).
 * Also the selection of language and account. */
#include "console/passkey_forms.h"
#include "pages_made.h"

#define KNOWN_SECONDS (INT64_C(365) * 24 * 3600)

static int draw(struct visit *visit, int status, const struct template *page)
{
	return draw_page(visit, status, page, slice_of("{}"));
}

/* ---- requesting a link ---- */

static int show_ask(struct visit *visit)
{
	return visit->signed_in ? visit_redirect(visit, "/") : draw(visit, 200, &page_sign_in);
}

static bool is_said(int code)
{
	return code == ERR_VALIDATION || code == ERR_REFUSED || code == ERR_RATE_LIMITED;
}

/* Shows the form again with the error. */
static int show_error(struct visit *visit, int code, const struct template *page)
{
	visit->said = slice_of(error_words(visit));
	visit->typed = &visit->form;
	visit->answer->code = code;
	return draw(visit, error_http_status(code), page);
}

static int ask(struct visit *visit)
{
	const struct link_requester asker = {.browser = visit->browser_cookie,
	                                     .known = visit->known_cookie,
	                                     .address = visit->request->address};
	int result = user_auth_request_link(visit->admin->service, fields_get(&visit->form, "email"),
	                                    visit->language, &asker, visit->error);
	if (!is_said(result))
		return result ? result : visit_redirect(visit, "/sent");
	return show_error(visit, result, &page_sign_in);
}

static int show_sent(struct visit *visit)
{
	return draw(visit, 200, &page_sent);
}

/* ---- opening the link ---- */

static int show_enter(struct visit *visit)
{
	BUF_AUTO struct buf data;
	buf_init(&data, CONSOLE_BODY_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_slice(&writer, "link", fields_get(&visit->query, "link"));
	json_end_object(&writer);
	int result = buf_check(&data);
	return result ? result : draw_page(visit, 200, &page_enter, buf_slice(&data));
}

/* Returns the page at which the browser was sent to sign in. */
static const char *where_it_was(struct visit *visit)
{
	size_t size = visit->again.size;
	const char *end = size ? memchr(visit->again.data, '&', size) : NULL;
	struct slice path;
	if (end)
		size = (size_t)(end - visit->again.data);
	if (!size || !path_decode(slice_make(visit->again.data, size), visit->arena, &path))
		return "/";
	const char *full = arena_printf(visit->arena, CONSOLE_PATH "%.*s", (int)path.size, path.data);
	return full && visit_is_console_address(slice_of(full)) ? full + sizeof CONSOLE_PATH - 1 : "/";
}

void new_session_prepare(struct visit *visit, struct entry *ret)
{
	/* An existing value is kept, because other users may sign in with it too. */
	if (user_auth_is_secret(visit->known_cookie))
		memcpy(ret->known, visit->known_cookie.data, sizeof ret->known - 1);
	else
		user_auth_new_secret(ret->known);
	ret->known[sizeof ret->known - 1] = '\0';
	ret->client = (struct user_auth_client){.address = visit->request->address,
	                                        .agent = visit->request->agent,
	                                        .known = slice_of(ret->known)};
}

int new_session_finish(struct visit *visit, struct entry *entry)
{
	visit_set_cookie(visit, COOKIE_SESSION, entry->cookie, -1);
	visit_set_cookie(visit, COOKIE_BROWSER, "", 0);
	visit_set_cookie(visit, COOKIE_KNOWN, entry->known, KNOWN_SECONDS);
	explicit_bzero(entry->cookie, sizeof entry->cookie);
	return visit_redirect(visit, where_it_was(visit));
}

static int take(struct visit *visit)
{
	struct entry entry;
	new_session_prepare(visit, &entry);
	int result = user_auth_redeem_link(visit->admin->service, fields_get(&visit->form, "link"),
	                                   visit->browser_cookie, visit->session_cookie, &entry.client,
	                                   entry.cookie, visit->error);
	if (result == ERR_REFUSED) {
		visit->answer->code = result;
		return draw(visit, 403, &page_spent);
	}
	return result ? result : new_session_finish(visit, &entry);
}

/* ---- renewed sign-in ---- */

int sign_in_again(struct visit *visit, const char *path, const struct fields *typed)
{
	int result = visit_remember(visit, path, typed);
	return result ? result : visit_redirect(visit, "/again");
}

static int show_again(struct visit *visit)
{
	return draw(visit, 200, &page_again);
}

/* Requests a link for a renewed sign-in. It is sent to the user's address and bound to this browser
 * by a cookie in addition to that of the session. */
static int ask_again(struct visit *visit)
{
	char *browser = arena_alloc(visit->arena, USER_AUTH_SECRET_SIZE);
	if (!browser)
		return ERR_NO_MEMORY;
	user_auth_new_secret(browser);
	const struct link_requester asker = {
		.browser = slice_of(browser), .in_session = true, .address = visit->request->address};
	int result = user_auth_request_link(visit->admin->service, slice_of(visit->session.email),
	                                    visit->language, &asker, visit->error);
	if (result)
		return is_said(result) ? show_error(visit, result, &page_again) : result;
	visit_set_cookie(visit, COOKIE_BROWSER, browser, USER_AUTH_LINK_US / US_PER_SECOND);
	return visit_redirect(visit, "/sent");
}

/* ---- the session ---- */

static int leave(struct visit *visit)
{
	const struct user_auth_client client = {.address = visit->request->address,
	                                        .agent = visit->request->agent};
	int result =
		user_auth_sign_out(visit->admin->service, visit->session_cookie, &client, visit->error);
	if (result)
		return result;
	visit_set_cookie(visit, COOKIE_SESSION, "", 0);
	visit_set_cookie(visit, COOKIE_AGAIN, "", 0);
	return visit_redirect_done(visit, "/sign-in", "left");
}

/* Redirects to the page that contains the form. */
static int go_back(struct visit *visit)
{
	struct slice next = fields_get(&visit->form, "next");
	bool own = visit_is_console_address(next);
	const char *path = own ? arena_copy(visit->arena, next.data + sizeof CONSOLE_PATH - 1,
	                                    next.size - sizeof CONSOLE_PATH + 1)
	                       : "/";
	return path ? visit_redirect(visit, path) : ERR_NO_MEMORY;
}

static int choose_language(struct visit *visit)
{
	struct slice wanted = fields_get(&visit->form, "language");
	bool spanish = slice_is(wanted, "es");
	int result = OK;
	if (!spanish && !slice_is(wanted, "en"))
		return error_set(visit->error, ERR_VALIDATION, MSG_CONSOLE_FORM, NULL);
	if (visit->signed_in)
		result =
			user_auth_set_language(visit->admin->service, &visit->session,
		                           spanish ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH, visit->error);
	if (result)
		return result;
	visit_set_cookie(visit, COOKIE_LANGUAGE, spanish ? "es" : "en", LANGUAGE_SECONDS);
	return go_back(visit);
}

static int choose_account(struct visit *visit)
{
	int result = user_auth_choose_account(visit->admin->service, visit->session_cookie,
	                                      fields_get(&visit->form, "account"), visit->error);
	return result ? result : visit_redirect(visit, "/");
}

/* ---- dispatch ---- */

static const struct {
	const char *path;
	bool post;
	bool signed_in; /* requires a session */
	int (*answer)(struct visit *visit);
} ways[] = {
	{"/sign-in", false, false, show_ask},
	{"/sign-in", true, false, ask},
	{"/sent", false, false, show_sent},
	{"/enter", false, false, show_enter},
	{"/enter", true, false, take},
	{"/passkey", true, false, passkey_sign_in},
	{"/passkey/challenge", true, false, passkey_challenge},
	{"/passkeys/add", true, true, passkey_add},
	{"/again", false, true, show_again},
	{"/again", true, true, ask_again},
	{"/leave", true, false, leave},
	{"/language", true, false, choose_language},
	{"/account", true, true, choose_account},
};

int sign_in_answer(struct visit *visit, struct slice path, bool *ret_found)
{
	*ret_found = false;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (!slice_is(path, ways[i].path) || ways[i].post != visit->request->post ||
		    (ways[i].signed_in && !visit->signed_in))
			continue;
		*ret_found = true;
		int result = ways[i].post ? visit_check_form(visit) : OK;
		return result ? result : ways[i].answer(visit);
	}
	return OK;
}

int sign_in_refused(struct visit *visit, struct slice path, bool *ret_found)
{
	const struct template *page = visit->signed_in ? &page_again : &page_sign_in;
	*ret_found = slice_is(path, visit->signed_in ? "/again" : "/sign-in");
	return *ret_found ? show_error(visit, visit->error->code, page) : OK;
}
