#include "console/audit_pages.h"

#include "pages_made.h"

static const struct proof_file {
	const char *name, *member;
	bool is_seal, is_record;
} files[] = {
	{"act.json", "act", false, false},
	{"act.ers", "act_evidence_record", false, true},
	{"seal.json", "seal_document", true, false},
	{"seal.ers", "seal_document_evidence_record", true, true},
};

static const struct proof_file *find_file(struct slice name)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (slice_is(name, files[i].name))
			return &files[i];
	return NULL;
}

/* Answers with a proof file, named as by `audit export --proofs`: by the entry, or by the
 * segment. */
static int put_file(struct visit *visit, const struct proof_file *file, const struct json *proof)
{
	struct json *content = json_member(proof, file->member);
	struct slice id;
	const struct json *named = file->is_seal ? json_member(proof, "seal_document") : proof;
	if (!content || !named || !json_get_text(named, file->is_seal ? "segment_id" : "act_id", &id))
		return error_cause(visit->error, ERR_INTERNAL, "the proof lacks the file");
	const char *name = arena_printf(visit->arena, "%.*s%s", (int)id.size, id.data,
	                                file->is_record ? ".ers" : ".json");
	if (!name)
		return ERR_NO_MEMORY;
	if (file->is_record)
		return answer_base64(visit, "application/octet-stream", name, content->text);
	json_canonical(content, visit->out);
	return answer_file(visit, "application/json", name);
}

int audit_file(struct visit *visit)
{
	BUF_AUTO struct buf arguments;
	struct json *proof;
	struct slice text;
	const struct proof_file *file = find_file(visit->places[1].value);
	buf_init(&arguments, CONSOLE_BODY_MAX);
	int result = source_arguments(visit, "audit proof", "act={act}", &arguments);
	if (!result)
		result = ask_operation(visit, "audit proof", buf_slice(&arguments), &text, &proof);
	if (!result && !file)
		result = error_set(visit->error, ERR_NOT_FOUND, MSG_CONSOLE_NO_PAGE, NULL);
	return result ? result : put_file(visit, file, proof);
}

static void put_operation(struct json_writer *data, const char *name)
{
	json_begin_object(data, NULL);
	json_text(data, "operation", name);
	json_end_object(data);
}

int audit_operations(struct visit *visit, struct json_writer *data)
{
	const struct admin_operation *operation;
	json_begin_array(data, "operations");
	for (size_t i = 0; (operation = admin_operation_at(i)); i++) {
		if (template_word(&all_words, "act_name", slice_of(operation->name), visit->language))
			put_operation(data, operation->name);
	}
	/* Actions that are not operations of the administration. */
	put_operation(data, "passkey add");
	put_operation(data, "sign in");
	put_operation(data, "sign out");
	json_end_array(data);
	return buf_check(data->out);
}
