#include "seal/validation_set.h"

#include <stdlib.h>

/* Returns the position of the object, or where to insert it. */
static size_t position_of(const struct validation_set *set, const struct sha256 *sha256)
{
	size_t low = 0;
	size_t high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (memcmp(set->objects[middle].sha256.bytes, sha256->bytes, SHA256_SIZE) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct validation_object *validation_set_find(const struct validation_set *set,
                                                    const struct sha256 *sha256)
{
	size_t position = position_of(set, sha256);

	return position < set->count && sha256_equal(&set->objects[position].sha256, sha256)
	           ? &set->objects[position]
	           : NULL;
}

int validation_set_add(struct validation_set *set, enum validation_kind kind, struct slice der,
                       struct error *error)
{
	if (der.size == 0)
		return error_cause(error, ERR_VALIDATION, "an empty validation object");
	struct sha256 sha256 = sha256_of(der.data, der.size);
	if (validation_set_find(set, &sha256))
		return OK;
	if (set->count == VALIDATION_SET_OBJECTS_MAX ||
	    der.size > VALIDATION_SET_BYTES_MAX - set->size_bytes)
		return error_cause(error, ERR_TOO_LARGE,
		                   "more than %d validation objects, or %zu bytes of them",
		                   VALIDATION_SET_OBJECTS_MAX, VALIDATION_SET_BYTES_MAX);
	char *bytes = malloc(der.size);
	struct validation_object *objects =
		bytes ? realloc(set->objects, (set->count + 1) * sizeof *objects) : NULL;
	if (!objects) {
		free(bytes);
		return ERR_NO_MEMORY;
	}
	set->objects = objects;
	size_t position = position_of(set, &sha256);
	memmove(objects + position + 1, objects + position, (set->count - position) * sizeof *objects);
	memcpy(bytes, der.data, der.size);
	objects[position] = (struct validation_object){
		.kind = kind, .sha256 = sha256, .der = slice_make(bytes, der.size)};
	set->count++;
	set->size_bytes += der.size;
	return OK;
}

int validation_set_add_all(struct validation_set *set, const struct validation_set *other,
                           struct error *error)
{
	int result = OK;

	for (size_t i = 0; !result && i < other->count; i++)
		result = validation_set_add(set, other->objects[i].kind, other->objects[i].der, error);
	return result;
}

void validation_set_remove(struct validation_set *set, size_t index)
{
	struct validation_object *object = &set->objects[index];

	set->count--;
	set->size_bytes -= object->der.size;
	free((void *)object->der.data);
	memmove(object, object + 1, (set->count - index) * sizeof *object);
}

void validation_set_free(struct validation_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++)
		free((void *)set->objects[i].der.data);
	free(set->objects);
	*set = (struct validation_set){0};
}
