#include "service/interface.h"

#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"

#define RETRY_AFTER_DEFAULT 2

void incident_id_make(char ret[INCIDENT_ID_SIZE])
{
	uint8_t random[8];
	random_bytes(random, sizeof random);
	memcpy(ret, "inc_", 4);
	hex_encode(random, sizeof random, ret + 4);
}

void error_json(const struct error_answer *answer, struct buf *out)
{
	char doc_url[256];
	snprintf(doc_url, sizeof doc_url, "%s/docs/errors#%s", answer->public_url,
	         error_code_text(answer->code));
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "code", error_code_text(answer->code));
	json_text(&writer, "message", error_message(answer->error, answer->language));
	json_text(&writer, "doc_url", doc_url);
	json_text(&writer, "incident_id", *answer->incident_id ? answer->incident_id : NULL);
	json_text(&writer, "event_id", answer->event_id);
	json_end_object(&writer);
}

int64_t error_retry_after(int code, const struct error *error)
{
	int status = error_http_status(code);
	if (error->retry_after_seconds > 0)
		return error->retry_after_seconds;
	if (code == ERR_TEST_QUOTA)
		return (time_next_day(clock_now_us()) - clock_now_us()) / US_PER_SECOND + 1;
	return status == 503 ? RETRY_AFTER_DEFAULT : status == 429;
}

int scenario_read(struct slice value, enum scenario_effect effect, const char *header,
                  int *ret_forced, struct error *error)
{
	bool limit = slice_is(value, "unpaid_limit");
	*ret_forced = OK;
	if (slice_is(value, "rate_limited"))
		*ret_forced = ERR_RATE_LIMITED;
	else if (!limit && !slice_is(value, "unpaid"))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_SCENARIO, header, NULL);
	else if (effect == SCENARIO_CERTIFICATION)
		*ret_forced = ERR_NOT_OPERATIONAL;
	else if (effect == SCENARIO_EVENT && limit)
		*ret_forced = ERR_UNPAID_LIMIT;
	return OK;
}

void scenario_header(const char *prefix, char ret[SCENARIO_HEADER_SIZE])
{
	snprintf(ret, SCENARIO_HEADER_SIZE, "X-%.20s-Test-Scenario", prefix);
	for (char *c = ret + 2; *c && *c != '-'; c++)
		*c = (char)toupper((unsigned char)*c);
}
