#include "console/event_pages.h"

#include "base/log.h"
#include "console/channel_pages.h"
#include "console/proof_picture.h"
#include "evidence/event_proof.h"
#include "service/service.h"

#define ROWS "50"
#define PRETTY_MAX ((size_t)4 << 20)

/* ---- list ---- */

int event_list_data(struct visit *visit, struct json_writer *data)
{
	struct slice channel, text, last = {"", 0};
	struct json *json;
	int result = is_operation_allowed(visit, "event list")
	                 ? selected_channel(visit, &channel)
	                 : error_set(visit->error, ERR_FORBIDDEN, MSG_NONE, NULL);
	if (result)
		return result;
	json_begin_object(data, "shown");
	json_slice(data, "channel", channel);
	json_end_object(data);
	if (!channel.size)
		return OK;
	/* Passed as a placeholder, because an entered identifier may contain spaces. */
	visit->places[0] = (struct field){slice_of("channel"), channel};
	result =
		ask_source(visit, "event list",
	               "channel={channel} mode=?mode status=?status since=?since until=?until "
	               "from=?from to=?to client_ref=?client_ref hash=?hash after=?after limit=" ROWS,
	               &text, &json);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next)
		(void)json_get_text(row, "event_id", &last);
	json_raw(data, "events", text);
	json_slice(data, "events_last", last);
	return OK;
}

/* ---- content ---- */

/* Formats canonical JSON in several lines. */
static void make_pretty(struct slice json, struct buf *out)
{
	size_t depth = 0;
	bool text = false;
	for (size_t i = 0; i < json.size; i++) {
		char c = json.data[i];
		bool opens = !text && (c == '{' || c == '['), closes = !text && (c == '}' || c == ']');
		bool empty = closes && i > 0 && (json.data[i - 1] == '{' || json.data[i - 1] == '[');
		depth -= closes;
		for (size_t at = 0; closes && !empty && at <= depth; at++)
			buf_add_text(out, at ? "  " : "\n");
		buf_add_byte(out, c);
		if (text && c == '\\' && i + 1 < json.size)
			buf_add_byte(out, json.data[++i]);
		else if (c == '"')
			text = !text;
		depth += opens;
		bool follows =
			opens && i + 1 < json.size && json.data[i + 1] != '}' && json.data[i + 1] != ']';
		for (size_t at = 0; (follows || (!text && c == ',')) && at <= depth; at++)
			buf_add_text(out, at ? "  " : "\n");
		if (!text && c == ':')
			buf_add_byte(out, ' ');
	}
}

/* Reports damaged content to the operator; `state` is that of the page. */
static void log_damage(const struct visit *visit, const struct event *event, const char *state)
{
	const char *cause = visit->error->cause;
	if (service_damage_is_new(visit->admin->service, event->event_id, state))
		log_error("content_damaged", "event_id", event->event_id, "state", state, "cause",
		          *cause ? cause : error_message(visit->error, LANGUAGE_ENGLISH));
}

/* Writes inline content only, because threads that draw pages must not block on files. */
static int put_content(struct visit *visit, const struct event *event, struct json_writer *data)
{
	if (event->declaration.modality != MODALITY_CONTENT)
		return OK;
	if (event->content_object) {
		json_text(data, "content_state", "external");
		return OK;
	}
	int result = event_check_content(visit->admin->content, event, visit->error);
	if (result && result != ERR_CORRUPT)
		return result;
	json_text(data, "content_state", result ? "altered" : "held");
	if (result) {
		log_damage(visit, event, "altered");
		error_clear(visit->error);
		return OK;
	}
	BUF_AUTO struct buf pretty;
	buf_init(&pretty, PRETTY_MAX);
	make_pretty(event->content, &pretty);
	/* Content that is nested too deeply is shown unformatted. */
	json_slice(data, "content_text", pretty.full ? event->content : buf_slice(&pretty));
	return OK;
}

/* ---- path to the root ---- */

static void put_steps(struct json_writer *data, const struct json *one)
{
	struct proof_step steps[PROOF_STEPS_MAX];
	size_t count = proof_steps(one, steps);
	json_begin_array(data, "steps");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(data, NULL);
		json_hex(data, "other", steps[i].other.bytes, SHA256_SIZE);
		json_hex(data, "joined", steps[i].joined.bytes, SHA256_SIZE);
		json_end_object(data);
	}
	json_end_array(data);
}

/* ---- one event ---- */

/* The operation checks that it belongs to the account. */
static int find(struct visit *visit, struct slice *ret_text, struct json **ret_json,
                struct event_found *ret_found)
{
	int result = ask_source(visit, "event show", "event={event}", ret_text, ret_json);
	return result ? result
	              : event_find(visit->admin->store, visit->places[0].value, visit->arena, ret_found,
	                           visit->error);
}

int event_page_data(struct visit *visit, struct json_writer *data)
{
	struct event_found found;
	struct json *json;
	struct slice text;
	int result = find(visit, &text, &json, &found);
	if (!result)
		result = put_content(visit, &found.event, data);
	if (result)
		return result;
	put_steps(data, json);
	json_raw(data, "one", text);
	return OK;
}

/* ---- downloads ---- */

static int give(struct visit *visit, struct console_file file)
{
	struct console_file *kept = arena_alloc(visit->arena, sizeof *kept);
	if (!kept || !file.name)
		return ERR_NO_MEMORY;
	*kept = file;
	if (!file.object) {
		kept->size = visit->out->size;
		kept->digest = sha256_of(visit->out->data, visit->out->size);
	}
	visit->answer->status = 200;
	visit->answer->file = kept;
	visit->answer->policy = "default-src 'none'; frame-ancestors 'none'; sandbox";
	return buf_check(visit->out);
}

int event_content(struct visit *visit)
{
	struct event_found found;
	struct json *json;
	struct slice text;
	int result = find(visit, &text, &json, &found);
	if (result)
		return result;
	const struct event *event = &found.event;
	if (event->declaration.modality != MODALITY_CONTENT)
		return error_set(visit->error, ERR_NOT_FOUND, MSG_CONSOLE_CONTENT_MISSING, NULL);
	result = event_check_content(visit->admin->content, event, visit->error);
	bool altered = result == ERR_CORRUPT;
	if (altered || result == ERR_NOT_FOUND) {
		log_damage(visit, event, altered ? "altered" : "missing");
		return error_set(visit->error, ERR_NOT_FOUND,
		                 altered ? MSG_CONSOLE_CONTENT_ALTERED : MSG_CONSOLE_CONTENT_LOST, NULL);
	}
	if (result)
		return result;
	struct console_file file = {
		.type = event->file_name ? "application/octet-stream" : "application/json",
		.name = event->file_name ? event->file_name
	                             : arena_printf(visit->arena, "%s-content.json", event->event_id),
		.object = event->content_object,
		.account = found.account,
		.size = (uint64_t)event->content_bytes,
	};
	memcpy(file.digest.bytes, event->declaration.hash, SHA256_SIZE);
	if (!event->content_object)
		buf_add(visit->out, event->content.data, event->content.size);
	return give(visit, file);
}

int event_record_file(struct visit *visit)
{
	struct event_found found;
	struct json *json;
	struct slice text, record;
	int result = find(visit, &text, &json, &found);
	if (result)
		return result;
	if (!json_get_text(json, "record", &record))
		return ERR_INTERNAL;
	buf_add(visit->out, record.data, record.size);
	return give(visit, (struct console_file){
						   .type = "application/json",
						   .name = arena_printf(visit->arena, "%s.json", found.event.event_id),
					   });
}

int event_evidence(struct visit *visit)
{
	struct event_found found;
	struct json *json;
	struct slice text;
	const struct service *service = visit->admin->service;
	int result = find(visit, &text, &json, &found);
	if (!result)
		result = event_evidence_record(visit->admin->store, service ? service->revocation : NULL,
		                               found.account, found.chain, &found.event, visit->arena,
		                               visit->out, visit->error);
	return result
	           ? result
	           : give(visit, (struct console_file){
								 .type = "application/octet-stream",
								 .name = arena_printf(visit->arena, "%s.ers", found.event.event_id),
							 });
}
