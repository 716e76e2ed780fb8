#include "testing.h"
#include "sample.h"
#include "store/events/validation_records.h"

static struct sample sample;
static struct error error;

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 100);
	return 0;
}

static struct validation_object object(enum validation_kind kind, const char *der)
{
	return (struct validation_object){kind, sha256_of(der, strlen(der)), slice_of(der)};
}

static size_t list(const struct sha256 *token, struct arena *arena,
                   const struct validation_object **ret_objects)
{
	size_t count = 99;
	assert_int_equal(store_list_validation(sample.store, token, arena, ret_objects, &count, &error),
	                 OK);
	return count;
}

TEST_CASE(test_each_once)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	const struct validation_object *found;
	struct sha256 tokens[3];
	for (size_t i = 0; i < 3; i++)
		tokens[i] = sha256_of(&i, sizeof i);
	struct validation_object objects[] = {object(VALIDATION_CERTIFICATE, "root"),
	                                      object(VALIDATION_CRL, "list"),
	                                      object(VALIDATION_OCSP, "answer")};
	assert_int_equal(list(&tokens[0], &arena, &found), 0);
	assert_int_equal(store_write_validation(sample.store, &tokens[0], objects, 2, 5, &error), OK);
	/* Again, as a sealer does whose round was not written, and for another token. */
	assert_int_equal(store_write_validation(sample.store, &tokens[0], objects, 2, 6, &error), OK);
	assert_int_equal(store_write_validation(sample.store, &tokens[1], objects, 1, 7, &error), OK);
	assert_int_equal(store_write_validation(sample.store, &tokens[1], objects + 2, 1, 8, &error),
	                 OK);
	assert_int_equal(store_write_validation(sample.store, &tokens[2], objects, 0, 9, &error), OK);
	assert_int_equal(list(&tokens[2], &arena, &found), 0);
	for (size_t token = 0; token < 2; token++) {
		assert_int_equal(list(&tokens[token], &arena, &found), 2);
		assert_true(memcmp(&found[0].sha256, &found[1].sha256, SHA256_SIZE) < 0);
		for (size_t i = 0; i < 2; i++) {
			const struct validation_object *wanted = &objects[0];
			while (!sha256_equal(&wanted->sha256, &found[i].sha256))
				wanted++;
			assert_int_equal(found[i].kind, wanted->kind);
			assert_true(slice_equal(found[i].der, wanted->der));
		}
	}
	assert_false(sha256_equal(&found[0].sha256, &objects[1].sha256) ||
	             sha256_equal(&found[1].sha256, &objects[1].sha256));
}

/* A stored object that does not match its SHA-256 is not used. */
TEST_CASE(test_damage_is_found)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	const struct validation_object *found;
	size_t count;
	struct sha256 token = sha256_of("damaged", 7);
	struct validation_object wrong = object(VALIDATION_CERTIFICATE, "one");
	wrong.der = slice_of("another");
	assert_int_equal(store_write_validation(sample.store, &token, &wrong, 1, 5, &error), OK);
	assert_int_equal(store_list_validation(sample.store, &token, &arena, &found, &count, &error),
	                 ERR_CORRUPT);
}

TEST_MAIN_EACH(set_up, sample_tear_down)
