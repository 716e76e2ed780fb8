/* GET /v1/signers: who signed, from when to when. Anybody may ask who verifies something. */
#include "http/internal.h"
#include "service/signers.h"

static int get_signers(struct exchange *exchange, struct error *error)
{
	struct json_writer writer = {.out = &exchange->out};
	int result = signers_write_json(exchange->service->store, &exchange->arena, &writer, error);
	if (result)
		return result;
	answer_out(exchange, 200);
	return 0;
}

const struct operation operation_get_signers = {.open = true, .work = get_signers};
