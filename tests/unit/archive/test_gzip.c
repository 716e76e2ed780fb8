/* Compressed output of either library is one gzip member (RFC 1952), and zlib restores the text. */
#include <zlib.h>

#include "testing.h"
#include "archive/gzip.h"
#include "archive/gzip_codec.h"

#define KIB ((size_t)1024)
#define TEXT_MAX (5 << 20)
#define STOPPED ERR_NO_SPACE

enum sort { NOISE, LINES, ALIKE, SORTS };

static const enum gzip_by codecs[] = {GZIP_BY_ZLIB, GZIP_BY_FASTEST};
static char texts[SORTS][TEXT_MAX];
static uint64_t random_state = 1;

static uint32_t random_number(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(random_state >> 32);
}

static int set_up(void **state)
{
	for (size_t i = 0; i < TEXT_MAX; i++)
		texts[NOISE][i] = (char)random_number();
	for (size_t at = 0; at + 100 < TEXT_MAX;)
		at += (size_t)sprintf(texts[LINES] + at, "{\"hash\":\"%08x%08x\",\"sequence\":%zu}\n",
		                      random_number(), random_number(), at);
	memset(texts[ALIKE], 'a', TEXT_MAX);
	return 0;
}

/* ---- output ---- */

struct taken {
	uint8_t *bytes;
	size_t size;
	int calls, stop_at; /* 0: never */
	bool exact;         /* the last chunk was a full one */
};

static int take(void *context, const void *data, size_t size, struct error *error)
{
	struct taken *taken = context;
	if (++taken->calls == taken->stop_at)
		return error_cause(error, STOPPED, "full");
	assert_true(size > 0);
	taken->bytes = realloc(taken->bytes, taken->size + size);
	assert_non_null(taken->bytes);
	memcpy(taken->bytes + taken->size, data, size);
	taken->size += size;
	taken->exact = size == 64 * KIB;
	return 0;
}

/* Checks one member from `bytes` on and returns its size. */
static size_t is_member(const uint8_t *bytes, size_t size, struct slice text)
{
	static uint8_t back[TEXT_MAX + 1];
	assert_true(size >= 18);
	assert_true(bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8 && bytes[3] == 0);
	z_stream stream = {.next_in = (Bytef *)bytes,
	                   .avail_in = (uInt)size,
	                   .next_out = back,
	                   .avail_out = sizeof back};
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	assert_int_equal(stream.total_out, text.size);
	assert_true(text.size == 0 || memcmp(back, text.data, text.size) == 0);
	const uint8_t *end = bytes + stream.total_in;
	uint32_t crc, length;
	memcpy(&crc, end - 8, 4);
	memcpy(&length, end - 4, 4);
	assert_int_equal(crc, crc32_z(0, (const Bytef *)text.data, text.size));
	assert_int_equal(length, text.size);
	return stream.total_in;
}

static void write_in_steps(struct gzip_writer *writer, struct slice text, size_t step)
{
	for (size_t at = 0; at < text.size; at += step) {
		size_t size = text.size - at < step ? text.size - at : step;
		assert_int_equal(gzip_write(writer, slice_make(text.data + at, size), NULL), 0);
	}
}

static struct gzip_writer *make(enum gzip_by by, struct taken *taken)
{
	struct gzip_writer *writer;
	assert_int_equal(gzip_writer_make(by, take, taken, &writer, NULL), 0);
	return writer;
}

/* ---- tests ---- */

TEST_CASE(members_of_all_sizes)
{
	static const size_t sizes[] = {0,
	                               1,
	                               2,
	                               7,
	                               64 * KIB - 1,
	                               64 * KIB,
	                               64 * KIB + 1,
	                               128 * KIB - 1,
	                               128 * KIB,
	                               128 * KIB + 1,
	                               3000017,
	                               TEXT_MAX};
	for (size_t by = 0; by < 2; by++)
		for (int sort = 0; sort < SORTS; sort++) {
			struct taken taken = {0};
			struct gzip_writer *writer = make(codecs[by], &taken);
			/* All members by one writer, one after the other. */
			for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
				struct slice text = slice_make(texts[sort], sizes[i]);
				size_t steps[] = {TEXT_MAX, 64 * KIB, 4093, 100003};
				write_in_steps(writer, text, steps[i % 4]);
				assert_int_equal(gzip_end(writer, NULL), 0);
				assert_int_equal(is_member(taken.bytes, taken.size, text), taken.size);
				taken.size = 0;
			}
			gzip_writer_free(writer);
			free(taken.bytes);
		}
}

TEST_CASE(steps_of_no_matter)
{
	struct slice text = slice_make(texts[LINES], 200000);
	for (size_t by = 0; by < 2; by++) {
		struct taken once = {0};
		struct gzip_writer *writer = make(codecs[by], &once);
		write_in_steps(writer, text, text.size);
		assert_int_equal(gzip_end(writer, NULL), 0);
		gzip_writer_free(writer);
		for (size_t step = 1; step < 70000; step = step * 3 + 1) {
			struct taken taken = {0};
			writer = make(codecs[by], &taken);
			write_in_steps(writer, text, step);
			assert_int_equal(gzip_end(writer, NULL), 0);
			assert_int_equal(taken.size, once.size);
			assert_memory_equal(taken.bytes, once.bytes, once.size);
			gzip_writer_free(writer);
			free(taken.bytes);
		}
		free(once.bytes);
	}
}

/* Every position of the end of a member in a chunk of the output, around its border. */
TEST_CASE(ends_about_the_border)
{
	for (size_t by = 0; by < 2; by++) {
		struct taken taken = {0};
		struct gzip_writer *writer = make(codecs[by], &taken);
		int exact = 0;
		size_t least = SIZE_MAX, most = 0;
		for (size_t size = 64 * KIB - 120; size < 64 * KIB + 40; size++) {
			struct slice text = slice_make(texts[NOISE] + size, size);
			write_in_steps(writer, text, size);
			assert_int_equal(gzip_end(writer, NULL), 0);
			assert_int_equal(is_member(taken.bytes, taken.size, text), taken.size);
			exact += taken.exact;
			least = taken.size < least ? taken.size : least;
			most = taken.size > most ? taken.size : most;
			taken.size = 0;
		}
		assert_true(least < 64 * KIB - 10 && most > 64 * KIB + 10);
		assert_true(exact > 0);
		gzip_writer_free(writer);
		free(taken.bytes);
	}
}

TEST_CASE(what_the_sink_answers_is_answered)
{
	struct slice text = slice_make(texts[NOISE], 600000), more = slice_make(texts[LINES], 1000);
	for (size_t by = 0; by < 2; by++) {
		struct taken whole = {0};
		struct gzip_writer *writer = make(codecs[by], &whole);
		write_in_steps(writer, text, text.size);
		assert_int_equal(gzip_end(writer, NULL), 0);
		gzip_writer_free(writer);
		free(whole.bytes);
		assert_true(whole.calls > 5);
		for (int at = 1; at <= whole.calls; at++) {
			struct taken taken = {.stop_at = at};
			struct error error = {0};
			writer = make(codecs[by], &taken);
			int result = gzip_write(writer, text, &error);
			if (!result)
				result = gzip_end(writer, &error);
			assert_int_equal(result, STOPPED);
			assert_string_equal(error.cause, "full");
			assert_int_equal(taken.calls, at); /* no further output was passed */
			/* After an aborted member the next member is valid. */
			taken.stop_at = 0;
			if (gzip_end(writer, NULL) == 0) {
				taken.size = 0;
				write_in_steps(writer, more, 1000);
				assert_int_equal(gzip_end(writer, NULL), 0);
				assert_int_equal(is_member(taken.bytes, taken.size, more), taken.size);
			}
			gzip_writer_free(writer);
			free(taken.bytes);
		}
	}
}

TEST_CASE(checksums)
{
	for (int i = 0; i < 20000; i++) {
		size_t start = random_number() % 64, size = random_number() % (i % 100 ? 300 : 200000);
		size_t split = size ? random_number() % (size + 1) : 0;
		const Bytef *data = (const Bytef *)texts[NOISE] + start;
		uint32_t wanted = (uint32_t)crc32_z(0, data, size);
		assert_int_equal(gzip_crc32(0, data, size), wanted);
		uint32_t first = gzip_crc32(0, data, split);
		assert_int_equal(gzip_crc32(first, data + split, size - split), wanted);
		assert_int_equal(crc32_z(first, data + split, size - split), wanted);
	}
	assert_int_equal(gzip_crc32(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(gzip_crc32(0, NULL, 0), 0);
}

/* Proves that the tests above cover both libraries. */
TEST_CASE(isal_is_there)
{
#ifdef LIBISAL
	assert_non_null(gzip_isal());
#else
	assert_null(gzip_isal());
#endif
	gzip_writer_free(NULL);
}

TEST_MAIN(set_up, NULL)
