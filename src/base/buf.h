/* Bounded byte strings.
 *
 * struct slice: a view, never owns. struct buf: a growing builder with a hard maximum and sticky
 * failure: after one addition does not fit (or memory is gone) every later one is ignored and
 * buf_check answers the error, so callers check once. A buf is always NUL terminated while it holds
 * data, so buf.data can be read as a C string when the content has no NUL. Not thread safe. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/budget.h"
#include "base/must_check.h"

struct slice {
	const char *data;
	size_t size;
};

struct buf {
	char *data; /* NULL until something is added */
	size_t size;
	size_t capacity;
	size_t limit; /* most bytes it may ever hold */
	bool failed;
	bool full; /* it failed for its limit, not for want of memory */
	unsigned char kind;
	struct budget *budget; /* that counts its capacity; NULL: none */
};

static inline struct slice slice_of(const char *text)
{
	return (struct slice){text, text ? strlen(text) : 0};
}

static inline struct slice slice_make(const void *data, size_t size)
{
	return (struct slice){(const char *)data, size};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool slice_is(struct slice a, const char *text)
{
	return slice_equal(a, slice_of(text));
}

void buf_init(struct buf *buf, size_t limit);
/* The same, with its memory counted in a budget that outlives it. */
void buf_init_counted(struct buf *buf, size_t limit, struct budget *budget, unsigned kind);
/* Frees the memory; the buf can be used again under the same limit and budget. NULL-safe, also for
 * a zeroed buf. */
void buf_free(struct buf *buf);
/* Empties it, keeps memory and limit, forgets a failure. */
void buf_clear(struct buf *buf);
/* Gives back what it does not need. */
void buf_fit(struct buf *buf);
void buf_add(struct buf *buf, const void *data, size_t size);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_slice(struct buf *buf, struct slice slice);
void buf_add_unsigned(struct buf *buf, uint64_t value);
void buf_add_signed(struct buf *buf, int64_t value);
void buf_add_hex(struct buf *buf, const void *data, size_t size);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The general case of buf_extend. */
char *buf_extend_slowly(struct buf *buf, size_t size);
/* Room for `size` more bytes, to be filled by the caller, already counted; NULL once failed. */
static inline char *buf_extend(struct buf *buf, size_t size)
{
	if (buf->failed || size >= buf->capacity - buf->size)
		return buf_extend_slowly(buf, size);
	char *room = buf->data + buf->size;
	buf->size += size;
	room[size] = '\0';
	return room;
}
static inline void buf_add_byte(struct buf *buf, char byte)
{
	char *room = buf_extend(buf, 1);
	if (room)
		*room = byte;
}
/* 0, or ERR_NO_MEMORY. */
int buf_check(const struct buf *buf) MUST_CHECK;
/* Hands the NUL-terminated memory to the caller (free), and no budget counts it any more; the buf
 * is empty then. NULL once failed. */
char *buf_take(struct buf *buf);
static inline struct slice buf_slice(const struct buf *buf)
{
	return slice_make(buf->data ? buf->data : "", buf->size);
}

#define BUF_AUTO __attribute__((cleanup(buf_free)))

#endif
