#include "support.h"

#include "seal/ber.h"

static struct slice bytes_of(const char *hex, unsigned char bytes[128])
{
	size_t size = strlen(hex) / 2;

	for (size_t i = 0; i < size; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
	return slice_make(bytes, size);
}

TEST_CASE(test_elements)
{
	static const struct {
		const char *hex;
		size_t whole, inside; /* size of the whole element, 0: none */
	} cases[] = {
		{"0500", 2, 0},
		{"020105ff", 3, 1},
		{"3003020105", 5, 3},
		{"308103020105", 6, 3},                  /* a length that is longer than necessary */
		{"3088000000000000000302010500", 13, 3}, /* the longest length */
		{"30800201050000", 7, 3},
		{"30803080020105000000000500", 11, 7}, /* nested */
		{"3080040200000000", 8, 4},            /* an end marker inside an element */
		{"", 0, 0},
		{"30", 0, 0},
		{"3004020105", 0, 0},                   /* truncated */
		{"3080020105", 0, 0},                   /* no end */
		{"308002010500", 0, 0},                 /* half an end */
		{"0480010100000", 0, 0},                /* primitive, without a length */
		{"0000", 0, 0},                         /* an end without a beginning */
		{"0001ff", 0, 0},                       /* an unassigned tag number */
		{"1f8101020500", 0, 0},                 /* a tag number above 30 */
		{"3089000000000000000003020105", 0, 0}, /* a length of nine octets */
		{"3088ffffffffffffffff020105", 0, 0},   /* a length beyond the input */
		{"30880fffffffffffffff020105", 0, 0},
		{"30ff020105", 0, 0},
		{"3084", 0, 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned char bytes[128];
		struct slice all = bytes_of(cases[i].hex, bytes);
		struct slice rest = all;
		struct ber_element element;
		if (ber_next(&rest, &element) != (cases[i].whole > 0))
			fail_msg("%s", cases[i].hex);
		if (cases[i].whole == 0) {
			assert_ptr_equal(rest.data, all.data);
			assert_int_equal(rest.size, all.size);
			continue;
		}
		assert_int_equal(element.identifier, bytes[0]);
		assert_ptr_equal(element.whole.data, all.data);
		assert_int_equal(element.whole.size, cases[i].whole);
		assert_int_equal(element.inside.size, cases[i].inside);
		assert_int_equal(rest.size, all.size - cases[i].whole);
	}
}

static int to_der(const char *hex, enum ber_order order, char text[256])
{
	unsigned char bytes[128];
	BUF_AUTO struct buf out = {.limit = 1024};

	int result = ber_to_der(bytes_of(hex, bytes), order, &out);
	*text = 0;
	if (!result)
		hex_encode((const unsigned char *)out.data, out.size, text);
	return result;
}

TEST_CASE(test_to_der)
{
	static const struct {
		const char *ber, *kept, *sorted; /* NULL: refused */
	} cases[] = {
		{"0500", "0500", "0500"},
		{"30800201050000", "3003020105", "3003020105"},
		{"308103020105", "3003020105", "3003020105"},
		{"02810105", "020105", "020105"},
		/* A string in segments, one of them empty; and a SEQUENCE around it. */
		{"308024800402aabb04000401cc00000000", "30050403aabbcc", "30050403aabbcc"},
		{"3106020109020103", "3106020109020103", "3106020103020109"},
		{"a006020109020103", "a006020109020103", "a006020103020109"},
		{"3006020109020103", "3006020109020103", "3006020109020103"},
		/* A primitive type marked as constructed, and vice versa. */
		{"2203020105", "2203020105", "2203020105"},
		{"2404020105ff", NULL, NULL},
		{"1003020105", "1003020105", "1003020105"},
		{"30030201", NULL, NULL},
		{"3002020105", NULL, NULL},
		{"050000", NULL, NULL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[256];
		int result = to_der(cases[i].ber, BER_ORDER_KEPT, text);
		assert_int_equal(result, cases[i].kept ? 0 : ERR_INVALID_EVIDENCE);
		if (cases[i].kept)
			assert_string_equal(text, cases[i].kept);
		result = to_der(cases[i].ber, BER_ORDER_SORTED, text);
		assert_int_equal(result, cases[i].sorted ? 0 : ERR_INVALID_EVIDENCE);
		if (cases[i].sorted)
			assert_string_equal(text, cases[i].sorted);
	}
}

/* Lengths around those at which another octet is needed, compared with OpenSSL. */
TEST_CASE(test_lengths)
{
	static const size_t sizes[] = {0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000};
	BUF_AUTO struct buf ber = {.limit = 1 << 20};
	BUF_AUTO struct buf der = {.limit = 1 << 20};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		buf_clear(&ber);
		buf_clear(&der);
		buf_add(&ber, "\x24\x80\x04\x83", 4);
		for (int shift = 16; shift >= 0; shift -= 8)
			buf_add_byte(&ber, (char)(sizes[i] >> shift));
		for (size_t n = 0; n < sizes[i]; n++)
			buf_add_byte(&ber, 'x');
		buf_add(&ber, "\0\0", 2);
		assert_int_equal(ber_to_der(buf_slice(&ber), BER_ORDER_KEPT, &der), 0);
		scratch_write("made.der", buf_slice(&der));
		assert_int_equal(scratch_run("openssl asn1parse -inform DER -in made.der | "
		                             "grep -q 'l= *%zu prim: OCTET STRING'",
		                             sizes[i]),
		                 0);
		size_t octets = sizes[i] < 0x80 ? 0 : sizes[i] < 0x100 ? 1 : sizes[i] < 0x10000 ? 2 : 3;
		assert_int_equal(der.size, sizes[i] + 2 + octets);
	}
}

TEST_CASE(test_depth)
{
	for (unsigned depth = BER_DEPTH_MAX - 1; depth <= BER_DEPTH_MAX + 1; depth++) {
		BUF_AUTO struct buf ber = {.limit = 1024};
		BUF_AUTO struct buf der = {.limit = 1024};
		for (unsigned i = 0; i < depth; i++)
			buf_add(&ber, "\x30\x80", 2);
		for (unsigned i = 0; i < depth; i++)
			buf_add(&ber, "\0\0", 2);
		assert_int_equal(ber_to_der(buf_slice(&ber), BER_ORDER_KEPT, &der),
		                 depth <= BER_DEPTH_MAX ? 0 : ERR_INVALID_EVIDENCE);
	}
}

TEST_MAIN(scratch_begin, scratch_end)
