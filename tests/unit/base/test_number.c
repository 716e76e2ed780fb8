#include <float.h>
#include <math.h>

#include "testing.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/json_canonical.h"
#include "base/number.h"

static double from_bits(uint64_t bits)
{
	double number;
	memcpy(&number, &bits, sizeof number);
	return number;
}

static uint64_t to_bits(double number)
{
	uint64_t bits;
	memcpy(&bits, &number, sizeof bits);
	return bits;
}

/* RFC 8785, appendix B. */
TEST_CASE(test_appendix_b)
{
	static const struct {
		uint64_t bits;
		const char *text;
	} rows[] = {
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	};
	BUF_AUTO struct buf buf = {.limit = 100};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_clear(&buf);
		json_add_number(&buf, from_bits(rows[i].bits));
		assert_string_equal(buf.data, rows[i].text);
		double back;
		assert_int_equal(number_parse(buf.data, buf.size, &back), NUMBER_GOOD);
		assert_true(to_bits(back) == rows[i].bits || back == 0);
	}
}

TEST_CASE(test_shapes)
{
	static const struct {
		double number;
		const char *text;
	} rows[] = {
		{1, "1"},
		{-1, "-1"},
		{10, "10"},
		{0.5, "0.5"},
		{-0.25, "-0.25"},
		{123.456, "123.456"},
		{1e20, "100000000000000000000"},
		{1.5e21, "1.5e+21"},
		{1e-6, "0.000001"},
		{1e-7, "1e-7"},
		{1.25e-7, "1.25e-7"},
		{1e100, "1e+100"},
		{0.1 + 0.2, "0.30000000000000004"},
		{9007199254740991, "9007199254740991"},
		{-9007199254740991, "-9007199254740991"},
		{9007199254740994, "9007199254740994"},
		{DBL_MIN, "2.2250738585072014e-308"},
	};
	BUF_AUTO struct buf buf = {.limit = 100};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[NUMBER_TEXT_SIZE];
		buf_clear(&buf);
		json_add_number(&buf, rows[i].number);
		assert_string_equal(buf.data, rows[i].text);
		assert_int_equal(number_format(rows[i].number, text), strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);
	}
}

/* An independent way to the shortest digits: the C library prints a double exactly and reads
 * decimals correctly rounded. Of the two decimals with `count` digits around the exact value, takes
 * the closer one (the even one of two equally close ones, as ECMA-262 requires) that reads back as
 * the same double. Returns false when neither does. */
static bool digits_that_read_back(double number, int count, char digits[24])
{
	char exact[1200];
	snprintf(exact, sizeof exact, "%.1100e", number);
	char *mark = strchr(exact, 'e');
	int exponent = atoi(mark + 1);
	memmove(exact + 1, exact + 2, strlen(exact + 2) + 1); /* the point */
	const char *rest = exact + count;
	uint64_t lower = 0;
	for (int i = 0; i < count; i++)
		lower = lower * 10 + (uint64_t)(exact[i] - '0');
	bool half = *rest == '5' && rest[1 + strspn(rest + 1, "0")] == 'e';
	bool upper_closer = half ? lower % 2 != 0 : *rest >= '5';
	for (int i = 0; i < 2; i++) {
		uint64_t candidate = lower + ((i == 0) == upper_closer);
		char text[64];
		snprintf(text, sizeof text, "%llue%d", (unsigned long long)candidate, exponent - count + 1);
		if (strtod(text, NULL) == number) {
			snprintf(digits, 24, "%llu", (unsigned long long)candidate);
			return true;
		}
	}
	return false;
}

/* The significant digits of a formatted number. */
static void strip(const char *text, char digits[24])
{
	size_t size = 0;
	for (; *text && *text != 'e'; text++)
		if (*text != '.' && *text != '-' && (*text != '0' || size))
			digits[size++] = *text;
	while (size && digits[size - 1] == '0')
		size--;
	digits[size] = '\0';
}

static void assert_shortest(double number)
{
	char text[NUMBER_TEXT_SIZE];
	char found[24];
	char expected[24];
	number_format(number, text);
	strip(text, found);
	int count = 1;
	while (!digits_that_read_back(number, count, expected))
		count++;
	strip(expected, expected);
	if (strcmp(found, expected) != 0)
		fail_msg("%a is written %s, the shortest is %s", number, text, expected);
	double back;
	assert_int_equal(number_parse(text, strlen(text), &back), NUMBER_GOOD);
	assert_true(back == number && strtod(text, NULL) == number);
}

/* Where the distance to the next double changes: a loop over growing precision gives a wrong result
 * for 46 of these. */
TEST_CASE(test_powers_of_two)
{
	int count = 0;
	for (int exponent = -1074; exponent <= 1023; exponent++, count++)
		assert_shortest(ldexp(1, exponent));
	assert_int_equal(count, 2098);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed ^ *seed >> 29;
}

TEST_CASE(test_random_doubles)
{
	uint64_t seed = 8785;
	for (int i = 0; i < 3000; i++) {
		double number = fabs(from_bits(next_random(&seed)));
		if (isfinite(number) && number != 0)
			assert_shortest(number);
	}
}

TEST_CASE(test_powers_of_ten)
{
	for (int exponent = -323; exponent <= 308; exponent++) {
		char text[16];
		double number;
		snprintf(text, sizeof text, "1e%d", exponent);
		assert_int_equal(number_parse(text, strlen(text), &number), NUMBER_GOOD);
		assert_true(number == strtod(text, NULL));
		assert_shortest(number);
		if (number > DBL_MIN)
			assert_shortest(nextafter(number, 0));
	}
}

TEST_CASE(test_parse_edges)
{
	static const struct {
		const char *text;
		double number;
	} good[] = {
		{"-0", 0},
		{"-0.0e5", 0},
		{"1e-400", 0},
		{"-1e-400", 0},
		{"0e99999999999999999999", 0},
		{"0.0000e+400", 0},
		{"1e-99999999999999999999", 0},
		{"5e-324", 0x1p-1074},
		{"2.4703282292062328e-324", 0x1p-1074},
		{"2.4703282292062327e-324", 0},
		{"1.7976931348623158e308", DBL_MAX},
		{"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
		{"0.000000000000000000001e21", 1},
		{"100000000000000000000e-20", 1},
		{"9007199254740993.0", 9007199254740992},
		{"9007199254740993.00000000001", 9007199254740994},
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		double number = 7;
		assert_int_equal(number_parse(good[i].text, strlen(good[i].text), &number), NUMBER_GOOD);
		assert_true(number == good[i].number && !signbit(number));
	}
	static const char *const large[] = {
		"1e309",     "-1e309",   "1.7976931348623159e308", "1e99999999999999999999",
		"0.001e312", "10000e305"};
	for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
		double number = 7;
		assert_int_equal(number_parse(large[i], strlen(large[i]), &number), NUMBER_OVERFLOW);
		assert_true(number == 7);
	}
	static const char *const malformed[] = {"", "x", "1x", "1e", "+1", "1 ", "--1"};
	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
		double number = 7;
		assert_int_equal(number_parse(malformed[i], strlen(malformed[i]), &number),
		                 NUMBER_MALFORMED);
		assert_true(number == 7);
	}
}

/* The number sequence that is published with the reference implementation of RFC 8785: edge values,
 * two thousand of the smallest normal doubles, then repeated SHA-256 from 32 zero bytes. The
 * digests of its lines "bits,text" are published for the first 10^3, 10^4, … */
static const uint64_t thirds[] = {
	0x446696695dbd1cc3, 0x443211ede4974a35, 0x43fce97ca0f21056, 0x43c7213080c1a6ac,
	0x439280f39a348556, 0x435d9b1f5d20d557, 0x4327af4c4a80aaac, 0x42f2f2a36ecd5556,
	0x42be51057e155558, 0x428840d131aaaaac, 0x4253670dc1555557, 0x421f0b4935555557,
	0x41e8d5d42aaaaaac, 0x41b3de4355555556, 0x417fca0555555556, 0x41496e6aaaaaaaab,
	0x4114585555555555, 0x40e046aaaaaaaaab, 0x40aa0aaaaaaaaaaa, 0x4074d55555555555,
	0x4040aaaaaaaaaaab, 0x400aaaaaaaaaaaab, 0x3fd5555555555555, 0x3fa1111111111111,
	0x3f6b4e81b4e81b4f, 0x3f35d867c3ece2a5, 0x3f0179ec9cbd821e, 0x3ecbf647612f3696,
	0x3e965e9f80f29212, 0x3e61e54c672874db, 0x3e2ca213d840baf8, 0x3df6e80fe033c8c6,
	0x3dc2533fe68fd3d2, 0x3d8d51ffd74c861c, 0x3d5774ccac3d3817, 0x3d22c3d6f030f9ac,
	0x3cee0624b3818f79, 0x3cb804ea293472c7, 0x3c833721ba905bd3, 0x3c4ebe9c5db3c61e,
	0x3c18987d17c304e5, 0x3be3ad30dfcf371d, 0x3baf7b816618582f, 0x3b792f9ab81379bf,
	0x3b442615600f9499, 0x3b101e77800c76e1, 0x3ad9ca58cce0be35, 0x3aa4a1e0a3e6fe90,
	0x3a708180831f320d, 0x3a3a68cd9e985016,
};

static const double edges[] = {
	10,
	5,
	0.5,
	0.05,
	0.005,
	0.0005,
	5e-5,
	5e-6,
	5e-7,
	5e-8,
	5e-9,
	5.06e-6,
	5.006e-6,
	5.0006e-6,
	5.00006e-6,
	5.000006e-6,
	5.0000006e-6,
	5.00000006e-6,
	5.000000006e-6,
	5.0000000006e-6,
	5.00000000006e-6,
	5.000000000006e-6,
	5.0000000000006e-6,
	5.00000000000006e-6,
	5.000000000000006e-6,
	5e-6,
	1,
	-1,
	-0x1.ffffffffffffap-1,
	-0x1.ffffffffffffbp-1,
	0x1.ffffffffffffap-1,
	0x1.ffffffffffffbp-1,
	0x1.ffffffffffffcp-1,
	0x1.ffffffffffffep-1,
	-0x1.fffffffffffffp-1,
	-0x1.fffffffffffffp-1,
	0x1.fffffffffffffp-1,
	0x1.fffffffffffffp-1,
	0x1.3333333333332p-2,
	0x1.3333333333333p-2,
	0x1.3333333333334p-2,
	DBL_MIN,
	0x0.ffffffffffffdp-1022,
	0x0.fffffffffffffp-1022,
	DBL_MAX,
	-DBL_MAX,
	0x1p53,
	-0x1p53,
	0x1p68,
	0x1.52d02c7e14af5p76,
	0x1.52d02c7e14af6p76,
	0x1.52d02c7e14af7p76,
	0x1.b1ae4d6e2ef4ep69,
	0x1.b1ae4d6e2ef4fp69,
	1e21,
	0x1.0c6f7a0b5ed8cp-20,
	1e-6,
	0x1.3de4355555553p28,
	0x1.3de4355555554p28,
	0x1.3de4355555555p28,
	0x1.3de4355555556p28,
	0x1.3de4355555557p28,
	-0x1.bf647612f3696p-19,
	1424953923781206.2,
};

#define THIRD_COUNT (sizeof thirds / sizeof *thirds)
#define EDGE_COUNT (sizeof edges / sizeof *edges)
#define SMALLEST_COUNT 2000

struct sequence {
	size_t at;
	struct sha256 block;
	size_t left; /* bytes of block not used yet */
};

static double sequence_next(struct sequence *sequence)
{
	static const uint64_t first[] = {0, UINT64_C(1) << 63, 1, (UINT64_C(1) << 63) + 1};
	size_t at = sequence->at++;
	if (at < 4)
		return from_bits(first[at]);
	if ((at -= 4) < THIRD_COUNT)
		return -from_bits(thirds[at]);
	if ((at -= THIRD_COUNT) < THIRD_COUNT)
		return from_bits(thirds[at]);
	if ((at -= THIRD_COUNT) < EDGE_COUNT)
		return edges[at];
	if ((at -= EDGE_COUNT) < SMALLEST_COUNT)
		return from_bits(to_bits(DBL_MIN) + at);
	for (;;) {
		if (sequence->left == 0) {
			sequence->block = sha256_of(sequence->block.bytes, SHA256_SIZE);
			sequence->left = SHA256_SIZE;
		}
		double number;
		memcpy(&number, sequence->block.bytes + SHA256_SIZE - sequence->left, sizeof number);
		sequence->left -= sizeof number;
		if (isfinite(number) && number != 0)
			return number;
	}
}

TEST_CASE(test_published_sequence)
{
	static const struct {
		int lines;
		const char *digest;
	} published[] = {
		{1000, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"},
		{10000, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892"},
		{100000, "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7"},
		{1000000, "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16"},
	};
	struct sequence sequence = {0};
	BUF_AUTO struct buf lines = {.limit = (size_t)64 * 1024 * 1024};
	int count = 0;
	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		for (; count < published[i].lines; count++) {
			double number = sequence_next(&sequence);
			buf_printf(&lines, "%llx,", (unsigned long long)to_bits(number));
			json_add_number(&lines, number);
			buf_add_byte(&lines, '\n');
		}
		assert_int_equal(buf_check(&lines), 0);
		char digest[2 * SHA256_SIZE + 1];
		hex_encode(sha256_of(lines.data, lines.size).bytes, SHA256_SIZE, digest);
		assert_string_equal(digest, published[i].digest);
	}
}

TEST_MAIN(NULL, NULL)
