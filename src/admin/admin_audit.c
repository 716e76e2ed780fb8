/* Operations that read the audit log. */
#include "admin/admin_call.h"
#include "base/base64.h"
#include "evidence/audit_proof.h"
#include "seal/evidence_record.h"

#define RECORD_MAX EVIDENCE_RECORD_MAX

static void write_seal(const struct audit_record *record, struct json_writer *out)
{
	json_begin_object(out, "seal");
	ADMIN_PUT(out, record, authority, kind, round, sealed_at_us, segment_id);
	json_end_object(out);
}

/* Writes the record's document with the members chain_hash and seal added. */
static int add_record(const struct audit_record *record, struct json_writer *out)
{
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf more;
	buf_init(&text, AUDIT_DOCUMENT_MAX + 4096);
	buf_init(&more, 4096);
	struct json_writer writer = {.out = &more};
	json_begin_object(&writer, NULL);
	json_hex(&writer, "chain_hash", record->chain_hash.bytes, SHA256_SIZE);
	if (*record->segment_id)
		write_seal(record, &writer);
	else
		json_null(&writer, "seal");
	json_end_object(&writer);
	int result = buf_check(&more);
	if (result)
		return result;
	buf_add(&text, record->document.data, record->document.size - 1);
	buf_add_byte(&text, ',');
	buf_add(&text, more.data + 1, more.size - 1);
	result = buf_check(&text);
	if (!result)
		json_raw(out, NULL, buf_slice(&text));
	return result;
}

static int write_base64(struct json_writer *out, const char *name, const struct buf *bytes,
                        struct arena *arena)
{
	size_t size = BASE64_SIZE(bytes->size);
	char *text = arena_alloc(arena, size + 1);
	if (!text)
		return ERR_NO_MEMORY;
	base64_encode(bytes->data, bytes->size, text);
	json_slice(out, name, slice_make(text, size));
	return OK;
}

static int run_proof(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	BUF_AUTO struct buf of_record;
	BUF_AUTO struct buf of_seal;
	buf_init(&of_record, RECORD_MAX);
	buf_init(&of_seal, RECORD_MAX);
	struct audit_evidence evidence = {.act = &of_record, .seal_document = &of_seal};
	const struct service *service = call->admin->service;
	struct audit_record act;
	int result = store_get_audit_record(call->admin->store, admin_slice(call, "act"), call->arena,
	                                    &act, error);
	if (!result)
		result = audit_evidence_records(call->admin->store, service ? service->revocation : NULL,
		                                &act, call->arena, &evidence, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "act_id", act.act_id);
	json_raw(out, "act", act.document);
	result = write_base64(out, "act_evidence_record", &of_record, call->arena);
	json_hex(out, "chain_hash", act.chain_hash.bytes, SHA256_SIZE);
	write_seal(&act, out);
	json_raw(out, "seal_document", evidence.document);
	if (!result)
		result = write_base64(out, "seal_document_evidence_record", &of_seal, call->arena);
	json_end_object(out);
	return result;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct audit_record act;
	int result = store_get_audit_record(call->admin->store, admin_slice(call, "act"), call->arena,
	                                    &act, error);
	return result ? result : add_record(&act, out);
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	if (admin_given(call, "account") && admin_given(call, "installation"))
		return error_set(error, ERR_USAGE, MSG_ADMIN_ONE_OF, FIELD("account"),
		                 FIELD("installation"), NULL);
	struct audit_filter filter = {
		.account_id = admin_slice(call, "account"),
		.installation = admin_given(call, "installation"),
		.operation = admin_slice(call, "operation"),
		.after = admin_slice(call, "after"),
		.order = admin_given(call, "ascending") ? ORDER_ASCENDING : ORDER_DESCENDING,
		.limit = admin_integer(call, "limit", ADMIN_LIST_DEFAULT),
	};
	int result = admin_moment(call, "since", -1, TIME_NONE, &filter.since_us, error);
	if (!result)
		result = admin_moment(call, "until", -1, TIME_NONE, &filter.until_us, error);
	struct audit_record_list list;
	if (!result)
		result = store_list_audit_records(call->admin->store, &filter, call->arena, &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count && !result; i++)
		result = add_record(&list.items[i], out);
	list_end_partial(out, list.more, list.partial);
	return result;
}

#define ACT ADMIN_POSITIONAL_ID("act", "ACT", "the audit record (act_…)")

const struct admin_operation admin_audit_operations[] = {
	{.name = "audit list",
     .summary = "list audit records, newest first",
     .columns = "at act_id operation user claimed account_id reason",
     .parameters =
         {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
          ADMIN_FLAG_SWITCH("installation",
                            "only those of the whole installation, not of an account"),
          ADMIN_FLAG_LINE("operation", false, 1, 64, "only this operation, such as \"key revoke\""),
          ADMIN_FLAG_MOMENT("since", false, "from this time on, or this duration before now"),
          ADMIN_FLAG_MOMENT("until", false, "before this time, or this duration before now"),
          ADMIN_FLAG_SWITCH("ascending", "oldest first"), ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_list},
	{.name = "audit show",
     .summary = "show an audit record and its seal",
     .parameters = {ACT},
     .run = run_show},
	{.name = "audit proof",
     .summary = "show the proof of an audit record: evidence records (RFC 4998) in base64",
     .parameters = {ACT},
     .run = run_proof},
	{0},
};
