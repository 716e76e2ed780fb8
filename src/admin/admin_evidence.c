/* Operations on certifications and sealed segments. */
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_call.h"
#include "evidence/signers.h"
#include "service/watch.h"
#include "store/accounts/accounts.h"
#include "store/certifications/certifications.h"
#include "store/check/inspect.h"

/* ---- certifications ---- */

/* The text of a failed attempt begins with its error code (issue_attempt.c), which determines the
 * kind. */
static const char *failure_kind(const char *last_error)
{
	if (!last_error)
		return NULL;
	switch (strtol(last_error, NULL, 10)) {
	case ERR_AUTHORITY: return "authority";
	case ERR_NOT_FOUND: return "content";
	case ERR_INVALID_EVIDENCE: return "verification";
	case ERR_NO_SPACE:
	case ERR_NO_MEMORY:
	case ERR_IO:
	case ERR_NETWORK:
	case ERR_UNAVAILABLE:
	case ERR_UNKNOWN_OUTCOME: return "resources";
	default: return "service";
	}
}

/* Error texts contain paths, hosts and programs, so only the operator gets them. A user gets the
 * kind. */
static void certification_members(const struct admin_call *call, struct json_writer *out,
                                  const struct certification *item)
{
	json_integer(out, "number", item->certification);
	ADMIN_PUT(out, item, certification_id, channel_id);
	json_text(out, "mode", mode_text(item->mode));
	json_text(out, "status", certification_status_text(item->status));
	json_number(out, "progress", (double)item->progress_permille / 1000);
	ADMIN_PUT(out, &item->range, from_us, to_us);
	ADMIN_PUT(out, item, first_sequence, last_sequence, requested_at_us, completed_at_us, attempts,
	          fee);
	bool completed = item->status == CERTIFICATION_COMPLETED;
	json_text(out, "verification_code", completed ? item->verification_code : NULL);
	json_text(out, "incident_id", *item->incident_id ? item->incident_id : NULL);
	json_text(out, "failure", failure_kind(item->last_error));
	json_text(out, "last_error", call->caller->is_user ? NULL : item->last_error);
	bool waits = item->status == CERTIFICATION_PROCESSING && item->next_attempt_at_us > 0;
	json_time(out, "next_attempt_at", waits ? item->next_attempt_at_us : TIME_NONE);
}

/* ---- what a certification in progress waits for ---- */

void admin_describe_authorities(const struct admin_call *call, char *text, size_t size)
{
	struct authority_status watched;
	const struct service *service = call->admin->service;
	for (size_t i = 0; service && watch_get_authority(service, i, &watched); i++) {
		size_t used = strlen(text);
		if (watched.fails)
			snprintf(text + used, size - used, "; the timestamp authority %s fails: %s",
			         watched.host, watched.reason);
	}
}

static void write_waits(const struct admin_call *call, const char *kind, const char *text,
                        struct json_writer *out)
{
	json_text(out, "waiting_for", kind);
	json_text(out, "waits_for", call->caller->is_user ? NULL : text);
}

static bool authority_fails(const struct service *service)
{
	struct authority_status watched;
	bool fails = false;
	for (size_t i = 0; service && watch_get_authority(service, i, &watched); i++)
		fails |= watched.fails;
	return fails;
}

/* Based on what this service knows. */
static int write_waits_for(const struct admin_call *call, const struct certification *item,
                           struct json_writer *out, struct error *error)
{
	const struct service *service = call->admin->service;
	struct chain_head head;
	char text[4096];
	struct error why = {0};
	if (item->status != CERTIFICATION_PROCESSING) {
		write_waits(call, NULL, NULL, out);
		return OK;
	}
	int result = store_get_chain(call->admin->store, item->account, item->chain, &head, error);
	if (result)
		return result;
	if (item->mode == MODE_LIVE && head.sealed_sequence < item->last_sequence) {
		snprintf(text, sizeof text, "the seal of event %lld of its channel",
		         (long long)item->last_sequence);
		admin_describe_authorities(call, text, sizeof text);
		write_waits(call, authority_fails(service) ? "authority" : "seal", text, out);
	} else if (service && signers_check(service, &why)) {
		write_waits(call, "signature", error_reason(&why, why.code), out);
	} else if (item->worked_on && item->next_attempt_at_us > store_now_us(call->admin->store)) {
		write_waits(call, "work", "the node that is processing it", out);
	} else {
		write_waits(call, "attempt", "its next attempt", out);
	}
	return OK;
}

static const char *document_kind_text(enum document_kind kind)
{
	return kind == DOCUMENT_REPORT ? "report" : kind == DOCUMENT_EVIDENCE ? "evidence" : "part";
}

static int document_array(const struct admin_call *call, const struct certification *item,
                          struct json_writer *out, struct error *error)
{
	struct document *documents;
	size_t count;
	int result = store_list_documents(call->admin->store, item->account, item->certification,
	                                  call->arena, &documents, &count, error);
	if (result)
		return result;
	json_begin_array(out, "files");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(out, NULL);
		json_text(out, "name", documents[i].name);
		json_text(out, "kind", document_kind_text(documents[i].kind));
		json_integer(out, "bytes", documents[i].size_bytes);
		json_hex(out, "sha256", documents[i].sha256.bytes, SHA256_SIZE);
		if (!call->caller->is_user)
			json_text(out, "object", documents[i].object);
		json_end_object(out);
	}
	json_end_array(out);
	return OK;
}

static int show_certification(const struct admin_call *call, struct slice id,
                              struct json_writer *out, struct error *error)
{
	int64_t account, chain;
	struct certification item;
	int result = store_locate_certification(call->admin->store, id, &account, &chain, error);
	if (!result)
		result = store_find_certification(call->admin->store, account, chain, id, call->arena,
		                                  &item, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	certification_members(call, out, &item);
	result = write_waits_for(call, &item, out, error);
	if (result)
		return result;
	result = document_array(call, &item, out, error);
	json_end_object(out);
	return result;
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct channel_record channel;
	int result = store_find_channel(call->admin->store, admin_slice(call, "channel"), call->arena,
	                                &channel, error);
	if (result)
		return result;
	enum certification_status status;
	bool filtered = certification_status_parse(admin_slice(call, "status"), &status);
	bool test = slice_is(admin_slice(call, "mode"), "test");
	struct certification *items;
	size_t count;
	bool more;
	struct list_page page = {ORDER_DESCENDING, admin_integer(call, "before", 0),
	                         admin_integer(call, "limit", ADMIN_LIST_DEFAULT)};
	result = store_list_certifications(call->admin->store, channel.account,
	                                   channel.channel * 2 + test, filtered ? (int)status : -1,
	                                   &page, call->arena, &items, &count, &more, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(out, NULL);
		certification_members(call, out, &items[i]);
		json_end_object(out);
	}
	list_end(out, more);
	return OK;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return show_certification(call, admin_slice(call, "certification"), out, error);
}

static int run_retry(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct slice id = admin_slice(call, "certification");
	int result = store_retry_certification(call->admin->store, id, call->now_us, error);
	if (result)
		return result;
	service_wake(call->admin->service, WAKE_ISSUER);
	return show_certification(call, id, out, error);
}

/* ---- segments ---- */

static void segment_members(struct json_writer *out, const struct segment_summary *segment)
{
	ADMIN_PUT(out, segment, number, segment_id, channel_id, first_sequence, last_sequence, round,
	          sealed_at_us, authority, kind);
}

static int run_segment_list(const struct admin_call *call, struct json_writer *out,
                            struct error *error)
{
	struct segment_list list;
	int result = store_list_segments(
		call->admin->store, admin_slice(call, "channel"), admin_integer(call, "before", 0),
		admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, segment_members(out, item));
	list_end(out, list.more);
	return OK;
}

static int run_segment_show(const struct admin_call *call, struct json_writer *out,
                            struct error *error)
{
	struct segment_summary segment;
	int result = store_inspect_segment(call->admin->store, admin_slice(call, "segment"),
	                                   call->arena, &segment, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	segment_members(out, &segment);
	json_raw(out, "seal_document", slice_of(segment.document));
	json_end_object(out);
	return OK;
}

#define OF_CHANNEL ADMIN_FLAG_ID("channel", "CHANNEL", true, "the channel")
#define CERTIFICATION                                                                              \
	ADMIN_POSITIONAL_ID("certification", "CERTIFICATION", "such as CERT-2026-0000001")

const struct admin_operation admin_evidence_operations[] = {
	{.name = "certification list",
     .summary = "list a channel's certifications, newest first",
     .columns = "number certification_id status first_sequence last_sequence requested_at "
                "completed_at attempts next_attempt_at",
     .parameters = {OF_CHANNEL,
                    ADMIN_FLAG_CHOICE("mode", false, "live|test",
                                      "mode of the chain (live by default)"),
                    ADMIN_FLAG_CHOICE("status", false, "processing|completed|failed",
                                      "only certifications with this status"),
                    ADMIN_FLAG_INTEGER("limit", false, 1, CERTIFICATION_LIST_MAX,
                                       "maximum number of rows (100 by default)"),
                    ADMIN_LIST_BEFORE},
     .run = run_list},
	{.name = "certification show",
     .summary = "show a certification and its files",
     .parameters = {CERTIFICATION},
     .run = run_show},
	{.name = "certification retry",
     .summary = "retry a waiting certification immediately",
     .changes = true,
     .parameters = {CERTIFICATION},
     .run = run_retry},
	{.name = "segment list",
     .summary = "list a channel's sealed segments, newest first",
     .columns = "number segment_id first_sequence last_sequence round sealed_at kind",
     .parameters = {OF_CHANNEL, ADMIN_LIST_LIMIT, ADMIN_LIST_BEFORE},
     .run = run_segment_list},
	{.name = "segment show",
     .summary = "show a segment and its seal document",
     .parameters = {ADMIN_POSITIONAL_ID("segment", "SEGMENT", "the segment")},
     .run = run_segment_show},
	{0},
};
