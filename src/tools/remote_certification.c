#include "tools/remote_certification.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/percent.h"

#define KEYS_MAX 10 /* failed certifications of one range within 24 hours */
#define POLL_FIRST_US (US_PER_SECOND / 4)
#define POLL_LONGEST_US (5 * US_PER_SECOND)
#define WAIT_MEMORY_MAX ((size_t)64 << 20)
#define KEY_SIZE 160
#define CURSOR_MAX 256
#define PAGES_MAX 10000 /* of certifications */
#define LIST_MEMORY_MAX ((size_t)16 << 20)

static bool copy_text(const struct json *json, const char *name, char *text, size_t size)
{
	struct slice value;
	if (!json_get_text(json, name, &value) || value.size >= size)
		return false;
	memcpy(text, value.data, value.size);
	text[value.size] = '\0';
	return true;
}

/* Identifiers become names of directories, and parts of addresses. */
static bool is_identifier(const char *text)
{
	static const char permitted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
									"0123456789-_";
	return text[0] && text[0] != '-' && strspn(text, permitted) == strlen(text);
}

static int read_certification(const struct api_answer *answer, struct json *json,
                              struct certification *ret_certification, struct error *error)
{
	struct certification certification = {.json = json};
	struct slice status;
	const struct json *progress = json_member(json, "progress");
	if (!copy_text(json, "certification_id", certification.id, sizeof certification.id) ||
	    !is_identifier(certification.id) || !json_get_text(json, "status", &status))
		return error_cause(error, ERR_NETWORK, "the answer is no certification");
	if (copy_text(json, "verification_code", certification.code, sizeof certification.code) &&
	    !is_identifier(certification.code))
		return error_cause(error, ERR_NETWORK, "the answer has an invalid verification code");
	certification.completed = slice_is(status, "completed") && certification.code[0];
	certification.failed = slice_is(status, "failed");
	if (progress && progress->type == JSON_NUMBER)
		certification.progress = progress->number;
	if (answer) {
		certification.retry_after_us = answer->retry_after_us;
		certification.replayed = answer->replayed;
	}
	*ret_certification = certification;
	return 0;
}

/* ---- request ---- */

static void write_request(const struct certified_range *range, bool seal_history, unsigned attempt,
                          struct buf *body, char key[KEY_SIZE])
{
	char from[TIME_TEXT_SIZE], to[TIME_TEXT_SIZE], number[16] = "", suffix[32];
	struct json_writer writer = {.out = body};
	if (attempt > 1)
		snprintf(number, sizeof number, ":%u", attempt);
	snprintf(suffix, sizeof suffix, "%s%s", seal_history ? "+history" : "", number);
	json_begin_object(&writer, NULL);
	if (seal_history)
		json_boolean(&writer, "seal_history", true);
	if (range->by_time) {
		time_format(range->from_us, from);
		time_format(range->to_us, to);
		json_text(&writer, "from", from);
		json_text(&writer, "to", to);
		snprintf(key, KEY_SIZE, "certify:%s/%s%s", from, to, suffix);
	} else {
		json_integer(&writer, "seq_from", range->first);
		json_integer(&writer, "seq_to", range->last);
		snprintf(key, KEY_SIZE, "certify:%" PRId64 "-%" PRId64 "%s", range->first, range->last,
		         suffix);
	}
	json_end_object(&writer);
}

int remote_certify(struct api *api, const struct certified_range *range, bool seal_history,
                   struct arena *arena, struct certification *ret_certification,
                   struct error *error)
{
	for (unsigned attempt = 1;; attempt++) {
		BUF_AUTO struct buf body;
		char key[KEY_SIZE];
		struct api_answer answer;
		buf_init(&body, 1024);
		write_request(range, seal_history, attempt, &body, key);
		if (buf_check(&body))
			return ERR_NO_MEMORY;
		const struct api_request request = {.path = "/certifications",
		                                    .content_type = "application/json",
		                                    .body = buf_slice(&body),
		                                    .idempotency_key = key};
		int result = api_send(api, &request, arena, &answer, error);
		if (!result)
			result = read_certification(&answer, answer.json, ret_certification, error);
		bool failed_before = !result && ret_certification->failed && ret_certification->replayed;
		if (!failed_before || attempt == KEYS_MAX)
			return result;
	}
}

int remote_certification(struct api *api, const char *id, struct arena *arena,
                         struct certification *ret_certification, struct error *error)
{
	char path[CERTIFICATION_ID_MAX + 32];
	struct api_answer answer;
	snprintf(path, sizeof path, "/certifications/%s", id);
	int result = api_send(api, &(struct api_request){.path = path}, arena, &answer, error);
	return result ? result : read_certification(&answer, answer.json, ret_certification, error);
}

/* ---- wait ---- */

int remote_wait(struct api *api, const struct certification_wait *wait, const char *id,
                struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct certification certification;
	int64_t poll_us = POLL_FIRST_US;
	arena_init(&arena, WAIT_MEMORY_MAX);
	for (;;) {
		arena_reset(&arena);
		int result = remote_certification(api, id, &arena, &certification, error);
		if (result)
			return result;
		if (wait->progress)
			wait->progress(wait->context, &certification);
		if (certification.completed)
			return 0;
		if (certification.failed)
			return tool_fail(error, ERR_REFUSED,
			                 "The certification %s failed. If it had a fee, it was refunded. "
			                 "Run the command again to request another one.",
			                 id);
		int64_t pause_us = certification.retry_after_us ? certification.retry_after_us : poll_us;
		poll_us = 2 * poll_us < POLL_LONGEST_US ? 2 * poll_us : POLL_LONGEST_US;
		if (clock_monotonic_us() + pause_us > wait->until_us)
			return tool_fail(error, ERR_UNAVAILABLE,
			                 "The certification %s is still in progress. Run the same command "
			                 "again to continue to wait; it pays nothing again.",
			                 id);
		api_sleep_us(pause_us);
	}
}

/* ---- the range since the last certification ---- */

int remote_last_sequence(struct api *api, struct arena *arena, int64_t *ret_last,
                         struct error *error)
{
	struct api_answer answer;
	int result = api_send(api, &(struct api_request){.path = "/events?order=desc&limit=1"}, arena,
	                      &answer, error);
	if (result)
		return result;
	const struct json *data = json_member(answer.json, "data");
	*ret_last = 0;
	if (data && data->first && !json_get_integer(data->first, "sequence", ret_last))
		return error_cause(error, ERR_NETWORK, "the answer is no list of events");
	return 0;
}

/* Gets the last sequence number of a certification by time from the service's verification. */
static int last_of_period(struct api *api, const struct certification_wait *wait, const char *id,
                          struct arena *arena, int64_t *ret_last, struct error *error)
{
	struct certification certification;
	struct api_answer answer;
	char path[CERTIFICATION_ID_MAX + 32];
	int result = remote_wait(api, wait, id, error);
	if (!result)
		result = remote_certification(api, id, arena, &certification, error);
	if (result)
		return result;
	snprintf(path, sizeof path, "/verify/%s", certification.code);
	result = api_send(api, &(struct api_request){.path = path, .is_public = true}, arena, &answer,
	                  error);
	if (!result && !json_get_integer(answer.json, "last_sequence", ret_last))
		result = error_cause(error, ERR_NETWORK, "the answer has no last sequence number");
	return result;
}

/* Reads the range of a certification. `last` stays 0 if it is by time. */
static int read_listed_range(const struct json *range, struct certified_range *ret_range,
                             struct error *error)
{
	struct slice from, to;
	struct certified_range read = {0};
	bool complete = true;
	if (json_get_integer(range, "seq_to", &read.last)) {
		complete = json_get_integer(range, "seq_from", &read.first);
	} else {
		read.by_time = true;
		complete = json_get_text(range, "from", &from) && json_get_text(range, "to", &to) &&
		           !time_parse(from, "from", &read.from_us, NULL) &&
		           !time_parse(to, "to", &read.to_us, NULL);
	}
	if (!complete)
		return error_cause(error, ERR_NETWORK, "the answer has a certification without a range");
	*ret_range = read;
	return OK;
}

static int find_in_page(struct api *api, const struct certification_wait *wait,
                        const struct json *data, struct arena *arena,
                        char ret_id[CERTIFICATION_ID_MAX], struct certified_range *ret_range,
                        struct error *error)
{
	struct certified_range range;
	int result = OK;
	for (struct json *at = data ? data->first : NULL; at; at = at->next) {
		struct certification certification;
		result = read_certification(NULL, at, &certification, error);
		if (!result && certification.failed)
			continue;
		if (!result)
			result = read_listed_range(json_member(at, "range"), &range, error);
		if (!result && range.by_time)
			result = last_of_period(api, wait, certification.id, arena, &range.last, error);
		if (result)
			return result;
		if (range.last > ret_range->last) {
			*ret_range = range;
			memcpy(ret_id, certification.id, CERTIFICATION_ID_MAX);
		}
	}
	return 0;
}

int remote_find_certified(struct api *api, const struct certification_wait *wait,
                          struct arena *arena, char ret_id[CERTIFICATION_ID_MAX],
                          struct certified_range *ret_range, struct error *error)
{
	ARENA_AUTO struct arena pages;
	BUF_AUTO struct buf path;
	char cursor[CURSOR_MAX];
	int result = OK;
	*ret_range = (struct certified_range){0};
	arena_init(&pages, LIST_MEMORY_MAX);
	buf_init(&path, sizeof cursor * 3 + 64);
	buf_add_text(&path, "/certifications?limit=100");
	bool more = true;
	for (int page = 0; more && !result && page < PAGES_MAX; page++) {
		struct api_answer answer;
		arena_reset(&pages);
		result = buf_check(&path)
		             ?: api_send(api, &(struct api_request){.path = path.data}, &pages, &answer,
		                         error)
		             ?: find_in_page(api, wait, json_member(answer.json, "data"), arena, ret_id,
		                             ret_range, error);
		more = !result && copy_text(answer.json, "next_cursor", cursor, sizeof cursor);
		buf_clear(&path);
		buf_add_text(&path, "/certifications?limit=100&cursor=");
		if (more)
			buf_add_percent(&path, slice_of(cursor), "");
	}
	return result;
}
