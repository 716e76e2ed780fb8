#include "archive/signer_list.h"

#include "base/base64.h"
#include "base/json_reader.h"
#include "ledger/receipt_statement.h"
#include "tlog/note.h"

static const struct json_limits limits = {
	.depth_max = 4,
	.value_max = 8 * SIGNER_LIST_ITEMS_MAX + 6 * SIGNER_LIST_KINDS * SIGNER_LIST_KEYS_MAX};

/* In canonical order. */
static const char *const kind_names[SIGNER_LIST_KINDS] = {
	[SIGNER_LIST_LOG] = "log_keys", [SIGNER_LIST_RECEIPT] = "receipt_keys"};

static void write_item(const struct signer_list_item *item, struct json_writer *writer)
{
	json_begin_object(writer, NULL);
	json_raw(writer, "certificate", slice_of("\""));
	buf_add_base64(writer->out, item->certificate);
	buf_add_byte(writer->out, '"');
	json_text(writer, "reason", item->reason);
	json_hex(writer, "sha256", item->sha256.bytes, SHA256_SIZE);
	json_time(writer, "used_from", item->used_from_us);
	json_time(writer, "used_until", item->used_until_us);
	json_end_object(writer);
}

static bool has_keys(const struct signer_list *list)
{
	return list->keys[SIGNER_LIST_LOG].count > 0 || list->keys[SIGNER_LIST_RECEIPT].count > 0;
}

static void write_proof(const struct signer_list_proof *proof, struct json_writer *writer)
{
	char text[BASE64_SIZE(SIGNER_LIST_PROOF_SIZE) + 1];
	base64_encode(proof->signature, sizeof proof->signature, text);
	json_text(writer, "proof", text);
	json_hex(writer, "sha256", proof->certificate.bytes, SHA256_SIZE);
}

static void write_keys(const struct signer_list *list, struct json_writer *writer)
{
	for (int kind = 0; kind < SIGNER_LIST_KINDS; kind++) {
		json_begin_array(writer, kind_names[kind]);
		for (size_t i = 0; i < list->keys[kind].count; i++) {
			const struct signer_list_key *item = &list->keys[kind].items[i];
			json_begin_object(writer, NULL);
			json_text(writer, "key", item->key);
			if (item->proof)
				write_proof(item->proof, writer);
			json_time(writer, "used_from", item->used_from_us);
			json_time(writer, "used_until", item->used_until_us);
			json_end_object(writer);
		}
		json_end_array(writer);
	}
}

void signer_list_write(const struct signer_list *list, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, "certificates");
	for (size_t i = 0; i < list->count; i++)
		write_item(&list->items[i], &writer);
	json_end_array(&writer);
	json_time(&writer, "issued_at", list->issued_at_us);
	if (has_keys(list))
		write_keys(list, &writer);
	json_begin_object(&writer, "service");
	json_text(&writer, "name", list->service_name);
	json_text(&writer, "prefix", list->service_prefix);
	json_text(&writer, "url", list->service_url);
	json_end_object(&writer);
	json_integer(&writer, "v", has_keys(list) ? 2 : 1);
	json_end_object(&writer);
}

/* ---- reading ---- */

static int take_item(struct json_reader *reader, struct signer_list_item *ret)
{
	struct signer_list_item item = {
		.certificate = json_take_base64(reader, "certificate", SIGNER_LIST_CERTIFICATE_MAX)};
	item.reason = json_take_text_or_null(reader, "reason");
	item.sha256 = json_take_hash(reader, "sha256");
	item.used_from_us = json_take_time(reader, "used_from");
	item.used_until_us = json_take_time_or_null(reader, "used_until");
	if (reader->result)
		return reader->result;
	struct sha256 found = sha256_of(item.certificate.data, item.certificate.size);
	if (!sha256_equal(&found, &item.sha256))
		json_refuse(reader, "sha256");
	if ((item.used_until_us == TIME_NONE) != (item.reason == NULL))
		json_refuse(reader, "reason");
	*ret = item;
	return reader->result;
}

/* Checks that no certificate occurs twice and at most one is in force. */
static int check_items(const struct signer_list_item *items, size_t count, struct error *error)
{
	size_t in_force = 0;
	for (size_t i = 0; i < count; i++) {
		in_force += items[i].used_until_us == TIME_NONE;
		for (size_t k = 0; k < i; k++)
			if (sha256_equal(&items[i].sha256, &items[k].sha256))
				return error_cause(error, ERR_INVALID_EVIDENCE, "a certificate is listed twice");
	}
	return in_force <= 1
	           ? OK
	           : error_cause(error, ERR_INVALID_EVIDENCE,
	                         "%zu certificates are in force, at most one may be", in_force);
}

static void take_items(struct json_reader *reader, struct signer_list *list)
{
	const struct json *array = json_take(reader, "certificates", JSON_ARRAY);
	if (array && (array->count < 1 || array->count > SIGNER_LIST_ITEMS_MAX))
		json_refuse(reader, "certificates");
	if (reader->result)
		return;
	struct signer_list_item *items = arena_alloc(reader->arena, array->count * sizeof *items);
	if (!items) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "certificates");
		return;
	}
	for (const struct json *at = array->first; at && !reader->result; at = at->next) {
		struct json_reader inner = json_reader_of(reader->arena, at, reader->error);
		reader->result = inner.result ? inner.result : take_item(&inner, &items[list->count++]);
	}
	if (!reader->result)
		reader->result = check_items(items, list->count, reader->error);
	list->items = items;
}

/* ---- reading keys ---- */

static bool is_key(enum signer_list_kind kind, const char *key)
{
	struct note_key parsed;
	struct error ignored = {0};
	uint8_t bytes[RECEIPT_PUBLIC_KEY_SIZE];
	char canonical[NOTE_VKEY_SIZE];
	size_t size = 0;
	if (kind == SIGNER_LIST_LOG) {
		if (note_key_parse(slice_of(key), &parsed, &ignored) || parsed.type != NOTE_ED25519)
			return false;
		note_key_write(&parsed, canonical);
	} else {
		if (!base64_decode(slice_of(key), bytes, sizeof bytes, &size) || size != sizeof bytes)
			return false;
		base64_encode(bytes, size, canonical);
	}
	return strcmp(canonical, key) == 0;
}

static const struct signer_list_proof *take_proof(struct json_reader *reader)
{
	struct signer_list_proof *proof = arena_alloc(reader->arena, sizeof *proof);
	if (!proof) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "proof");
		return NULL;
	}
	const struct slice signature = json_take_base64(reader, "proof", sizeof proof->signature);
	proof->certificate = json_take_hash(reader, "sha256");
	if (!reader->result && signature.size != sizeof proof->signature)
		json_refuse(reader, "proof");
	if (reader->result)
		return NULL;
	memcpy(proof->signature, signature.data, signature.size);
	return proof;
}

static struct signer_list_key take_key(struct json_reader *reader, enum signer_list_kind kind)
{
	struct signer_list_key item = {.key = json_take_text(reader, "key")};
	if (!reader->result && kind == SIGNER_LIST_RECEIPT && json_member(reader->object, "proof"))
		item.proof = take_proof(reader);
	item.used_from_us = json_take_time(reader, "used_from");
	item.used_until_us = json_take_time_or_null(reader, "used_until");
	if (!reader->result && !is_key(kind, item.key))
		json_refuse(reader, "key");
	return item;
}

static void take_keys(struct json_reader *reader, struct signer_list *list,
                      enum signer_list_kind kind)
{
	const struct json *array = json_take(reader, kind_names[kind], JSON_ARRAY);
	if (array && array->count > SIGNER_LIST_KEYS_MAX)
		json_refuse(reader, kind_names[kind]);
	if (reader->result)
		return;
	struct signer_list_key *items = arena_alloc(reader->arena, (array->count + 1) * sizeof *items);
	if (!items) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "%s", kind_names[kind]);
		return;
	}
	list->keys[kind].items = items;
	for (const struct json *at = array->first; at && !reader->result; at = at->next) {
		struct json_reader inner = json_reader_of(reader->arena, at, reader->error);
		const struct signer_list_key item = take_key(&inner, kind);
		reader->result = inner.result;
		if (!reader->result && signer_list_find_key(list, kind, item.key))
			reader->result =
				error_cause(reader->error, ERR_INVALID_EVIDENCE, "a key is listed twice");
		items[list->keys[kind].count++] = item;
	}
}

static int check_form(const struct signer_list *list, struct slice text, struct error *error)
{
	BUF_AUTO struct buf canonical;
	buf_init(&canonical, SIGNER_LIST_TEXT_MAX);
	signer_list_write(list, &canonical);
	if (buf_check(&canonical) && !canonical.full)
		return ERR_NO_MEMORY;
	return !canonical.full && slice_equal(buf_slice(&canonical), text)
	           ? OK
	           : error_cause(error, ERR_INVALID_EVIDENCE,
	                         "the list of signers is not in canonical form");
}

int signer_list_read(struct arena *arena, struct slice text, struct signer_list *ret_list,
                     struct error *error)
{
	if (text.size > SIGNER_LIST_TEXT_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the file is too large for a list of signers");
	struct json_reader reader = json_reader_parse(arena, text, &limits, error);
	struct signer_list list = {0};
	take_items(&reader, &list);
	list.issued_at_us = json_take_time(&reader, "issued_at");
	struct json_reader service = json_take_object(&reader, "service");
	list.service_name = json_take_text(&service, "name");
	list.service_prefix = json_take_text(&service, "prefix");
	list.service_url = json_take_text(&service, "url");
	reader.result = service.result;
	/* The form shows whether the version is that of a list with keys. */
	bool has_keys =
		json_member(reader.object, "log_keys") || json_member(reader.object, "receipt_keys");
	for (int kind = 0; kind < SIGNER_LIST_KINDS && has_keys; kind++)
		take_keys(&reader, &list, (enum signer_list_kind)kind);
	json_require_integer(&reader, "v", has_keys ? 2 : 1);
	int result = reader.result ? reader.result : check_form(&list, text, error);
	if (!result)
		*ret_list = list;
	return result;
}

/* ---- queries ---- */

const struct signer_list_item *signer_list_find(const struct signer_list *list,
                                                const struct sha256 *sha256)
{
	for (size_t i = 0; i < list->count; i++)
		if (sha256_equal(&list->items[i].sha256, sha256))
			return &list->items[i];
	return NULL;
}

const struct signer_list_key *signer_list_find_key(const struct signer_list *list,
                                                   enum signer_list_kind kind, const char *key)
{
	for (size_t i = 0; i < list->keys[kind].count; i++)
		if (strcmp(list->keys[kind].items[i].key, key) == 0)
			return &list->keys[kind].items[i];
	return NULL;
}

int signer_list_verify_proof(const struct signer_list_key *key, bool *ret_valid)
{
	char message[sizeof SIGNER_LIST_PROOF_PREFIX - 1 + SHA256_SIZE];
	uint8_t bytes[RECEIPT_PUBLIC_KEY_SIZE];
	size_t size = 0;
	memcpy(message, SIGNER_LIST_PROOF_PREFIX, sizeof SIGNER_LIST_PROOF_PREFIX - 1);
	memcpy(message + sizeof SIGNER_LIST_PROOF_PREFIX - 1, key->proof->certificate.bytes,
	       SHA256_SIZE);
	*ret_valid =
		base64_decode(slice_of(key->key), bytes, sizeof bytes, &size) && size == sizeof bytes;
	return *ret_valid ? note_verify_bytes(bytes, slice_make(message, sizeof message),
	                                      slice_make(key->proof->signature, SIGNER_LIST_PROOF_SIZE),
	                                      ret_valid)
	                  : OK;
}

enum signer_use signer_list_judge(const struct signer_list_item *item, int64_t signed_us)
{
	bool has_ended = item->used_until_us != TIME_NONE;
	if (signed_us == TIME_NONE)
		return has_ended ? SIGNER_USE_UNDATED : SIGNER_USE_IN_FORCE;
	if (has_ended && signed_us > item->used_until_us)
		return SIGNER_USE_ENDED;
	return signed_us < item->used_from_us - SIGNER_LIST_TOLERANCE_US ? SIGNER_USE_TOO_EARLY
	                                                                 : SIGNER_USE_IN_FORCE;
}

static bool repeats_keys(const struct signer_list *newer, const struct signer_list *older,
                         enum signer_list_kind kind)
{
	for (size_t i = 0; i < older->keys[kind].count; i++) {
		const struct signer_list_key *was = &older->keys[kind].items[i];
		const struct signer_list_key *is = signer_list_find_key(newer, kind, was->key);
		bool has_ended = was->used_until_us != TIME_NONE;
		if (!is || is->used_from_us != was->used_from_us ||
		    (has_ended && is->used_until_us != was->used_until_us))
			return false;
	}
	return true;
}

bool signer_list_extends(const struct signer_list *newer, const struct signer_list *older)
{
	for (size_t i = 0; i < older->count; i++) {
		const struct signer_list_item *was = &older->items[i];
		const struct signer_list_item *is = signer_list_find(newer, &was->sha256);
		bool has_ended = was->used_until_us != TIME_NONE;
		if (!is || is->used_from_us != was->used_from_us ||
		    (has_ended && is->used_until_us != was->used_until_us))
			return false;
	}
	return repeats_keys(newer, older, SIGNER_LIST_LOG) &&
	       repeats_keys(newer, older, SIGNER_LIST_RECEIPT);
}
