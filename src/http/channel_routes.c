/* GET /v1/channel and /v1/account/balance.
 *
 * With a thousand versions of maximum length, a channel is 10 MB of JSON. Sealed versions never
 * change, so they are read twice: first to determine the size of the answer and possible errors,
 * then, unless the answer is short, in chunks as the client reads it. */
#include <stdlib.h>

#include "http/http_internal.h"
#include "http/object_stream.h"
#include "store/accounts/accounts.h"
#include "tlog/entry.h"

#define AT_ONCE 16 /* versions per chunk */
/* Versions of maximum length with every byte escaped; the first chunk also contains the current
 * version. */
#define PIECE_MAX ((size_t)(AT_ONCE + 1) * 10500 + 1024)
#define PIECE_MEMORY_MAX ((size_t)1024 * 1024)
#define WHOLE_MAX ((size_t)256 * 1024) /* maximum size of an answer that is not streamed */

struct channel_text {
	struct store *store;
	int64_t account, channel;
	enum language language;
	int64_t current; /* version in force at the time of the request */
	int64_t first, last, next;
	bool begun, over;
	struct json_writer writer; /* writes into the buffer */
	struct buf piece;
	size_t used; /* read position in the buffer */
};

static void write_config(struct json_writer *writer, const char *name,
                         const struct config_facts *facts)
{
	json_begin_object(writer, name);
	json_integer(writer, "version", facts->version);
	json_time(writer, "sealed_at", facts->sealed_at_us);
	json_text(writer, "modality", modality_text(facts->modality));
	json_text(writer, "name", facts->name);
	json_text(writer, "description", facts->description ? facts->description : "");
	json_text(writer, "declarant", facts->declarant);
	json_text(writer, "supplementary_info", facts->supplementary_info);
	json_end_object(writer);
}

static const char *mode_note(enum language language)
{
	if (language == LANGUAGE_SPANISH)
		return "Las cadenas real y de prueba de este canal están separadas: un evento registrado "
			   "con una clave de prueba no aparece en la cadena real ni tiene valor probatorio.";
	return "The live and test chains of this channel are separate: an event registered with a test "
		   "key does not appear in the live chain and has no probative value.";
}

/* ---- the text ---- */

/* Reads `count` versions up to `last`. */
static int read_versions(const struct channel_text *text, int64_t last, int64_t count,
                         struct arena *arena, struct channel *ret, struct error *error)
{
	int result = store_get_channel_versions(text->store, text->account, text->channel, last + 1,
	                                        count, arena, ret, error);
	if (!result && (int64_t)ret->config_count != count)
		result = error_cause(error, ERR_CORRUPT, "the channel lacks configuration versions");
	return result;
}

static int write_head(struct channel_text *text, struct arena *arena, struct error *error)
{
	struct channel channel;
	int result = read_versions(text, text->current, 1, arena, &channel, error);
	if (result)
		return result;
	const struct config_facts *current = &channel.configs[0].facts;
	struct sha256 tag;
	if (!tlog_tag(channel.channel_id, mode_text(MODE_LIVE), &tag))
		return error_cause(error, ERR_CORRUPT, "the channel's identifier is too long");
	struct json_writer *writer = &text->writer;
	json_begin_object(writer, NULL);
	json_text(writer, "channel_id", channel.channel_id);
	json_text(writer, "name", current->name);
	json_hex(writer, "log_tag", tag.bytes, SHA256_SIZE);
	json_text(writer, "mode_note", mode_note(text->language));
	write_config(writer, "current_config", current);
	json_begin_array(writer, "config_versions");
	text->begun = true;
	return 0;
}

static int write_some(struct channel_text *text, struct arena *arena, struct error *error)
{
	int64_t last = text->next + AT_ONCE - 1 < text->last ? text->next + AT_ONCE - 1 : text->last;
	struct channel channel = {0};
	int result = 0;
	if (last >= text->next)
		result = read_versions(text, last, last - text->next + 1, arena, &channel, error);
	for (size_t i = 0; i < channel.config_count && !result; i++)
		write_config(&text->writer, NULL, &channel.configs[i].facts);
	text->next = last + 1;
	if (!result && text->next > text->last) {
		json_end_array(&text->writer);
		json_end_object(&text->writer);
		text->over = true;
	}
	return result;
}

/* Writes the next chunk; blocks on the store. */
static int write_piece(struct channel_text *text, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, PIECE_MEMORY_MAX);
	buf_clear(&text->piece);
	text->used = 0;
	int result = text->begun ? 0 : write_head(text, &arena, error);
	if (!result)
		result = write_some(text, &arena, error);
	return result ? result : buf_check(&text->piece);
}

static void start_over(struct channel_text *text)
{
	text->begun = text->over = false;
	text->next = text->first;
	text->writer = (struct json_writer){.out = &text->piece};
	text->used = 0;
	buf_free(&text->piece);
}

/* ---- as a stream ---- */

static int64_t read_text(void *context, char *data, size_t size, struct error *error)
{
	struct channel_text *text = context;
	if (text->used == text->piece.size && text->over)
		return 0;
	int result = text->used == text->piece.size ? write_piece(text, error) : 0;
	if (result)
		return result;
	size_t left = text->piece.size - text->used;
	size_t given = left < size ? left : size;
	memcpy(data, text->piece.data + text->used, given);
	text->used += given;
	return (int64_t)given;
}

static void end_text(void *context)
{
	struct channel_text *text = context;
	buf_free(&text->piece);
	free(text);
}

static const struct stream_source channel_source = {
	.lane = LANE_READERS, .held = PIECE_MAX, .read = read_text, .end = end_text};

/* ---- GET /v1/channel ---- */

/* Determines the total size. `out` contains the text if it is short. */
static int measure(struct channel_text *text, struct buf *out, size_t *ret_size,
                   struct error *error)
{
	size_t size = 0;
	while (!text->over) {
		int result = write_piece(text, error);
		if (result)
			return result;
		size += text->piece.size;
		if (size <= WHOLE_MAX)
			buf_add_slice(out, buf_slice(&text->piece));
		else
			buf_free(out);
	}
	*ret_size = size;
	return 0;
}

/* Returns the Link header (RFC 8288) to the earlier versions. NULL without memory. */
static const char *make_link(struct exchange *exchange, const struct channel_text *text)
{
	return arena_printf(&exchange->arena, "</v1/channel?before_version=%lld>; rel=\"next\"",
	                    (long long)text->first);
}

static int answer_text(struct exchange *exchange, struct channel_text *text, struct error *error)
{
	size_t size = 0;
	const char *link = text->first > 1 ? make_link(exchange, text) : NULL;
	int result = text->first > 1 && !link ? ERR_NO_MEMORY : 0;
	if (!result)
		result = measure(text, &exchange->out, &size, error);
	if (result || size <= WHOLE_MAX) {
		end_text(text);
		if (!result)
			answer_out(exchange, 200);
		if (!result && exchange->answer.status == 200)
			answer_header(exchange, "Link", link);
		return result;
	}
	start_over(text);
	answer_with(exchange, 200, "application/json", slice_make("", 0));
	exchange->answer.size = size;
	answer_header(exchange, "Link", link);
	return object_stream_new(exchange, &channel_source, text, &exchange->answer.stream, error);
}

/* Selects the newest of the requested versions. */
static int choose(struct exchange *exchange, struct channel_text *text, struct error *error)
{
	struct channel channel;
	int64_t before = INT64_MAX;
	int result = query_integer(&exchange->parameters, "before_version", 1, CONFIG_VERSION_MAX + 1,
	                           &before, error);
	if (!result)
		result = guard_forced_error(exchange, error);
	if (!result)
		result = store_get_channel_versions(text->store, text->account, text->channel, INT64_MAX, 1,
		                                    &exchange->arena, &channel, error);
	if (result)
		return result;
	if (!channel.config_count)
		return error_cause(error, ERR_CORRUPT, "the channel has no configuration");
	text->current = channel.configs[0].facts.version;
	text->last = text->current < before ? text->current : before - 1;
	text->first =
		text->last > CONFIG_VERSIONS_SHOWN_MAX ? text->last - CONFIG_VERSIONS_SHOWN_MAX + 1 : 1;
	return 0;
}

static int get_channel(struct exchange *exchange, struct error *error)
{
	struct channel_text *text = calloc(1, sizeof *text);
	if (!text)
		return ERR_NO_MEMORY;
	text->store = exchange->service->store;
	text->account = exchange->key.account;
	text->channel = exchange->key.channel;
	text->language = exchange->language;
	buf_init(&text->piece, PIECE_MAX);
	int result = choose(exchange, text, error);
	if (result) {
		end_text(text);
		return result;
	}
	start_over(text);
	return answer_text(exchange, text, error);
}

static int get_balance(struct exchange *exchange, struct error *error)
{
	struct balance balance;
	int result =
		store_get_balance(exchange->service->store, exchange->key.account, &balance, error);
	if (result)
		return result;
	struct json_writer writer = {.out = &exchange->out};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "balance", balance.balance);
	json_boolean(&writer, "operational", balance.unpaid_events == 0 && balance.balance >= 0);
	json_integer(&writer, "unpaid_events", balance.unpaid_events);
	json_end_object(&writer);
	answer_out(exchange, 200);
	return 0;
}

const struct operation operation_get_channel = {
	.parameters = (const char *const[]){"before_version", NULL},
	.validates = true,
	.work = get_channel,
};
const struct operation operation_get_balance = {.work = get_balance};
