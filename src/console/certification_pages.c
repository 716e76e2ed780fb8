#include "console/certification_pages.h"

#include "console/channel_pages.h"
#include "issue/links.h"
#include "service/service.h"
#include "service/settings.h"
#include "store/certifications/certifications.h"

#define LINK_MAX ((size_t)8192)
#define ROWS "50"

/* ---- list ---- */

int certification_list_data(struct visit *visit, struct json_writer *data)
{
	struct slice channel, text;
	struct json *json;
	int64_t last = 0;
	int result = is_operation_allowed(visit, "certification list")
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
	result = ask_source(visit, "certification list",
	                    "channel={channel} mode=?mode status=?status before=?before limit=" ROWS,
	                    &text, &json);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next)
		json_get_integer(row, "number", &last);
	json_raw(data, "certifications", text);
	json_integer(data, "certifications_last", last);
	return OK;
}

/* ---- one certification ---- */

int certification_page_data(struct visit *visit, struct json_writer *data)
{
	struct json *json;
	struct slice text, code;
	int result =
		ask_source(visit, "certification show", "certification={certification}", &text, &json);
	if (result)
		return result;
	if (json_get_text(json, "verification_code", &code)) {
		const char *url = arena_printf(visit->arena, "%s/verify/%.*s",
		                               visit->admin->service->settings->service_public_url,
		                               (int)code.size, code.data);
		if (!url)
			return ERR_NO_MEMORY;
		json_begin_object(data, "verification");
		json_text(data, "url", url);
		json_end_object(data);
	}
	json_raw(data, "one", text);
	return OK;
}

int certification_file(struct visit *visit)
{
	BUF_AUTO struct buf link;
	struct document document;
	struct json *json;
	struct slice text, id, name = visit->places[1].value;
	/* The operation checks that it belongs to the account. */
	int result =
		ask_source(visit, "certification show", "certification={certification}", &text, &json);
	if (!result && !json_get_text(json, "certification_id", &id))
		result = ERR_NOT_FOUND;
	if (!result)
		result = store_find_document(visit->admin->store, id, name, &document, visit->error);
	const char *kept = result ? NULL : arena_copy(visit->arena, id.data, id.size);
	if (!result && !kept)
		result = ERR_NO_MEMORY;
	if (result)
		return result;
	buf_init(&link, LINK_MAX);
	document_link(visit->admin->service, kept, &document, visit->now_us, &link);
	result = buf_check(&link);
	return result ? result : visit_redirect_external(visit, buf_slice(&link));
}
