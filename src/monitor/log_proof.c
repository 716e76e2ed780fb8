#include "monitor/log_proof.h"

#include <assert.h>

#include "base/json_reader.h"
#include "tlog/entry_proof.h"

static const char *const kinds[PROOF_KINDS] = {"two_trees", "inconsistent",    "shrunken",
                                               "overlap",   "receipt_differs", "promise_broken"};

const char *log_proof_kind_text(enum log_proof_kind kind)
{
	assert(kind < PROOF_KINDS);
	return kinds[kind];
}

/* ---- writing ---- */

static void write_optional(struct json_writer *writer, const char *name, struct slice text)
{
	if (text.data)
		json_slice(writer, name, text);
	else
		json_null(writer, name);
}

/* Members are in canonical order. */
void log_proof_write(const struct log_proof *proof, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, "entries");
	for (size_t i = 0; i < proof->entry_count; i++) {
		json_begin_object(&writer, NULL);
		json_slice(&writer, "entry", proof->entries[i].entry);
		json_slice(&writer, "proof", proof->entries[i].proof);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	json_text(&writer, "kind", log_proof_kind_text(proof->kind));
	json_begin_array(&writer, "notes");
	for (size_t i = 0; i < proof->note_count; i++)
		json_slice(&writer, NULL, proof->notes[i]);
	json_end_array(&writer);
	json_time(&writer, "observed_at", proof->observed_us);
	json_begin_array(&writer, "path");
	for (size_t i = 0; i < proof->path_count; i++)
		json_hex(&writer, NULL, proof->path[i].bytes, SHA256_SIZE);
	json_end_array(&writer);
	write_optional(&writer, "receipt", proof->receipt);
	json_text(&writer, "v", LOG_PROOF_VERSION);
	json_end_object(&writer);
}

/* ---- reading ---- */

static void take_kind(struct json_reader *reader, struct log_proof *proof)
{
	struct slice text = json_take_slice(reader, "kind");
	for (size_t i = 0; i < PROOF_KINDS; i++)
		if (slice_is(text, kinds[i])) {
			proof->kind = (enum log_proof_kind)i;
			return;
		}
	json_refuse(reader, "kind");
}

static void take_entries(struct json_reader *reader, struct log_proof *proof)
{
	const struct json *entries = json_take(reader, "entries", JSON_ARRAY);
	if (entries && entries->count > sizeof proof->entries / sizeof *proof->entries)
		json_refuse(reader, "entries");
	const struct json *item = reader->result ? NULL : entries->first;
	for (; item && !reader->result; item = item->next) {
		struct json_reader inner = json_reader_of(reader->arena, item, reader->error);
		struct log_proof_entry *entry = &proof->entries[proof->entry_count++];
		entry->entry = json_take_slice(&inner, "entry");
		entry->proof = json_take_slice(&inner, "proof");
		reader->result = inner.result;
	}
}

static void take_notes(struct json_reader *reader, struct log_proof *proof)
{
	const struct json *notes = json_take(reader, "notes", JSON_ARRAY);
	if (notes && notes->count > sizeof proof->notes / sizeof *proof->notes)
		json_refuse(reader, "notes");
	const struct json *item = reader->result ? NULL : notes->first;
	for (; item; item = item->next) {
		if (item->type != JSON_STRING) {
			json_refuse(reader, "notes");
			return;
		}
		proof->notes[proof->note_count++] = item->text;
	}
}

static void take_path(struct json_reader *reader, struct log_proof *proof)
{
	const struct json *path = json_take(reader, "path", JSON_ARRAY);
	if (path && path->count > LOG_PROOF_HASHES_MAX)
		json_refuse(reader, "path");
	const struct json *item = reader->result ? NULL : path->first;
	for (; item; item = item->next) {
		if (item->type != JSON_STRING ||
		    !hex_decode(item->text, proof->path[proof->path_count].bytes, SHA256_SIZE)) {
			json_refuse(reader, "path");
			return;
		}
		proof->path_count++;
	}
}

static struct slice take_optional(struct json_reader *reader, const char *name)
{
	return json_is_null(reader, name) ? slice_make(NULL, 0) : json_take_slice(reader, name);
}

int log_proof_read(struct arena *arena, struct slice text, struct log_proof *ret,
                   struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, text, NULL, error);
	struct log_proof proof = {0};
	const char *version = json_take_text(&reader, "v");
	if (version && strcmp(version, LOG_PROOF_VERSION) != 0)
		json_refuse(&reader, "v");
	take_kind(&reader, &proof);
	proof.observed_us = json_take_time(&reader, "observed_at");
	take_entries(&reader, &proof);
	take_notes(&reader, &proof);
	take_path(&reader, &proof);
	proof.receipt = take_optional(&reader, "receipt");
	if (!reader.result)
		*ret = proof;
	return reader.result;
}
