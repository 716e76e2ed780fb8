#include "testing.h"
#include "base/base64.h"
#include "base/digest.h"
#include "base/percent.h"

/* The vectors of RFC 4648 section 10. */
static const struct {
	const char *bytes, *text;
} vectors[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
};

TEST_CASE(test_base64_vectors)
{
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		BUF_AUTO struct buf out = {.limit = 64};
		buf_add_byte(&out, '<');
		buf_add_base64(&out, slice_of(vectors[i].bytes));
		assert_string_equal(out.data + 1, vectors[i].text);
		assert_int_equal(out.size - 1, BASE64_SIZE(strlen(vectors[i].bytes)));
		char bytes[8];
		size_t size;
		struct slice text = slice_of(vectors[i].text);
		assert_true(base64_decode(text, bytes, 6, &size));
		assert_true(slice_equal(slice_make(bytes, size), slice_of(vectors[i].bytes)));
		text.size = strcspn(text.data, "=");
		assert_true(base64_decode(text, bytes, 6, &size));
		assert_true(slice_equal(slice_make(bytes, size), slice_of(vectors[i].bytes)));
		if (size)
			assert_false(base64_decode(text, bytes, size - 1, &size));
	}
}

TEST_CASE(test_base64_of_anything)
{
	uint8_t bytes[67], back[67];
	char text[BASE64_SIZE(sizeof bytes) + 1];
	for (size_t size = 0; size <= sizeof bytes; size++) {
		size_t got;
		random_bytes(bytes, size);
		base64_encode(bytes, size, text);
		assert_true(base64_decode(slice_of(text), back, sizeof back, &got));
		assert_true(slice_equal(slice_make(back, got), slice_make(bytes, size)));
	}
}

TEST_CASE(test_no_base64)
{
	static const char *const bad[] = {
		"Zg=a",  "Z g=",     "Zm9-", "Zm9_",  "Zm9v\n", "=Zg", "Zm\xc3\xb1", "=",     "====",
		"Zm9v=", "Zm9v====", "Zg=",  "Zg===", "Zm8==",  "Z",   "Z===",       "Zm9vZ", "Zm9vZ==="};
	char bytes[16];
	size_t size;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(base64_decode(slice_of(bad[i]), bytes, sizeof bytes, &size));
	assert_false(base64_decode(slice_make("Zm\0v", 4), bytes, sizeof bytes, &size));
}

TEST_CASE(test_percent)
{
	BUF_AUTO struct buf out = {.limit = 256};
	struct slice text = slice_make("aZ9-._~ +/=&%\xc3\xb1\0", 16);
	buf_add_percent(&out, text, "");
	assert_string_equal(out.data, "aZ9-._~%20%2B%2F%3D%26%25%C3%B1%00");
	buf_clear(&out);
	buf_add_percent(&out, slice_of("a/b c"), "/");
	assert_string_equal(out.data, "a/b%20c");
	size_t size;
	assert_true(percent_decode(buf_slice(&out), out.data, out.size, &size));
	assert_true(slice_is(slice_make(out.data, size), "a/b c"));
}

TEST_CASE(test_no_percent)
{
	static const char *const bad[] = {"%", "a%2", "%zz", "%2", "%%20", "%00", "a%+1"};
	char out[16];
	size_t size;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(percent_decode(slice_of(bad[i]), out, sizeof out, &size));
	assert_false(percent_decode(slice_make("a\0", 2), out, sizeof out, &size));
	assert_false(percent_decode(slice_of("%41b"), out, 1, &size));
	assert_true(percent_decode(slice_of("%41b"), out, 2, &size));
	assert_int_equal(size, 2);
}

TEST_MAIN(NULL, NULL)
