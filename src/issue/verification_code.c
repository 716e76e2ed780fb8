#include "issue/verification_code.h"

#include <ctype.h>
#include <stdio.h>

#include "base/utf8.h"

#define PREFIX_MIN 2
#define PREFIX_MAX 10
#define MARK_SIZE (sizeof "TEST" - 1)
#define YEAR_SIZE 4
#define HALF_SIZE 4 /* half of the letters */
#define TAIL_SIZE ((size_t)YEAR_SIZE + (size_t)2 * HALF_SIZE)
#define LETTERS_MAX (PREFIX_MAX + MARK_SIZE + TAIL_SIZE)

struct span {
	uint32_t first, last;
};

#define IS_ONE_OF(spans, character) is_one_of(spans, sizeof(spans) / sizeof *(spans), character)

static bool is_one_of(const struct span *spans, size_t count, uint32_t character)
{
	for (size_t i = 0; i < count; i++)
		if (character >= spans[i].first && character <= spans[i].last)
			return true;
	return false;
}

/* Returns whether a character is white space (Unicode White_Space) or invisible. */
static bool is_space(uint32_t character)
{
	static const struct span spans[] = {
		{0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x34f, 0x34f},
		{0x061c, 0x061c}, {0x1680, 0x1680}, {0x180b, 0x180f}, {0x2000, 0x200f}, {0x2028, 0x202f},
		{0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164}, {0xfe00, 0xfe0f},
		{0xfeff, 0xfeff}, {0xffa0, 0xffa0},
	};
	return IS_ONE_OF(spans, character);
}

/* Returns whether a character is a hyphen or a dash (Unicode Dash), including the soft hyphen. */
static bool is_hyphen(uint32_t character)
{
	static const struct span spans[] = {
		{'-', '-'},       {0xad, 0xad},     {0x2d7, 0x2d7},   {0x58a, 0x58a},     {0x5be, 0x5be},
		{0x1400, 0x1400}, {0x1806, 0x1806}, {0x2010, 0x2015}, {0x2043, 0x2043},   {0x2053, 0x2053},
		{0x207b, 0x207b}, {0x208b, 0x208b}, {0x2212, 0x2212}, {0x2500, 0x2501},   {0x2796, 0x2796},
		{0x2e17, 0x2e17}, {0x2e1a, 0x2e1a}, {0x2e3a, 0x2e3b}, {0x2e40, 0x2e40},   {0x2e5d, 0x2e5d},
		{0x301c, 0x301c}, {0x3030, 0x3030}, {0x30a0, 0x30a0}, {0xfe31, 0xfe32},   {0xfe58, 0xfe58},
		{0xfe63, 0xfe63}, {0xff0d, 0xff0d}, {0xff70, 0xff70}, {0x10ead, 0x10ead},
	};
	return IS_ONE_OF(spans, character);
}

/* Returns whether a character is the mark of quoted lines, or the soft line break of
 * quoted-printable (RFC 2045 section 6.7). */
static bool is_mail_mark(uint32_t character)
{
	return character == '>' || character == '=';
}

/* Returns whether a character is punctuation that may surround a code in a sentence. */
static bool is_punctuation(uint32_t character)
{
	static const struct span spans[] = {
		{0xa1, 0xa1},     {0xab, 0xab},     {0xb7, 0xb7},     {0xbb, 0xbb},     {0xbf, 0xbf},
		{0x2018, 0x201f}, {0x2022, 0x2022}, {0x2026, 0x2026}, {0x2039, 0x203a},
	};
	return (character < 0x80 && ispunct((int)character)) || IS_ONE_OF(spans, character);
}

/* Converts a character to an upper-case letter or a digit; 0: it is neither. */
static char letter_of(uint32_t character)
{
	bool is_wide = character >= 0xff01 && character <= 0xff5e;
	uint32_t narrow = is_wide ? character - 0xff01 + '!' : character;
	return narrow < 0x80 && isalnum((int)narrow) ? (char)toupper((int)narrow) : 0;
}

/* Removes and returns the first character; false: invalid UTF-8. */
static bool take(struct slice *rest, uint32_t *ret_character)
{
	static const uint8_t leads[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	size_t size = utf8_character(*rest);
	if (size == 0)
		return false;
	uint32_t character = (uint8_t)rest->data[0] & leads[size];
	for (size_t i = 1; i < size; i++)
		character = character << 6 | ((uint8_t)rest->data[i] & 0x3f);
	*rest = slice_make(rest->data + size, rest->size - size);
	*ret_character = character;
	return true;
}

/* ---- codes ---- */

struct letters {
	size_t size;
	char text[LETTERS_MAX];
	bool parted[LETTERS_MAX]; /* preceded by a separator */
};

static bool read_letters(struct slice typed, struct letters *letters)
{
	bool parted = false, ended = false;
	uint32_t character;
	while (typed.size > 0) {
		if (!take(&typed, &character))
			return false;
		char letter = letter_of(character);
		bool parts = is_space(character) || is_hyphen(character) || is_mail_mark(character);
		if (!letter && !parts && !is_punctuation(character))
			return false;
		if (letter && (ended || letters->size == LETTERS_MAX))
			return false;
		if (letter) {
			letters->parted[letters->size] = parted;
			letters->text[letters->size++] = letter;
		}
		parted = !letter;
		ended |= !letter && !parts && letters->size > 0;
	}
	return true;
}

static void add(struct verification_codes *codes, const struct letters *letters, bool is_test)
{
	size_t mark = is_test ? MARK_SIZE : 0;
	size_t prefix = letters->size - TAIL_SIZE - mark;
	if (prefix < PREFIX_MIN || prefix > PREFIX_MAX)
		return;
	const char *year = letters->text + prefix + mark;
	snprintf(codes->codes[codes->count++], VERIFICATION_CODE_SIZE, "%.*s-%s%.*s-%.*s-%.*s",
	         (int)prefix, letters->text, is_test ? "TEST-" : "", YEAR_SIZE, year, HALF_SIZE,
	         year + YEAR_SIZE, HALF_SIZE, year + YEAR_SIZE + HALF_SIZE);
}

struct verification_codes verification_code_read(struct slice typed)
{
	struct verification_codes codes = {0};
	struct letters letters = {0};
	if (typed.size > VERIFICATION_TYPED_MAX || !read_letters(typed, &letters) ||
	    letters.size < PREFIX_MIN + TAIL_SIZE)
		return codes;
	size_t year = letters.size - TAIL_SIZE;
	for (size_t i = 0; i < YEAR_SIZE; i++)
		if (!isdigit((unsigned char)letters.text[year + i]))
			return codes;
	bool may_be_test =
		year > MARK_SIZE && memcmp(letters.text + year - MARK_SIZE, "TEST", MARK_SIZE) == 0;
	bool is_marked = may_be_test && letters.parted[year - MARK_SIZE];
	if (may_be_test && is_marked)
		add(&codes, &letters, true);
	add(&codes, &letters, false);
	if (may_be_test && !is_marked)
		add(&codes, &letters, true);
	codes.is_certain = is_marked || letters.parted[year];
	return codes;
}

/* ---- digests ---- */

bool verification_digest_read(struct slice typed, struct sha256 *ret_digest)
{
	char digits[2 * SHA256_SIZE];
	size_t size = 0;
	uint32_t character;
	if (typed.size > VERIFICATION_TYPED_MAX)
		return false;
	while (typed.size > 0) {
		if (!take(&typed, &character))
			return false;
		char digit = letter_of(character);
		if (!digit && !is_space(character))
			return false;
		if (digit && size == sizeof digits)
			return false;
		if (digit)
			digits[size++] = digit;
	}
	return hex_decode(slice_make(digits, size), ret_digest->bytes, SHA256_SIZE);
}
