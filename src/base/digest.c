#include "base/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* OpenSSL's look-up of an algorithm by name costs more than hashing a small record: it is done
 * once, and each thread keeps a context. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t context_key;
static EVP_MD *sha256_method;
static _Thread_local EVP_MD_CTX *context;

/* A process that cannot hash or has no randomness must not go on. */
static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fatal: %s failed\n", what);
	abort();
}

static void context_free(void *data)
{
	EVP_MD_CTX_free(data);
	context = NULL;
}

static void prepare(void)
{
	sha256_method = EVP_MD_fetch(NULL, "SHA256", NULL);
	must(sha256_method != NULL, "fetching SHA-256");
	must(pthread_key_create(&context_key, context_free) == 0, "pthread_key_create");
}

static EVP_MD_CTX *begin_new(void)
{
	pthread_once(&once, prepare);
	EVP_MD_CTX *created = EVP_MD_CTX_new();
	if (created && EVP_DigestInit_ex2(created, sha256_method, NULL) != 1) {
		EVP_MD_CTX_free(created);
		return NULL;
	}
	return created;
}

struct sha256 sha256_of(const void *data, size_t size)
{
	if (!context) {
		context = begin_new();
		must(context != NULL, "preparing SHA-256");
		must(pthread_setspecific(context_key, context) == 0, "pthread_setspecific");
	}
	struct sha256 digest = {0};
	must(EVP_DigestInit_ex2(context, NULL, NULL) == 1 &&
	         EVP_DigestUpdate(context, data, size) == 1 &&
	         EVP_DigestFinal_ex(context, digest.bytes, NULL) == 1,
	     "SHA-256");
	return digest;
}

struct digest_stream {
	EVP_MD_CTX *context;
};

struct digest_stream *digest_begin(void)
{
	struct digest_stream *stream = malloc(sizeof *stream);
	if (!stream)
		return NULL;
	stream->context = begin_new();
	if (!stream->context) {
		free(stream);
		return NULL;
	}
	return stream;
}

void digest_add(struct digest_stream *stream, const void *data, size_t size)
{
	must(EVP_DigestUpdate(stream->context, data, size) == 1, "SHA-256");
}

struct sha256 digest_end(struct digest_stream *stream)
{
	struct sha256 digest = {0};
	must(EVP_DigestFinal_ex(stream->context, digest.bytes, NULL) == 1, "SHA-256");
	digest_cancel(stream);
	return digest;
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
	         HMAC(sha256_method, key.size ? key.data : "", (int)key.size,
	              (const unsigned char *)text.data, text.size, digest.bytes, NULL) != NULL,
	     "HMAC-SHA-256");
	return digest;
}

void hex_encode(const void *data, size_t size, char *text)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *bytes = data;
	for (size_t i = 0; i < size; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * size] = '\0';
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

bool hex_decode(struct slice text, void *data, size_t size)
{
	if (text.size % 2 != 0 || text.size / 2 != size)
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (hex_value(text.data[i]) < 0)
			return false;
	uint8_t *bytes = data;
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(hex_value(text.data[2 * i]) << 4 | hex_value(text.data[2 * i + 1]));
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
