#include "console/certify_page.h"

#include "base/clock.h"
#include "base/digest.h"

#define RANDOM_BYTES 16
#define YEAR_MAX 9999 /* no time exists after its last day */

/* Returns the chosen values, from the query or from the failed form. */
static const struct fields *chosen(const struct visit *visit)
{
	return visit->typed ? visit->typed : &visit->query;
}

static bool is_day(struct visit *visit, const char *name, int64_t *ret_begins_us)
{
	struct slice day = fields_get(chosen(visit), name);
	const char *begins = arena_printf(visit->arena, "%.*sT00:00:00Z", (int)day.size, day.data);
	return begins && !time_parse(slice_of(begins), name, ret_begins_us, NULL) &&
	       time_year(*ret_begins_us) != YEAR_MAX;
}

/* Converts days to times. A day that is not over ends now, so that events registered while the user
 * reads are outside the shown period. Text that is not a day is unchanged, and the operation
 * reports the error. */
static void put_days(struct visit *visit, struct json_writer *out)
{
	int64_t from_us = INT64_MIN, to_us;
	struct slice from = fields_get(chosen(visit), "from"), to = fields_get(chosen(visit), "to");
	if (is_day(visit, "from", &from_us))
		json_time(out, "from", from_us);
	else if (from.size)
		json_slice(out, "from", from);
	if (is_day(visit, "to", &to_us)) {
		int64_t end_us = time_next_day(to_us);
		bool over = end_us <= visit->now_us || from_us >= visit->now_us;
		json_time(out, "to", over ? end_us : visit->now_us);
	} else if (to.size) {
		json_slice(out, "to", to);
	}
}

/* Shows the chosen day. A refused request contains times, and the second one is after its day. */
static void put_day_chosen(struct visit *visit, struct json_writer *data, const char *name,
                           bool behind)
{
	struct slice text = fields_get(chosen(visit), name);
	int64_t at_us;
	char day[11];
	if (text.size && !time_parse(text, name, &at_us, NULL)) {
		time_day_key(behind ? at_us - 1 : at_us, day);
		json_text(data, name, day);
	} else {
		json_slice(data, name, text);
	}
}

static int put_range(struct visit *visit, struct json_writer *out)
{
	static const char *const names[] = {"channel", "mode", "seq_from", "seq_to"};
	json_begin_object(out, NULL);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct slice value = fields_get(chosen(visit), names[i]);
		if (value.size)
			write_argument(out, "certification estimate", names[i], value);
	}
	put_days(visit, out);
	json_end_object(out);
	return buf_check(out->out);
}

static void put_repeat_key(const struct visit *visit, struct json_writer *data)
{
	uint8_t random[RANDOM_BYTES];
	struct slice typed = fields_get(chosen(visit), "idempotency_key");
	random_bytes(random, sizeof random);
	if (visit->typed && typed.size)
		json_slice(data, "repeat_key", typed);
	else
		json_hex(data, "repeat_key", random, sizeof random);
}

/* Shows errors that the user can correct on the page. A channel of another account is not found. */
static int show_error(struct visit *visit, int result)
{
	if (result != ERR_VALIDATION && result != ERR_USAGE)
		return result;
	if (!visit->said.size)
		visit->said = slice_of(error_words(visit));
	error_clear(visit->error);
	return OK;
}

static int put_estimate(struct visit *visit, struct json_writer *data)
{
	BUF_AUTO struct buf arguments, answer;
	buf_init(&arguments, CONSOLE_BODY_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	struct json_writer writer = {.out = &arguments};
	int result = put_range(visit, &writer);
	if (!result)
		result = run_operation(visit, "certification estimate", buf_slice(&arguments), &answer);
	if (result)
		return show_error(visit, result);
	json_raw(data, "estimate", buf_slice(&answer));
	put_repeat_key(visit, data);
	return OK;
}

static bool has_range(const struct visit *visit)
{
	static const char *const ranges[] = {"from", "to", "seq_from", "seq_to"};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (fields_get(chosen(visit), ranges[i]).size)
			return true;
	return false;
}

int certify_page(struct visit *visit, struct json_writer *data)
{
	static const char *const shown[] = {"channel", "mode", "seq_from", "seq_to"};
	struct slice language = fields_get(chosen(visit), "language");
	if (!is_operation_allowed(visit, "certification request"))
		return error_set(visit->error, ERR_FORBIDDEN, MSG_NONE, NULL);
	if (!language.size)
		language = slice_of(visit->language == LANGUAGE_SPANISH ? "es" : "en");
	json_begin_object(data, "asked");
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		json_slice(data, shown[i], fields_get(chosen(visit), shown[i]));
	put_day_chosen(visit, data, "from", false);
	put_day_chosen(visit, data, "to", true);
	json_slice(data, "language", language);
	json_end_object(data);
	return has_range(visit) ? put_estimate(visit, data) : OK;
}
