#include "console/billing_pages.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/percent.h"
#include "service/settings.h"

#define DAYS 90
#define DATE_TEXT 11
#define ROWS 100      /* rows of the usage table */
#define DAYS_MAX 400  /* days of a plot and of the history table */
#define PLOT_ROWS 800 /* live and test for each day */

/* ---- payment pages ---- */

static bool has_pages(const struct settings *settings)
{
	return strcmp(settings->payment_provider, "manual") != 0 && *settings->payment_return_url;
}

int purchase_page_data(struct visit *visit, struct json_writer *data)
{
	const struct settings *settings = visit->admin->service->settings;
	if (has_pages(settings))
		json_text(data, "page_provider", settings->payment_provider);
	return OK;
}

/* ---- top-up ---- */

/* Reads the pack of the top-up, which may be on another page of packs or withdrawn. */
static int put_topup_pack(struct visit *visit, const struct json *topup, struct json_writer *data)
{
	BUF_AUTO struct buf arguments;
	struct slice pack, text;
	struct json *json;
	if (!json_get_text(topup, "pack_id", &pack))
		return OK;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	struct json_writer writer = {.out = &arguments};
	json_begin_object(&writer, NULL);
	json_slice(&writer, "pack", pack);
	json_end_object(&writer);
	int result = ask_operation(visit, "pack show", buf_slice(&arguments), &text, &json);
	if (!result)
		json_raw(data, "topup_pack", text);
	return result;
}

int billing_page_data(struct visit *visit, struct json_writer *data)
{
	BUF_AUTO struct buf arguments;
	struct json *json;
	struct slice text;
	const struct settings *settings = visit->admin->service->settings;
	json_boolean(data, "pages", has_pages(settings));
	buf_init(&arguments, CONSOLE_BODY_MAX);
	buf_add_text(&arguments, "{}");
	int result = ask_operation(visit, "topup show", buf_slice(&arguments), &text, &json);
	if (result == ERR_NOT_FOUND) { /* not configured */
		error_clear(visit->error);
		return OK;
	}
	if (!result)
		json_raw(data, "topup", text);
	return result ? result : put_topup_pack(visit, json, data);
}

/* ---- paying ---- */

int purchase_payment_page(struct visit *visit)
{
	BUF_AUTO struct buf arguments, path;
	struct json *json;
	struct slice text, sale, address;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	buf_init(&path, CONSOLE_BODY_MAX);
	int result = source_arguments(visit, "purchase show", "sale={sale}", &arguments);
	if (!result)
		result = ask_operation(visit, "purchase show", buf_slice(&arguments), &text, &json);
	if (result)
		return result;
	if (json_get_text(json, "payment_url", &address) && address.size)
		return visit_redirect_external(visit, address);
	if (!json_get_text(json, "sale_id", &sale))
		sale = slice_of("");
	buf_add_text(&path, "/money/purchases/");
	buf_add_percent(&path, sale, "");
	return buf_check(&path) ? ERR_NO_MEMORY : visit_redirect(visit, path.data);
}

/* ---- filters ---- */

/* A filter of the query with its default; empty values are omitted. */
struct filter {
	const char *name;
	struct slice value;
};

static void set_filter(struct visit *visit, struct filter *filter, const char *name,
                       const char *otherwise)
{
	struct slice given = fields_get(&visit->query, name);
	*filter = (struct filter){name, given.size || !otherwise ? given : slice_of(otherwise)};
}

static void put_filters(struct json_writer *writer, const char *operation,
                        const struct filter *filters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (filters[i].value.size)
			write_argument(writer, operation, filters[i].name, filters[i].value);
}

static void put_shown(struct json_writer *data, const struct filter *filters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_slice(data, filters[i].name, filters[i].value);
}

/* Returns the first day of the default period, unless the query contains one. */
static const char *first_day(struct visit *visit, char day[DATE_TEXT])
{
	bool is_filtered = fields_get(&visit->query, "from").size ||
	                   fields_get(&visit->query, "to").size ||
	                   fields_get(&visit->query, "month").size;
	time_day_key(visit->now_us - (DAYS - 1) * US_PER_DAY, day);
	return is_filtered ? NULL : day;
}

/* ---- history ---- */

int balance_history_data(struct visit *visit, struct json_writer *data)
{
	BUF_AUTO struct buf arguments;
	char day[DATE_TEXT];
	struct filter filters[3];
	struct json *json;
	struct slice text;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	struct json_writer writer = {.out = &arguments};
	set_filter(visit, &filters[0], "from", first_day(visit, day));
	set_filter(visit, &filters[1], "to", NULL);
	set_filter(visit, &filters[2], "month", NULL);
	json_begin_object(&writer, NULL);
	put_filters(&writer, "credits history", filters, 3);
	json_integer(&writer, "limit", DAYS_MAX);
	json_end_object(&writer);
	int result = ask_operation(visit, "credits history", buf_slice(&arguments), &text, &json);
	if (result)
		return result;
	json_begin_object(data, "shown");
	put_shown(data, filters, 3);
	json_end_object(data);
	json_raw(data, "history", text);
	return OK;
}

/* ---- usage ---- */

enum { BY, CHANNEL, KEY, MODE, FROM, TO, FILTERS };

static int ask_usage(struct visit *visit, const struct filter *filters, int64_t limit,
                     struct slice *ret_text, struct json **ret)
{
	BUF_AUTO struct buf arguments;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	struct json_writer writer = {.out = &arguments};
	struct slice after = fields_get(&visit->query, "after");
	json_begin_object(&writer, NULL);
	put_filters(&writer, "usage", filters, FILTERS);
	json_integer(&writer, "limit", limit);
	if (after.size && limit == ROWS)
		json_slice(&writer, "after", after);
	json_end_object(&writer);
	return ask_operation(visit, "usage", buf_slice(&arguments), ret_text, ret);
}

static bool names(struct slice by, const char *word)
{
	return memmem(by.data, by.size, word, strlen(word));
}

int usage_page_data(struct visit *visit, struct json_writer *data)
{
	char day[DATE_TEXT];
	struct filter filters[FILTERS];
	struct json *json, *days;
	struct slice text, of_days, last = {"", 0};
	set_filter(visit, &filters[BY], "by", "day");
	set_filter(visit, &filters[CHANNEL], "channel", NULL);
	set_filter(visit, &filters[KEY], "key", NULL);
	set_filter(visit, &filters[MODE], "mode", NULL);
	set_filter(visit, &filters[FROM], "from", first_day(visit, day));
	set_filter(visit, &filters[TO], "to", NULL);
	struct slice by = filters[BY].value, recent = filters[FROM].value;
	/* A month that started earlier would be incomplete. */
	if (names(by, "month") && !fields_get(&visit->query, "from").size)
		filters[FROM].value = slice_of("");
	int result = ask_usage(visit, filters, ROWS, &text, &json);
	if (result)
		return result;
	json_begin_object(data, "shown");
	put_shown(data, filters, FILTERS);
	json_boolean(data, "periods", names(by, "day") || names(by, "month"));
	json_boolean(data, "channels", names(by, "channel"));
	json_boolean(data, "keys", names(by, "key"));
	json_end_object(data);
	json_raw(data, "usage", text);
	const struct json *rows = json_member(json, "data");
	for (const struct json *row = rows ? rows->first : NULL; row; row = row->next)
		json_get_text(row, "row", &last);
	json_slice(data, "usage_last", last);
	filters[BY].value = slice_of("day");
	filters[FROM].value = recent;
	result = ask_usage(visit, filters, PLOT_ROWS, &of_days, &days);
	if (!result)
		json_raw(data, "days", of_days);
	return result;
}
