/* SHA-256 and SHA-512 (OpenSSL), hex and constant-time comparison. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must_check.h"
#include "base/buf.h"

#define SHA256_SIZE 32
#define SHA512_SIZE 64
#define DIGEST_SIZE_MAX 64

struct sha256 {
	uint8_t bytes[SHA256_SIZE];
};

struct sha256 sha256_of(const void *data, size_t size);
static inline bool sha256_equal(const struct sha256 *a, const struct sha256 *b)
{
	return memcmp(a->bytes, b->bytes, SHA256_SIZE) == 0;
}

/* Incremental SHA-256. digest_begin answers NULL without memory; digest_end frees. */
struct digest_stream;
struct digest_stream *digest_begin(void) MUST_CHECK;
void digest_add(struct digest_stream *stream, const void *data, size_t size);
struct sha256 digest_end(struct digest_stream *stream);
void digest_cancel(struct digest_stream *stream);

struct sha256 hmac_sha256(struct slice key, struct slice text);

void hex_encode(const void *data, size_t size, char *text /* 2*size + NUL, lower case */);
/* Either case; false when text is not exactly 2*size digits. */
bool hex_decode(struct slice text, void *data, size_t size);
/* The same in constant time; false at once when the sizes differ. */
bool constant_time_equal(struct slice a, struct slice b);
/* From the system's random source; ends the process when there is none. */
void random_bytes(void *data, size_t size);

#endif
