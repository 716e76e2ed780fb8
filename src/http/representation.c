#include "http/representation.h"

#include "http/header.h"

#define TAG_SIZE (2 * SHA256_SIZE + 3) /* with quotes and NUL */

static void make_tag(const struct representation *representation, char tag[TAG_SIZE])
{
	tag[0] = '"';
	hex_encode(representation->digest.bytes, SHA256_SIZE, tag + 1);
	memcpy(tag + TAG_SIZE - 2, "\"", 2);
}

bool representation_is_cached(const struct exchange *exchange,
                              const struct representation *representation)
{
	char tag[TAG_SIZE];
	make_tag(representation, tag);
	for (size_t i = 0; i < NONE_MATCH_LINES_MAX; i++) {
		if (header_has_entity_tag(exchange->head.none_match[i], tag))
			return true;
	}
	return false;
}

static int add_tag(struct exchange *exchange, const struct representation *representation)
{
	char tag[TAG_SIZE];
	make_tag(representation, tag);
	const char *copy = arena_copy(&exchange->arena, tag, TAG_SIZE - 1);
	answer_header(exchange, "ETag", copy);
	exchange->answer.language = representation->language;
	return copy ? 0 : ERR_NO_MEMORY;
}

static int refuse_range(struct exchange *exchange, uint64_t size)
{
	const char *range = arena_printf(&exchange->arena, "bytes */%llu", (unsigned long long)size);
	if (!range)
		return ERR_NO_MEMORY;
	answer_error(exchange, error_set(&exchange->error, ERR_VALIDATION, MSG_HTTP_RANGE, NULL));
	if (exchange->answer.status == 400)
		exchange->answer.status = 416;
	answer_header(exchange, "Content-Range", range);
	return 0;
}

static int add_range(struct exchange *exchange, uint64_t offset, uint64_t size, uint64_t whole)
{
	const char *range =
		arena_printf(&exchange->arena, "bytes %llu-%llu/%llu", (unsigned long long)offset,
	                 (unsigned long long)(offset + size - 1), (unsigned long long)whole);
	answer_header(exchange, "Content-Range", range);
	return range ? 0 : ERR_NO_MEMORY;
}

/* Returns the requested range, unless If-Range refers to another version. A date never matches,
 * because none is sent. */
static enum header_range requested_range(const struct exchange *exchange,
                                         const struct representation *representation,
                                         uint64_t *ret_offset, uint64_t *ret_size)
{
	const struct head *head = &exchange->head;
	char tag[TAG_SIZE];
	make_tag(representation, tag);
	*ret_offset = 0;
	*ret_size = representation->size;
	if (!head->range.size || (head->has_if_range && !slice_is(head->if_range, tag)))
		return RANGE_NONE;
	return header_range(head->range, representation->size, ret_offset, ret_size);
}

static int add_disposition(struct exchange *exchange, const char *file_name)
{
	BUF_AUTO struct buf value;
	buf_init(&value, OUT_MAX);
	header_disposition(slice_of(file_name), &value);
	const char *copy =
		buf_check(&value) ? NULL : arena_copy(&exchange->arena, value.data, value.size);
	answer_header(exchange, "Content-Disposition", copy);
	return copy ? 0 : ERR_NO_MEMORY;
}

int answer_representation(struct exchange *exchange, const struct representation *representation,
                          struct error *error)
{
	struct slice none = {"", 0}, body = representation->body;
	uint64_t offset, size;
	if (representation_is_cached(exchange, representation)) {
		answer_with(exchange, 304, NULL, none);
		exchange->answer.size = representation->size;
		return add_tag(exchange, representation);
	}
	enum header_range range = requested_range(exchange, representation, &offset, &size);
	if (range == RANGE_UNSATISFIABLE)
		return refuse_range(exchange, representation->size);
	answer_with(exchange, range == RANGE_PART ? 206 : 200, representation->type,
	            representation->object ? none : slice_make(body.data + offset, size));
	const struct content_parts parts = {representation->object, representation->shared,
	                                    representation->pieces};
	int result = add_tag(exchange, representation);
	if (!result && representation->object)
		result = answer_object(exchange, &parts, offset, size, error);
	if (!result && range == RANGE_PART)
		result = add_range(exchange, offset, size, representation->size);
	if (!result && representation->file_name)
		result = add_disposition(exchange, representation->file_name);
	answer_header(exchange, "Accept-Ranges", "bytes");
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
	return result;
}

int answer_evidence_record(struct exchange *exchange, struct slice id, struct error *error)
{
	struct representation record = {
		.type = "application/octet-stream",
		.digest = sha256_of(exchange->out.data, exchange->out.size),
		.file_name = arena_printf(&exchange->arena, "%.*s.ers", (int)id.size, id.data),
		.body = buf_slice(&exchange->out),
		.size = exchange->out.size,
	};
	return record.file_name ? answer_representation(exchange, &record, error) : ERR_NO_MEMORY;
}
