/* Rounds come to rest: their tokens are to be renewed one day. */
#include "seal/timestamp.h"
#include "service/renewal_leaf.h"
#include "store/events/segments.h"
#include "store/events/validation.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)
#define ROUNDS_AT_ONCE 64

/* One that cannot be read is over at once: it is given up, and told of. */
static int describe(struct store *store, enum token_source source, int64_t round,
                    struct slice token, int64_t sealed_at_us, struct arena *arena,
                    struct token_at_rest *ret, struct error *error)
{
	struct sha256 token_hash = sha256_of(token.data, token.size);
	const struct validation_object *objects;
	size_t count;
	BUF_AUTO struct buf beside;
	buf_init(&beside, TIMESTAMP_PATH_MAX);
	int result = store_list_validation(store, &token_hash, arena, &objects, &count, error);
	for (size_t i = 0; i < count && !result; i++)
		if (objects[i].kind == VALIDATION_CERTIFICATE)
			buf_add_slice(&beside, objects[i].der);
	if (!result)
		result = buf_check(&beside);
	*ret = (struct token_at_rest){source, round, sealed_at_us, sealed_at_us};
	if (!result)
		result = timestamp_valid_until(token, buf_slice(&beside), &ret->stamped_at_us,
		                               &ret->valid_until_us, error);
	return result == ERR_INVALID_EVIDENCE ? OK : result;
}

static int describe_round(struct store *store, int64_t number, struct token_at_rest *ret_tokens,
                          size_t *count, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct round_record round;
	struct round_token second;
	int result = store_get_round(store, number, &arena, &round, error);
	if (!result)
		result = describe(store, TOKEN_ROUND, number, round.token, round.sealed_at_us, &arena,
		                  &ret_tokens[*count], error);
	if (result)
		return result;
	++*count;
	result = store_get_second_token(store, number, &arena, &second, error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	result = describe(store, TOKEN_SECOND, number, second.token, second.sealed_at_us, &arena,
	                  &ret_tokens[*count], error);
	*count += !result;
	return result;
}

int renewal_set_rounds_to_rest(const struct renewal *renewal, struct error *error)
{
	struct store *store = renewal->service->store;
	struct sha256 unused;
	int64_t at_rest = 0, last = 0;
	int result = store_last_round_at_rest(store, &at_rest, error);
	if (!result)
		result = store_last_round(store, &last, &unused, error);
	while (!result && at_rest < last && !renewal_stops(renewal)) {
		struct token_at_rest tokens[2 * ROUNDS_AT_ONCE];
		size_t count = 0;
		for (int i = 0; i < ROUNDS_AT_ONCE && at_rest < last && !result; i++)
			result = describe_round(store, ++at_rest, tokens, &count, error);
		if (!result)
			result = store_set_to_rest(store, tokens, count, error);
	}
	return result;
}
