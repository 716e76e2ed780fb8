#include "console/visit.h"

#include <stdio.h>

#include "base/percent.h"
#include "net/origin.h"
#include "service/settings.h"

#define AGAIN_MAX                                                                                  \
	2000 /* browsers take 4096 bytes of a cookie, its name and attributes included                 \
	      */
#define AGAIN_SECONDS (15 * 60)
#define BROWSER_SECONDS (30 * 60)
#define DONE_SECONDS 60

/* ---- cookies ---- */

static const char *public_url(const struct visit *visit)
{
	return visit->admin->service->settings->service_public_url;
}

/* Returns whether cookies use the prefix and Secure, which browsers refuse over plain HTTP. Plain
 * HTTP is for development only. */
static bool is_secure(const struct visit *visit)
{
	return strncmp(public_url(visit), "https://", sizeof "https://" - 1) == 0;
}

static struct slice read_cookie(const struct visit *visit, const char *name)
{
	char full[64];
	snprintf(full, sizeof full, "%s%s", is_secure(visit) ? "__Host-" : "", name);
	return cookie_find(visit->request->cookie, full);
}

void visit_set_cookie(struct visit *visit, const char *name, const char *value, int64_t seconds)
{
	char age[40] = "";
	if (seconds >= 0)
		snprintf(age, sizeof age, "; Max-Age=%lld", (long long)seconds);
	bool secure = is_secure(visit);
	const char *text =
		arena_printf(visit->arena, "%s%s=%s; Path=/; HttpOnly; SameSite=Lax%s%s",
	                 secure ? "__Host-" : "", name, value, secure ? "; Secure" : "", age);
	for (size_t i = 0; i < CONSOLE_COOKIES_MAX; i++) {
		if (visit->answer->cookies[i])
			continue;
		visit->answer->cookies[i] = text;
		return;
	}
}

/* ---- browser and language ---- */

/* Sets the browser's cookie. An existing one is kept, because a pending link may be bound to it. */
static int give_browser_cookie(struct visit *visit)
{
	char *secret = arena_alloc(visit->arena, USER_AUTH_SECRET_SIZE);
	if (!secret)
		return ERR_NO_MEMORY;
	if (user_auth_is_secret(visit->browser_cookie))
		memcpy(secret, visit->browser_cookie.data, USER_AUTH_SECRET_SIZE - 1);
	else
		user_auth_new_secret(secret);
	visit->browser_cookie = slice_of(secret);
	visit_set_cookie(visit, COOKIE_BROWSER, secret, BROWSER_SECONDS);
	return OK;
}

void visit_choose_language(struct visit *visit)
{
	struct slice chosen = read_cookie(visit, COOKIE_LANGUAGE);
	visit->language = visit->request->language;
	if (visit->signed_in)
		visit->language = visit->session.language;
	else if (slice_is(chosen, "es"))
		visit->language = LANGUAGE_SPANISH;
	else if (slice_is(chosen, "en"))
		visit->language = LANGUAGE_ENGLISH;
	visit->answer->language = visit->language;
	/* Stored in a cookie, so that pages without a session check use the same language. */
	const char *own = visit->language == LANGUAGE_SPANISH ? "es" : "en";
	if (visit->signed_in && !visit->request->post && !slice_is(chosen, own))
		visit_set_cookie(visit, COOKIE_LANGUAGE, own, LANGUAGE_SECONDS);
}

/* Ending a session takes its cookie only, and the user's accounts may be on a server that is
 * unavailable. */
static bool may_sign_out(const struct visit *visit, int result)
{
	return result == ERR_UNAVAILABLE && visit->request->post &&
	       slice_is(visit->request->path, "/leave") && user_auth_is_secret(visit->session_cookie);
}

static int find_session(struct visit *visit)
{
	int result = user_auth_find_session(visit->admin->service, visit->session_cookie, visit->arena,
	                                    &visit->session, visit->error);
	visit->signed_in = !result;
	visit->is_sign_out = may_sign_out(visit, result);
	if (result == ERR_NOT_FOUND || visit->is_sign_out) {
		error_clear(visit->error);
		result = OK;
	}
	return result;
}

/* Reads the confirmation to show once, in the browser that sent the form. It is in a cookie, so
 * that a crafted link cannot show one. */
static void read_done(struct visit *visit)
{
	struct slice done = fields_get(&visit->query, "done");
	if (visit->request->post || !done.size || !slice_equal(done, read_cookie(visit, COOKIE_DONE)))
		return;
	visit->done = done;
	visit_set_cookie(visit, COOKIE_DONE, "", 0);
}

int visit_begin(struct visit *visit)
{
	visit->now_us = store_now_us(visit->admin->service->store);
	visit->language = visit->answer->language = visit->request->language;
	visit->session_cookie = read_cookie(visit, COOKIE_SESSION);
	visit->browser_cookie = read_cookie(visit, COOKIE_BROWSER);
	visit->known_cookie = read_cookie(visit, COOKIE_KNOWN);
	visit->again = read_cookie(visit, COOKIE_AGAIN);
	int result = find_session(visit);
	visit_choose_language(visit);
	if (!result && !visit->signed_in && !visit->request->post)
		result = give_browser_cookie(visit);
	if (!result)
		result = fields_read(visit->request->query, visit->arena, &visit->query, visit->error);
	if (!result)
		read_done(visit);
	return result;
}

bool visit_lacks_passkey(const struct visit *visit)
{
	return visit->signed_in && visit->session.chosen->passkeys_required &&
	       !visit->session.by_passkey;
}

/* ---- cross-site forms ---- */

static bool is_form_type(struct slice type)
{
	static const char wanted[] = "application/x-www-form-urlencoded";
	return type.size >= sizeof wanted - 1 &&
	       strncasecmp(type.data, wanted, sizeof wanted - 1) == 0 &&
	       (type.size == sizeof wanted - 1 || strchr("; \t", type.data[sizeof wanted - 1]));
}

/* Checks where the request comes from. Sec-Fetch-Site has precedence over Origin. An old browser
 * sends neither and is checked by the token only. */
static bool comes_from_here(const struct visit *visit)
{
	const struct console_request *request = visit->request;
	if (request->fetch_site.size)
		return slice_is(request->fetch_site, "same-origin");
	struct origin own, given;
	return !request->origin.size ||
	       (origin_read(public_url(visit), &own) && origin_read(request->origin.data, &given) &&
	        strcmp(own.text, given.text) == 0);
}

int visit_check_form(struct visit *visit)
{
	struct error *error = visit->error;
	if (!comes_from_here(visit))
		return error_set(error, ERR_FORBIDDEN, MSG_CONSOLE_OTHER_SITE, NULL);
	if (!is_form_type(visit->request->content_type))
		return error_set(error, ERR_VALIDATION, MSG_CONSOLE_FORM, NULL);
	int result = fields_read(visit->request->body, visit->arena, &visit->form, error);
	if (result)
		return result;
	struct slice token = fields_get(&visit->form, "token");
	/* Anyone can obtain a browser cookie with its token and might plant both. If there is a
	 * session, only its own token is accepted. */
	bool of_session = visit->signed_in || visit->is_sign_out;
	struct slice cookie = of_session ? visit->session_cookie : visit->browser_cookie;
	return user_auth_check_form_token(cookie, token)
	           ? OK
	           : error_set(error, ERR_FORBIDDEN, MSG_CONSOLE_TOKEN, NULL);
}

bool is_console_field(struct slice name)
{
	return slice_is(name, "token") || slice_is(name, "in_account") || slice_is(name, FORM_NUMBER) ||
	       slice_is(name, TYPED_BY);
}

/* ---- redirects ---- */

bool visit_is_console_address(struct slice address)
{
	static const char own[] = CONSOLE_PATH;
	size_t size = sizeof own - 1;
	if (address.size < size || memcmp(address.data, own, size) != 0 ||
	    (address.size > size && !memchr("/?", address.data[size], 2)))
		return false;
	for (size_t i = 0; i < address.size; i++) {
		unsigned char byte = (unsigned char)address.data[i];
		if (byte <= ' ' || byte >= 0x7F || strchr("\\\"<>#", byte))
			return false;
	}
	return !memmem(address.data, address.size, "/.", 2);
}

int visit_redirect(struct visit *visit, const char *path)
{
	visit->answer->status = 303;
	visit->answer->location = arena_printf(visit->arena, CONSOLE_PATH "%s", path);
	return visit->answer->location ? OK : ERR_NO_MEMORY;
}

int visit_redirect_external(struct visit *visit, struct slice address)
{
	const char *kept = arena_copy(visit->arena, address.data, address.size);
	if (!kept)
		return ERR_NO_MEMORY;
	bool web = strncmp(kept, "https://", 8) == 0 || strncmp(kept, "http://", 7) == 0;
	for (size_t i = 0; i < address.size; i++)
		web &= address.data[i] > ' ' && address.data[i] < 0x7f;
	if (!web)
		return error_set(visit->error, ERR_REFUSED, MSG_NONE, NULL);
	visit->answer->status = 303;
	visit->answer->location = kept;
	return OK;
}

int visit_redirect_done(struct visit *visit, const char *path, const char *done)
{
	const char *with =
		arena_printf(visit->arena, "%s%cdone=%s", path, strchr(path, '?') ? '&' : '?', done);
	visit_set_cookie(visit, COOKIE_DONE, done, DONE_SECONDS);
	return with ? visit_redirect(visit, with) : ERR_NO_MEMORY;
}

const char *visit_current_user_key(struct visit *visit)
{
	const struct session_view *session = &visit->session;
	const char *typist =
		arena_printf(visit->arena, "%s.%s", session->user_id, session->chosen->account_id);
	return typist ? typist : "";
}

int visit_remember(struct visit *visit, const char *path, const struct fields *typed)
{
	BUF_AUTO struct buf text;
	buf_init(&text, AGAIN_MAX);
	buf_add_percent(&text, slice_of(path), "/");
	if (typed && visit->signed_in)
		buf_printf(&text, "&" TYPED_BY "=%s", visit_current_user_key(visit));
	for (size_t i = 0; typed && i < typed->count; i++) {
		const struct field *field = &typed->items[i];
		/* A sign-in does not change the form number. */
		if (is_console_field(field->name) && !slice_is(field->name, FORM_NUMBER))
			continue;
		buf_add_byte(&text, '&');
		buf_add_percent(&text, field->name, "");
		buf_add_byte(&text, '=');
		buf_add_percent(&text, field->value, "");
	}
	/* Values that are too long for the cookie must be entered again. */
	if (buf_check(&text))
		return typed ? visit_remember(visit, path, NULL) : OK;
	visit_set_cookie(visit, COOKIE_AGAIN, text.data, AGAIN_SECONDS);
	return OK;
}
