/* SHA-2 digests (OpenSSL), hexadecimal encoding, constant-time comparison and random bytes. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/must_check.h"

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

/* Digests by an algorithm that is chosen at run time. */
enum digest_algorithm { DIGEST_SHA256, DIGEST_SHA384, DIGEST_SHA512 };
#define DIGEST_ALGORITHM_COUNT 3

struct digest {
	enum digest_algorithm algorithm;
	uint8_t bytes[DIGEST_SIZE_MAX]; /* digest_size bytes are used; the others are 0 */
};

size_t digest_size(enum digest_algorithm algorithm);
const char *digest_algorithm_text(enum digest_algorithm algorithm); /* "SHA-256", … */
struct digest digest_by(enum digest_algorithm algorithm, const void *data, size_t size);
struct digest digest_of_sha256(const struct sha256 *hash); /* converts the type */
static inline struct slice digest_slice(const struct digest *digest)
{
	return slice_make(digest->bytes, digest_size(digest->algorithm));
}
static inline bool digest_equal(const struct digest *a, const struct digest *b)
{
	return a->algorithm == b->algorithm && slice_equal(digest_slice(a), digest_slice(b));
}

/* Incremental digests. Both begin functions return NULL without memory; the corresponding end
 * function frees the stream. */
struct digest_stream;
struct digest_stream *digest_begin(void) MUST_CHECK;
struct digest_stream *digest_begin_by(enum digest_algorithm algorithm) MUST_CHECK;
void digest_add(struct digest_stream *stream, const void *data, size_t size);
struct sha256 digest_end(struct digest_stream *stream);
struct digest digest_end_by(struct digest_stream *stream);
/* As digest_end, but resets the stream for the next digest instead of freeing it. Faster for many
 * small digests. */
struct sha256 digest_end_and_reset(struct digest_stream *stream);
void digest_cancel(struct digest_stream *stream);

struct sha256 hmac_sha256(struct slice key, struct slice text);

void hex_encode(const void *data, size_t size, char *text /* 2*size + NUL, lower case */);
/* Accepts both cases. Returns false if `text` is not exactly 2 * `size` digits. */
bool hex_decode(struct slice text, void *data, size_t size) MUST_CHECK;
/* Compares in constant time. Returns false at once if the sizes differ. */
bool constant_time_equal(struct slice a, struct slice b) MUST_CHECK;
/* Fills `data` from the system's random source. Terminates the process if the source fails. */
void random_bytes(void *data, size_t size);

#endif
