#include "base/number.h"

#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>

namespace {

struct decimal {
	char digits[24]; /* without point and without leading or trailing zeros */
	int count;
	int point; /* the value is 0.digits * 10^point */
};

decimal shortest(double number)
{
	char text[NUMBER_TEXT_SIZE];
	auto written = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
	assert(written.ec == std::errc());
	decimal result = {};
	const char *at = text;
	for (; *at != 'e'; at++)
		if (*at != '.')
			result.digits[result.count++] = *at;
	at += at[1] == '+' ? 2 : 1;
	std::from_chars(at, written.ptr, result.point);
	result.point++;
	return result;
}

char *put(char *text, const char *digits, int count)
{
	memcpy(text, digits, static_cast<size_t>(count));
	return text + count;
}

char *put_zeros(char *text, int count)
{
	memset(text, '0', static_cast<size_t>(count));
	return text + count;
}

/* ECMA-262, Number::toString: k is count, n is point. */
char *shape(char *text, const decimal &value)
{
	const char *digits = value.digits;
	int count = value.count;
	int point = value.point;
	if (count <= point && point <= 21)
		return put_zeros(put(text, digits, count), point - count);
	if (0 < point && point <= 21) {
		text = put(text, digits, point);
		*text++ = '.';
		return put(text, digits + point, count - point);
	}
	if (-6 < point && point <= 0)
		return put(put_zeros(put(text, "0.", 2), -point), digits, count);
	*text++ = digits[0];
	if (count > 1) {
		*text++ = '.';
		text = put(text, digits + 1, count - 1);
	}
	*text++ = 'e';
	*text++ = point - 1 < 0 ? '-' : '+';
	return std::to_chars(text, text + 4, point - 1 < 0 ? 1 - point : point - 1).ptr;
}

/* Returns whether a number outside the range of double is too large, not too small. */
bool is_large(const char *at, const char *end)
{
	long point = 0; /* the value is 0.d… * 10^point, where d is the first nonzero digit */
	bool significant = false;
	bool fraction = false;
	for (; at != end && *at != 'e' && *at != 'E'; at++) {
		if (*at == '-')
			continue;
		if (*at == '.') {
			fraction = true;
		} else if (*at != '0' || significant) {
			significant = true;
			point += !fraction;
		} else {
			point -= fraction;
		}
	}
	if (at != end) {
		at += at[1] == '+' ? 2 : 1;
		bool negative = *at == '-';
		long exponent = 0;
		for (at += negative; at != end && exponent < 1000000000; at++)
			exponent = exponent * 10 + (*at - '0');
		point += negative ? -exponent : exponent;
	}
	return point > 0;
}

} // namespace

size_t number_format(double number, char text[NUMBER_TEXT_SIZE])
{
	assert(std::isfinite(number));
	char *at = text;
	if (number == 0) {
		*at++ = '0';
	} else {
		if (number < 0)
			*at++ = '-';
		at = shape(at, shortest(std::fabs(number)));
	}
	*at = '\0';
	return static_cast<size_t>(at - text);
}

enum number_result number_parse(const char *text, size_t size, double *ret_number)
{
	const char *end = text + size;
	double number = 0;
	auto read = std::from_chars(text, end, number);
	if (read.ptr != end)
		return NUMBER_MALFORMED;
	if (read.ec == std::errc::result_out_of_range) {
		if (is_large(text, end))
			return NUMBER_OVERFLOW;
		number = 0;
	} else if (read.ec != std::errc()) {
		return NUMBER_MALFORMED;
	}
	if (std::isinf(number))
		return NUMBER_OVERFLOW;
	*ret_number = number == 0 ? 0 : number;
	return NUMBER_GOOD;
}
