/* The common data of all pages, and drawing of pages. */
#include <stdio.h>

#include "pages_made.h"
#include "console/account_plots.h"
#include "console/passkey_forms.h"
#include "console/qr.h"
#include "console/visit.h"
#include "service/interface.h"
#include "service/settings.h"

/* Only addresses of this site, no inline script or style. */
#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "   \
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

#define FORM_NUMBER_BYTES 16

static void put_token(const struct visit *visit, struct json_writer *writer)
{
	char token[USER_AUTH_SECRET_SIZE];
	struct slice cookie = visit->signed_in ? visit->session_cookie : visit->browser_cookie;
	user_auth_form_token(cookie, token);
	json_text(writer, "token", token);
}

/* Writes the form number, with which a form resubmitted by the same user is executed only once
 * (store/audit/audit_log.h). */
static void put_form_number(const struct visit *visit, struct json_writer *writer)
{
	uint8_t random[FORM_NUMBER_BYTES];
	char number[2 * FORM_NUMBER_BYTES + 1];
	random_bytes(random, sizeof random);
	hex_encode(random, sizeof random, number);
	json_slice(writer, FORM_NUMBER,
	           visit->form_number.size ? visit->form_number : slice_of(number));
}

/* Writes the permissions; "user invite" becomes can.user_invite. */
static void put_rights(const struct visit *visit, struct json_writer *writer)
{
	const struct admin_operation *operation;
	json_begin_object(writer, "can");
	for (size_t i = 0; (operation = admin_operation_at(i)); i++) {
		char name[64];
		snprintf(name, sizeof name, "%s", operation->name);
		for (char *at = name; *at; at++)
			if (*at == ' ' || *at == '-')
				*at = '_';
		if (is_operation_allowed(visit, operation->name))
			json_boolean(writer, name, true);
	}
	json_end_object(writer);
}

static void put_account(struct json_writer *writer, const char *name,
                        const struct membership *membership)
{
	json_begin_object(writer, name);
	json_text(writer, "account_id", membership->account_id);
	json_text(writer, "name", membership->account_name);
	json_text(writer, "role", role_text(membership->role));
	json_text(writer, "invited_by", membership->made_by);
	json_end_object(writer);
}

static void put_user(const struct visit *visit, struct json_writer *writer)
{
	const struct session_view *session = &visit->session;
	json_begin_object(writer, "user");
	json_text(writer, "user_id", session->user_id);
	json_text(writer, "email", session->email);
	json_text(writer, "session_id", session->session_id);
	json_time(writer, "signed_in_at", session->signed_in_at_us);
	json_boolean(writer, "fresh", user_auth_is_recent(session, visit->now_us));
	json_integer(writer, "passkeys", session->passkeys);
	json_boolean(writer, "by_passkey", session->by_passkey);
	bool lacks = visit_lacks_passkey(visit);
	json_boolean(writer, "lacks_passkey", lacks);
	json_boolean(writer, "shows_passkey_first", lacks && session->passkeys > 0);
	json_end_object(writer);
	put_account(writer, "account", session->chosen);
	json_boolean(writer, "several", session->membership_count > 1);
	json_begin_array(writer, "accounts");
	for (size_t i = 0; i < session->membership_count; i++)
		put_account(writer, NULL, &session->memberships[i]);
	json_end_array(writer);
	put_rights(visit, writer);
}

/* Writes the entered values of a failed form. */
static void put_typed(const struct visit *visit, struct json_writer *writer)
{
	json_begin_object(writer, "form");
	for (size_t i = 0; visit->typed && i < visit->typed->count; i++) {
		const struct field *field = &visit->typed->items[i];
		bool first = fields_find(visit->typed, field->name.data) == &field->value;
		bool plain = field->name.size > 0;
		for (size_t at = 0; at < field->name.size; at++)
			plain &= (field->name.data[at] >= 'a' && field->name.data[at] <= 'z') ||
			         field->name.data[at] == '_';
		if (plain && first && !is_console_field(field->name))
			json_slice(writer, field->name.data, field->value);
	}
	json_end_object(writer);
}

/* Returns the address of a page shown by GET. */
static const char *here(const struct visit *visit)
{
	const struct console_request *request = visit->request;
	if (request->post || visit->answer->status >= 400)
		return CONSOLE_PATH "/";
	const char *path = arena_printf(
		visit->arena, CONSOLE_PATH "%.*s%s%.*s", (int)request->path.size, request->path.data,
		request->query.size ? "?" : "", (int)request->query.size, request->query.data);
	return path && visit_is_console_address(slice_of(path)) ? path : CONSOLE_PATH "/";
}

static int put_globals(const struct visit *visit, struct json_writer *writer)
{
	bool known =
		visit->done.size && template_word(&all_words, "done", visit->done, visit->language);
	json_begin_object(writer, NULL);
	put_token(visit, writer);
	if (visit->signed_in)
		put_form_number(visit, writer);
	json_text(writer, "service", visit->admin->service->settings->service_name);
	json_text(writer, "language", visit->language == LANGUAGE_SPANISH ? "es" : "en");
	json_text(writer, "here", here(visit));
	json_text(writer, "section", visit->page ? visit->page->section : NULL);
	json_boolean(writer, "signed_in", visit->signed_in);
	json_boolean(writer, "stranger", visit->stranger);
	json_text(writer, "passkeys_origin", passkeys_origin(visit));
	/* Only known words. */
	json_slice(writer, "done", known ? visit->done : slice_of(""));
	json_slice(writer, "said", visit->said);
	json_boolean(writer, "other_account", visit->other_account);
	json_text(writer, "said_of", visit->typed_form);
	put_typed(visit, writer);
	if (visit->signed_in)
		put_user(visit, writer);
	json_end_object(writer);
	return buf_check(writer->out);
}

static int parse(struct visit *visit, const struct buf *text, struct json **ret)
{
	const char *kept = arena_copy(visit->arena, text->data, text->size);
	return kept ? json_parse(visit->arena, slice_make(kept, text->size), NULL, ret, visit->error)
	            : ERR_NO_MEMORY;
}

static int draw_picture(const char *name, const struct json *data, enum language language,
                        struct buf *out)
{
	return strcmp(name, "qr") == 0 ? qr_picture(data, out)
	                               : account_picture(name, data, language, out);
}

int draw_page(struct visit *visit, int status, const struct template *page, struct slice data)
{
	BUF_AUTO struct buf text;
	buf_init(&text, DATA_MAX);
	struct json_writer writer = {.out = &text};
	struct template_view view = {
		.language = visit->language, .words = &all_words, .picture = draw_picture};
	struct json *globals = NULL, *json = NULL;
	visit->answer->status = status;
	int result = put_globals(visit, &writer);
	if (!result)
		result = parse(visit, &text, &globals);
	if (!result)
		result = json_parse(visit->arena, data, NULL, &json, visit->error);
	view.globals = globals;
	view.data = json;
	buf_clear(visit->out);
	if (!result)
		result = template_draw(page, &view, visit->out);
	visit->answer->type = "text/html; charset=utf-8";
	visit->answer->policy = POLICY;
	return result;
}

/* Writes the label of a form field. */
static void name_field(const void *context, const char *name, enum language language,
                       char word[FIELD_WORD_SIZE])
{
	const char *label = template_word(&all_words, "field", slice_of(name), language);
	(void)context;
	snprintf(word, FIELD_WORD_SIZE, language == LANGUAGE_SPANISH ? "«%s»" : "“%s”",
	         label ? label : name);
}

/* Replaces general messages that address programs and mention headers. */
static void make_readable(struct error *error)
{
	char seconds[24];
	bool limited = error->code == ERR_RATE_LIMITED;
	if (!limited && error->code != ERR_UNAVAILABLE)
		return;
	if (error->message != MSG_NONE && error->message != MSG_HTTP_ADDRESS_RATE)
		return;
	snprintf(seconds, sizeof seconds, "%lld", (long long)error_retry_after(error->code, error));
	error_set(error, error->code, limited ? MSG_CONSOLE_RATE : MSG_CONSOLE_UNAVAILABLE, seconds,
	          NULL);
}

const char *error_words(const struct visit *visit)
{
	struct error error = *visit->error;
	make_readable(&error);
	error_name_fields(&error, name_field, NULL);
	const char *words = arena_text(visit->arena, error_message(&error, visit->language));
	return words ? words : "";
}

/* Returns the page that contains the form, if there is one. */
static const char *path_of_form_page(struct visit *visit)
{
	const struct console_request *request = visit->request;
	const struct console_form *form = request->post ? form_find(visit, request->path) : NULL;
	const char *path = form ? form_page(visit, form->page) : NULL;
	return path ? arena_printf(visit->arena, CONSOLE_PATH "%s", path) : NULL;
}

int draw_error(struct visit *visit, int status, int code)
{
	BUF_AUTO struct buf data;
	char number[8];
	buf_init(&data, 2 * CONSOLE_BODY_MAX);
	struct json_writer writer = {.out = &data};
	error_keep(visit->error, code);
	snprintf(number, sizeof number, "%d", status);
	json_begin_object(&writer, NULL);
	json_text(&writer, "status", number);
	json_text(&writer, "message", error_words(visit));
	json_text(&writer, "form_page", path_of_form_page(visit));
	json_text(&writer, "incident_id", status >= 500 ? visit->request->incident_id : NULL);
	json_end_object(&writer);
	visit->answer->code = code;
	visit->answer->location = NULL;
	visit->said = visit->done = slice_of("");
	int result = buf_check(&data);
	return result ? result
	              : draw_page(visit, status, visit->signed_in ? &page_error_inside : &page_error,
	                          buf_slice(&data));
}
