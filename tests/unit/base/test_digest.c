#include <ctype.h>
#include <pthread.h>

#include "testing.h"
#include "base/digest.h"

static void assert_digest(struct sha256 digest, const char *expected)
{
	char text[2 * SHA256_SIZE + 1];
	hex_encode(digest.bytes, SHA256_SIZE, text);
	assert_string_equal(text, expected);
}

static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* FIPS 180-4 examples. */
TEST_CASE(test_sha256)
{
	assert_digest(sha256_of("abc", 3), abc);
	assert_digest(sha256_of("", 0), nothing);
	assert_digest(sha256_of(NULL, 0), nothing);
	const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	assert_digest(sha256_of(two_blocks, strlen(two_blocks)),
	              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	struct sha256 a = sha256_of("abc", 3);
	struct sha256 b = sha256_of("abd", 3);
	assert_true(sha256_equal(&a, &a));
	assert_false(sha256_equal(&a, &b));
}

TEST_CASE(test_stream)
{
	char block[1000];
	memset(block, 'a', sizeof block);
	struct digest_stream *stream = digest_begin();
	struct digest_stream *other = digest_begin();
	assert_non_null(stream);
	assert_non_null(other);
	for (int i = 0; i < 1000; i++) {
		digest_add(stream, block, sizeof block);
		assert_digest(sha256_of("abc", 3), abc);
	}
	digest_add(stream, NULL, 0);
	digest_cancel(other);
	digest_cancel(NULL);
	assert_digest(digest_end_and_reset(stream),
	              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	assert_digest(digest_end_and_reset(stream),
	              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest_add(stream, "abc", 3);
	assert_digest(digest_end(stream), abc);
}

static void *hash_many(void *wrong)
{
	struct sha256 expected = sha256_of("abc", 3);
	for (int i = 0; i < 2000; i++) {
		struct sha256 digest = sha256_of("abc", 3);
		if (!sha256_equal(&digest, &expected))
			*(int *)wrong = 1;
	}
	char text[65];
	hex_encode(expected.bytes, SHA256_SIZE, text);
	if (strcmp(text, abc) != 0)
		*(int *)wrong = 1;
	return NULL;
}

TEST_CASE(test_threads)
{
	pthread_t threads[8];
	int wrong[8] = {0};
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, hash_many, &wrong[i]), 0);
		for (int i = 0; i < 8; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(wrong[i], 0);
		}
	}
}

/* RFC 4231, test cases 1, 2, 3 and 6. */
TEST_CASE(test_hmac)
{
	char key[131];
	memset(key, 0x0b, 20);
	assert_digest(hmac_sha256(slice_make(key, 20), slice_of("Hi There")),
	              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	assert_digest(hmac_sha256(slice_of("Jefe"), slice_of("what do ya want for nothing?")),
	              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	char text[50];
	memset(key, 0xaa, sizeof key);
	memset(text, 0xdd, sizeof text);
	assert_digest(hmac_sha256(slice_make(key, 20), slice_make(text, 50)),
	              "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	assert_digest(hmac_sha256(slice_make(key, 131),
	                          slice_of("Test Using Larger Than Block-Size Key - Hash Key First")),
	              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	assert_digest(hmac_sha256(slice_of(""), slice_of("")),
	              "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE(test_hex)
{
	uint8_t bytes[3] = {9, 9, 9};
	char text[7];
	hex_encode("\x00\xab\xff", 3, text);
	assert_string_equal(text, "00abff");
	assert_true(hex_decode(slice_of("00aBFf"), bytes, 3));
	assert_memory_equal(bytes, "\x00\xab\xff", 3);
	static const char *const wrong[] = {"",       "00aBF",  "00aBFf0", "00aBFf00",
	                                    "00aBFg", " 0aBFf", "00aB:f",  "00aB/f",
	                                    "00aB@f", "00aB`f", "00aBGf"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		memset(bytes, 9, sizeof bytes);
		assert_false(hex_decode(slice_of(wrong[i]), bytes, 3));
		assert_memory_equal(bytes, "\x09\x09\x09", 3);
	}
	assert_true(hex_decode(slice_of(""), NULL, 0));
}

/* Each byte at each position of a group that is converted at once. */
TEST_CASE(test_hex_of_all_bytes)
{
	uint8_t bytes[9], back[9];
	char text[19], expected[19];
	for (size_t size = 0; size <= sizeof bytes; size++)
		for (int first = 0; first < 256; first++) {
			*expected = '\0';
			for (size_t i = 0; i < size; i++) {
				bytes[i] = (uint8_t)(first + 37 * (int)i);
				snprintf(expected + 2 * i, 3, "%02x", bytes[i]);
			}
			hex_encode(bytes, size, text);
			assert_string_equal(text, expected);
			assert_true(hex_decode(slice_of(text), back, size));
			assert_memory_equal(back, bytes, size);
		}
	for (int c = 0; c < 256; c++) {
		char pair[2] = {'0', (char)c};
		assert_int_equal(hex_decode(slice_make(pair, 2), back, 1), isxdigit(c) != 0);
	}
}

TEST_CASE(test_compare)
{
	assert_true(constant_time_equal(slice_of("abc"), slice_of("abc")));
	assert_false(constant_time_equal(slice_of("abc"), slice_of("abd")));
	assert_false(constant_time_equal(slice_of("abc"), slice_of("ab")));
	assert_true(constant_time_equal((struct slice){0}, slice_of("")));
}

TEST_CASE(test_random)
{
	uint8_t a[1024] = {0};
	uint8_t b[1024] = {0};
	random_bytes(a, sizeof a);
	random_bytes(b, sizeof b);
	assert_memory_not_equal(a, b, sizeof a);
	assert_memory_not_equal(a + 992, (uint8_t[32]){0}, 32);
	random_bytes(NULL, 0);
}

/* NIST's examples for "abc". */
TEST_CASE(test_algorithms)
{
	static const char *const expected[] = {
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
		"8086072ba1e7cc2358baeca134c825a7",
		"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		"2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
	};
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++) {
		enum digest_algorithm algorithm = (enum digest_algorithm)i;
		char text[2 * DIGEST_SIZE_MAX + 1];
		struct digest whole = digest_by(algorithm, "abc", 3);
		hex_encode(whole.bytes, digest_size(algorithm), text);
		assert_string_equal(text, expected[i]);
		struct digest_stream *stream = digest_begin_by(algorithm);
		assert_non_null(stream);
		digest_add(stream, "a", 1);
		digest_add(stream, "bc", 2);
		struct digest parts = digest_end_by(stream);
		assert_true(digest_equal(&whole, &parts));
		parts.bytes[digest_size(algorithm) - 1] ^= 1;
		assert_false(digest_equal(&whole, &parts));
		parts = whole;
		parts.algorithm = algorithm == DIGEST_SHA256 ? DIGEST_SHA384 : DIGEST_SHA256;
		assert_false(digest_equal(&whole, &parts));
	}
	struct sha256 plain = sha256_of("abc", 3);
	struct digest same = digest_of_sha256(&plain), again = digest_by(DIGEST_SHA256, "abc", 3);
	assert_true(digest_equal(&same, &again));
	assert_string_equal(digest_algorithm_text(DIGEST_SHA512), "SHA-512");
}

TEST_MAIN(NULL, NULL)
