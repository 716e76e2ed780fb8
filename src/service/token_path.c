#include "service/token_path.h"

#include "base/clock.h"

int token_path_keep(struct store *store, const struct authority_result *stamped,
                    struct error *error)
{
	struct validation_object objects[TOKEN_OBJECTS_MAX];
	size_t count = 0;
	BUF_AUTO struct buf beside;
	buf_init(&beside, TIMESTAMP_PATH_MAX);
	struct slice token = buf_slice(&stamped->token);
	int result = timestamp_path_beside(token, buf_slice(&stamped->path), &beside, error);
	if (result)
		return result;
	struct slice rest = buf_slice(&beside), der;
	while (count < TOKEN_OBJECTS_MAX && timestamp_next_certificate(&rest, &der))
		objects[count++] = (struct validation_object){
			.kind = VALIDATION_CERTIFICATE,
			.sha256 = sha256_of(der.data, der.size),
			.der = der,
		};
	struct sha256 token_hash = sha256_of(token.data, token.size);
	return store_write_validation(store, &token_hash, objects, count, clock_now_us(), error);
}

/* ---- into archives ---- */

static const enum archive_object_kind kinds[] = {
	[VALIDATION_CERTIFICATE] = OBJECT_CERTIFICATE,
	[VALIDATION_CRL] = OBJECT_CRL,
	[VALIDATION_OCSP] = OBJECT_OCSP,
};

void token_needs_free(struct token_needs *needs)
{
	arena_free(&needs->arena);
}

static int begin(struct token_needs *needs)
{
	arena_init(&needs->arena,
	           ARCHIVE_OBJECTS_BYTES_MAX + ARCHIVE_OBJECTS_MAX * 2 * sizeof(struct archive_object));
	needs->objects = arena_alloc(&needs->arena, ARCHIVE_OBJECTS_MAX * sizeof *needs->objects);
	needs->hashes = arena_alloc(&needs->arena, ARCHIVE_OBJECTS_MAX * sizeof *needs->hashes);
	return needs->objects && needs->hashes ? OK : ERR_NO_MEMORY;
}

static int note(struct token_needs *needs, const struct validation_object *object,
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
		return error_cause(error, ERR_TOO_LARGE, "the timestamps need more than %d certificates",
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

int token_needs_add(struct token_needs *needs, struct store *store, struct arena *arena,
                    struct archive_token *token, struct error *error)
{
	struct sha256 token_hash = sha256_of(token->token.data, token->token.size);
	const struct validation_object *objects;
	size_t count;
	int result = needs->objects ? OK : begin(needs);
	if (!result)
		result = store_list_validation(store, &token_hash, arena, &objects, &count, error);
	if (result)
		return result;
	struct sha256 *certificates = arena_alloc(arena, (count + 1) * sizeof *certificates);
	struct sha256 *revocations = arena_alloc(arena, (count + 1) * sizeof *revocations);
	if (!certificates || !revocations)
		return ERR_NO_MEMORY;
	token->certificates = certificates;
	token->revocations = revocations;
	for (size_t i = 0; i < count && !result; i++) {
		if (objects[i].kind == VALIDATION_CERTIFICATE)
			certificates[token->certificate_count++] = objects[i].sha256;
		else
			revocations[token->revocation_count++] = objects[i].sha256;
		result = note(needs, &objects[i], error);
	}
	return result;
}

int token_needs_write(const struct token_needs *needs, struct archive *archive, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < needs->count && !result; i++)
		result = archive_add_object(archive, &needs->objects[i], error);
	return result;
}
