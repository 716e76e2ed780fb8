#include <unistd.h>

#include "testing.h"
#include "archive/zip_shape.h"
#include "scratch.h"
#include "stride.h"

static char directory[SCRATCH_MAX];
static char path[SCRATCH_MAX + 16];

static int set_up(void **state)
{
	scratch_make(directory);
	snprintf(path, sizeof path, "%s/sample.zip", directory);
	return 0;
}

static int tear_down(void **state)
{
	scratch_remove(directory);
	return 0;
}

static size_t load(uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size = fread(bytes, 1, size, file);
	fclose(file);
	return size;
}

static void store(const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static struct zip_writer *begin(uint64_t bytes_max, uint32_t entries_max)
{
	struct zip_writer *writer;
	assert_int_equal(zip_create(path, bytes_max, entries_max, &writer, NULL), 0);
	return writer;
}

static int open_status(void)
{
	struct zip_reader *reader;
	int result = zip_open(path, &reader, NULL);
	if (!result)
		zip_reader_free(reader);
	return result;
}

static void write_sample(void)
{
	struct zip_writer *writer = begin(ZIP_BYTES_MAX, ZIP_ENTRIES_MAX);
	struct zip_sum sum;
	assert_int_equal(zip_add(writer, "a", slice_of("hello"), &sum, NULL), 0);
	struct sha256 digest = sha256_of("hello", 5);
	assert_true(sum.size_bytes == 5 && sha256_equal(&sum.sha256, &digest));
	assert_int_equal(zip_add(writer, "dir/b.txt", slice_of(""), NULL, NULL), 0);
	assert_int_equal(zip_add(writer, "c-d_e", slice_of("x"), NULL, NULL), 0);
	uint64_t size = zip_writer_size(writer);
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	assert_true(sum.size_bytes == size);
	zip_writer_free(writer);
}

/* Written out by hand from APPNOTE 4.3. */
TEST_CASE(bytes_are_the_shape)
{
	static const uint8_t expected[] = {
		'P',  'K',  3, 4,  10, 0,    0,    0,  0, 0, 0, 0,   0x21, 0,    0xac, 0x2a, 0x93,
		0xd8, 2,    0, 0,  0,  2,    0,    0,  0, 1, 0, 0,   0,    'n',  'h',  'i',  'P',
		'K',  1,    2, 10, 3,  10,   0,    0,  0, 0, 0, 0,   0,    0x21, 0,    0xac, 0x2a,
		0x93, 0xd8, 2, 0,  0,  0,    2,    0,  0, 0, 1, 0,   0,    0,    0,    0,    0,
		0,    0,    0, 0,  0,  0xa4, 0x81, 0,  0, 0, 0, 'n', 'P',  'K',  5,    6,    0,
		0,    0,    0, 1,  0,  1,    0,    47, 0, 0, 0, 33,  0,    0,    0,    0,    0};
	struct zip_writer *writer = begin(ZIP_BYTES_MAX, ZIP_ENTRIES_MAX);
	struct zip_sum sum;
	uint8_t bytes[256];
	assert_int_equal(zip_add(writer, "n", slice_of("hi"), NULL, NULL), 0);
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	zip_writer_free(writer);
	assert_int_equal(load(bytes, sizeof bytes), sizeof expected);
	assert_memory_equal(bytes, expected, sizeof expected);
}

TEST_CASE(other_tools_read_it)
{
	char command[256];
	write_sample();
	snprintf(command, sizeof command,
	         "python3 -c 'import sys,zipfile;z=zipfile.ZipFile(\"%s\");"
	         "sys.exit(z.testzip() is not None or z.namelist()!=[\"a\",\"dir/b.txt\",\"c-d_e\"] or"
	         " z.read(\"a\")!=b\"hello\")'",
	         path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command, "unzip -tqq %s", path);
	assert_int_equal(system(command), 0);
}

TEST_CASE(reads_back)
{
	struct zip_reader *reader;
	struct zip_sum sum;
	write_sample();
	assert_int_equal(zip_open(path, &reader, NULL), 0);
	assert_int_equal(zip_count(reader), 3);
	assert_ptr_equal(zip_find(reader, "c-d_e"), zip_at(reader, 2));
	assert_null(zip_find(reader, "c-d"));
	assert_null(zip_find(reader, "z"));
	BUF_AUTO struct buf text = {.limit = 100};
	assert_int_equal(zip_entry_load(reader, zip_at(reader, 0), 5, &text, NULL), 0);
	assert_true(slice_is(buf_slice(&text), "hello"));
	assert_int_equal(zip_entry_load(reader, zip_at(reader, 0), 4, &text, NULL),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(zip_entry_sum(reader, zip_at(reader, 1), &sum, NULL), 0);
	assert_true(sum.size_bytes == 0);
	char bytes[8];
	assert_int_equal(zip_read(reader, zip_at(reader, 0), 2, bytes, 3, NULL), 0);
	assert_memory_equal(bytes, "llo", 3);
	assert_int_equal(zip_read(reader, zip_at(reader, 0), 3, bytes, 3, NULL), ERR_INVALID_EVIDENCE);
	zip_reader_free(reader);
}

TEST_CASE(every_bit_but_content_is_the_shapes)
{
	uint8_t bytes[1024];
	write_sample();
	size_t size = load(bytes, sizeof bytes);
	for (size_t bit = 0; bit < size * 8; STRIDE(bit)) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		store(bytes, size);
		struct zip_reader *reader;
		struct zip_sum sum;
		int result = zip_open(path, &reader, NULL);
		if (!result) { /* then it is in the content */
			for (uint32_t i = 0; i < zip_count(reader) && !result; i++)
				result = zip_entry_sum(reader, zip_at(reader, i), &sum, NULL);
			zip_reader_free(reader);
		}
		if (result != ERR_INVALID_EVIDENCE)
			fail_msg("bit %zu of byte %zu was not found", bit % 8, bit / 8);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	store(bytes, size);
	assert_int_equal(open_status(), 0);
}

TEST_CASE(every_cut_is_found)
{
	uint8_t bytes[1024];
	write_sample();
	size_t size = load(bytes, sizeof bytes);
	for (size_t cut = 0; cut < size; cut++) {
		store(bytes, cut);
		assert_int_equal(open_status(), ERR_INVALID_EVIDENCE);
		store(bytes + size - cut, cut);
		assert_int_equal(open_status(), ERR_INVALID_EVIDENCE);
	}
}

TEST_CASE(other_shapes_are_refused)
{
	static const char *const makers[] = {
		/* two entries of one name */
		("import warnings;warnings.simplefilter('ignore');"
	     "z.writestr(i('a'),b'1');z.writestr(i('a'),b'1')"),
		"n=i('a');n.compress_type=8;z.writestr(n,b'1'*99)",
		"n=i('a');n.extra=b'ab\\0\\0';z.writestr(n,b'1')",
		"n=i('a');n.comment=b'x';z.writestr(n,b'1')",
		"z.comment=b'x';z.writestr(i('a'),b'1')",
		"z.writestr(i('../a'),b'1')",
		"z.writestr(i('/a'),b'1')",
		"z.writestr(i('a b'),b'1')",
		"z.writestr(i('d/'),b'')",
		"z.writestr('a',b'1')", /* the time of day */
	};
	for (size_t i = 0; i <= sizeof makers / sizeof *makers; i++) {
		bool good = i == sizeof makers / sizeof *makers;
		char command[1024];
		/* Python writes version 20 as needed; it is changed to 10 so that it does not cause the
		 * refusal. */
		snprintf(command, sizeof command,
		         "python3 -c \"import zipfile\n"
		         "def i(n):\n"
		         " f=zipfile.ZipInfo(n);f.external_attr=0o100644<<16;f.create_version=10;"
		         "f.create_system=3;f.extract_version=10;return f\n"
		         "z=zipfile.ZipFile('%s','w')\n%s\nz.close()\nb=bytearray(open('%s','rb').read())\n"
		         "p=0\n"
		         "while 1:\n"
		         " p=b.find(b'PK\\1\\2',p)\n"
		         " if p<0: break\n"
		         " b[p+4]=10;b[p+6]=10;p+=4\n"
		         "p=0\n"
		         "while 1:\n"
		         " p=b.find(b'PK\\3\\4',p)\n"
		         " if p<0: break\n"
		         " b[p+4]=10;p+=4\n"
		         "open('%s','wb').write(b)\"",
		         path, good ? "z.writestr(i('a'),b'1')" : makers[i], path, path);
		assert_int_equal(system(command), 0);
		if (open_status() != (good ? 0 : ERR_INVALID_EVIDENCE))
			fail_msg("%s", good ? "the plain one was refused" : makers[i]);
	}
}

TEST_CASE(bounds_hold)
{
	struct error error;
	struct zip_writer *writer = begin(300, 2);
	assert_int_equal(zip_add(writer, "a", slice_of("1"), NULL, NULL), 0);
	assert_int_equal(zip_add(writer, "b", slice_of("2"), NULL, NULL), 0);
	assert_int_equal(zip_add(writer, "c", slice_of("3"), NULL, &error), ERR_TOO_LARGE);
	struct zip_sum sum;
	assert_int_equal(zip_finish(writer, &sum, NULL), ERR_USAGE);
	zip_writer_free(writer);
	assert_int_not_equal(access(path, F_OK), 0);

	/* 22 + 76 + 2 and 100 of content */
	static const char content[101];
	writer = begin(200, 2);
	assert_int_equal(zip_add(writer, "a", slice_make(content, 100), NULL, NULL), 0);
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	assert_int_equal(sum.size_bytes, 200);
	zip_writer_free(writer);
	writer = begin(200, 2);
	assert_int_equal(zip_add(writer, "a", slice_make(content, 101), NULL, &error), ERR_TOO_LARGE);
	zip_writer_free(writer);
	store("", 0);
}

TEST_CASE(names_are_narrow)
{
	static const char *const bad[] = {"",       "/a",  "a/",   "a//b",     ".",  "..",
	                                  "a/../b", "a b", "a\\b", "\xc3\xb1", "a\n"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(zip_name_allowed(slice_of(bad[i])));
	char name[ZIP_NAME_MAX + 2];
	memset(name, 'a', sizeof name);
	assert_true(zip_name_allowed(slice_make(name, ZIP_NAME_MAX)));
	assert_false(zip_name_allowed(slice_make(name, ZIP_NAME_MAX + 1)));
	assert_true(zip_name_allowed(slice_of("META-INF/signature001.p7s")));
	assert_true(zip_name_allowed(slice_of("a/.b")));
	struct zip_writer *writer = begin(1000, 2);
	assert_int_equal(zip_entry_begin(writer, "../x", NULL), ERR_USAGE);
	zip_writer_free(writer);
	store("", 0);
}

TEST_MAIN(set_up, tear_down)
