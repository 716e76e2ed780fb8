/* The body of POST /v1/events, through the function that the handler calls. An accepted body is
 * within the limits, and its canonical payload declares the same digest. The first byte selects the
 * modality of the channel. */
#include "base/utf8.h"
#include "fuzz.h"
#include "service/event_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size - 1 > EVENT_BODY_MAX)
		return 0;
	ARENA_AUTO struct arena arena = {.limit = BODY_ARENA_MAX};
	BUF_AUTO struct buf canonical = {.limit = EVENT_CANONICAL_MAX};
	struct declaration declaration;
	struct error error;
	enum modality modality = data[0] & 1 ? MODALITY_HASH_ONLY : MODALITY_CONTENT;
	error_clear(&error);
	int result = event_body_parse(slice_make(data + 1, size - 1), modality, &arena, &canonical,
	                              &declaration, &error);
	require(result == error.code, "the error has the returned code");
	require(utf8_valid(slice_of(error.english)) && utf8_valid(slice_of(error.spanish)),
	        "messages are UTF-8");
	if (result) {
		require(result == ERR_VALIDATION || result == ERR_TOO_LARGE, "memory suffices");
		return 0;
	}
	require(declaration.modality == modality, "the modality is the channel's");
	require(declaration.client_ref.size >= 1 && declaration.client_ref.size <= CLIENT_REF_MAX &&
	            utf8_valid(declaration.client_ref),
	        "client_ref is within its limits");
	if (modality == MODALITY_CONTENT) {
		struct sha256 digest = sha256_of(canonical.data, canonical.size);
		require(canonical.size <= PAYLOAD_MAX, "the payload is within its limit");
		require(memcmp(digest.bytes, declaration.hash, SHA256_SIZE) == 0,
		        "the digest is that of the payload");
	} else {
		require(canonical.size == 0, "modality hash has no content");
	}
	return 0;
}
