/* Operations on webhook endpoints: configuration, test deliveries, delivery log. */
#include "admin/admin_call.h"
#include "base/utf8.h"
#include "service/webhook.h"
#include "store/accounts/accounts.h"
#include "store/nodes/read_only_copy.h"
#include "store/notices/webhooks.h"

#define TYPES_MAX 512
#define BODY_MAX ((size_t)8 * 1024)

/* ---- showing ---- */

static void types_member(struct json_writer *out, const char *types)
{
	if (!types) {
		json_null(out, "types");
		return;
	}
	json_begin_array(out, "types");
	while (*types) {
		size_t size = strcspn(types, ",");
		json_slice(out, NULL, slice_make(types, size));
		types += size + (types[size] == ',');
	}
	json_end_array(out);
}

static bool previous_signs(const struct admin_call *call, const struct webhook_record *record)
{
	return record->previous_secret_until_us > store_now_us(call->admin->store);
}

static void webhook_members(const struct admin_call *call, const struct webhook_record *record,
                            struct json_writer *out)
{
	ADMIN_PUT(out, record, endpoint_id, account_id, url);
	types_member(out, record->types);
	json_boolean(out, "enabled", record->disabled_at_us == TIME_NONE);
	ADMIN_PUT(out, record, disabled_at_us, disabled_by, failures, waiting, secret_version);
	json_time(out, "previous_secret_until",
	          previous_signs(call, record) ? record->previous_secret_until_us : TIME_NONE);
	json_time(out, "created_at", record->created_at_us);
}

static int find(const struct admin_call *call, struct slice endpoint_id,
                struct webhook_record *record, struct error *error)
{
	return store_find_webhook(call->admin->store, endpoint_id, call->arena, record, error);
}

static int secret_of(const struct admin_call *call, const struct webhook_record *record,
                     int64_t version, char secret[WEBHOOK_SECRET_SIZE], struct error *error)
{
	struct sha256 installation;
	int result = store_get_secret(call->admin->store, WEBHOOK_SECRET_NAME, &installation, error);
	if (!result)
		webhook_secret(&installation, record->endpoint_id, version, secret);
	explicit_bzero(&installation, sizeof installation);
	return result;
}

/* Shows an endpoint; the secret is shown only when it is created. */
static int show(const struct admin_call *call, struct slice endpoint_id, bool with_secret,
                struct json_writer *out, struct error *error)
{
	struct webhook_record record;
	char secret[WEBHOOK_SECRET_SIZE];
	int result = find(call, endpoint_id, &record, error);
	if (!result && with_secret)
		result = secret_of(call, &record, record.secret_version, secret, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	webhook_members(call, &record, out);
	if (with_secret)
		json_text(out, "secret", secret);
	json_end_object(out);
	explicit_bzero(secret, sizeof secret);
	return OK;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return show(call, admin_slice(call, "endpoint"), false, out, error);
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct webhook_list list;
	int result = store_list_webhooks(
		call->admin->store, admin_slice(call, "account"), admin_slice(call, "after"),
		admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, webhook_members(call, item, out));
	list_end_partial(out, list.more, list.partial);
	return OK;
}

/* ---- changing ---- */

static int check_url(const struct admin_call *call, struct error *error)
{
	return http_url_check(admin_slice(call, "url"), call->admin->settings->webhook_allow_http,
	                      "url", error);
}

static int run_create(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	BUF_AUTO struct buf types;
	buf_init(&types, TYPES_MAX);
	char endpoint_id[ID_SIZE];
	int result = check_url(call, error);
	if (!result && admin_given(call, "types"))
		result = webhook_types_check(admin_slice(call, "types"), &types, error);
	if (!result)
		result = store_create_webhook(call->admin->store, admin_slice(call, "account"),
		                              admin_text(call, "url"), types.data, call->now_us,
		                              endpoint_id, error);
	return result ? result : show(call, slice_of(endpoint_id), true, out, error);
}

static int run_update(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	if (!admin_given(call, "url") && !admin_given(call, "types"))
		return error_set(error, ERR_USAGE, MSG_ADMIN_NOTHING_TO_CHANGE, NULL);
	BUF_AUTO struct buf types;
	buf_init(&types, TYPES_MAX);
	buf_add_text(&types, ""); /* "": all types; NULL: unchanged */
	struct slice endpoint_id = admin_slice(call, "endpoint");
	int result = admin_given(call, "url") ? check_url(call, error) : OK;
	if (!result && admin_given(call, "types"))
		result = webhook_types_check(admin_slice(call, "types"), &types, error);
	if (!result)
		result =
			store_change_webhook(call->admin->store, endpoint_id, admin_text(call, "url"),
		                         admin_given(call, "types") ? buf_slice(&types).data : NULL, error);
	return result ? result : show(call, endpoint_id, false, out, error);
}

static int run_delete(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int result = store_delete_webhook(call->admin->store, admin_slice(call, "endpoint"),
	                                  call->now_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "endpoint_id", admin_text(call, "endpoint"));
	json_boolean(out, "deleted", true);
	json_end_object(out);
	return OK;
}

static int run_rotate(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct slice endpoint_id = admin_slice(call, "endpoint");
	int64_t until_us = store_now_us(call->admin->store) + WEBHOOK_OVERLAP_US;
	int result = store_rotate_webhook(call->admin->store, endpoint_id, until_us,
	                                  admin_given(call, "end_previous"), error);
	return result ? result : show(call, endpoint_id, true, out, error);
}

static int run_enable(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct slice endpoint_id = admin_slice(call, "endpoint");
	int result = store_switch_webhook(call->admin->store, endpoint_id, NULL, call->now_us, error);
	return result ? result : show(call, endpoint_id, false, out, error);
}

static int run_disable(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct slice endpoint_id = admin_slice(call, "endpoint");
	int result =
		store_switch_webhook(call->admin->store, endpoint_id,
	                         call->caller->is_user ? "user" : "operator", call->now_us, error);
	return result ? result : show(call, endpoint_id, false, out, error);
}

/* ---- the log ---- */

/* Writes untrusted bytes as text: invalid UTF-8 and control characters become '?'. */
static void answer_member(struct json_writer *out, const char *name, struct slice bytes)
{
	BUF_AUTO struct buf text;
	buf_init(&text, bytes.size + 1);
	while (bytes.size) {
		size_t size = utf8_character(bytes);
		unsigned char first = (unsigned char)bytes.data[0];
		if (size == 0 || (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f)
			buf_add_byte(&text, '?');
		else
			buf_add(&text, bytes.data, size);
		size += !size;
		bytes = slice_make(bytes.data + size, bytes.size - size);
	}
	json_slice(out, name, buf_slice(&text));
}

static void attempt_members(struct json_writer *out, const struct attempt_view *view)
{
	json_time(out, "at", view->at_us);
	json_integer(out, "duration_ms", view->duration_us / 1000);
	if (view->http_status)
		json_integer(out, "http_status", view->http_status);
	else
		json_null(out, "http_status");
	json_text(out, "error", view->error);
	answer_member(out, "answer", view->answer);
}

static void delivery_members(struct json_writer *out, const struct delivery_view *view)
{
	bool waiting = strcmp(view->status, "waiting") == 0;
	json_integer(out, "number", view->notice);
	ADMIN_PUT(out, view, notice_id, type, mode, created_at_us, status, attempts);
	json_time(out, "next_attempt_at", waiting ? view->due_at_us : TIME_NONE);
	json_time(out, "ended_at", waiting ? TIME_NONE : view->due_at_us);
	json_time(out, "replayed_at", view->replayed_at_us);
	if (!view->last.attempt) {
		json_null(out, "last_attempt");
		return;
	}
	json_begin_object(out, "last_attempt");
	attempt_members(out, &view->last);
	json_end_object(out);
}

static int run_deliveries(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	struct delivery_list list;
	int result = store_list_deliveries(call->admin->store, admin_slice(call, "endpoint"),
	                                   admin_text(call, "status"), admin_integer(call, "before", 0),
	                                   admin_integer(call, "limit", ADMIN_LIST_DEFAULT),
	                                   call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, delivery_members(out, item));
	list_end(out, list.more);
	return OK;
}

static int run_attempts(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct attempt_list list;
	int result = store_list_attempts(call->admin->store, admin_slice(call, "endpoint"),
	                                 admin_slice(call, "notice"), call->arena, &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		json_begin_object(out, NULL);
		json_integer(out, "attempt", list.items[i].attempt);
		attempt_members(out, &list.items[i]);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

/* ---- test deliveries ---- */

static int test_body(const struct admin_call *call, const struct webhook_record *record,
                     const char *notice_id, struct buf *out, struct error *error)
{
	struct account_record account;
	int result = store_find_account(call->admin->store, slice_of(record->account_id), call->now_us,
	                                call->arena, &account, error);
	if (result)
		return result;
	struct error sentence = {0};
	error_set(&sentence, OK, MSG_WEBHOOK_TEST, NULL);
	BUF_AUTO struct buf data;
	buf_init(&data, BODY_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_text(&writer, "endpoint_id", record->endpoint_id);
	json_text(&writer, "message", error_message(&sentence, account.language));
	json_end_object(&writer);
	webhook_envelope(notice_id, notice_type_text(NOTICE_WEBHOOK_TEST), call->now_us,
	                 mode_text(MODE_LIVE), buf_slice(&data), out);
	result = buf_check(&data);
	return result ? result : buf_check(out);
}

/* Makes the attempt and writes the result. */
static int send_test(const struct admin_call *call, const struct webhook_record *record,
                     const char *notice_id, struct slice body, struct json_writer *out,
                     struct error *error)
{
	struct webhook_rules rules;
	char secret[WEBHOOK_SECRET_SIZE], previous[WEBHOOK_SECRET_SIZE];
	bool two = previous_signs(call, record);
	int code = webhook_rules_read(call->admin->settings, &rules, error);
	if (!code)
		code = secret_of(call, record, record->secret_version, secret, error);
	if (!code && two)
		code = secret_of(call, record, record->secret_version - 1, previous, error);
	if (code)
		return code;
	struct webhook_headers headers;
	code = webhook_sign(&rules, notice_id, body, secret, two ? previous : NULL, call->now_us,
	                    &headers);
	explicit_bzero(secret, sizeof secret);
	explicit_bzero(previous, sizeof previous);
	if (code)
		return code;
	struct http_request request = webhook_request(&rules, record->url, &headers, body);
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	struct error failure = {0};
	int64_t started_us = clock_monotonic_us();
	int result = http_send(&request, &answer, &failure);
	struct slice text = buf_slice(&answer.body);
	struct attempt_view view = {
		.at_us = call->now_us,
		.duration_us = clock_monotonic_us() - started_us,
		.http_status = result ? 0 : answer.status,
		.error = result ? failure.cause : NULL,
		.answer = slice_make(text.data,
	                         text.size < WEBHOOK_ANSWER_SHOWN ? text.size : WEBHOOK_ANSWER_SHOWN),
	};
	json_boolean(out, "delivered", webhook_is_acknowledged(result, &answer));
	attempt_members(out, &view);
	return OK;
}

static int refuse_read_only(const struct admin_call *call, struct error *error)
{
	struct quiet quiet;
	int result = store_get_copy_state(call->admin->store, &quiet, error);
	if (!result && (quiet.is || call->admin->settings->service_quiet))
		result = error_set(error, ERR_REFUSED, MSG_SERVICE_READ_ONLY, NULL);
	return result;
}

static int run_test(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct webhook_record record;
	char notice_id[ID_SIZE];
	BUF_AUTO struct buf body;
	buf_init(&body, BODY_MAX);
	int result = refuse_read_only(call, error);
	if (!result)
		result = find(call, admin_slice(call, "endpoint"), &record, error);
	webhook_test_id(notice_id);
	if (!result)
		result = test_body(call, &record, notice_id, &body, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "endpoint_id", record.endpoint_id);
	json_text(out, "notice_id", notice_id);
	result = send_test(call, &record, notice_id, buf_slice(&body), out, error);
	json_end_object(out);
	return result;
}

/* ---- the table ---- */

#define ENDPOINT ADMIN_POSITIONAL_ID("endpoint", "ENDPOINT", "the endpoint (whk_…)")
#define URL(needed, text)                                                                          \
	{                                                                                              \
		.name = "url", .kind = ADMIN_LINE, .required = needed, .place = "URL", .least = 1,         \
		.most = HTTP_URL_MAX, .help = text                                                         \
	}
#define TYPES                                                                                      \
	{                                                                                              \
		.name = "types", .kind = ADMIN_LINE, .place = "TYPE,…", .least = 1, .most = TYPES_MAX,     \
		.help = "types of notices to deliver; all: every type"                                     \
	}

const struct admin_operation admin_webhook_operations[] = {
	{.name = "webhook create",
     .summary = "deliver an account's notices to a URL; the secret is shown only once",
     .changes = true,
     .address = "url",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account"),
                    URL(true, "URL of the receiver"), TYPES},
     .run = run_create},
	{.name = "webhook list",
     .summary = "list webhook endpoints",
     .columns = "endpoint_id account_id url enabled waiting failures",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_list},
	{.name = "webhook show",
     .summary = "show a webhook endpoint",
     .parameters = {ENDPOINT},
     .run = run_show},
	{.name = "webhook update",
     .summary = "change the URL or the types of a webhook endpoint",
     .changes = true,
     .address = "url",
     .parameters = {ENDPOINT, URL(false, "new URL of the receiver"), TYPES},
     .run = run_update},
	{.name = "webhook delete",
     .summary = "delete a webhook endpoint with its delivery log",
     .changes = true,
     .parameters = {ENDPOINT},
     .run = run_delete},
	{.name = "webhook test",
     .summary = "make one test delivery and show the result; it is not counted",
     .outside = true,
     .parameters = {ENDPOINT},
     .run = run_test},
	{.name = "webhook rotate",
     .summary = "create a new secret, shown only once; both secrets sign for 24 hours",
     .changes = true,
     .parameters = {ENDPOINT, ADMIN_FLAG_SWITCH("end_previous",
                                                "rotate even while the previous secret still "
                                                "signs; the previous secret ends immediately")},
     .run = run_rotate},
	{.name = "webhook enable",
     .summary = "enable an endpoint again and resume its pending deliveries",
     .changes = true,
     .parameters = {ENDPOINT},
     .run = run_enable},
	{.name = "webhook disable",
     .summary = "stop deliveries to an endpoint; pending deliveries are kept",
     .urgent = true,
     .changes = true,
     .parameters = {ENDPOINT},
     .run = run_disable},
	{.name = "webhook deliveries",
     .summary = "list deliveries to an endpoint, newest first",
     .columns = "number notice_id type status attempts next_attempt_at ended_at",
     .parameters = {ENDPOINT,
                    ADMIN_FLAG_CHOICE("status", false, "waiting|delivered|failed",
                                      "only this status"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_BEFORE},
     .run = run_deliveries},
	{.name = "webhook attempts",
     .summary = "list all attempts to deliver a notice to an endpoint",
     .columns = "attempt at duration_ms http_status error answer",
     .parameters = {ENDPOINT, ADMIN_POSITIONAL_ID("notice", "NOTICE", "the notice (ntc_…)")},
     .run = run_attempts},
	{0},
};
