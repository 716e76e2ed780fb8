#include "issue/archive_validation.h"

#include "seal/validation_set.h"
#include "store/events/validation_records.h"

static const enum archive_object_kind kinds[] = {
	[VALIDATION_CERTIFICATE] = OBJECT_CERTIFICATE,
	[VALIDATION_CRL] = OBJECT_CRL,
	[VALIDATION_OCSP] = OBJECT_OCSP,
};

void archive_validation_free(struct archive_validation *needs)
{
	token_revocations_free(&needs->revocations);
	arena_free(&needs->arena);
}

static int begin(struct archive_validation *needs)
{
	arena_init(&needs->arena,
	           ARCHIVE_OBJECTS_BYTES_MAX + ARCHIVE_OBJECTS_MAX * 2 * sizeof(struct archive_object));
	needs->objects = arena_alloc(&needs->arena, ARCHIVE_OBJECTS_MAX * sizeof *needs->objects);
	needs->hashes = arena_alloc(&needs->arena, ARCHIVE_OBJECTS_MAX * sizeof *needs->hashes);
	return needs->objects && needs->hashes ? OK : ERR_NO_MEMORY;
}

static int note(struct archive_validation *needs, const struct validation_object *object,
                struct error *error)
{
	size_t place = 0;
	int order = -1;
	while (place < needs->count &&
	       (order = memcmp(&needs->hashes[place], &object->sha256, SHA256_SIZE)) < 0)
		place++;
	if (place < needs->count && order == 0)
		return OK;
	if (needs->count == ARCHIVE_OBJECTS_MAX)
		return error_cause(error, ERR_TOO_LARGE, "the timestamps need more than %d objects",
		                   ARCHIVE_OBJECTS_MAX);
	const char *der = arena_copy(&needs->arena, object->der.data, object->der.size);
	if (!der)
		return ERR_NO_MEMORY;
	size_t behind = needs->count++ - place;
	memmove(&needs->hashes[place + 1], &needs->hashes[place], behind * sizeof *needs->hashes);
	memmove(&needs->objects[place + 1], &needs->objects[place], behind * sizeof *needs->objects);
	needs->hashes[place] = object->sha256;
	needs->objects[place] = (struct archive_object){
		.kind = kinds[object->kind],
		.der = slice_make(der, object->der.size),
	};
	return OK;
}

static int add_certificates(struct archive_validation *needs, struct store *store,
                            struct arena *arena, struct archive_token *token, struct buf *issuers,
                            struct error *error)
{
	struct sha256 token_hash = sha256_of(token->token.data, token->token.size);
	const struct validation_object *objects;
	size_t count;
	int result = store_list_validation(store, &token_hash, arena, &objects, &count, error);
	if (result)
		return result;
	struct sha256 *names = arena_alloc(arena, (count + 1) * sizeof *names);
	if (!names)
		return ERR_NO_MEMORY;
	token->certificates = names;
	for (size_t i = 0; i < count && !result; i++) {
		if (objects[i].kind != VALIDATION_CERTIFICATE)
			continue;
		names[token->certificate_count++] = objects[i].sha256;
		buf_add_slice(issuers, objects[i].der);
		result = note(needs, &objects[i], error);
	}
	return result ? result : buf_check(issuers);
}

static int add_revocations(struct archive_validation *needs, struct arena *arena,
                           struct archive_token *token, struct slice issuers,
                           struct token_prospect *ret_prospect, struct error *error)
{
	BUF_AUTO struct buf path;
	buf_init(&path, TIMESTAMP_PATH_MAX + TIMESTAMP_RESPONSE_MAX);
	const struct validation_set *set = NULL;
	int result = timestamp_known_path(token->token, issuers, &path, error);
	if (!result)
		result = token_revocations_find(&needs->revocations, buf_slice(&path), token->gen_time_us,
		                                &set, ret_prospect, error);
	if (result || set->count == 0 || set->count > ARCHIVE_TOKEN_REVOCATIONS_MAX)
		return result;
	struct sha256 *names = arena_alloc(arena, set->count * sizeof *names);
	if (!names)
		return ERR_NO_MEMORY;
	token->revocations = names;
	for (size_t i = 0; i < set->count && !result; i++) {
		names[token->revocation_count++] = set->objects[i].sha256;
		result = note(needs, &set->objects[i], error);
	}
	return result;
}

static int add_token(struct archive_validation *needs, struct store *store, struct arena *arena,
                     struct archive_token *token, struct token_prospect *ret_prospect,
                     struct error *error)
{
	BUF_AUTO struct buf issuers;
	buf_init(&issuers, TIMESTAMP_PATH_MAX);
	int result = add_certificates(needs, store, arena, token, &issuers, error);
	return result ? result
	              : add_revocations(needs, arena, token, buf_slice(&issuers), ret_prospect, error);
}

int archive_validation_add(struct archive_validation *needs, struct store *store,
                           struct arena *arena, struct archive_round *round, struct error *error)
{
	struct token_prospect prospects[ARCHIVE_TOKENS_MAX] = {0};
	int result = needs->objects ? OK : begin(needs);
	for (size_t i = 0; i < round->token_count && !result; i++)
		result = add_token(needs, store, arena, &round->tokens[i], &prospects[i], error);
	return result ? result
	              : token_revocations_check_round(&needs->revocations, prospects,
	                                              round->token_count, error);
}

int archive_validation_write(const struct archive_validation *needs, struct archive *archive,
                             struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < needs->count && !result; i++)
		result = archive_add_object(archive, &needs->objects[i], error);
	return result;
}
