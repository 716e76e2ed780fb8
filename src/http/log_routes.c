/* /log: the transparency log of segments, as C2SP tlog-tiles describes it. Public, for monitors,
 * witnesses and anyone who verifies evidence. */
#include <stdio.h>

#include "evidence/log_publisher.h"
#include "http/http_internal.h"
#include "http/representation.h"
#include "store/tlog/log_records.h"
#include "tlog/tiles.h"

#define LOG_PREFIX "/log/"
#define ENTRIES_ALIAS "entries/"
#define IMMUTABLE "public, max-age=31536000, immutable"
#define CHECKPOINT_CACHE "public, max-age=1"

static int answer_bytes(struct exchange *exchange, const char *type, const char *cache,
                        struct error *error)
{
	const struct representation representation = {
		.type = type,
		.digest = sha256_of(exchange->out.data, exchange->out.size),
		.body = buf_slice(&exchange->out),
		.size = exchange->out.size,
	};
	int result = answer_representation(exchange, &representation, error);
	if (!result && exchange->answer.status < 400)
		exchange->answer.cache = cache;
	return result;
}

static int not_found(struct error *error)
{
	return error_set(error, ERR_NOT_FOUND, MSG_HTTP_PATH, NULL);
}

static int get_checkpoint(struct exchange *exchange, struct error *error)
{
	const struct service *service = exchange->service;
	struct log_checkpoint checkpoint;
	int result = store_get_newest_checkpoint(service->store, service->log_origin, CHECKPOINT_FINAL,
	                                         &exchange->arena, &checkpoint, error);
	if (result)
		return result == ERR_NOT_FOUND ? not_found(error) : result;
	exchange->out.limit = 2 * NOTE_SIZE_MAX;
	buf_add_slice(&exchange->out, checkpoint.note);
	result = note_add_readable(checkpoint.cosignatures, &exchange->out);
	return result ? result
	              : answer_bytes(exchange, "text/plain; charset=utf-8", CHECKPOINT_CACHE, error);
}

const struct operation operation_get_log_checkpoint = {
	.open = true, .bucket = 6, .work = get_checkpoint};

/* ---- tiles ---- */

static int add_hashes(struct exchange *exchange, const struct tile_id *id, struct error *error)
{
	struct sha256 hashes[TILE_WIDTH];
	int result = store_read_log_tile(exchange->service->store, id, hashes, error);
	if (!result)
		buf_add(&exchange->out, hashes, id->width * sizeof *hashes);
	return result;
}

/* Entries, each after its length in two bytes (tlog-tiles, "Log entries"). */
static int add_entries(struct exchange *exchange, const struct tile_id *id, struct error *error)
{
	struct tlog_entry entries[TILE_WIDTH];
	size_t count = 0;
	int result = store_read_log_entries(exchange->service->store, id->index * TILE_WIDTH, id->width,
	                                    entries, &count, error);
	for (size_t i = 0; !result && i < count; i++) {
		size_t at = exchange->out.size;
		buf_add(&exchange->out, "\0", 2);
		tlog_entry_write(&entries[i], &exchange->out);
		if (buf_check(&exchange->out))
			return ERR_NO_MEMORY;
		size_t size = exchange->out.size - at - 2;
		exchange->out.data[at] = (char)(size >> 8);
		exchange->out.data[at + 1] = (char)(size & 0xff);
	}
	return result;
}

static bool parse_path(struct slice path, struct tile_id *ret)
{
	const size_t prefix = strlen(LOG_PREFIX), alias = strlen(ENTRIES_ALIAS);
	char whole[TILE_PATH_SIZE + 8];
	struct slice rest = slice_make(path.data + prefix, path.size - prefix);
	bool is_alias = rest.size > alias && memcmp(rest.data, ENTRIES_ALIAS, alias) == 0;
	int size = snprintf(whole, sizeof whole, "%s%.*s", is_alias ? "tile/" : "",
	                    rest.size < TILE_PATH_SIZE ? (int)rest.size : TILE_PATH_SIZE, rest.data);
	return tile_path_parse(slice_make(whole, (size_t)size), ret);
}

static int get_tile(struct exchange *exchange, struct error *error)
{
	struct tile_id id;
	struct log_head head;
	if (!parse_path(exchange->path, &id))
		return not_found(error);
	int result = store_get_log_head(exchange->service->store, &head, error);
	if (!result && id.width > tile_width(id.level, id.index, head.size))
		return not_found(error);
	exchange->out.limit = TILE_WIDTH * (TLOG_ENTRY_MAX + 2);
	if (!result)
		result = id.level == TILE_ENTRIES ? add_entries(exchange, &id, error)
		                                  : add_hashes(exchange, &id, error);
	if (!result)
		result = buf_check(&exchange->out);
	return result ? result : answer_bytes(exchange, "application/octet-stream", IMMUTABLE, error);
}

const struct operation operation_get_log_tile = {.open = true, .bucket = 6, .work = get_tile};
