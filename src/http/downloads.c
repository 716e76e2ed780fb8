/* GET /v1/downloads/{certification_id}/{name}: issued files by their links. */
#include <stdio.h>

#include "http/header.h"
#include "http/internal.h"

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

static int tell_range(struct exchange *exchange, uint64_t offset, uint64_t size, uint64_t whole)
{
	const char *range =
		arena_printf(&exchange->arena, "bytes %llu-%llu/%llu", (unsigned long long)offset,
	                 (unsigned long long)(offset + size - 1), (unsigned long long)whole);
	answer_header(exchange, "Content-Range", range);
	return range ? 0 : ERR_NO_MEMORY;
}

static int download(struct exchange *exchange, struct error *error)
{
	struct slice expires, mac;
	struct arena *arena = &exchange->arena;
	const struct slice *arguments = exchange->arguments;
	const char *id = arena_copy(arena, arguments[0].data, arguments[0].size);
	const char *name = arena_copy(arena, arguments[1].data, arguments[1].size);
	if (!id || !name)
		return ERR_NO_MEMORY;
	if (!query_get(&exchange->parameters, "expires", &expires) ||
	    !query_get(&exchange->parameters, "mac", &mac) ||
	    !link_check(exchange->service, id, name, expires, mac,
	                store_now_us(exchange->service->store)))
		return error_set(error, ERR_NOT_FOUND, MSG_HTTP_LINK, NULL);
	struct issued_file file;
	int result = issued_file_find(exchange->service, arguments[0], arguments[1], &file, error);
	if (result)
		return result;
	uint64_t offset = 0, size = file.size;
	enum header_range range = RANGE_NONE;
	if (exchange->head.range.size && !exchange->head.if_range)
		range = header_range(exchange->head.range, file.size, &offset, &size);
	if (range == RANGE_UNSATISFIABLE)
		return refuse_range(exchange, file.size);
	answer_with(exchange, range == RANGE_PART ? 206 : 200, file.content_type,
	            (struct slice){"", 0});
	result = answer_object(exchange, file.object, offset, size, error);
	if (!result && range == RANGE_PART)
		result = tell_range(exchange, offset, size, file.size);
	if (result)
		return result;
	header_disposition(slice_of(name), &exchange->out);
	if (buf_check(&exchange->out))
		return ERR_NO_MEMORY;
	answer_header(exchange, "Content-Disposition", exchange->out.data);
	answer_header(exchange, "Accept-Ranges", "bytes");
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
	return 0;
}

const struct operation operation_download = {
	.open = true,
	.content = true,
	.parameters = (const char *const[]){"expires", "mac", NULL},
	.work = download,
};
