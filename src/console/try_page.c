#include "console/try_page.h"

#include "base/digest.h"
#include "console/channel_pages.h"
#include "console/try_program.h"
#include "service/settings.h"

#define RANDOM_BYTES 6
#define PROGRAM_MAX ((size_t)1 << 20)
#define EXAMPLE                                                                                    \
	"{\n  \"order\": 1001,\n  \"total\": \"49.90\",\n  \"lines\": [\"Tea\", \"Sugar\"]\n}"

static int put_reference(const struct visit *visit, struct json_writer *data)
{
	uint8_t random[RANDOM_BYTES];
	char hex[2 * RANDOM_BYTES + 1];
	random_bytes(random, sizeof random);
	hex_encode(random, sizeof random, hex);
	const char *reference = arena_printf(visit->arena, "try-%s", hex);
	json_text(data, "client_ref", reference);
	return reference ? OK : ERR_NO_MEMORY;
}

static int put_shown(struct visit *visit, struct json_writer *data)
{
	static const char *const names[] = {"channel", "client_ref", "content", "scenario"};
	struct slice channel;
	int result = OK;
	json_begin_object(data, "shown");
	if (visit->typed) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			json_slice(data, names[i], fields_get(visit->typed, names[i]));
	} else {
		result = selected_channel(visit, &channel);
		if (!result)
			result = put_reference(visit, data);
		if (!result)
			json_slice(data, "channel", channel);
		json_text(data, "content", EXAMPLE);
	}
	json_end_object(data);
	return result;
}

static int put_curl(struct visit *visit, const struct json *answered, struct json_writer *data)
{
	const struct settings *settings = visit->admin->service->settings;
	struct json *payload = NULL;
	struct slice modality, channel_id;
	struct try_call call = {
		.base_url = arena_printf(visit->arena, "%s/v1", settings->service_public_url),
		.prefix = settings->service_prefix,
		.client_ref = fields_get(visit->typed, "client_ref"),
		.scenario = fields_get(visit->typed, "scenario"),
		.text = fields_get(visit->typed, "content"),
	};
	if (!call.base_url || !json_get_text(answered, "modality", &modality) ||
	    !json_get_text(answered, "channel_id", &channel_id))
		return ERR_NO_MEMORY;
	if (slice_is(modality, modality_text(MODALITY_CONTENT)) &&
	    json_parse(visit->arena, call.text, NULL, &payload, NULL))
		return OK; /* the answer contains the error */
	call.payload = payload;
	call.channel_id = channel_id;
	BUF_AUTO struct buf command;
	buf_init(&command, PROGRAM_MAX);
	try_curl(&call, &command);
	json_slice(data, "curl", buf_slice(&command));
	return buf_check(&command);
}

static int put_answer(struct visit *visit, struct json_writer *data)
{
	BUF_AUTO struct buf pretty;
	struct json *answered;
	buf_init(&pretty, PROGRAM_MAX);
	int result = json_parse(visit->arena, visit->answered, NULL, &answered, visit->error);
	if (result)
		return result;
	const struct json *answer = json_member(answered, "answer");
	if (answer)
		try_json(answer, &pretty);
	json_slice(data, "pretty", buf_slice(&pretty));
	result = buf_check(&pretty);
	return result ? result : put_curl(visit, answered, data);
}

int try_page(struct visit *visit, struct json_writer *data)
{
	if (!is_operation_allowed(visit, "event try"))
		return error_set(visit->error, ERR_FORBIDDEN, MSG_NONE, NULL);
	int result = put_shown(visit, data);
	return !result && visit->answered.size ? put_answer(visit, data) : result;
}
