#include "verify/stream_text.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

/* Size from which a file is decompressed by a thread. */
#define LARGE ((uint64_t)1 << 20)
#define BLOCKS_AHEAD 8

/* A queue of blocks, filled by one thread and read by another. */
struct ahead {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	size_t filled, taken; /* guarded by `mutex`: total numbers of blocks */
	bool ended, stopping;
	struct text_block blocks[BLOCKS_AHEAD];
};

struct stream_text {
	struct zip_reader *zip;
	enum archive_stream kind;
	bool plain;

	/* Used by the thread that fills blocks. */
	const struct zip_entry *entry; /* the open file; NULL: none */
	uint32_t number;               /* number of the last opened file */
	uint64_t position;             /* position in the entry */
	bool broken;
	z_stream gzip;
	bool gzip_ready;
	uint8_t input[TEXT_BLOCK_SIZE];

	bool wants_ahead;
	struct ahead *ahead;     /* NULL: the reader fills the block itself */
	bool has_one;            /* the reader still uses the last block of `ahead` */
	struct text_block block; /* used without `ahead` */
};

/* ---- filling ---- */

static bool open_file(struct stream_text *text)
{
	char path[ZIP_NAME_MAX + 1];
	if (text->plain)
		return false;
	archive_stream_path(text->kind, text->number + 1, path);
	const struct zip_entry *entry = zip_find(text->zip, path);
	if (!entry)
		return false;
	text->entry = entry;
	text->number++;
	text->position = 0;
	text->gzip.avail_in = 0;
	inflateReset(&text->gzip);
	return true;
}

static int read_input(struct stream_text *text, void *to, size_t size_max, size_t *ret_size,
                      struct error *error)
{
	assert(text->entry && text->position <= text->entry->size);
	uint64_t left = text->entry->size - text->position;
	size_t size = left < size_max ? (size_t)left : size_max;
	int result = zip_read(text->zip, text->entry, text->position, to, size, error);
	if (result < 0)
		return result;
	text->position += size;
	*ret_size = size;
	return 0;
}

static int fill_plain(struct stream_text *text, struct text_block *block)
{
	int result = read_input(text, block->bytes, TEXT_BLOCK_SIZE, &block->size, &block->error);
	block->ends_file = text->position == text->entry->size;
	return result;
}

static int inflate_some(struct stream_text *text, struct text_block *block)
{
	assert(text->gzip_ready && block->size < TEXT_BLOCK_SIZE);
	z_stream *gzip = &text->gzip;
	if (gzip->avail_in == 0) {
		size_t size;
		int status = read_input(text, text->input, sizeof text->input, &size, &block->error);
		if (status < 0)
			return status;
		if (size == 0)
			return error_cause(&block->error, ERR_INVALID_EVIDENCE, "the gzip data is truncated");
		gzip->next_in = text->input;
		gzip->avail_in = (uInt)size;
	}
	gzip->next_out = (Bytef *)block->bytes + block->size;
	gzip->avail_out = (uInt)(TEXT_BLOCK_SIZE - block->size);
	int outcome = inflate(gzip, Z_NO_FLUSH);
	block->size = TEXT_BLOCK_SIZE - gzip->avail_out;
	if (outcome == Z_MEM_ERROR)
		return error_cause(&block->error, ERR_NO_MEMORY, "gzip");
	if (outcome == Z_STREAM_END) {
		block->ends_file = true;
		if (gzip->avail_in > 0 || text->position < text->entry->size)
			return error_cause(&block->error, ERR_INVALID_EVIDENCE,
			                   "there are bytes after the gzip data");
	} else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
		return error_cause(&block->error, ERR_INVALID_EVIDENCE, "the gzip data is damaged (%s)",
		                   gzip->msg ? gzip->msg : "unknown reason");
	}
	return 0;
}

/* Fills a block. Returns false if there are no more. */
static bool fill(struct stream_text *text, struct text_block *block)
{
	if (text->broken || (!text->entry && !open_file(text)))
		return false;
	block->entry = text->entry;
	block->number = text->number;
	block->size = 0;
	block->ends_file = false;
	block->status = 0;
	if (text->plain)
		block->status = fill_plain(text, block);
	while (!text->plain && !block->status && !block->ends_file && block->size < TEXT_BLOCK_SIZE)
		block->status = inflate_some(text, block);
	if (block->ends_file)
		text->entry = NULL;
	text->broken = block->status < 0;
	return true;
}

/* ---- read-ahead ---- */

static void *fill_ahead(void *argument)
{
	struct stream_text *text = argument;
	struct ahead *ahead = text->ahead;
	pthread_mutex_lock(&ahead->mutex);
	while (!ahead->ended && !ahead->stopping) {
		assert(ahead->filled >= ahead->taken && ahead->filled - ahead->taken <= BLOCKS_AHEAD);
		if (ahead->filled - ahead->taken == BLOCKS_AHEAD) {
			pthread_cond_wait(&ahead->changed, &ahead->mutex);
			continue;
		}
		struct text_block *block = &ahead->blocks[ahead->filled % BLOCKS_AHEAD];
		pthread_mutex_unlock(&ahead->mutex);
		bool more = fill(text, block);
		pthread_mutex_lock(&ahead->mutex);
		ahead->filled += more;
		ahead->ended = !more;
		pthread_cond_signal(&ahead->changed);
	}
	pthread_mutex_unlock(&ahead->mutex);
	return NULL;
}

/* Starts the thread. Without memory or a thread, the reader fills the blocks. */
static void begin_ahead(struct stream_text *text)
{
	struct ahead *ahead = calloc(1, sizeof *ahead);
	if (!ahead)
		return;
	pthread_mutex_init(&ahead->mutex, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	text->ahead = ahead;
	if (pthread_create(&ahead->thread, NULL, fill_ahead, text) == 0)
		return;
	text->ahead = NULL;
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->mutex);
	free(ahead);
}

static void end_ahead(struct ahead *ahead)
{
	pthread_mutex_lock(&ahead->mutex);
	ahead->stopping = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->mutex);
	pthread_join(ahead->thread, NULL);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->mutex);
	free(ahead);
}

static const struct text_block *take_ahead(struct stream_text *text)
{
	struct ahead *ahead = text->ahead;
	pthread_mutex_lock(&ahead->mutex);
	if (text->has_one) {
		assert(ahead->taken < ahead->filled); /* the block that the reader used */
		ahead->taken++;
		pthread_cond_signal(&ahead->changed);
	}
	while (ahead->filled == ahead->taken && !ahead->ended)
		pthread_cond_wait(&ahead->changed, &ahead->mutex);
	text->has_one = ahead->filled > ahead->taken;
	pthread_mutex_unlock(&ahead->mutex);
	return text->has_one ? &ahead->blocks[ahead->taken % BLOCKS_AHEAD] : NULL;
}

/* ---- reading ---- */

int stream_text_open(struct zip_reader *zip, enum archive_stream kind,
                     const struct zip_entry *entry, bool ahead, struct stream_text **ret_text,
                     struct error *error)
{
	struct stream_text *text = calloc(1, sizeof *text);
	if (!text)
		return error_cause(error, ERR_NO_MEMORY, "lines");
	text->zip = zip;
	text->kind = kind;
	text->plain = entry;
	text->entry = entry;
	text->wants_ahead = ahead;
	text->gzip_ready = !text->plain && inflateInit2(&text->gzip, 15 + 16) == Z_OK;
	if (!text->plain && !text->gzip_ready) {
		stream_text_free(text);
		return error_cause(error, ERR_NO_MEMORY, "lines");
	}
	*ret_text = text;
	return 0;
}

const struct text_block *stream_text_next(struct stream_text *text)
{
	if (text->ahead)
		return take_ahead(text);
	if (!fill(text, &text->block))
		return NULL;
	if (text->wants_ahead && text->block.entry->size >= LARGE)
		begin_ahead(text);
	return &text->block;
}

void stream_text_free(struct stream_text *text)
{
	if (!text)
		return;
	if (text->ahead)
		end_ahead(text->ahead);
	if (text->gzip_ready)
		inflateEnd(&text->gzip);
	free(text);
}
