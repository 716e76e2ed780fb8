/* GET /v1/signers and /v1/signers.p7m: the signing certificates with their periods of use, also as
 * a signed document. Public, for anyone who verifies evidence. */
#include "evidence/signer_listing.h"
#include "evidence/signers.h"
#include "http/http_internal.h"
#include "http/representation.h"

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

static int get_signer_list(struct exchange *exchange, struct error *error)
{
	exchange->out.limit = SIGNER_LISTING_MAX;
	int result = signer_listing_get(exchange->service->store, &exchange->out, error);
	if (result)
		return result;
	struct representation list = {
		.type = "application/pkcs7-mime",
		.digest = sha256_of(exchange->out.data, exchange->out.size),
		.file_name = SIGNER_LISTING_NAME,
		.body = buf_slice(&exchange->out),
		.size = exchange->out.size,
	};
	return answer_representation(exchange, &list, error);
}

const struct operation operation_get_signer_list = {.open = true, .work = get_signer_list};
