/* Records the tokens of new rounds for later renewal. */
#include "base/log.h"
#include "base/tuned.h"
#include "evidence/renewal_leaf.h"
#include "seal/timestamp.h"
#include "store/events/segments.h"
#include "store/events/validation_records.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)
#define ROUNDS_AT_ONCE 64

/* Adds the certificates stored for a token, which help to determine its expiry, as far as they can
 * be read. */
static int add_issuers(struct store *store, struct slice token, struct arena *arena,
                       struct buf *out, struct error *error)
{
	struct sha256 token_hash = sha256_of(token.data, token.size);
	const struct validation_object *objects;
	size_t count = 0;
	int result = store_list_validation(store, &token_hash, arena, &objects, &count, error);
	for (size_t i = 0; i < count && !result; i++)
		if (objects[i].kind == VALIDATION_CERTIFICATE)
			buf_add_slice(out, objects[i].der);
	if (renewal_fails_alone(result))
		result = OK;
	return result ? result : buf_check(out);
}

/* A token that cannot be read counts as expired: it is given up and logged. */
static int describe(struct store *store, struct slice token, int64_t sealed_at_us,
                    struct arena *arena, struct renewable_token *ret, struct error *error)
{
	BUF_AUTO struct buf issuers;
	buf_init(&issuers, TIMESTAMP_PATH_MAX);
	int result = add_issuers(store, token, arena, &issuers, error);
	ret->stamped_at_us = ret->valid_until_us = sealed_at_us;
	if (!result)
		result = timestamp_valid_until(token, buf_slice(&issuers), &ret->stamped_at_us,
		                               &ret->valid_until_us, error);
	return result == ERR_INVALID_EVIDENCE ? OK : result;
}

/* A token whose row is damaged or missing also counts as expired, although it is unknown since
 * when. */
static int count_as_expired(const struct renewable_token *token, int result, struct error *error)
{
	char round[24];
	if (!renewal_fails_alone(result))
		return result;
	renewal_text(token->number, round);
	log_error("round_token_not_read", "round", round, "cause", error_reason(error, result));
	*error = (struct error){0};
	return OK;
}

static int describe_round(struct store *store, int64_t number, struct renewable_token *ret_tokens,
                          size_t *count, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct round_record round;
	struct round_token second;
	struct renewable_token *first = &ret_tokens[(*count)++];
	*first = (struct renewable_token){.source = TOKEN_ROUND, .number = number};
	int result = store_get_round(store, number, &arena, &round, error);
	if (!result)
		result = describe(store, round.token, round.sealed_at_us, &arena, first, error);
	result = count_as_expired(first, result, error);
	if (result)
		return result;
	result = store_get_second_token(store, number, &arena, &second, error);
	if (result == ERR_NOT_FOUND)
		return OK;
	struct renewable_token *other = &ret_tokens[(*count)++];
	*other = (struct renewable_token){.source = TOKEN_SECOND, .number = number};
	if (!result)
		result = describe(store, second.token, second.sealed_at_us, &arena, other, error);
	return count_as_expired(other, result, error);
}

int renewal_record_rounds(const struct renewal *renewal, struct error *error)
{
	struct store *store = renewal->service->store;
	struct sha256 unused;
	const int64_t most = tuned_up_to("rounds_recorded", ROUNDS_AT_ONCE);
	int64_t at_rest = 0, last = 0;
	int result = store_last_registered_round(store, &at_rest, error);
	if (!result)
		result = store_last_round(store, &last, &unused, error);
	while (!result && at_rest < last && !renewal_stops(renewal)) {
		struct renewable_token tokens[2 * ROUNDS_AT_ONCE];
		size_t count = 0;
		for (int i = 0; i < most && at_rest < last && !result; i++)
			result = describe_round(store, ++at_rest, tokens, &count, error);
		if (!result)
			result = store_register_tokens(store, tokens, count, error);
	}
	return result;
}
