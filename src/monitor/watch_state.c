#include "monitor/watch_state.h"

#include <errno.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "tlog/note.h"

#define STATE_MAX ((size_t)1 << 20)

struct sha256 watch_receipts_digest(const struct owned_chain *chain, int64_t last)
{
	struct sha256 digest = {0};
	for (size_t i = 0; i < chain->receipt_count && chain->receipts[i].sequence <= last; i++) {
		const struct owned_receipt *receipt = &chain->receipts[i];
		uint8_t bytes[SHA256_SIZE + sizeof receipt->sequence + SHA256_SIZE];
		memcpy(bytes, digest.bytes, SHA256_SIZE);
		memcpy(bytes + SHA256_SIZE, &receipt->sequence, sizeof receipt->sequence);
		memcpy(bytes + sizeof bytes - SHA256_SIZE, receipt->chain_hash.bytes, SHA256_SIZE);
		digest = sha256_of(bytes, sizeof bytes);
	}
	return digest;
}

struct watched_chain *watch_state_find(struct watch_state *state, const struct sha256 *tag)
{
	for (size_t i = 0; i < state->count; i++)
		if (sha256_equal(&state->chains[i].tag, tag))
			return &state->chains[i];
	return NULL;
}

/* ---- reading ---- */

static int take_chain(struct json_reader *reader, const struct json *item,
                      struct watched_chain *ret)
{
	struct json_reader inner = json_reader_of(reader->arena, item, reader->error);
	ret->compared = json_take_hash(&inner, "compared");
	ret->span.entries = (uint64_t)json_take_integer(&inner, "entries", 0);
	ret->span.first = json_take_integer(&inner, "first_sequence", 0);
	ret->span.last = json_take_integer(&inner, "last_sequence", ret->span.first);
	ret->tag = json_take_hash(&inner, "tag");
	return inner.result;
}

static int parse(struct arena *arena, struct slice text, struct watch_state *ret,
                 struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, text, NULL, error);
	const int64_t version = json_take_integer(&reader, "v", 1);
	if (!reader.result && version > WATCH_STATE_VERSION)
		json_refuse(&reader, "v");
	ret->is_comparable = version == WATCH_STATE_VERSION;
	ret->note = json_take_slice(&reader, "note");
	const struct json *chains = json_take(&reader, "chains", JSON_ARRAY);
	if (chains && chains->count > OWNED_CHAINS_MAX)
		json_refuse(&reader, "chains");
	const struct json *item = reader.result ? NULL : chains->first;
	for (; item && !reader.result; item = item->next)
		reader.result = take_chain(&reader, item, &ret->chains[ret->count++]);
	return reader.result;
}

int watch_state_read(const char *path, struct arena *arena, struct watch_state *ret,
                     struct error *error)
{
	BUF_AUTO struct buf text;
	struct error detail = {0};
	buf_init(&text, STATE_MAX);
	*ret = (struct watch_state){0};
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return OK;
	int result = file_read_whole(path, &text, error);
	if (result)
		return result;
	char *copy = arena_copy(arena, text.data, text.size);
	if (!copy)
		return ERR_NO_MEMORY;
	result = parse(arena, slice_make(copy, text.size), ret, &detail);
	return result == ERR_INVALID_EVIDENCE
	           ? error_cause(error, ERR_CORRUPT,
	                         "%s is not the state of a watcher (%.*s); move it away to begin again",
	                         path, ERROR_CAUSE_MAX / 4, detail.cause)
	           : result;
}

/* ---- writing ---- */

static void write_chain(struct json_writer *writer, const struct watched_chain *chain,
                        const char *channel_id)
{
	json_begin_object(writer, NULL);
	json_text(writer, "channel_id", channel_id);
	json_hex(writer, "compared", chain->compared.bytes, SHA256_SIZE);
	json_integer(writer, "entries", (int64_t)chain->span.entries);
	json_integer(writer, "first_sequence", chain->span.first);
	json_integer(writer, "last_sequence", chain->span.last);
	json_hex(writer, "tag", chain->tag.bytes, SHA256_SIZE);
	json_end_object(writer);
}

int watch_state_write(const char *path, const struct watch_state *state,
                      const struct owned_chains *owned, struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, STATE_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_begin_array(&writer, "chains");
	for (size_t i = 0; i < state->count; i++)
		write_chain(&writer, &state->chains[i], owned->chains[i].channel_id);
	json_end_array(&writer);
	json_slice(&writer, "note", state->note);
	json_integer(&writer, "v", WATCH_STATE_VERSION);
	json_end_object(&writer);
	buf_add_byte(&text, '\n');
	int result = buf_check(&text);
	return result ? result : durable_replace(path, 0600, buf_slice(&text), error);
}
