#include "testing.h"
#include "http/multipart.h"

struct found {
	struct buf text; /* "name|file name|data;" for each part */
	size_t spans;    /* in which the data came */
	char error[256];
};

static uint64_t random_state = 1;

static size_t random_below(size_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)(random_state >> 33) % limit;
}

static int begin(void *context, struct slice name, struct slice file_name, struct error *error)
{
	struct found *found = context;
	buf_add_slice(&found->text, name);
	buf_add_byte(&found->text, '|');
	if (file_name.data)
		buf_add_slice(&found->text, file_name);
	else
		buf_add_byte(&found->text, '-');
	buf_add_byte(&found->text, '|');
	return 0;
}

static int data(void *context, struct slice part, struct error *error)
{
	struct found *found = context;
	found->spans++;
	buf_add_slice(&found->text, part);
	return 0;
}

static int end(void *context, struct error *error)
{
	buf_add_byte(&((struct found *)context)->text, ';');
	return 0;
}

/* Parses in chunks of a fixed size, 0: of any size up to 97. Returns 0 and what was found, or the
 * error. */
static int parse(const char *type, struct slice body, size_t piece, struct found *found)
{
	struct arena arena = {.limit = 1 << 20};
	struct multipart multipart;
	struct multipart_sink sink = {begin, data, end, found};
	struct error error = {0};
	buf_clear(&found->text);
	found->spans = 0;
	int result = multipart_begin(&multipart, slice_of(type), &arena, &sink, &error);
	size_t size;
	for (size_t at = 0; at < body.size && !result; at += size) {
		size = piece ? piece : 1 + random_below(97);
		size = body.size - at < size ? body.size - at : size;
		result = multipart_feed(&multipart, slice_make(body.data + at, size), &error);
	}
	if (!result)
		result = multipart_end(&multipart, &error);
	snprintf(found->error, sizeof found->error, "%s",
	         result ? error_message(&error, LANGUAGE_ENGLISH) : "");
	arena_free(&arena);
	return result;
}

#define TYPE "multipart/form-data; boundary=XX"

static void expect(const char *body, const char *expected)
{
	struct found found;
	buf_init(&found.text, 1 << 20);
	size_t size = strlen(body);
	for (size_t piece = 1; piece <= size; piece++) {
		int result = parse(TYPE, slice_make(body, size), piece, &found);
		if (expected) {
			assert_int_equal(result, 0);
			assert_string_equal(found.text.data, expected);
		} else if (!result) {
			fail_msg("taken in chunks of %zu: %s", piece, body);
		}
	}
	buf_free(&found.text);
}

#define PART(disposition) "--XX\r\nContent-Disposition: form-data; " disposition "\r\n\r\n"

#define A_FIELD PART("name=1") "\r\n"

TEST_CASE(test_good)
{
	expect(PART("name=a") "1\r\n" PART(
			   "name=\"file\"; filename=\"x y.pdf\"") "\r\n--X\r\n--XY\r\n--XX--\r\n",
	       "a|-|1;file|x y.pdf|\r\n--X\r\n--XY;");
	expect(PART("name=a") "\r\n--XX--", "a|-|;");
	expect("--XX\r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: Form-Data; name=a\r\n"
	       "Content-Transfer-Encoding: binary\r\n\r\n\r\r\n\r\n--XX--\r\n",
	       "a|-|\r\r\n;");
	expect(PART("name=f; filename=\"a%22b\\\"c.txt\"") "z\r\n--XX--\r\n", "f|a\"b\"c.txt|z;");
	expect(PART("name=f; filename=x; filename*=UTF-8''%C3%B1.txt") "z\r\n--XX--\r\n", "f|ñ.txt|z;");
	expect(PART("name=f; filename*=utf-8''%C3%B1.txt; filename=x") "z\r\n--XX--\r\n", "f|ñ.txt|z;");
	/* A browser does not escape a backslash. */
	expect(PART("name=f; filename=\"a\\\"") "z\r\n--XX--\r\n", "f|a\\|z;");
	expect(PART("filename=\"a\\\"; name=\"f\"") "z\r\n--XX--\r\n", "f|a\\|z;");
	expect(PART("name=\"f\"; filename=\"a\\\"; filename*=utf-8''a%5C") "z\r\n--XX--\r\n",
	       "f|a\\|z;");
	expect(PART("name=f; filename=\"a\\\\\"") "z\r\n--XX--\r\n", "f|a\\|z;");
	expect(PART("name=f; filename=\"a\\\";b=\\\"c\";") "z\r\n--XX--\r\n", "f|a\";b=\"c|z;");
}

TEST_CASE(test_bad)
{
	static const char *const bad[] = {
		"--XX--x",
		"x--XX\r\n",
		"\r\n" PART("name=a") "1\r\n--XX--\r\n",
		PART("name=a") "1\r\n--XX\r\n",
		PART("name=a") "1\r\n--XX--\r\nmore",
		PART("name=a") "1\n--XX--\r\n",
		PART("name=a") "1\r\n--XX-\r\n",
		PART("name=a") "1\r\n--XX \r\n" PART("name=b") "\r\n--XX--",
		PART("filename=a") "1\r\n--XX--\r\n",
		PART("name=\"a") "1\r\n--XX--\r\n",
		PART("name=f; filename=\"a\\\" x") "1\r\n--XX--\r\n",
		PART("name=f; filename=\"a\\\"; filename=\"b\"") "1\r\n--XX--\r\n",
		PART("name=a; name=a") "1\r\n--XX--\r\n",
		PART("name=f; filename*=latin1''x") "1\r\n--XX--\r\n",
		"--XX\r\n\r\n1\r\n--XX--\r\n",
		"--XX\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XX--\r\n",
		"--XX\r\nContent-Disposition: form-data; name=a\n\n1\r\n--XX--\r\n",
		"--XX\r\nContent-Disposition: attachment; name=a\r\n\r\n1\r\n--XX--\r\n",
		"--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
		"name=b\r\n\r\n1\r\n--XX--\r\n",
		"--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: "
		"base64\r\n\r\n1\r\n--XX--\r\n",
		A_FIELD A_FIELD A_FIELD A_FIELD A_FIELD A_FIELD A_FIELD A_FIELD A_FIELD "--XX--",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		expect(bad[i], NULL);
}

static void check_repeated(const char *type, const char *body, const char *named)
{
	struct found found;
	buf_init(&found.text, 1 << 20);
	assert_int_equal(parse(type, slice_of(body), 0, &found), ERR_VALIDATION);
	assert_non_null(strstr(found.error, named));
	buf_free(&found.text);
}

TEST_CASE(test_a_repeated_parameter_is_named)
{
	check_repeated(TYPE "; BOUNDARY=XX", "--XX--", "Content-Type has the parameter 'boundary'");
	check_repeated(TYPE, PART("name=a; Name=b") "\r\n--XX--", "the parameter 'name'");
	check_repeated(TYPE, PART("name=a; filename=x; filename=x") "\r\n--XX--",
	               "Content-Disposition has the parameter 'filename'");
	check_repeated(TYPE, PART("name=a; filename*=utf-8''x; filename*=utf-8''x") "\r\n--XX--",
	               "the parameter 'filename*'");
}

TEST_CASE(test_a_file_has_a_name)
{
	struct slice none = {NULL, 0};
	struct error error = {0};
	assert_int_equal(multipart_file_check(slice_of("file"), slice_of("-"), &error), 0);
	assert_int_equal(multipart_file_check(slice_of("file"), slice_of(""), NULL), ERR_VALIDATION);
	assert_int_equal(multipart_file_check(slice_of("file"), none, &error), ERR_VALIDATION);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "-F file=@NAME"));
	assert_non_null(strstr(error_message(&error, LANGUAGE_SPANISH), "-F file=@NOMBRE"));
}

TEST_CASE(test_boundary)
{
	struct found found;
	buf_init(&found.text, 1 << 20);
	static const char *const bad[] = {
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=\"a\"x",
		"multipart/form-data; boundary=\"a \"",
		"multipart/form-data; boundary=\"<>\"",
		("multipart/form-data; "
	     "boundary=01234567890123456789012345678901234567890123456789012345678901234567890"),
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse(bad[i], slice_of("--XX--"), 1, &found), ERR_VALIDATION);
	assert_int_equal(
		parse("multipart/form-data; charset=x; Boundary=\"a b'\"",
	          slice_of("--a b'\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--a b'--"), 3,
	          &found),
		0);
	assert_string_equal(found.text.data, "a|-|1;");
	static const char *const good[] = {
		"multipart/form-data; boundary=XX;",
		"multipart/form-data; boundary=\"XX\";",
		"multipart/form-data;; boundary=XX ; ;",
		"multipart/form-data; x=\"a=b;c\\\";boundary=YY\"; boundary=\"XX\"",
		"multipart/form-data; boundary=\"X\\X\"",
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(parse(good[i], slice_of(PART("name=a") "\r\n--XX--"), 3, &found), 0);
	assert_int_equal(parse("multipart/form-data; boundary=\"=A=_\";",
	                       slice_of("--=A=_\r\nContent-Disposition: form-data; "
	                                "name=a\r\n\r\n1\r\n--=A=_--"),
	                       3, &found),
	                 0);
	/* A header line without end is not held in memory. */
	char line[MULTIPART_LINE_MAX + 64];
	memset(line, 'x', sizeof line);
	memcpy(line, "--XX\r\n", 6);
	assert_int_equal(parse(TYPE, slice_make(line, sizeof line), 100, &found), ERR_VALIDATION);
	buf_free(&found.text);
}

/* Data that looks like delimiters is returned as it was sent, however it was divided. */
TEST_CASE(test_data_like_delimiters)
{
	static const char *const bits[] = {
		"\r", "\n", "-", "X", "\r\n", "\r\n--", "\r\n--X", "\r\n--XY", "\r\n-\r\n--X-", "a"};
	static char body[8192], expected[8192];
	struct found found;
	buf_init(&found.text, 1 << 20);
	for (int round = 0; round < 3000; round++) {
		size_t size = (size_t)sprintf(body, PART("name=a"));
		size_t start = size;
		for (size_t bit = random_below(60); bit > 0; bit--)
			size += (size_t)sprintf(body + size, "%s", bits[random_below(10)]);
		if (strstr(body + start, "\r\n--XX"))
			continue;
		sprintf(expected, "a|-|%s;", body + start);
		strcpy(body + size, "\r\n--XX--");
		size += 8;
		for (size_t piece = 0; piece <= size; piece = piece < 12 ? piece + 1 : piece * 2) {
			assert_int_equal(parse(TYPE, slice_make(body, size), piece, &found), 0);
			assert_string_equal(found.text.data, expected);
		}
	}
	buf_free(&found.text);
}

/* A damaged form is refused with the same message, or read with the same parts, whole and in
 * chunks. */
TEST_CASE(test_pieces_do_not_matter)
{
	static const char good[] = PART("name=a") "1\r\n" PART(
		"name=file; filename=\"x\"") "\r\n--X\r\r\n--XY\r\n" PART("name=b") "\r\n--XX--\r\n";
	static const char bytes[] = "\r\n-X\"; =a:";
	char body[sizeof good];
	struct found whole, pieces;
	buf_init(&whole.text, 1 << 20);
	buf_init(&pieces.text, 1 << 20);
	for (int round = 0; round < 20000; round++) {
		size_t size = sizeof good - 1 - random_below(2) * random_below(sizeof good - 1);
		memcpy(body, good, sizeof good);
		for (size_t changes = random_below(3); changes > 0; changes--)
			body[random_below(sizeof good - 1)] = bytes[random_below(sizeof bytes - 1)];
		int result = parse(TYPE, slice_make(body, size), sizeof body, &whole);
		assert_int_equal(parse(TYPE, slice_make(body, size), 0, &pieces), result);
		assert_string_equal(pieces.error, whole.error);
		if (!result)
			assert_string_equal(pieces.text.data, whole.text.data);
	}
	buf_free(&whole.text);
	buf_free(&pieces.text);
}

/* Any bytes are passed on in few spans. */
TEST_CASE(test_few_spans)
{
	static const char *const fillers[] = {"\r", "\r\n", "\r\n--", "\r\n--X", "\r\n--XY", "x"};
	const size_t length = 1 << 20, piece = 4096;
	char *body = malloc(length + 128);
	struct found found;
	assert_non_null(body);
	buf_init(&found.text, 2 << 20);
	for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
		size_t start = (size_t)sprintf(body, PART("name=a"));
		size_t filler = strlen(fillers[i]);
		for (size_t at = 0; at < length; at++)
			body[start + at] = fillers[i][at % filler];
		strcpy(body + start + length, "\r\n--XX--");
		assert_int_equal(parse(TYPE, slice_of(body), piece, &found), 0);
		assert_int_equal(found.text.size, length + strlen("a|-|;"));
		assert_true(found.spans <= 2 * (length / piece + 2));
	}
	buf_free(&found.text);
	free(body);
}

TEST_CASE(test_parameters_are_few)
{
	char text[2048] = "multipart/form-data";
	struct found found;
	buf_init(&found.text, 1 << 20);
	for (int i = 0; i < 31; i++)
		strcat(text, ";a=\"\"");
	strcat(text, ";boundary=XX");
	assert_int_equal(parse(text, slice_of(A_FIELD "--XX--"), 100, &found), 0);
	strcat(text, ";a=b");
	assert_int_equal(parse(text, slice_of(A_FIELD "--XX--"), 100, &found), ERR_VALIDATION);
	assert_non_null(strstr(found.error, "Content-Type has more than 32 parameters"));
	strcpy(text, "--XX\r\nContent-Disposition: form-data; name=a");
	for (int i = 0; i < 32; i++)
		strcat(text, ";a=\"\"");
	strcat(text, "\r\n\r\n1\r\n--XX--");
	assert_int_equal(parse(TYPE, slice_of(text), 100, &found), ERR_VALIDATION);
	assert_non_null(strstr(found.error, "Content-Disposition has more than 32 parameters"));
	buf_free(&found.text);
}

TEST_MAIN(NULL, NULL)
