#include "support.h"

#include "seal/validation_set.h"

static struct slice number(unsigned *value)
{
	return slice_make(value, sizeof *value);
}

TEST_CASE(test_each_once_in_order)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	static const unsigned count = 100;

	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(validation_set_add(&set, i % 3, number(&i), NULL), 0);
	assert_int_equal(set.count, count);
	assert_int_equal(set.size_bytes, count * sizeof count);
	for (size_t i = 1; i < set.count; i++)
		assert_true(memcmp(&set.objects[i - 1].sha256, &set.objects[i].sha256, SHA256_SIZE) < 0);
	for (unsigned i = 0; i < count; i++) {
		struct sha256 sha256 = sha256_of(&i, sizeof i);
		const struct validation_object *found = validation_set_find(&set, &sha256);
		assert_non_null(found);
		assert_int_equal(found->kind, i % 3);
		assert_true(slice_equal(found->der, number(&i)));
	}
	struct sha256 absent = sha256_of("absent", 6);
	assert_null(validation_set_find(&set, &absent));
}

TEST_CASE(test_bounds)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	VALIDATION_SET_AUTO struct validation_set large = {0};
	unsigned i;

	assert_int_equal(validation_set_add(&set, VALIDATION_CRL, slice_of(""), NULL), ERR_VALIDATION);
	for (i = 0; i < VALIDATION_SET_OBJECTS_MAX; i++)
		assert_int_equal(validation_set_add(&set, VALIDATION_OCSP, number(&i), NULL), 0);
	assert_int_equal(validation_set_add(&set, VALIDATION_OCSP, number(&i), NULL), ERR_TOO_LARGE);
	i = 0;
	assert_int_equal(validation_set_add(&set, VALIDATION_OCSP, number(&i), NULL), 0);
	assert_int_equal(set.count, VALIDATION_SET_OBJECTS_MAX);

	char *block = calloc(1, VALIDATION_SET_BYTES_MAX);
	assert_non_null(block);
	struct slice whole = slice_make(block, VALIDATION_SET_BYTES_MAX);
	assert_int_equal(validation_set_add(&large, VALIDATION_CRL, whole, NULL), 0);
	assert_int_equal(validation_set_add(&large, VALIDATION_CRL, slice_of("x"), NULL),
	                 ERR_TOO_LARGE);
	assert_int_equal(validation_set_add(&large, VALIDATION_CRL, whole, NULL), 0);
	assert_int_equal(large.size_bytes, VALIDATION_SET_BYTES_MAX);
	free(block);
}

TEST_CASE(test_union)
{
	VALIDATION_SET_AUTO struct validation_set one = {0};
	VALIDATION_SET_AUTO struct validation_set other = {0};

	assert_int_equal(validation_set_add(&one, VALIDATION_CRL, slice_of("a"), NULL), 0);
	assert_int_equal(validation_set_add(&one, VALIDATION_CRL, slice_of("b"), NULL), 0);
	assert_int_equal(validation_set_add(&other, VALIDATION_CRL, slice_of("b"), NULL), 0);
	assert_int_equal(validation_set_add(&other, VALIDATION_OCSP, slice_of("c"), NULL), 0);
	assert_int_equal(validation_set_add_all(&one, &other, NULL), 0);
	assert_int_equal(one.count, 3);
	assert_int_equal(other.count, 2);
	validation_set_free(&one);
	assert_int_equal(one.count, 0);
	validation_set_free(&one);
	validation_set_free(NULL);
}

TEST_MAIN(NULL, NULL)
