#include "base/digest.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static const struct {
	size_t size;
	const char *text;
} algorithms[DIGEST_ALGORITHM_COUNT] = {
	[DIGEST_SHA256] = {32, "SHA-256"},
	[DIGEST_SHA384] = {48, "SHA-384"},
	[DIGEST_SHA512] = {64, "SHA-512"},
};

/* Fetching an algorithm by name in OpenSSL costs more than hashing a small record. So each
 * algorithm is fetched once, and each thread caches one context per algorithm. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t contexts_key;
static EVP_MD *methods[DIGEST_ALGORITHM_COUNT];
static _Thread_local EVP_MD_CTX *contexts[DIGEST_ALGORITHM_COUNT];

/* A process without hashing or randomness must not continue. */
static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fatal: %s failed\n", what);
	abort();
}

static void contexts_free(void *data)
{
	EVP_MD_CTX **kept = data;
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++) {
		EVP_MD_CTX_free(kept[i]);
		kept[i] = NULL;
	}
}

static void prepare(void)
{
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++) {
		methods[i] = EVP_MD_fetch(NULL, algorithms[i].text, NULL);
		must(methods[i] != NULL, algorithms[i].text);
	}
	must(pthread_key_create(&contexts_key, contexts_free) == 0, "pthread_key_create");
}

static EVP_MD_CTX *begin_new(enum digest_algorithm algorithm)
{
	pthread_once(&once, prepare);
	EVP_MD_CTX *created = EVP_MD_CTX_new();
	if (created && EVP_DigestInit_ex2(created, methods[algorithm], NULL) != 1) {
		EVP_MD_CTX_free(created);
		return NULL;
	}
	return created;
}

static void hash_whole(enum digest_algorithm algorithm, const void *data, size_t size,
                       uint8_t *digest)
{
	EVP_MD_CTX *context = contexts[algorithm];
	if (!context) {
		context = begin_new(algorithm);
		must(context != NULL, algorithms[algorithm].text);
		contexts[algorithm] = context;
		must(pthread_setspecific(contexts_key, contexts) == 0, "pthread_setspecific");
	}
	must(EVP_DigestInit_ex2(context, NULL, NULL) == 1 &&
	         EVP_DigestUpdate(context, data, size) == 1 &&
	         EVP_DigestFinal_ex(context, digest, NULL) == 1,
	     algorithms[algorithm].text);
}

struct sha256 sha256_of(const void *data, size_t size)
{
	struct sha256 digest = {0};
	hash_whole(DIGEST_SHA256, data, size, digest.bytes);
	return digest;
}

size_t digest_size(enum digest_algorithm algorithm)
{
	assert((unsigned)algorithm < DIGEST_ALGORITHM_COUNT);
	return algorithms[algorithm].size;
}

const char *digest_algorithm_text(enum digest_algorithm algorithm)
{
	assert((unsigned)algorithm < DIGEST_ALGORITHM_COUNT);
	return algorithms[algorithm].text;
}

struct digest digest_by(enum digest_algorithm algorithm, const void *data, size_t size)
{
	struct digest digest = {.algorithm = algorithm};
	hash_whole(algorithm, data, size, digest.bytes);
	return digest;
}

struct digest digest_of_sha256(const struct sha256 *hash)
{
	struct digest digest = {.algorithm = DIGEST_SHA256};
	memcpy(digest.bytes, hash->bytes, SHA256_SIZE);
	return digest;
}

struct digest_stream {
	EVP_MD_CTX *context;
	enum digest_algorithm algorithm;
};

struct digest_stream *digest_begin_by(enum digest_algorithm algorithm)
{
	struct digest_stream *stream = malloc(sizeof *stream);
	if (!stream)
		return NULL;
	*stream = (struct digest_stream){begin_new(algorithm), algorithm};
	if (!stream->context) {
		free(stream);
		return NULL;
	}
	return stream;
}

struct digest_stream *digest_begin(void)
{
	return digest_begin_by(DIGEST_SHA256);
}

void digest_add(struct digest_stream *stream, const void *data, size_t size)
{
	must(EVP_DigestUpdate(stream->context, data, size) == 1, algorithms[stream->algorithm].text);
}

struct digest digest_end_by(struct digest_stream *stream)
{
	struct digest digest = {.algorithm = stream->algorithm};
	must(EVP_DigestFinal_ex(stream->context, digest.bytes, NULL) == 1,
	     algorithms[stream->algorithm].text);
	digest_cancel(stream);
	return digest;
}

struct sha256 digest_end(struct digest_stream *stream)
{
	assert(stream->algorithm == DIGEST_SHA256);
	struct digest digest = digest_end_by(stream);
	struct sha256 hash;
	memcpy(hash.bytes, digest.bytes, SHA256_SIZE);
	return hash;
}

struct sha256 digest_end_and_reset(struct digest_stream *stream)
{
	assert(stream->algorithm == DIGEST_SHA256);
	struct sha256 hash;
	must(EVP_DigestFinal_ex(stream->context, hash.bytes, NULL) == 1 &&
	         EVP_DigestInit_ex2(stream->context, NULL, NULL) == 1,
	     algorithms[stream->algorithm].text);
	return hash;
}

void digest_cancel(struct digest_stream *stream)
{
	if (!stream)
		return;
	EVP_MD_CTX_free(stream->context);
	free(stream);
}

struct sha256 hmac_sha256(struct slice key, struct slice text)
{
	pthread_once(&once, prepare);
	struct sha256 digest = {0};
	must(key.size <= INT32_MAX &&
	         HMAC(methods[DIGEST_SHA256], key.size ? key.data : "", (int)key.size,
	              (const unsigned char *)text.data, text.size, digest.bytes, NULL) != NULL,
	     "HMAC-SHA-256");
	return digest;
}

/* Returns the 8 hexadecimal digits of 4 bytes in order. Each half byte is spread to its own byte,
 * and values above 9 are shifted to the letters. */
static uint64_t hex_digits(uint32_t bytes)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t halves = bytes;
	halves = (halves | halves << 16) & UINT64_C(0x0000ffff0000ffff);
	halves = (halves | halves << 8) & UINT64_C(0x00ff00ff00ff00ff);
	halves = (halves >> 4 & 15 * ones) | (halves & UINT64_C(0x000f000f000f000f)) << 8;
	halves &= 15 * ones;
	uint64_t letters = (halves + 6 * ones) >> 4 & ones;
	return halves + '0' * ones + ('a' - '0' - 10) * letters;
}

void hex_encode(const void *data, size_t size, char *text)
{
	const uint8_t *bytes = data;
	for (; size >= 4; size -= 4, bytes += 4, text += 8) {
		uint32_t four = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
		                (uint32_t)bytes[3] << 24;
		uint64_t digits = htole64(hex_digits(four));
		memcpy(text, &digits, sizeof digits);
	}
	for (; size > 0; size--, bytes++, text += 2) {
		uint64_t digits = htole64(hex_digits(*bytes));
		memcpy(text, &digits, 2);
	}
	*text = '\0';
}

/* The value of a digit, with HEX_DIGIT set if the character is a digit. */
#define HEX_DIGIT 0x10
static const uint8_t hex_values[256] = {
	['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15,
	['6'] = 0x16, ['7'] = 0x17, ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1a, ['b'] = 0x1b,
	['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e, ['f'] = 0x1f, ['A'] = 0x1a, ['B'] = 0x1b,
	['C'] = 0x1c, ['D'] = 0x1d, ['E'] = 0x1e, ['F'] = 0x1f,
};

bool hex_decode(struct slice text, void *data, size_t size)
{
	if (text.size % 2 != 0 || text.size / 2 != size)
		return false;
	const uint8_t *digits = (const uint8_t *)text.data;
	uint8_t all = HEX_DIGIT;
	for (size_t i = 0; i < text.size; i++)
		all &= hex_values[digits[i]];
	if (!all)
		return false;
	uint8_t *bytes = data;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(hex_values[digits[2 * i]] << 4 | (hex_values[digits[2 * i + 1]] & 15));
	return true;
}

bool constant_time_equal(struct slice a, struct slice b)
{
	return a.size == b.size && (a.size == 0 || CRYPTO_memcmp(a.data, b.data, a.size) == 0);
}

void random_bytes(void *data, size_t size)
{
	uint8_t *bytes = data;
	while (size) {
		ssize_t got = getrandom(bytes, size, 0);
		if (got < 0 && errno == EINTR)
			continue;
		must(got > 0, "getrandom");
		bytes += got;
		size -= (size_t)got;
	}
}
