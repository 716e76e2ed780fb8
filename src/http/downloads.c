/* GET /v1/downloads/{certification_id}/{name}: downloads of issued files by link. */
#include "http/http_internal.h"
#include "http/representation.h"
#include "issue/links.h"

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
	exchange->content_owner = file.account;
	struct representation representation = {
		.type = file.content_type,
		.digest = file.sha256,
		.language = file.languages,
		.file_name = name,
		.object = file.object,
		.shared = file.shared,
		.pieces = file.pieces,
		.size = file.size,
	};
	return answer_representation(exchange, &representation, error);
}

const struct operation operation_download = {
	.open = true,
	.lane = LANE_CONTENT,
	.parameters = (const char *const[]){"expires", "mac", NULL},
	.work = download,
};
