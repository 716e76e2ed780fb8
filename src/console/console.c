#include "console/console.h"

#include <assert.h>

#include "console/visit.h"

/* ---- remembered forms ---- */

/* Fills in a form that was interrupted by a sign-in, once, on its page, and only for the user who
 * entered the values. */
static void remember_typed(struct visit *visit, struct slice path)
{
	const char *end = visit->again.size ? memchr(visit->again.data, '&', visit->again.size) : NULL;
	size_t size = end ? (size_t)(end - visit->again.data) : visit->again.size;
	struct slice page;
	if (!size || !path_decode(slice_make(visit->again.data, size), visit->arena, &page) ||
	    !slice_equal(page, path))
		return;
	struct fields *typed = arena_alloc(visit->arena, sizeof *typed);
	struct slice rest = end ? slice_make(end + 1, visit->again.size - size - 1) : slice_of("");
	if (typed && rest.size && !fields_read(rest, visit->arena, typed, NULL) &&
	    slice_is(fields_get(typed, TYPED_BY), visit_current_user_key(visit))) {
		visit->typed = typed;
		visit->form_number = fields_get(typed, FORM_NUMBER);
	}
	visit_set_cookie(visit, COOKIE_AGAIN, "", 0);
}

static int come_in_first(struct visit *visit, struct slice path)
{
	const struct console_form *form = visit->request->post ? form_find(visit, path) : NULL;
	const char *back = form ? form->page : arena_copy(visit->arena, path.data, path.size);
	int result = back ? OK : ERR_NO_MEMORY;
	bool remembered = back && !strchr(back, '{') && strcmp(back, "/") != 0;
	if (!result && remembered)
		result = visit_remember(visit, back, NULL);
	return result ? result : visit_redirect(visit, "/sign-in");
}

/* ---- dispatch ---- */

/* The page does not exist, or does not support the method. */
static int refuse_path(struct visit *visit, const char *allow)
{
	visit->answer->allow = allow;
	return allow ? error_set(visit->error, ERR_METHOD, MSG_CONSOLE_METHOD, NULL)
	             : error_set(visit->error, ERR_NOT_FOUND, MSG_CONSOLE_NO_PAGE, NULL);
}

static int answer_post(struct visit *visit, struct slice path)
{
	const struct console_form *form = form_find(visit, path);
	if (!form)
		return refuse_path(visit, page_find(visit, path) ? "GET, HEAD" : NULL);
	int result = visit_check_form(visit);
	return result ? result : submit_form(visit, form);
}

static int answer_get(struct visit *visit, struct slice path)
{
	bool found;
	int result = export_list(visit, path, &found);
	if (found)
		return result;
	const struct console_page *page = page_find(visit, path);
	if (!page)
		return refuse_path(visit, form_find(visit, path) ? "POST" : NULL);
	if (page->leads)
		return page->leads(visit);
	remember_typed(visit, path);
	result = show_page(visit, 200, page);
	return result == ERR_SIGN_IN
	           ? sign_in_again(visit, arena_copy(visit->arena, path.data, path.size), NULL)
	           : result;
}

/* Refuses a form because of the rate; shows it again on its page if possible. */
static int refuse_rate(struct visit *visit, struct slice path, int64_t wait_seconds)
{
	bool found;
	const struct console_form *form = visit->signed_in ? form_find(visit, path) : NULL;
	bool readable = !visit_check_form(visit);
	error_clear(visit->error);
	error_set(visit->error, ERR_RATE_LIMITED, MSG_NONE, NULL);
	visit->error->retry_after_seconds = (int)wait_seconds;
	int result = readable ? sign_in_refused(visit, path, &found) : ERR_RATE_LIMITED;
	if (readable && !found)
		result = form ? refuse_form(visit, form, ERR_RATE_LIMITED) : ERR_RATE_LIMITED;
	return result;
}

static int64_t must_wait(const struct visit *visit)
{
	const struct console_request *request = visit->request;
	if (request->wait_seconds || !request->post || !visit->signed_in || !request->count_form)
		return request->wait_seconds;
	return request->count_form(request->context, visit->session.user_id);
}

static int answer(struct visit *visit)
{
	bool found;
	struct slice path = visit->request->path;
	if (!path.size)
		return visit_redirect(visit, "/");
	int64_t wait_seconds = must_wait(visit);
	if (wait_seconds)
		return refuse_rate(visit, path, wait_seconds);
	int result = sign_in_answer(visit, path, &found);
	if (found || result)
		return result;
	if (!visit->signed_in)
		return come_in_first(visit, path);
	return visit->request->post ? answer_post(visit, path) : answer_get(visit, path);
}

/* Default headers. The address of a page opened by a link is a secret: no request of the page may
 * reveal it, for example in a Referer header or log. Forms still send their origin, which some
 * browsers would otherwise omit. */
static struct console_answer no_answer_yet(const struct console_request *request)
{
	bool secret = slice_is(request->path, "/enter");
	return (struct console_answer){.status = 500,
	                               .referrer = secret ? "strict-origin" : "same-origin"};
}

int console_answer(struct admin *admin, const struct console_request *request, struct arena *arena,
                   struct buf *out, struct console_answer *ret, struct error *error)
{
	assert(admin->service);
	struct visit visit = {
		.admin = admin,
		.request = request,
		.arena = arena,
		.out = out,
		.answer = ret,
		.error = error,
	};
	*ret = no_answer_yet(request);
	int result = visit_begin(&visit);
	visit.stranger = result && error_http_status(result) >= 500;
	if (!result)
		result = answer(&visit);
	/* On that page the user adds a passkey, signs in with one, or leaves the account. */
	if (result == ERR_PASSKEY && visit_lacks_passkey(&visit))
		result = visit_redirect(&visit, "/passkeys");
	return result ? draw_error(&visit, error_http_status(result), result) : OK;
}

int console_answer_refused(struct admin *admin, const struct console_request *request, int code,
                           struct arena *arena, struct buf *out, struct console_answer *ret,
                           struct error *error)
{
	assert(admin->service);
	struct visit visit = {
		.admin = admin,
		.request = request,
		.arena = arena,
		.out = out,
		.answer = ret,
		.error = error,
		.stranger = true,
	};
	*ret = no_answer_yet(request);
	visit_choose_language(&visit);
	return draw_error(&visit, error_http_status(code), code);
}
