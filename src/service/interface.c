#include "service/interface.h"

#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "ledger/ledger.h"

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
	if (code == ERR_TEST_QUOTA || code == ERR_LIMIT_BLOCKED)
		return (time_next_day(clock_now_us()) - clock_now_us()) / US_PER_SECOND + 1;
	return status == 503 ? RETRY_AFTER_DEFAULT : status == 429;
}

static const struct {
	const char *name;
	int refusals[SCENARIO_CERTIFICATION + 1]; /* by effect */
	bool slow, fails;
} scenarios[] = {
	{.name = "unpaid", .refusals = {0, 0, ERR_NOT_OPERATIONAL}},
	{.name = "unpaid_limit", .refusals = {0, ERR_UNPAID_LIMIT, ERR_NOT_OPERATIONAL}},
	{.name = "rate_limited", .refusals = {ERR_RATE_LIMITED, ERR_RATE_LIMITED, ERR_RATE_LIMITED}},
	{.name = "temporarily_unavailable",
     .refusals = {ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE}},
	{.name = "suspended", .refusals = {0, ERR_SUSPENDED, ERR_SUSPENDED}},
	{.name = "account_disabled",
     .refusals = {ERR_ACCOUNT_DISABLED, ERR_ACCOUNT_DISABLED, ERR_ACCOUNT_DISABLED}},
	{.name = "client_ref_conflict", .refusals = {0, ERR_CONFLICT, 0}},
	{.name = "limit_blocked", .refusals = {0, ERR_LIMIT_BLOCKED, 0}},
	{.name = "insufficient_balance", .refusals = {0, 0, ERR_INSUFFICIENT_BALANCE}},
	{.name = "certification_slow", .slow = true},
	{.name = "certification_failed", .fails = true},
};

static int refuse_value(const char *header, struct error *error)
{
	BUF_AUTO struct buf names;
	buf_init(&names, 512);
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
		buf_add_text(&names, i ? ", " : "");
		buf_add_text(&names, scenarios[i].name);
	}
	return error_set(error, ERR_VALIDATION, MSG_HTTP_SCENARIO, header, names.data ? names.data : "",
	                 NULL);
}

int scenario_read(struct slice value, enum scenario_effect effect, const char *header,
                  struct scenario *ret, struct error *error)
{
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
		if (!slice_is(value, scenarios[i].name))
			continue;
		bool certifies = effect == SCENARIO_CERTIFICATION;
		*ret = (struct scenario){.refusal = scenarios[i].refusals[effect],
		                         .slow = certifies && scenarios[i].slow,
		                         .fails = certifies && scenarios[i].fails};
		return OK;
	}
	return refuse_value(header, error);
}

int scenario_refuse(const struct scenario *scenario, const char *channel_id,
                    char ret_event_id[ID_SIZE], struct error *error)
{
	*ret_event_id = '\0';
	if (scenario->refusal != ERR_CONFLICT)
		return error_set(error, scenario->refusal, MSG_NONE, NULL);
	event_id_make(channel_id, MODE_TEST, 1, ret_event_id);
	return error_set(error, ERR_CONFLICT, MSG_REGISTER_CONFLICT, ret_event_id, NULL);
}

void scenario_header(const char *prefix, char ret[SCENARIO_HEADER_SIZE])
{
	snprintf(ret, SCENARIO_HEADER_SIZE, "X-%.20s-Test-Scenario", prefix);
	for (char *c = ret + 2; *c && *c != '-'; c++)
		*c = (char)toupper((unsigned char)*c);
}
