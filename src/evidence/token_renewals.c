#include "evidence/token_renewals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "evidence/evidence_chain.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)

void token_renewals_free(struct token_renewals *renewals)
{
	free(renewals->stamps);
}

static int note(struct token_renewals *renewals, int64_t stamp, struct error *error)
{
	size_t place = renewals->count;
	while (place > 0 && renewals->stamps[place - 1] > stamp)
		place--;
	if (place > 0 && renewals->stamps[place - 1] == stamp)
		return OK;
	if (renewals->count == ARCHIVE_RENEWALS_MAX)
		return error_cause(error, ERR_TOO_LARGE, "the timestamps have more than %d renewals",
		                   ARCHIVE_RENEWALS_MAX);
	if (renewals->count == renewals->room) {
		size_t room = renewals->room ? 2 * renewals->room : 64;
		int64_t *grown = reallocarray(renewals->stamps, room, sizeof *grown);
		if (!grown)
			return ERR_NO_MEMORY;
		renewals->stamps = grown;
		renewals->room = room;
	}
	memmove(&renewals->stamps[place + 1], &renewals->stamps[place],
	        (renewals->count++ - place) * sizeof *renewals->stamps);
	renewals->stamps[place] = stamp;
	return OK;
}

static int keep_path(const struct evidence_path *path, struct arena *arena,
                     const struct tree_proof **ret_path)
{
	struct tree_proof *proof = arena_alloc(arena, sizeof *proof);
	if (!proof)
		return ERR_NO_MEMORY;
	*proof = (struct tree_proof){.count = path->count};
	memcpy(proof->leaf.bytes, path->leaf.bytes, SHA256_SIZE);
	for (size_t i = 0; i < path->count; i++)
		memcpy(proof->siblings[i].bytes, path->siblings[i].bytes, SHA256_SIZE);
	*ret_path = proof;
	return OK;
}

static int log_damaged(enum token_source source, int64_t number, const struct error *cause)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, number);
	log_error("renewal_omitted", source == TOKEN_STAMP ? "archive_timestamp" : "round", text,
	          "cause", cause->cause);
	return OK;
}

int token_renewals_add(struct token_renewals *renewals, struct store *store,
                       enum token_source source, int64_t number, struct slice token,
                       struct arena *arena, struct archive_renewal *ret_renewal,
                       struct error *error)
{
	struct evidence_path path;
	int64_t stamp;
	*ret_renewal = (struct archive_renewal){0};
	int result = evidence_chain_next(store, source, number, token, &stamp, &path, error);
	if (result == ERR_CORRUPT)
		return log_damaged(source, number, error);
	/* Only records of documents use another digest. */
	if (result || stamp == 0 || path.leaf.algorithm != DIGEST_SHA256)
		return result;
	result = note(renewals, stamp, error);
	if (!result)
		result = keep_path(&path, arena, &ret_renewal->path);
	if (!result)
		ret_renewal->stamp = stamp;
	return result;
}

static int load(struct token_renewals *renewals, struct store *store, int64_t number,
                struct arena *arena, struct archive_stamp *ret, struct error *error)
{
	struct archive_timestamp stamp;
	int result = store_get_archive_timestamp(store, number, arena, &stamp, error);
	*ret = (struct archive_stamp){.stamp = number};
	if (!result && !authority_kind_parse(slice_of(stamp.kind), &ret->kind))
		result = error_cause(error, ERR_CORRUPT, "archive timestamp %" PRId64 ": kind %s", number,
		                     stamp.kind);
	if (result)
		return result;
	ret->authority = stamp.authority;
	ret->gen_time_us = stamp.stamped_at_us;
	ret->token = stamp.token;
	return token_renewals_add(renewals, store, TOKEN_STAMP, number, stamp.token, arena,
	                          &ret->renewal, error);
}

int token_renewals_write(struct token_renewals *renewals, struct store *store,
                         struct archive *archive, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct archive_stamp stamp;
	int result = OK;
	/* Renewals of a timestamp are appended after it, so this loop visits them, too. */
	for (size_t i = 0; i < renewals->count && !result; i++) {
		arena_reset(&arena);
		result = load(renewals, store, renewals->stamps[i], &arena, &stamp, error);
	}
	/* Renewals that were added since the first loop have higher numbers and are omitted. */
	size_t known = renewals->count;
	for (size_t i = known; i > 0 && !result; i--) {
		arena_reset(&arena);
		result = load(renewals, store, renewals->stamps[i - 1], &arena, &stamp, error);
		if (!result && stamp.renewal.stamp > renewals->stamps[known - 1])
			stamp.renewal = (struct archive_renewal){0};
		if (!result)
			result = archive_add_renewal(archive, &stamp, error);
	}
	return result;
}
