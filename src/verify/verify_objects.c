/* The validation objects of an archive's timestamps that the tokens do not contain. They are few,
 * and every round may need any of them, so they are read before the rounds and kept in memory. */
#include "verify/verify_chain.h"

#include <assert.h>
#include <stdlib.h>

static struct object_state *find(const struct chain *chain, const struct sha256 *sha256)
{
	size_t low = 0, high = chain->object_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = memcmp(&chain->objects[middle].sha256, sha256, SHA256_SIZE);
		if (order == 0)
			return &chain->objects[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct object_state *chain_find_object(const struct chain *chain, const struct sha256 *sha256)
{
	return find(chain, sha256);
}

static int take_object(struct chain *chain, struct slice line, struct error *error)
{
	struct archive_object object;
	struct sha256 stated;
	arena_reset(&chain->arena);
	int result = archive_read_object(&chain->arena, line, &object, &stated, error);
	if (result < 0)
		return result;
	buf_clear(&chain->scratch);
	archive_object_line(&object, &stated, &chain->scratch);
	result = verify_canonical(line, &chain->scratch, error);
	if (result < 0)
		return result;
	struct sha256 found = sha256_of(object.der.data, object.der.size);
	if (!sha256_equal(&found, &stated))
		return finding_fail(error, FINDING_VALIDATION_DIGEST);
	if (chain->object_count > 0 &&
	    memcmp(&chain->objects[chain->object_count - 1].sha256, &found, SHA256_SIZE) >= 0)
		return finding_fail(error, FINDING_VALIDATION_NOT_ASCENDING);
	assert(chain->object_count <= ARCHIVE_OBJECTS_MAX &&
	       chain->object_bytes <= ARCHIVE_OBJECTS_BYTES_MAX);
	if (chain->object_count == ARCHIVE_OBJECTS_MAX ||
	    object.der.size > ARCHIVE_OBJECTS_BYTES_MAX - chain->object_bytes)
		return finding_fail(error, FINDING_VALIDATION_COUNT);
	const char *der = arena_copy(&chain->object_arena, object.der.data, object.der.size);
	if (!der)
		return ERR_NO_MEMORY;
	chain->object_bytes += object.der.size;
	chain->objects[chain->object_count++] = (struct object_state){
		.sha256 = found,
		.kind = object.kind,
		.der = slice_make(der, object.der.size),
	};
	return 0;
}

int chain_read_objects(struct chain *chain)
{
	struct slice line;
	arena_init(&chain->object_arena, ARCHIVE_OBJECTS_BYTES_MAX + ARCHIVE_OBJECTS_MAX * 16);
	chain->objects = calloc(ARCHIVE_OBJECTS_MAX, sizeof *chain->objects);
	int result = chain->objects ? chain_next_line(chain, STREAM_VALIDATION, &line) : ERR_NO_MEMORY;
	while (result == 1) {
		struct error error = {0};
		result = take_object(chain, line, &error);
		if (result < 0)
			result = chain_record_error(chain, STREAM_VALIDATION, result, &error);
		if (result < 0 || chain_is_abandoned(chain))
			return result;
		result = chain_next_line(chain, STREAM_VALIDATION, &line);
	}
	return result;
}

void chain_free_objects(struct chain *chain)
{
	free(chain->objects);
	arena_free(&chain->object_arena);
}

static int name_objects(struct chain *chain, const struct sha256 *hashes, size_t count,
                        bool certificates, struct buf *out, struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		struct object_state *object = find(chain, &hashes[i]);
		if (!object || (object->kind == OBJECT_CERTIFICATE) != certificates)
			return finding_fail(error, FINDING_TOKEN_OBJECT_MISSING,
			                    certificates ? "certificates" : "revocations");
		object->is_named = true;
		if (out)
			buf_add_slice(out, object->der);
	}
	return out ? buf_check(out) : 0;
}

int chain_find_path(struct chain *chain, const struct archive_token *token, struct buf *out,
                    struct error *error)
{
	int result =
		name_objects(chain, token->certificates, token->certificate_count, true, out, error);
	return result ? result
	              : name_objects(chain, token->revocations, token->revocation_count, false, NULL,
	                             error);
}

void chain_check_objects(struct chain *chain)
{
	for (size_t i = 0; i < chain->object_count; i++) {
		char hex[2 * SHA256_SIZE + 1];
		if (chain->objects[i].is_named)
			continue;
		hex_encode(chain->objects[i].sha256.bytes, SHA256_SIZE, hex);
		verify_add(chain->run, VERIFY_WRONG, chain->facts->input->path,
		           archive_stream_text(STREAM_VALIDATION), FINDING_VALIDATION_NOT_NAMED, hex);
	}
}
