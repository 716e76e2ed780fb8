#include "base/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tuned.h"

#define MEMORY ((size_t)64 * 1024)

struct spool {
	char *directory;
	int file;          /* -1: none yet */
	uint64_t written;  /* bytes in the file; the rest is in `bytes` */
	size_t size, room; /* bytes in memory, and how many there may be */
	char bytes[MEMORY];
};

struct spool *spool_make(const char *directory)
{
	struct spool *spool = malloc(sizeof *spool);
	if (!spool)
		return NULL;
	spool->file = -1;
	spool->written = spool->size = 0;
	spool->room = (size_t)tuned_up_to("spool", MEMORY);
	spool->directory = strdup(directory);
	if (!spool->directory) {
		free(spool);
		return NULL;
	}
	return spool;
}

static int write_out(struct spool *spool, struct error *error)
{
	if (spool->file < 0)
		spool->file = file_open_unnamed(spool->directory);
	if (spool->file < 0 ||
	    !file_write_at(spool->file, slice_make(spool->bytes, spool->size), spool->written))
		return file_fail(error, "writing in", spool->directory);
	spool->written += spool->size;
	spool->size = 0;
	return OK;
}

int spool_add(struct spool *spool, struct slice bytes, struct error *error)
{
	while (bytes.size > 0) {
		size_t room = spool->room - spool->size;
		size_t step = bytes.size < room ? bytes.size : room;
		memcpy(spool->bytes + spool->size, bytes.data, step);
		spool->size += step;
		bytes = slice_make(bytes.data + step, bytes.size - step);
		if (spool->size < spool->room)
			continue;
		int result = write_out(spool, error);
		if (result)
			return result;
	}
	return OK;
}

uint64_t spool_size(const struct spool *spool)
{
	return spool->written + spool->size;
}

int spool_give(struct spool *spool,
               int (*take)(void *context, const void *data, size_t size, struct error *error),
               void *context, struct error *error)
{
	int result = OK;
	if (spool->written > 0 && spool->size > 0)
		result = write_out(spool, error);
	for (uint64_t at = 0; at < spool->written && !result;) {
		size_t step = spool->written - at < MEMORY ? (size_t)(spool->written - at) : MEMORY;
		if (!file_read_at(spool->file, spool->bytes, step, at))
			return file_fail(error, "reading in", spool->directory);
		result = take(context, spool->bytes, step, error);
		at += step;
	}
	if (!result && spool->size > 0)
		result = take(context, spool->bytes, spool->size, error);
	return result;
}

int spool_clear(struct spool *spool, struct error *error)
{
	spool->size = 0;
	if (spool->written > 0 && ftruncate(spool->file, 0) != 0)
		return file_fail(error, "truncating a file in", spool->directory);
	spool->written = 0;
	return OK;
}

void spool_free(struct spool *spool)
{
	if (!spool)
		return;
	descriptor_close(&spool->file);
	free(spool->directory);
	free(spool);
}
