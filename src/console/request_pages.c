#include "console/request_pages.h"

#define ROWS "50"

int request_list_data(struct visit *visit, struct json_writer *data)
{
	struct slice text, last = {"", 0};
	struct json *json;
	int64_t shown = 0, all = 0;
	int result = is_operation_allowed(visit, "request list")
	                 ? ask_source(visit, "request list",
	                              "request=?request channel=?channel key=?key status=?status "
	                              "since=?since until=?until after=?after limit=" ROWS,
	                              &text, &json)
	                 : error_set(visit->error, ERR_FORBIDDEN, MSG_NONE, NULL);
	if (result)
		return result;
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next) {
		int64_t represents = 1;
		(void)json_get_text(row, "row", &last);
		(void)json_get_integer(row, "represents", &represents);
		shown++;
		all += represents;
	}
	json_raw(data, "requests", text);
	json_slice(data, "requests_last", last);
	json_boolean(data, "sampled", all > shown);
	json_integer(data, "shown", shown);
	json_integer(data, "all", all);
	return OK;
}
