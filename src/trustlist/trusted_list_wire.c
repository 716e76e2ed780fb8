#include "trustlist/trusted_list_wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_reader.h"

#define PATH_MAX_BYTES ((size_t)256 << 10)

static void write_base64(struct json_writer *writer, const char *name, struct slice bytes)
{
	BUF_AUTO struct buf text;
	buf_init(&text, TRUSTED_LIST_WIRE_MAX);
	buf_add_base64(&text, bytes);
	json_slice(writer, name, buf_slice(&text));
}

int list_request_write(const struct list_request *inquiry, struct buf *out)
{
	assert(inquiry->count == 0 || inquiry->questions);
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_time(&writer, "at", inquiry->at_us);
	json_begin_array(&writer, "questions");
	for (size_t i = 0; i < inquiry->count; i++) {
		const struct list_question *question = &inquiry->questions[i];
		json_begin_object(&writer, NULL);
		json_time(&writer, "from", question->from_us);
		write_base64(&writer, "path", question->path);
		json_boolean(&writer, "seal", question->seal);
		json_time(&writer, "to", question->to_us);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	json_slice(&writer, "roots", inquiry->roots_pem);
	json_end_object(&writer);
	return buf_check(out);
}

int list_response_write(const struct list_response *report, struct buf *out)
{
	assert(report->count == 0 || report->answers);
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, "answers");
	for (size_t i = 0; i < report->count; i++) {
		const struct list_answer *answer = &report->answers[i];
		json_begin_object(&writer, NULL);
		json_text(&writer, "provider", answer->provider);
		json_text(&writer, "reason", answer->reason);
		json_text(&writer, "service", answer->service);
		json_integer(&writer, "standing", (int64_t)answer->standing);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	json_time(&writer, "issued_at", report->facts.issued_us);
	json_time(&writer, "next_update", report->facts.next_us);
	json_text(&writer, "operator", report->facts.operator_name);
	json_text(&writer, "refused", report->refused);
	json_text(&writer, "signer", report->facts.signer);
	json_text(&writer, "territory", report->facts.territory);
	json_end_object(&writer);
	return buf_check(out);
}

int list_request_read(struct slice text, struct arena *arena, struct list_request *ret_inquiry,
                      struct error *error)
{
	struct list_request inquiry = {0};
	struct json_reader reader = json_reader_parse(arena, text, NULL, error);
	inquiry.at_us = json_take_time(&reader, "at");
	inquiry.roots_pem = json_take_slice(&reader, "roots");
	const struct json *list = json_take(&reader, "questions", JSON_ARRAY);
	if (!list || list->count > TRUSTED_LIST_QUESTIONS_MAX)
		return list ? ERR_INVALID_EVIDENCE : reader.result;
	inquiry.questions = arena_alloc(arena, (list->count + 1) * sizeof *inquiry.questions);
	if (!inquiry.questions)
		return ERR_NO_MEMORY;
	for (const struct json *item = list->first; item && !reader.result; item = item->next) {
		struct json_reader one = json_reader_of(arena, item, error);
		inquiry.questions[inquiry.count++] = (struct list_question){
			.seal = json_take_boolean(&one, "seal"),
			.from_us = json_take_time(&one, "from"),
			.to_us = json_take_time(&one, "to"),
			.path = json_take_base64(&one, "path", PATH_MAX_BYTES),
		};
		reader.result = one.result;
	}
	if (!reader.result)
		*ret_inquiry = inquiry;
	return reader.result;
}

static void take_text(struct json_reader *reader, const char *name, char *text, size_t size)
{
	const char *found = json_take_text(reader, name);
	snprintf(text, size, "%s", found ? found : "");
}

int list_response_read(struct slice text, struct arena *arena, struct list_response *ret_report,
                       struct error *error)
{
	struct list_response report = {0};
	struct json_reader reader = json_reader_parse(arena, text, NULL, error);
	const struct json *list = json_take(&reader, "answers", JSON_ARRAY);
	report.facts.issued_us = json_take_time_or_null(&reader, "issued_at");
	report.facts.next_us = json_take_time_or_null(&reader, "next_update");
	take_text(&reader, "operator", report.facts.operator_name, sizeof report.facts.operator_name);
	take_text(&reader, "refused", report.refused, sizeof report.refused);
	take_text(&reader, "signer", report.facts.signer, sizeof report.facts.signer);
	take_text(&reader, "territory", report.facts.territory, sizeof report.facts.territory);
	size_t room = list ? list->count : 0;
	report.answers = arena_alloc(arena, (room + 1) * sizeof *report.answers);
	if (!report.answers)
		return ERR_NO_MEMORY;
	for (const struct json *item = room ? list->first : NULL; item && !reader.result;
	     item = item->next) {
		struct json_reader one = json_reader_of(arena, item, error);
		struct list_answer *answer = &report.answers[report.count++];
		int64_t standing = json_take_integer(&one, "standing", LIST_STATUS_UNKNOWN);
		answer->standing =
			standing <= LIST_STATUS_QUALIFIED ? (enum list_status)standing : LIST_STATUS_UNKNOWN;
		take_text(&one, "reason", answer->reason, sizeof answer->reason);
		take_text(&one, "provider", answer->provider, sizeof answer->provider);
		take_text(&one, "service", answer->service, sizeof answer->service);
		reader.result = one.result;
	}
	if (!reader.result)
		*ret_report = report;
	return reader.result;
}
