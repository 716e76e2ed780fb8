/* GET /v1/channel/seals: the seal documents of the chain's sealed segments, one per line.
 *
 * Seal documents never change. Their total size is therefore known before the first line is sent,
 * and a long answer is read from the store in chunks, as the client reads it. */
#include <ctype.h>
#include <stdlib.h>

#include "base/tuned.h"
#include "http/http_internal.h"
#include "http/object_stream.h"
#include "store/events/segments.h"

#define AT_ONCE 64 /* segments per chunk */
#define PIECE_MAX ((size_t)AT_ONCE * (SEGMENT_DOCUMENT_MAX + 1) + 1)
#define WHOLE_MAX ((int64_t)256 * 1024) /* maximum size of an answer that is not streamed */
#define SEQUENCE_MAX INT64_C(999999999999999)
#define NDJSON "application/x-ndjson"

struct seal_text {
	struct store *store;
	int64_t account, chain;
	int64_t next, last; /* numbers of segments */
	int64_t at_once;    /* AT_ONCE, less in tests */
	struct buf piece;
	size_t used; /* read position in the buffer */
};

static int add_line(void *context, struct slice document)
{
	struct buf *out = context;
	buf_add_slice(out, document);
	buf_add_byte(out, '\n');
	return buf_check(out);
}

/* Appends the next lines; blocks on the store. */
static int read_lines(struct seal_text *text, struct buf *out, struct error *error)
{
	int64_t left = text->last - text->next + 1;
	int64_t end = text->next + (left < text->at_once ? left : text->at_once) - 1;
	int result = store_read_seals(text->store, text->account, text->chain, text->next, end,
	                              add_line, out, error);
	text->next = end + 1;
	return result;
}

/* ---- as a stream ---- */

static int64_t read_text(void *context, char *data, size_t size, struct error *error)
{
	struct seal_text *text = context;
	if (text->used == text->piece.size) {
		if (text->next > text->last)
			return 0;
		buf_clear(&text->piece);
		text->used = 0;
		int result = read_lines(text, &text->piece, error);
		if (result)
			return result;
	}
	size_t left = text->piece.size - text->used;
	size_t given = left < size ? left : size;
	memcpy(data, text->piece.data + text->used, given);
	text->used += given;
	return (int64_t)given;
}

static void end_text(void *context)
{
	struct seal_text *text = context;
	buf_free(&text->piece);
	free(text);
}

static const struct stream_source seal_source = {
	.lane = LANE_READERS, .held = PIECE_MAX, .read = read_text, .end = end_text};

/* ---- the range ---- */

/* A bound is a sequence number or a time. */
static int parse_bound(const struct query *query, const char *name, int64_t *ret_sequence,
                       int64_t *ret_us, struct error *error)
{
	struct slice text;
	bool digits = true;
	if (!query_get(query, name, &text))
		return OK;
	for (size_t i = 0; i < text.size && digits; i++)
		digits = isdigit((unsigned char)text.data[i]);
	if (digits)
		return query_integer(query, name, 1, SEQUENCE_MAX, ret_sequence, error);
	int result = query_time(query, name, ret_us, error);
	return result == ERR_VALIDATION ? error_set(error, result, MSG_HTTP_QUERY_PLACE, name, NULL)
	                                : result;
}

static int parse_range(const struct query *query, struct certification_range *ret,
                       struct error *error)
{
	*ret = (struct certification_range){.from_us = TIME_NONE, .to_us = TIME_NONE};
	int result = query_require_values(query, error);
	if (!result)
		result = parse_bound(query, "from", &ret->seq_from, &ret->from_us, error);
	if (!result)
		result = parse_bound(query, "to", &ret->seq_to, &ret->to_us, error);
	if (!result && ret->seq_from && ret->seq_to && ret->seq_from > ret->seq_to)
		return error_set(error, ERR_VALIDATION, MSG_RANGE_SEQUENCES_INVERTED, "from", "to", NULL);
	return result ? result : range_order_check(ret, error);
}

/* Resolves the range into the sealed events that it covers; *ret_last < *ret_first: none. */
static int resolve(struct exchange *exchange, const struct certification_range *range,
                   int64_t *ret_first, int64_t *ret_last, struct error *error)
{
	const struct key_identity *key = &exchange->key;
	struct store *store = exchange->service->store;
	struct chain_head head;
	int64_t first = 1, last = INT64_MAX;
	int result = store_get_chain(store, key->account, key->chain, &head, error);
	if (!result && (range->from_us != TIME_NONE || range->to_us != TIME_NONE))
		result = store_resolve_times(store, key->account, key->chain,
		                             range->from_us == TIME_NONE ? INT64_MIN + 1 : range->from_us,
		                             range->to_us == TIME_NONE ? INT64_MAX : range->to_us, &first,
		                             &last, error);
	if (result)
		return result;
	if (range->seq_from > first)
		first = range->seq_from;
	if (range->seq_to && range->seq_to < last)
		last = range->seq_to;
	*ret_first = first;
	*ret_last = last < head.sealed_sequence ? last : head.sealed_sequence;
	return OK;
}

static int find_number(struct exchange *exchange, int64_t sequence, int64_t *ret_number,
                       struct error *error)
{
	const struct key_identity *key = &exchange->key;
	struct segment_record segment;
	int result = store_find_segment(exchange->service->store, key->account, key->chain, sequence,
	                                &exchange->arena, &segment, error);
	if (result == ERR_NOT_FOUND)
		return error_cause(error, ERR_CORRUPT, "chain %lld: no segment has the sealed event %lld",
		                   (long long)key->chain, (long long)sequence);
	if (!result)
		*ret_number = segment.number;
	return result;
}

/* Finds the segments; text->last < text->next: none. */
static int find_segments(struct exchange *exchange, struct seal_text *text, struct error *error)
{
	struct certification_range range;
	int64_t first, last;
	text->next = 1;
	text->last = 0;
	int result = parse_range(&exchange->parameters, &range, error);
	if (!result)
		result = guard_forced_error(exchange, error);
	/* Test chains are not sealed. */
	if (result || exchange->key.mode == MODE_TEST)
		return result;
	result = resolve(exchange, &range, &first, &last, error);
	if (result || last < first)
		return result;
	result = find_number(exchange, first, &text->next, error);
	return result ? result : find_number(exchange, last, &text->last, error);
}

/* ---- the answer ---- */

static int answer_whole(struct exchange *exchange, struct seal_text *text, struct error *error)
{
	int result = OK;
	while (!result && text->next <= text->last)
		result = read_lines(text, &exchange->out, error);
	if (!result)
		answer_out(exchange, 200);
	if (!result && exchange->answer.status == 200)
		exchange->answer.content_type = NDJSON;
	return result;
}

static int answer_seals(struct exchange *exchange, struct seal_text *text, struct error *error)
{
	int64_t bytes = 0;
	int result = find_segments(exchange, text, error);
	if (!result)
		result = store_measure_seals(text->store, text->account, text->chain, text->next,
		                             text->last, &bytes, error);
	if (result || bytes <= tuned_up_to("seals_whole", WHOLE_MAX)) {
		if (!result)
			result = answer_whole(exchange, text, error);
		end_text(text);
		return result;
	}
	int64_t lines = text->last - text->next + 1;
	answer_with(exchange, 200, NDJSON, slice_make("", 0));
	exchange->answer.size = (uint64_t)(bytes + lines);
	return object_stream_new(exchange, &seal_source, text, &exchange->answer.stream, error);
}

static int get_seals(struct exchange *exchange, struct error *error)
{
	struct seal_text *text = calloc(1, sizeof *text);
	if (!text)
		return ERR_NO_MEMORY;
	text->store = exchange->service->store;
	text->account = exchange->key.account;
	text->chain = exchange->key.chain;
	text->at_once = tuned_up_to("seals_at_once", AT_ONCE);
	buf_init(&text->piece, PIECE_MAX);
	return answer_seals(exchange, text, error);
}

const struct operation operation_get_channel_seals = {
	.parameters = (const char *const[]){"from", "to", NULL},
	.validates = true,
	.work = get_seals,
};
