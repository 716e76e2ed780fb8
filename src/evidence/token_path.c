#include "evidence/token_path.h"

#include "base/clock.h"

int token_path_store(struct store *store, const struct authority_result *stamped,
                     struct error *error)
{
	struct validation_object objects[TOKEN_OBJECTS_MAX];
	size_t count = 0;
	BUF_AUTO struct buf issuers;
	buf_init(&issuers, TIMESTAMP_PATH_MAX);
	struct slice token = buf_slice(&stamped->token);
	int result = timestamp_missing_certificates(token, buf_slice(&stamped->path), &issuers, error);
	if (result)
		return result;
	struct slice rest = buf_slice(&issuers), der;
	while (count < TOKEN_OBJECTS_MAX && timestamp_next_certificate(&rest, &der))
		objects[count++] = (struct validation_object){
			.kind = VALIDATION_CERTIFICATE,
			.sha256 = sha256_of(der.data, der.size),
			.der = der,
		};
	struct sha256 token_hash = sha256_of(token.data, token.size);
	return store_write_validation(store, &token_hash, objects, count, clock_now_us(), error);
}
