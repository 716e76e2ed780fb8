/* The gzip compressor that uses ISA-L, if the library was available when the program was built. */
#include "archive/gzip_codec.h"

#ifdef LIBISAL
#include <pthread.h>
#include <stdlib.h>

#include "libisal.h"

struct isal {
	struct isal_zstream stream;
	uint8_t level[ISAL_DEF_LVL1_DEFAULT];
};

/* isal_deflate_reset would not write the header of the next member. */
static void reset(void *state)
{
	struct isal *isal = state;
	isal_deflate_init(&isal->stream);
	isal->stream.level = 1;
	isal->stream.level_buf = isal->level;
	isal->stream.level_buf_size = sizeof isal->level;
	isal->stream.gzip_flag = IGZIP_GZIP;
}

static void *make(void)
{
	struct isal *isal = calloc(1, sizeof *isal);
	if (isal)
		reset(isal);
	return isal;
}

static void give(void *state, struct slice text, bool end)
{
	struct isal *isal = state;
	isal->stream.next_in = (uint8_t *)text.data;
	isal->stream.avail_in = (uint32_t)text.size;
	isal->stream.end_of_stream = end;
}

static bool take(void *state, uint8_t *chunk, size_t size, size_t *ret_size)
{
	struct isal *isal = state;
	isal->stream.next_out = chunk;
	isal->stream.avail_out = (uint32_t)size;
	(void)isal_deflate(&isal->stream); /* fails only for invalid settings */
	*ret_size = size - isal->stream.avail_out;
	return isal->stream.avail_out == 0 && isal->stream.internal_state.state != ZSTATE_END;
}

static uint32_t crc(uint32_t before, const void *data, size_t size)
{
	return crc32_gzip_refl(before, data, size);
}

static const struct gzip_codec codec = {make, give, take, reset, free, crc};
static bool loaded;

static void load(void)
{
	loaded = libisal_load(NULL) == OK;
}

const struct gzip_codec *gzip_isal(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load);
	return loaded ? &codec : NULL;
}
#else

const struct gzip_codec *gzip_isal(void)
{
	return NULL;
}
#endif
