#include "archive/receipt.h"

#include "archive/archive_lines.h"
#include "base/base64.h"
#include "base/json_reader.h"
#include "seal/receipt_signer.h"
#include "tlog/merkle.h"
#include "tlog/note.h"

#define VALUES_MAX ((uint32_t)1 << 20)
#define CAUSE_MAX 384

struct reader {
	struct arena *arena;
	struct receipt *items;
	size_t count;
	bool any_usable;
	struct error *error;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct slice trim(struct slice text)
{
	while (text.size > 0 && is_blank(text.data[0]))
		text = slice_make(text.data + 1, text.size - 1);
	while (text.size > 0 && is_blank(text.data[text.size - 1]))
		text.size--;
	return text;
}

/* Adds a receipt that cannot be used, for the cause in the error. */
static int add_unusable(struct reader *reader)
{
	struct receipt *item = &reader->items[reader->count];
	*item = (struct receipt){.cause = arena_text(reader->arena, reader->error->cause)};
	reader->count++;
	return item->cause ? OK : ERR_NO_MEMORY;
}

static int parse(struct reader *reader, struct slice text, struct json **ret_json)
{
	const struct json_limits limits = {.value_max = VALUES_MAX};
	struct error detail = {0};
	int result = json_parse(reader->arena, text, &limits, ret_json, &detail);
	if (result == ERR_VALIDATION)
		result = error_cause(reader->error, ERR_INVALID_EVIDENCE, "receipt %zu is not JSON: %s",
		                     reader->count + 1, error_message(&detail, LANGUAGE_ENGLISH));
	return result;
}

/* Allocates space for the largest number of receipts that the text can contain, before any is
 * added. */
static int make_room(struct reader *reader, size_t room)
{
	if (room == 0)
		return error_cause(reader->error, ERR_INVALID_EVIDENCE, "the file contains no receipt");
	if (room > RECEIPTS_MAX)
		return error_cause(reader->error, ERR_INVALID_EVIDENCE,
		                   "the file contains more than %d receipts", RECEIPTS_MAX);
	reader->items = arena_alloc(reader->arena, room * sizeof *reader->items);
	return reader->items ? 0 : ERR_NO_MEMORY;
}

/* ---- the signature ---- */

static void decode_exactly(struct json_reader *reader, const char *name, const struct json *json,
                           void *out, size_t size)
{
	size_t found = 0;
	if (reader->result)
		return;
	if (json->type != JSON_STRING || !base64_decode(json->text, out, size, &found) || found != size)
		json_refuse(reader, name);
}

static void take_exactly(struct json_reader *reader, const char *name, void *out, size_t size)
{
	decode_exactly(reader, name, json_take(reader, name, JSON_STRING), out, size);
}

static void take_path(struct json_reader *reader, struct receipt_signature *signature)
{
	const struct json *path = json_take(reader, "path", JSON_ARRAY);
	if (path && path->count > RECEIPT_TREE_PATH_MAX)
		json_refuse(reader, "path");
	if (reader->result)
		return;
	for (const struct json *step = path->first; step; step = step->next)
		decode_exactly(reader, "path", step, signature->path[signature->path_count++].bytes,
		               SHA256_SIZE);
}

static int read_signature(struct arena *arena, const struct json *json,
                          const struct receipt_signature **ret, struct error *error)
{
	struct receipt_signature *signature = arena_alloc(arena, sizeof *signature);
	if (!signature)
		return ERR_NO_MEMORY;
	struct json_reader reader = json_reader_of(arena, json, error);
	*signature = (struct receipt_signature){
		.index = json_take_integer(&reader, "index", 0),
		.tree_size = json_take_integer(&reader, "size", 1),
		.origin = json_take_text(&reader, "origin"),
		.seal_by_us =
			json_member(json, "seal_by") ? json_take_time_or_null(&reader, "seal_by") : TIME_NONE,
	};
	take_path(&reader, signature);
	take_exactly(&reader, "key", signature->key, sizeof signature->key);
	take_exactly(&reader, "signature", signature->signature, sizeof signature->signature);
	if (!reader.result && strlen(signature->origin) > NOTE_NAME_MAX)
		json_refuse(&reader, "origin");
	if (!reader.result && signature->tree_size > RECEIPT_TREE_MAX)
		json_refuse(&reader, "size");
	if (!reader.result)
		*ret = signature;
	return reader.result;
}

static int verify_root(const struct receipt_signature *given, const struct sha256 *root,
                       bool *ret_valid)
{
	char message[sizeof RECEIPT_SIGNED_PREFIX - 1 + SHA256_SIZE];
	memcpy(message, RECEIPT_SIGNED_PREFIX, sizeof RECEIPT_SIGNED_PREFIX - 1);
	memcpy(message + sizeof RECEIPT_SIGNED_PREFIX - 1, root->bytes, SHA256_SIZE);
	return note_verify_bytes(given->key, slice_make(message, sizeof message),
	                         slice_make(given->signature, sizeof given->signature), ret_valid);
}

int receipt_verify(const struct receipt *receipt, bool *ret_valid)
{
	const struct receipt_signature *given = receipt->signature;
	const struct receipt_facts facts = {
		.channel_id = receipt->event.channel_id,
		.chain = receipt->event.chain,
		.sequence = receipt->event.sequence,
		.declaration = &receipt->event.declaration,
		.received_at_us = receipt->event.received_at_us,
		.chain_hash = receipt->chain_hash,
		.origin = given->origin,
		.seal_by_us = given->seal_by_us,
	};
	BUF_AUTO struct buf statement;
	struct merkle_path path = {.count = given->path_count};
	struct sha256 root;
	buf_init(&statement, RECEIPT_STATEMENT_MAX);
	receipt_statement(&facts, &statement);
	if (buf_check(&statement))
		return ERR_NO_MEMORY;
	memcpy(path.hashes, given->path, given->path_count * sizeof *given->path);
	const struct sha256 leaf = merkle_leaf(buf_slice(&statement));
	*ret_valid = given->index < given->tree_size &&
	             merkle_root_of_path(&leaf, (uint64_t)given->index, (uint64_t)given->tree_size,
	                                 &path, &root);
	return *ret_valid ? verify_root(given, &root, ret_valid) : OK;
}

static int add(struct reader *reader, const struct json *json)
{
	struct receipt *item = &reader->items[reader->count];
	struct error detail = {0};
	*item = (struct receipt){0};
	int result =
		archive_read_receipt(reader->arena, json, &item->event, &item->chain_hash, &detail);
	const struct json *signature = json_member(json, "receipt");
	if (!result && signature && signature->type != JSON_NULL)
		result = read_signature(reader->arena, signature, &item->signature, &detail);
	if (result == ERR_INVALID_EVIDENCE) {
		(void)error_cause(reader->error, result,
		                  "receipt %zu is not a response to a registration: %.*s",
		                  reader->count + 1, CAUSE_MAX, detail.cause);
		return add_unusable(reader);
	}
	reader->count += !result;
	reader->any_usable |= !result;
	return result;
}

static int read_value(struct reader *reader, const struct json *json)
{
	if (json->type != JSON_ARRAY) {
		int result = make_room(reader, 1);
		return result < 0 ? result : add(reader, json);
	}
	int result = make_room(reader, json->count);
	for (const struct json *item = json->first; item && !result; item = item->next)
		result = add(reader, item);
	return result;
}

/* Returns the next line that is not empty; false: none. */
static bool next_line(struct slice *rest, struct slice *ret_line)
{
	while (rest->size > 0) {
		const char *end = memchr(rest->data, '\n', rest->size);
		size_t size = end ? (size_t)(end - rest->data) : rest->size;
		*ret_line = trim(slice_make(rest->data, size));
		size_t used = end ? size + 1 : size;
		*rest = slice_make(rest->data + used, rest->size - used);
		if (ret_line->size > 0)
			return true;
	}
	return false;
}

static int read_lines(struct reader *reader, struct slice text)
{
	size_t lines = 0;
	struct slice rest = text, line;
	while (next_line(&rest, &line))
		lines++;
	int result = make_room(reader, lines);
	for (rest = text; !result && next_line(&rest, &line);) {
		struct json *json;
		result = parse(reader, line, &json);
		if (!result)
			result = add(reader, json);
		else if (result == ERR_INVALID_EVIDENCE)
			result = add_unusable(reader);
	}
	return result;
}

int receipts_read(struct arena *arena, struct slice text, struct receipt **ret_receipts,
                  size_t *ret_count, struct error *error)
{
	struct error unasked = {0};
	struct reader reader = {.arena = arena, .error = error ? error : &unasked};
	struct json *json;
	int result = 0;
	text = trim(text);
	if (text.size > RECEIPT_TEXT_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the file is too large for receipts");
	/* The text is one value over several lines, or one value per line. */
	if (text.size == 0)
		result = make_room(&reader, 0);
	else if ((result = parse(&reader, text, &json)) == 0)
		result = read_value(&reader, json);
	else if (result == ERR_INVALID_EVIDENCE && memchr(text.data, '\n', text.size))
		result = read_lines(&reader, text);
	if (result < 0)
		return result;
	if (!reader.any_usable)
		return error_cause(error, ERR_INVALID_EVIDENCE, "%s", reader.items[0].cause);
	error_clear(reader.error);
	*ret_receipts = reader.items;
	*ret_count = reader.count;
	return 0;
}
