/* GET /v1/downloads/{certification_id}/{name}: issued files by their links. */
#include <stdio.h>

#include "http/header.h"
#include "http/internal.h"

static const char *c_text(struct exchange *exchange, struct slice text)
{
	const char *copy = arena_copy(&exchange->arena, text.data, text.size);
	return copy ? copy : "";
}

static int refuse_range(struct exchange *exchange, uint64_t size)
{
	answer_error(exchange, error_set(&exchange->error, ERR_VALIDATION, MSG_HTTP_RANGE, NULL));
	exchange->answer.status = 416;
	answer_header(exchange, "Content-Range",
	              arena_printf(&exchange->arena, "bytes */%llu", (unsigned long long)size));
	return 0;
}

static int download(struct exchange *exchange, struct error *error)
{
	struct slice expires = {"", 0}, mac = {"", 0};
	const char *id = c_text(exchange, exchange->arguments[0]);
	const char *name = c_text(exchange, exchange->arguments[1]);
	query_get(&exchange->parameters, "expires", &expires);
	query_get(&exchange->parameters, "mac", &mac);
	if (!link_check(exchange->service, id, name, expires, mac, store_now_us(exchange->service->store)))
		return error_set(error, ERR_NOT_FOUND, MSG_HTTP_LINK, NULL);
	struct issued_file file;
	int result = issued_file_find(exchange->service, exchange->arguments[0], exchange->arguments[1],
	                              &file, error);
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
	if (result)
		return result;
	if (range == RANGE_PART)
		answer_header(
			exchange, "Content-Range",
			arena_printf(&exchange->arena, "bytes %llu-%llu/%llu", (unsigned long long)offset,
		                 (unsigned long long)(offset + size - 1), (unsigned long long)file.size));
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
