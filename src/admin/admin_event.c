/* Operations on events: list, proof and test events. */
#include <stdio.h>

#include "admin/admin_call.h"
#include "admin/event_try.h"
#include "base/base64.h"
#include "evidence/event_proof.h"
#include "store/accounts/accounts.h"
#include "store/events/segments.h"
#include "store/evidence/evidence.h"

#define RECEIPT_MAX 8192
#define STAMP_MEMORY_MAX ((size_t)8 << 20)

static int no_event(struct slice id, struct error *error)
{
	char shown[ID_SIZE];
	snprintf(shown, sizeof shown, "%.*s", (int)id.size, id.data);
	return error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_EVENT, shown, NULL);
}

/* ---- the list ---- */

static int read_status(const struct admin_call *call)
{
	for (enum event_status status = STATUS_REGISTERED; status <= STATUS_TEST; status++)
		if (slice_is(admin_slice(call, "status"), event_status_text(status)))
			return (int)status;
	return -1;
}

/* The algorithm follows from the size. */
static int read_digest(const struct admin_call *call, struct slice *ret, struct error *error)
{
	struct slice text = admin_slice(call, "hash");
	if (!admin_given(call, "hash"))
		return OK;
	size_t size = text.size / 2;
	uint8_t *digest = arena_alloc(call->arena, size + 1);
	if (!digest)
		return ERR_NO_MEMORY;
	if ((size != hash_algorithm_size(HASH_SHA256) && size != hash_algorithm_size(HASH_SHA512)) ||
	    !hex_decode(text, digest, size))
		return error_set(error, ERR_USAGE, MSG_ADMIN_DIGEST, FIELD("hash"), NULL);
	*ret = slice_make((const char *)digest, size);
	return OK;
}

static int read_filter(const struct admin_call *call, const struct channel_record *channel,
                       enum mode mode, struct event_filter *ret, struct error *error)
{
	struct event_filter filter = {
		.seq_from = admin_integer(call, "from", 0),
		.seq_to = admin_integer(call, "to", 0),
		.status = read_status(call),
		.order = admin_given(call, "ascending") ? ORDER_ASCENDING : ORDER_DESCENDING,
	};
	if (admin_given(call, "client_ref"))
		filter.client_ref = admin_slice(call, "client_ref");
	int result = read_digest(call, &filter.digest, error);
	if (result)
		return result;
	if (admin_given(call, "after"))
		filter.past = event_id_sequence(admin_slice(call, "after"), channel->channel_id, mode);
	if (admin_given(call, "after") && !filter.past)
		return no_event(admin_slice(call, "after"), error);
	result = admin_moment(call, "since", -1, TIME_NONE, &filter.from_us, error);
	if (!result)
		result = admin_moment(call, "until", -1, TIME_NONE, &filter.to_us, error);
	if (result)
		return result;
	if (filter.from_us != TIME_NONE && filter.to_us != TIME_NONE && filter.from_us > filter.to_us)
		return error_set(error, ERR_USAGE, MSG_ADMIN_DATES_TURNED, FIELD("since"), FIELD("until"),
		                 NULL);
	if (filter.seq_from && filter.seq_to && filter.seq_from > filter.seq_to)
		return error_set(error, ERR_USAGE, MSG_ADMIN_SEQUENCES_TURNED, FIELD("from"), FIELD("to"),
		                 NULL);
	*ret = filter;
	return OK;
}

struct listing {
	struct json_writer *out;
	int64_t left;
	bool more;
};

/* Writes an event in the format of the API. */
static int put_receipt(struct json_writer *out, const char *name, const struct event *event)
{
	BUF_AUTO struct buf receipt;
	buf_init(&receipt, RECEIPT_MAX);
	event_json(event, &receipt);
	if (buf_check(&receipt))
		return ERR_NO_MEMORY;
	json_raw(out, name, buf_slice(&receipt));
	return OK;
}

static int list_one(void *context, const struct event *event)
{
	struct listing *listing = context;
	listing->more = listing->left == 0;
	if (listing->more)
		return OK;
	listing->left--;
	return put_receipt(listing->out, NULL, event);
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct channel_record channel;
	struct event_filter filter;
	enum mode mode = slice_is(admin_slice(call, "mode"), "test") ? MODE_TEST : MODE_LIVE;
	struct listing listing = {.out = out, .left = admin_integer(call, "limit", ADMIN_LIST_DEFAULT)};
	int result = store_find_channel(call->admin->store, admin_slice(call, "channel"), call->arena,
	                                &channel, error);
	if (!result)
		result = read_filter(call, &channel, mode, &filter, error);
	if (result)
		return result;
	list_begin(out);
	result = store_list_events(call->admin->store, channel.account, channel.channel * 2 + mode,
	                           &filter, listing.left + 1, false, list_one, &listing, error);
	list_end(out, listing.more);
	return result;
}

/* ---- one ---- */

/* Writes the bytes whose digest is chain_hash. */
static int put_record(const struct admin_call *call, int64_t account, int64_t chain,
                      const struct event *event, struct json_writer *out, struct error *error)
{
	struct channel channel;
	struct sha256 previous;
	BUF_AUTO struct buf record;
	buf_init(&record, EVENT_RECORD_MAX);
	int result =
		store_get_channel_versions(call->admin->store, account, chain / 2,
	                               event->config_version + 1, 1, call->arena, &channel, error);
	if (!result)
		result = store_get_chain_hash(call->admin->store, account, chain, event->sequence - 1,
		                              &previous, error);
	if (result)
		return result;
	/* event_proof_json has checked that this version exists. */
	struct event_facts facts = event_facts_of(event, &channel.configs[0].hash, &previous);
	event_record(&facts, &record);
	json_slice(out, "record", buf_slice(&record));
	return buf_check(&record);
}

static void put_content(const struct event *event, struct json_writer *out)
{
	bool held = event->declaration.modality == MODALITY_CONTENT;
	json_begin_object(out, "content");
	json_text(out, "kind", !held ? "digest" : event->file_name ? "file" : "json");
	json_text(out, "file_name", event->file_name);
	if (held)
		json_integer(out, "bytes", event->content_bytes);
	else
		json_null(out, "bytes");
	json_end_object(out);
}

/* Writes the archive timestamps that keep the round's token provable, oldest first. */
static int put_renewals(const struct admin_call *call, int64_t round, struct json_writer *out,
                        struct error *error)
{
	enum token_source source = TOKEN_ROUND;
	int64_t number = round, place;
	int result = OK;
	json_begin_array(out, "renewals");
	while (!result) {
		ARENA_AUTO struct arena arena;
		struct renewable_token token;
		struct archive_timestamp stamp;
		arena_init(&arena, STAMP_MEMORY_MAX);
		result = store_find_renewable_token(call->admin->store, source, number, &token, &number,
		                                    &place, error);
		if (result || !number)
			break;
		result = store_get_archive_timestamp(call->admin->store, number, &arena, &stamp, error);
		if (result)
			return result;
		json_begin_object(out, NULL);
		ADMIN_PUT(out, &stamp, stamp, authority, kind, stamped_at_us);
		json_end_object(out);
		source = TOKEN_STAMP;
	}
	json_end_array(out);
	return result == ERR_NOT_FOUND ? OK : result; /* a new token is not recorded for renewal yet */
}

/* Writes the second token of a round, if it has one. */
static int put_second(const struct admin_call *call, int64_t round, struct json_writer *out,
                      struct error *error)
{
	struct round_token second;
	int result = store_get_second_token(call->admin->store, round, call->arena, &second, error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	char *token = arena_alloc(call->arena, BASE64_SIZE(second.token.size) + 1);
	if (!token)
		return ERR_NO_MEMORY;
	base64_encode(second.token.data, second.token.size, token);
	json_begin_object(out, "second");
	ADMIN_PUT(out, &second, authority, kind, sealed_at_us);
	json_slice(out, "token", slice_make(token, BASE64_SIZE(second.token.size)));
	json_end_object(out);
	return OK;
}

/* The text for the operator contains host names and their responses. Users do not get it. */
static int put_seal(const struct admin_call *call, int64_t account, int64_t chain,
                    const struct event *event, struct json_writer *out, struct error *error)
{
	struct segment_record segment;
	bool sealed = event->segment_id[0] != '\0';
	char waits_for[4096] = "the timestamp of the next round";
	int result = OK;
	if (sealed)
		result = store_find_segment(call->admin->store, account, chain, event->sequence,
		                            call->arena, &segment, error);
	if (result)
		return result;
	json_begin_object(out, "seal");
	json_text(out, "state", event->mode == MODE_TEST ? "simulated" : sealed ? "sealed" : "waiting");
	bool tells = !sealed && event->mode == MODE_LIVE && !call->caller->is_user;
	if (tells)
		admin_describe_authorities(call, waits_for, sizeof waits_for);
	json_text(out, "waits_for", tells ? waits_for : NULL);
	if (sealed)
		result = put_second(call, segment.round, out, error);
	if (sealed && !result)
		result = put_renewals(call, segment.round, out, error);
	json_end_object(out);
	return result;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct event_found found;
	const struct event *event = &found.event;
	int result =
		event_find(call->admin->store, admin_slice(call, "event"), call->arena, &found, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	result = put_receipt(out, "receipt", event)
		?: event_proof_json(call->admin->store, found.account, found.chain, event, call->arena, out,
		                    error)
		?: put_record(call, found.account, found.chain, event, out, error);
	if (!result)
		put_content(event, out);
	if (!result)
		result = put_seal(call, found.account, found.chain, event, out, error);
	json_end_object(out);
	return result;
}

/* ---- a test event ---- */

/* A refused test event leaves no audit record. */
static int record_try(const struct admin_call *call, const struct event_tried *tried,
                      struct error *error)
{
	if (tried->unknown)
		return admin_write_audit_outcome(call, AUDIT_UNKNOWN, NULL, NULL, error);
	enum audit_outcome outcome = tried->replayed ? AUDIT_FOUND : AUDIT_DONE;
	return *tried->event_id
	           ? admin_write_audit_outcome(call, outcome, "event_id", tried->event_id, error)
	           : OK;
}

static int run_try(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	BUF_AUTO struct buf answer;
	struct service *service = call->admin->service;
	struct event_tried tried;
	struct event_try given = {
		.channel_id = admin_slice(call, "channel"),
		.client_ref = admin_slice(call, "client_ref"),
		.content = admin_slice(call, "content"),
		.scenario = admin_slice(call, "scenario"),
		.language =
			slice_is(admin_slice(call, "language"), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH,
	};
	if (!service)
		return error_set(error, ERR_REFUSED, MSG_ADMIN_WITHOUT_SERVICE, NULL);
	buf_init(&answer, RECEIPT_MAX);
	int result = event_try(service, &given, &tried, &answer, error)
		?: record_try(call, &tried, error)
		?: buf_check(&answer);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "channel_id", tried.channel_id);
	json_text(out, "modality", modality_text(tried.modality));
	ADMIN_PUT(out, &tried, status, replayed);
	if (tried.retry_after_seconds)
		json_integer(out, "retry_after", tried.retry_after_seconds);
	else
		json_null(out, "retry_after");
	json_time(out, "at", call->now_us);
	json_raw(out, "answer", buf_slice(&answer));
	json_end_object(out);
	return OK;
}

#define SEQUENCE_MAX INT64_C(999999999999999)

const struct admin_operation admin_event_operations[] = {
	{.name = "event list",
     .summary = "list a channel's events, newest first",
     .columns = "event_id sequence status received_at client_ref hash",
     .parameters = {ADMIN_FLAG_ID("channel", "CHANNEL", true, "the channel"),
                    ADMIN_FLAG_CHOICE("mode", false, "live|test",
                                      "mode of the chain (live by default)"),
                    ADMIN_FLAG_MOMENT("since", false,
                                      "received from this time on, or this duration before now"),
                    ADMIN_FLAG_MOMENT("until", false,
                                      "received before this time, or this duration before now"),
                    ADMIN_FLAG_INTEGER("from", false, 1, SEQUENCE_MAX, "first sequence number"),
                    ADMIN_FLAG_INTEGER("to", false, 1, SEQUENCE_MAX, "last sequence number"),
                    ADMIN_FLAG_CHOICE("status", false, "registered|unpaid|test",
                                      "only events with this status"),
                    ADMIN_FLAG_LINE("client_ref", false, 1, CLIENT_REF_MAX,
                                    "only the event with this reference"),
                    ADMIN_FLAG_LINE("hash", false, 1, 200,
                                    "only events with this SHA-256 or SHA-512 digest, in "
                                    "hexadecimal digits"),
                    ADMIN_FLAG_SWITCH("ascending", "oldest first"), ADMIN_LIST_LIMIT,
                    ADMIN_LIST_AFTER},
     .run = run_list},
	{.name = "event show",
     .summary = "show an event: its receipt, its proof and the state of its seal",
     .parameters = {ADMIN_POSITIONAL_ID("event", "EVENT", "the event (evt_…)")},
     .run = run_show},
	{.name = "event try",
     .summary = "register a test event without a key and show the response of the API",
     .behind = true,
     .digested = "content",
     .parameters = {ADMIN_POSITIONAL_ID("channel", "CHANNEL", "the channel of the test event"),
                    {.name = "client_ref",
                     .kind = ADMIN_CONTENT,
                     .required = true,
                     .place = "TEXT",
                     .least = 1,
                     .most = 4 * CLIENT_REF_MAX, /* the API checks the length itself */
                     .help = "reference of the event"},
                    {.name = "content",
                     .kind = ADMIN_CONTENT,
                     .required = true,
                     .place = "JSON",
                     .least = 1,
                     .most = TRY_CONTENT_MAX,
                     .help = "the declared object; on a hash_only channel, the text to hash"},
                    ADMIN_FLAG_CHOICE("scenario", false,
                                      "unpaid|unpaid_limit|rate_limited|temporarily_unavailable|"
                                      "suspended|account_disabled|client_ref_conflict|"
                                      "limit_blocked",
                                      "test scenario that forces a refusal"),
                    ADMIN_FLAG_CHOICE("language", false, "en|es",
                                      "language of error messages (en by default)")},
     .run = run_try},
	{0},
};
