#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/error.h"

#define CAPACITY_FIRST 64

void buf_init(struct buf *buf, size_t limit)
{
	*buf = (struct buf){.limit = limit};
}

void buf_init_counted(struct buf *buf, size_t limit, struct budget *budget, unsigned kind)
{
	*buf = (struct buf){.limit = limit, .budget = budget, .kind = (unsigned char)kind};
}

/* Resets the buf without freeing the memory, which has another owner. */
static void forget(struct buf *buf)
{
	budget_give(buf->budget, buf->kind, buf->capacity);
	*buf = (struct buf){.limit = buf->limit, .budget = buf->budget, .kind = buf->kind};
}

void buf_free(struct buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	forget(buf);
}

void buf_clear(struct buf *buf)
{
	buf->size = 0;
	buf->failed = false;
	buf->full = false;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_fit(struct buf *buf)
{
	char *data = buf->capacity > buf->size + 1 ? realloc(buf->data, buf->size + 1) : NULL;
	if (!data)
		return;
	budget_give(buf->budget, buf->kind, buf->capacity - (buf->size + 1));
	buf->data = data;
	buf->capacity = buf->size + 1;
}

/* The capacity counts the closing NUL, the limit does not. */
static bool buf_grow(struct buf *buf, size_t size)
{
	if (buf->failed)
		return false;
	if (size > buf->limit - buf->size || buf->limit - buf->size > SIZE_MAX - 1 - buf->size) {
		buf->failed = buf->full = true;
		return false;
	}
	size_t need = buf->size + size + 1;
	if (need <= buf->capacity)
		return true;
	size_t capacity = buf->capacity < CAPACITY_FIRST ? CAPACITY_FIRST : buf->capacity;
	while (capacity < need)
		capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
	if (capacity > buf->limit + 1)
		capacity = buf->limit + 1;
	size_t more = capacity - buf->capacity;
	if (!budget_take(buf->budget, buf->kind, more)) {
		buf->failed = true;
		return false;
	}
	char *data = realloc(buf->data, capacity);
	if (!data) {
		budget_give(buf->budget, buf->kind, more);
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->capacity = capacity;
	return true;
}

char *buf_extend_slowly(struct buf *buf, size_t size)
{
	if (!buf_grow(buf, size))
		return NULL;
	char *room = buf->data + buf->size;
	buf->size += size;
	room[size] = '\0';
	return room;
}

void buf_add(struct buf *buf, const void *data, size_t size)
{
	char *room = buf_extend(buf, size);
	if (room && size)
		memcpy(room, data, size);
}

void buf_add_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_add_slice(struct buf *buf, struct slice slice)
{
	buf_add(buf, slice.data, slice.size);
}

void buf_add_unsigned(struct buf *buf, uint64_t value)
{
	char digits[20];
	size_t start = sizeof digits;
	do {
		digits[--start] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buf_add(buf, digits + start, sizeof digits - start);
}

void buf_add_signed(struct buf *buf, int64_t value)
{
	if (value < 0)
		buf_add_byte(buf, '-');
	buf_add_unsigned(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void buf_add_hex(struct buf *buf, const void *data, size_t size)
{
	if (size > SIZE_MAX / 2) {
		buf->failed = buf->full = true;
		return;
	}
	char *room = buf_extend(buf, size * 2);
	if (room)
		hex_encode(data, size, room);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int size = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (size < 0) {
		buf->failed = true;
		return;
	}
	char *room = buf_extend(buf, (size_t)size);
	if (!room)
		return;
	va_start(list, format);
	vsnprintf(room, (size_t)size + 1, format, list);
	va_end(list);
}

int buf_check(const struct buf *buf)
{
	return buf->failed ? ERR_NO_MEMORY : 0;
}

char *buf_take(struct buf *buf)
{
	if (!buf_extend(buf, 0))
		return NULL;
	char *data = buf->data;
	forget(buf);
	return data;
}
