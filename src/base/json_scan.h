/* Scans JSON text for the end of a run without escapes, eight bytes at a time. */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the number of bytes before the first quote, backslash, control character or byte that
 * matches `stop_mask` (0x80: the first non-ASCII byte; 0: no further condition). */
static inline size_t json_plain_run(const char *text, size_t size, uint8_t stop_mask)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t tops = ones << 7;
	size_t at = 0;
	for (; size - at >= 8; at += 8) {
		uint64_t word;
		memcpy(&word, text + at, 8);
		/* The top bit of a lane is set if its byte is zero or below 0x20. Lanes above the first
		 * match may be wrong, so the rest is scanned byte by byte. */
		uint64_t quote = word ^ (ones * '"');
		uint64_t backslash = word ^ (ones * '\\');
		uint64_t found = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
		                 ((word - ones * 0x20) & ~word) | (word & (ones * stop_mask));
		if (found & tops)
			break;
	}
	for (; at < size; at++) {
		uint8_t byte = (uint8_t)text[at];
		if (byte == '"' || byte == '\\' || byte < 0x20 || (byte & stop_mask))
			break;
	}
	return at;
}

#endif
