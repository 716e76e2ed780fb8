/* Bounded byte strings.
 *
 * A struct slice is a view and never owns memory. A struct buf is a growing builder with a hard
 * maximum and sticky failure. After an addition exceeds the limit or memory is exhausted, all later
 * additions are ignored and buf_check returns the error, so callers check once. A buf that holds
 * data is always NUL-terminated, so buf.data is a C string if the content has no NUL. Not thread
 * safe. */
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
	size_t limit; /* maximum size in bytes */
	bool failed;
	bool full; /* it failed because of its limit, not for lack of memory */
	unsigned char kind;
	struct budget *budget; /* counts the capacity; NULL: none */
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
/* As buf_init, but counts the memory in `budget`, which must outlive the buf. */
void buf_init_counted(struct buf *buf, size_t limit, struct budget *budget, unsigned kind);
/* Frees the memory. The buf can be used again with the same limit and budget. Accepts NULL and a
 * zeroed buf. */
void buf_free(struct buf *buf);
/* Empties the buf and clears a failure. Keeps the memory and the limit. */
void buf_clear(struct buf *buf);
/* Frees unused capacity. */
void buf_fit(struct buf *buf);
void buf_add(struct buf *buf, const void *data, size_t size);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_slice(struct buf *buf, struct slice slice);
void buf_add_unsigned(struct buf *buf, uint64_t value);
void buf_add_signed(struct buf *buf, int64_t value);
void buf_add_hex(struct buf *buf, const void *data, size_t size);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The slow path of buf_extend. */
char *buf_extend_slowly(struct buf *buf, size_t size);
/* Extends the buf by `size` bytes and returns them, to be filled by the caller. Returns NULL after
 * a failure. */
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
/* Returns 0, or ERR_NO_MEMORY after a failure. */
int buf_check(const struct buf *buf) MUST_CHECK;
/* Transfers the NUL-terminated memory to the caller, who frees it with free(). No budget counts it
 * any more, and the buf is empty. Returns NULL after a failure. */
char *buf_take(struct buf *buf);
static inline struct slice buf_slice(const struct buf *buf)
{
	return slice_make(buf->data ? buf->data : "", buf->size);
}

#define BUF_AUTO __attribute__((cleanup(buf_free)))

#endif
