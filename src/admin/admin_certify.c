/* Operations that estimate and request certifications without a key. */
#include <assert.h>

#include "admin/admin_call.h"
#include "issue/certify.h"
#include "store/certifications/certifications.h"

#define REPEAT_KEY_MAX 255

struct asked {
	struct key_identity key;
	struct certification_range range;
	struct certification_expected expected;
	struct certification_order order;
};

static int read_order(const struct admin_call *call, struct asked *ret, struct error *error)
{
	struct service *service = call->admin->service;
	if (!service)
		return error_set(error, ERR_REFUSED, MSG_ADMIN_WITHOUT_SERVICE, NULL);
	enum mode mode = MODE_LIVE;
	bool known = !admin_given(call, "mode") || mode_parse(admin_slice(call, "mode"), &mode);
	assert(known); /* one of the operation's choices */
	ret->range = (struct certification_range){.seq_from = admin_integer(call, "seq_from", 0),
	                                          .seq_to = admin_integer(call, "seq_to", 0)};
	int result =
		service_channel_identity(service, admin_slice(call, "channel"), mode, &ret->key, error);
	if (!result)
		result = admin_time(call, "from", TIME_NONE, &ret->range.from_us, error);
	if (!result)
		result = admin_time(call, "to", TIME_NONE, &ret->range.to_us, error);
	if (!result)
		result =
			certification_range_check(&ret->range, INT64_MAX, error); /* independent of the chain */
	ret->order = (struct certification_order){.key = &ret->key, .range = &ret->range};
	return result;
}

static void write_refusal(const struct certification_estimate *estimate, struct json_writer *out)
{
	if (!estimate->refusal) {
		json_null(out, "hindered_by");
		return;
	}
	json_begin_object(out, "hindered_by");
	json_text(out, "code", error_code_text(estimate->refusal));
	json_text(out, "en", error_message(&estimate->why, LANGUAGE_ENGLISH));
	json_text(out, "es", error_message(&estimate->why, LANGUAGE_SPANISH));
	json_end_object(out);
}

static int run_estimate(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct asked asked;
	struct certification_estimate estimate;
	int result = read_order(call, &asked, error);
	if (!result)
		result = certification_estimate(call->admin->service, &asked.order, &estimate, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "channel_id", asked.key.channel_id);
	json_text(out, "mode", mode_text(asked.key.mode));
	ADMIN_PUT(out, &asked.range, from_us, to_us);
	ADMIN_PUT(out, &estimate, first_sequence, last_sequence);
	json_integer(out, "event_count", estimate.last_sequence - estimate.first_sequence + 1);
	ADMIN_PUT(out, &estimate, sealed, fee, content_bytes, content_exact);
	write_refusal(&estimate, out);
	json_end_object(out);
	return OK;
}

static int run_request(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct asked asked;
	bool replayed;
	int result = read_order(call, &asked, error);
	if (!result)
		result = service_check_writes(&asked.key, error);
	if (result)
		return result;
	asked.order.idempotency_key = admin_text(call, "idempotency_key");
	asked.order.language =
		slice_is(admin_slice(call, "language"), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
	asked.expected = (struct certification_expected){
		.fee = admin_integer(call, "expected_fee", -1),
		.first_sequence = admin_integer(call, "expected_first", -1),
		.last_sequence = admin_integer(call, "expected_last", -1),
	};
	asked.order.expected = &asked.expected;
	asked.order.store = call->admin->store;
	return certification_request(call->admin->service, &asked.order, out->out, &replayed, NULL,
	                             error);
}

#define OF_RANGE                                                                                   \
	ADMIN_POSITIONAL_ID("channel", "CHANNEL", "the channel"),                                      \
		ADMIN_FLAG_CHOICE("mode", false, "live|test", "mode of the chain (live by default)"),      \
		ADMIN_FLAG_MOMENT("from", false, "events received from this time on"),                     \
		ADMIN_FLAG_MOMENT("to", false, "events received before this time; requires --from"),       \
		ADMIN_FLAG_INTEGER("seq_from", false, 1, ADMIN_NUMBER_MAX, "the first sequence number"),   \
		ADMIN_FLAG_INTEGER("seq_to", false, 1, ADMIN_NUMBER_MAX,                                   \
	                       "the last sequence number; requires --seq-from")

const struct admin_operation admin_certify_operations[] = {
	{.name = "certification estimate",
     .summary = "show range, size and fee of a certification without requesting it",
     .parameters = {OF_RANGE},
     .run = run_estimate},
	{.name = "certification request",
     .summary = "request a certification of a range, by time or by sequence number",
     .changes = true,
     .parameters = {OF_RANGE,
                    ADMIN_FLAG_CHOICE("language", false, "en|es",
                                      "language of the report at report_url (en by default)"),
                    ADMIN_FLAG_LINE("idempotency_key", false, 1, REPEAT_KEY_MAX,
                                    "key for idempotent replay within 24 hours"),
                    ADMIN_FLAG_INTEGER("expected_fee", false, 0, ADMIN_NUMBER_MAX,
                                       "refuse if the fee differs"),
                    ADMIN_FLAG_INTEGER("expected_first", false, 1, ADMIN_NUMBER_MAX,
                                       "refuse if the range begins with another event"),
                    ADMIN_FLAG_INTEGER("expected_last", false, 1, ADMIN_NUMBER_MAX,
                                       "refuse if the range ends with another event")},
     .run = run_request},
	{0},
};
