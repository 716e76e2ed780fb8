/* Forms: runs their operation and shows the result. */
#include "base/percent.h"
#include "console/visit.h"

static bool takes_empty(const char *operation, struct slice name)
{
	const struct admin_operation *found = admin_find(slice_of(operation));
	const struct admin_parameter *parameter;
	for (size_t i = 0; found && (parameter = admin_parameter_at(found, i)); i++)
		if (slice_is(name, parameter->name))
			return parameter->kind == ADMIN_TEXT && parameter->least == 0;
	return false;
}

static int form_arguments(struct visit *visit, const struct console_form *form, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	for (size_t i = 0; i < visit->form.count; i++) {
		struct slice name = visit->form.items[i].name;
		if (!name.size || is_console_field(name) ||
		    fields_find(&visit->form, name.data) != &visit->form.items[i].value)
			continue;
		const char *value = fields_join(&visit->form, name, visit->arena);
		if (!value)
			return ERR_NO_MEMORY;
		for (size_t at = 0; at < name.size; at++)
			if ((name.data[at] < 'a' || name.data[at] > 'z') && name.data[at] != '_')
				return error_set(visit->error, ERR_VALIDATION, MSG_CONSOLE_FORM, NULL);
		/* An empty field counts as absent, except a multi-line text, and a field that the form
		 * marks as deletable by emptying it. */
		bool empties = form->empties && slice_is(name, form->empties);
		if (*value || empties || takes_empty(form->operation, name))
			write_argument(&writer, form->operation, name.data, slice_of(value));
	}
	for (size_t i = 0; i < PLACES_MAX; i++)
		if (visit->places[i].name.size)
			write_argument(
				&writer, form->operation,
				arena_copy(visit->arena, visit->places[i].name.data, visit->places[i].name.size),
				visit->places[i].value);
	json_end_object(&writer);
	return buf_check(out);
}

/* The tree refers to its text. */
static int parse_kept(struct visit *visit, struct slice text, struct json **ret)
{
	const char *kept = arena_copy(visit->arena, text.data, text.size);
	return kept ? json_parse(visit->arena, slice_make(kept, text.size), NULL, ret, visit->error)
	            : ERR_NO_MEMORY;
}

/* Reads the member for the placeholder of the path's pattern and adds it as a placeholder. False:
 * absent. */
static bool take_place(struct visit *visit, const char *pattern, const struct json *from)
{
	struct slice value, name = slice_of(strchr(pattern, '{') + 1);
	name.size = strcspn(name.data, "}");
	const char *member = arena_copy(visit->arena, name.data, name.size);
	bool found = member && json_get_text(from, member, &value);
	if (found)
		visit->places[0] = (struct field){.name = name, .value = value};
	return found;
}

/* Adds the identifier of the created object in the answer as a placeholder. */
static int find_made(struct visit *visit, const char *pattern, struct slice answer)
{
	struct json *json;
	int result = parse_kept(visit, answer, &json);
	if (result || take_place(visit, pattern, json))
		return result;
	return error_cause(visit->error, ERR_INTERNAL, "the response lacks %s", strchr(pattern, '{'));
}

const char *form_page(struct visit *visit, const char *pattern)
{
	BUF_AUTO struct buf path;
	buf_init(&path, CONSOLE_BODY_MAX);
	for (const char *at = pattern; *at;) {
		size_t size = strcspn(at, "{");
		buf_add(&path, at, size);
		at += size;
		if (!*at)
			break;
		size = strcspn(at, "}");
		for (size_t i = 0; i < PLACES_MAX; i++)
			if (slice_equal(visit->places[i].name, slice_make(at + 1, size - 1)))
				buf_add_percent(&path, visit->places[i].value, "");
		at += size + 1;
	}
	return buf_check(&path) ? NULL : arena_copy(visit->arena, path.data, path.size);
}

bool is_shown_on_form_page(int code)
{
	switch (code) {
	case ERR_INTERNAL:
	case ERR_CORRUPT:
	case ERR_METHOD:
	case ERR_HEAD_LARGE:
	case ERR_INVALID_KEY:
	case ERR_REVOKED_KEY:
	case ERR_FORBIDDEN:
	case ERR_SIGN_IN: return false;
	default: return true;
	}
}

/* If the page cannot be shown either, the error page is shown. */
static int show_again(struct visit *visit, const struct console_form *form, const char *path,
                      int code)
{
	error_keep(visit->error, code);
	const char *said = error_words(visit);
	struct error why = *visit->error;
	visit->said = slice_of(said);
	visit->typed = &visit->form;
	visit->typed_form = form->path;
	error_clear(visit->error);
	visit->query.count = 0;
	const struct console_page *page = page_find(visit, slice_of(path));
	int result = page ? show_page(visit, error_http_status(code), page) : ERR_NOT_FOUND;
	*visit->error = why;
	visit->answer->code = code;
	return result ? code : OK;
}

/* Refuses a form of a page of another account. The selected account belongs to the session, so it
 * may have changed in another tab, and the form would affect an account that its page did not show.
 * The entered values are not filled in again, because they were meant for the other account. */
static int refuse_other_account(struct visit *visit, const char *path)
{
	visit->other_account = true;
	visit->query.count = 0;
	visit->answer->code = ERR_CONFLICT;
	const struct console_page *page = page_find(visit, slice_of(path));
	int status = error_http_status(ERR_CONFLICT);
	int result = page ? show_page(visit, status, page) : ERR_NOT_FOUND;
	if (result != ERR_NOT_FOUND && result != ERR_FORBIDDEN)
		return result;
	/* Objects of the other account have no page in this one. */
	error_clear(visit->error);
	return show_page(visit, status, page_find(visit, slice_of("/")));
}

/* Reads whether the operation changed nothing. */
static int read_unchanged(struct visit *visit, const struct buf *answer, bool *ret)
{
	ARENA_AUTO struct arena arena;
	struct json *json;
	arena_init(&arena, DATA_MAX);
	int result = json_parse(&arena, buf_slice(answer), NULL, &json, visit->error);
	const struct json *changed = result ? NULL : json_member(json, "changed");
	*ret = changed && changed->type == JSON_FALSE;
	return result;
}

static int show_answered(struct visit *visit, const struct console_form *form, const char *path,
                         const struct buf *answer)
{
	const char *kept = arena_copy(visit->arena, answer->data, answer->size);
	const struct console_page *page = page_find(visit, slice_of(path));
	if (!kept || !page)
		return kept ? ERR_NOT_FOUND : ERR_NO_MEMORY;
	visit->answered = slice_make(kept, answer->size);
	visit->typed = &visit->form;
	visit->typed_form = form->path;
	return show_page(visit, 200, page);
}

static int show_answer(struct visit *visit, const struct console_form *form, const char *path,
                       const struct buf *answer)
{
	const char *kept = arena_copy(visit->arena, answer->data, answer->size);
	visit->page = page_find(visit, slice_of(path));
	return kept ? draw_page(visit, 200, form->shows, slice_make(kept, answer->size))
	            : ERR_NO_MEMORY;
}

static bool is_of_other_account(const struct visit *visit)
{
	return !slice_is(fields_get(&visit->form, "in_account"), visit->session.chosen->account_id);
}

int refuse_form(struct visit *visit, const struct console_form *form, int code)
{
	const char *path = form_page(visit, form->page);
	return path && !is_of_other_account(visit) ? show_again(visit, form, path, code) : code;
}

/* ---- resubmitted forms ---- */

static int draw_again(struct visit *visit, const struct console_form *form, const char *path,
                      struct slice act)
{
	visit->page = page_find(visit, slice_of(path));
	return draw_page(visit, 200, form->again, act);
}

/* Shows the result of the first submission, from its audit log entry. */
static int lead_to_first(struct visit *visit, const struct console_form *form, const char *path,
                         const struct submitted_form *sent)
{
	struct audit_record act;
	struct json *json;
	const char *leads = form->leads_again ? form->leads_again : form->leads;
	error_clear(visit->error);
	if (!*sent->act_id)
		return visit_redirect_done(visit, path, "repeated_unknown");
	int result = store_get_audit_record(visit->admin->store, slice_of(sent->act_id), visit->arena,
	                                    &act, visit->error);
	if (!result)
		result = parse_kept(visit, act.document, &json);
	if (result)
		return result;
	if (form->again)
		return draw_again(visit, form, path, act.document);
	if (json_member(json, "outcome"))
		return visit_redirect_done(visit, path, "repeated_unknown");
	const struct json *made = json_member(json, "made"), *found = json_member(json, "found");
	if (leads &&
	    ((made && take_place(visit, leads, made)) || (found && take_place(visit, leads, found))))
		path = form_page(visit, leads);
	return path ? visit_redirect_done(visit, path, "repeated") : ERR_NO_MEMORY;
}

/* ---- execution ---- */

/* Runs a form. If it failed before its number was claimed, or with an unknown outcome, the form is
 * shown with the same number. Resubmitting it is then not executed a second time. */
static int run_form(struct visit *visit, const struct console_form *form,
                    struct submitted_form *sent, struct slice arguments, struct buf *answer)
{
	sent->number = fields_get(&visit->form, FORM_NUMBER);
	visit->sent = sent->number.size ? sent : NULL;
	int result = run_operation(visit, form->operation, arguments, answer);
	visit->sent = NULL;
	if (result && (!sent->claimed || result == ERR_UNKNOWN_OUTCOME))
		visit->form_number = sent->number;
	return result;
}

int submit_form(struct visit *visit, const struct console_form *form)
{
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf answer;
	buf_init(&arguments, 4 * CONSOLE_BODY_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	const char *path = form_page(visit, form->page);
	if (path && is_of_other_account(visit))
		return refuse_other_account(visit, path);
	int result = path ? form_arguments(visit, form, &arguments) : ERR_NO_MEMORY;
	struct submitted_form sent = {0};
	if (!result)
		result = run_form(visit, form, &sent, buf_slice(&arguments), &answer);
	if (sent.repeated)
		return lead_to_first(visit, form, path, &sent);
	if (result == ERR_SIGN_IN)
		return sign_in_again(visit, path, &visit->form);
	bool leads_away = result == ERR_PASSKEY && visit_lacks_passkey(visit);
	if (path && result && is_shown_on_form_page(result) && !leads_away)
		return show_again(visit, form, path, result);
	if (!result && form->shows) {
		result = show_answer(visit, form, path, &answer);
		explicit_bzero(answer.data, answer.size);
		return result;
	}
	if (!result && form->answered)
		return show_answered(visit, form, path, &answer);
	bool unchanged = false;
	if (!result && form->unchanged)
		result = read_unchanged(visit, &answer, &unchanged);
	if (!result && form->leads) {
		result = find_made(visit, form->leads, buf_slice(&answer));
		path = result ? NULL : form_page(visit, form->leads);
		result = result ? result : path ? OK : ERR_NO_MEMORY;
	}
	return result ? result
	              : visit_redirect_done(visit, path, unchanged ? form->unchanged : form->done);
}
