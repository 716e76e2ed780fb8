/* Draws pages that compile_templates.py compiled from HTML files.
 *
 * A page is an array of operations over JSON: literals, values, blocks. Every value is escaped for
 * its place, which the compiler determined. In an element, invisible characters and characters that
 * change the text direction are shown by their code point, as in reports: ‹U+202E›. Thread safe and
 * stateless.
 *
 * The name of a value ("channel.name") is looked up in the innermost {{#each}} or {{#with}}, then
 * in the outer ones. "." is the innermost value itself. "@token" is a member of `globals`, which
 * data cannot override. A value that is absent, null, or not of the requested type draws
 * nothing. */
#ifndef CONSOLE_TEMPLATE_H
#define CONSOLE_TEMPLATE_H

#include "base/json.h"

enum template_kind {
	TEMPLATE_END,
	TEMPLATE_LITERAL,   /* `text`: `size` bytes of HTML */
	TEMPLATE_VALUE,     /* `text` as `type`; `other`: the currency */
	TEMPLATE_TEXT_WITH, /* `words`; the next `then` operations are its values */
	TEMPLATE_WORD,      /* the text of the group `other` selected by the value `text` */
	TEMPLATE_PICTURE,   /* the picture named `text`, with the innermost value */
	/* the next `then` operations for each item of the array `text`; if it is empty, the `otherwise`
	 * operations after them */
	TEMPLATE_EACH,
	TEMPLATE_WITH, /* the same, once for the object `text` */
	TEMPLATE_IF,   /* whether `text` is present, or equals `equals`, or equals `other` */
};

/* Format of a value; numbers and dates are formatted for the language. */
enum template_type {
	TEMPLATE_TEXT,     /* text; a number as spelled */
	TEMPLATE_NUMBER,   /* 12,345; for an array, its length */
	TEMPLATE_CREDITS,  /* 1 credit */
	TEMPLATE_MONEY,    /* an amount ("1234.50") and a currency: 1,234.50 EUR */
	TEMPLATE_BYTES,    /* 1.5 MiB */
	TEMPLATE_DURATION, /* seconds: 2 h 5 min */
	TEMPLATE_TIME,     /* RFC 3339: 2 January 2026, 03:04:05 UTC; a <time> in an element */
	TEMPLATE_DATE,     /* a time or YYYY-MM-DD: 2 January 2026 */
	TEMPLATE_HASH,     /* a <code class="hash"> in an element */
	TEMPLATE_JSON,     /* any value as JSON */
	TEMPLATE_LOCAL,    /* a complete address of this site; otherwise "#" */
};

enum template_place {
	TEMPLATE_IN_TEXT,      /* between tags */
	TEMPLATE_IN_FIELD,     /* editable text, unchanged character by character */
	TEMPLATE_IN_ATTRIBUTE, /* in a double-quoted attribute */
	TEMPLATE_IN_ADDRESS,   /* a path segment, or after '=' in a query */
	TEMPLATE_IN_LOCAL,     /* a complete address */
};

/* Offset of a string in the string table of its page set; 0: none. Offsets are used because tens of
 * thousands of pointers would need relocation at each start, in memory of each process. */
typedef uint32_t template_string;

/* HTML for the place; bytes 1, 2, … are placeholders of values. */
struct template_text {
	template_string forms[2][2]; /* by enum language; plural, singular */
	uint8_t plural;              /* the value that selects the form, counted from 1; 0: none */
};

struct template_op {
	uint8_t kind, type, place;
	bool negated;
	uint32_t size, then, otherwise;
	template_string text, other, equals;
	uint32_t words; /* index of the page's texts */
};

struct template
{
	const char *name;
	const char *strings;
	const struct template_text *texts;
	const struct template_op *ops;
	size_t count;
};

/* Sorted by name, "group.word"; plain text. */
struct template_word {
	template_string name;
	template_string forms[2]; /* by enum language */
};
struct template_words {
	const char *strings;
	const struct template_word *words;
	size_t count;
};

struct template_view {
	const struct json *data;    /* NULL: none */
	const struct json *globals; /* NULL: none */
	enum language language;
	const struct template_words *words;
	/* Appends a picture as HTML, and escapes its own text (template_escape). `data` may be NULL.
	 * NULL: pictures are omitted. A non-zero result ends the drawing. */
	int (*picture)(const char *name, const struct json *data, enum language language,
	               struct buf *out);
};

/* Appends the page. 0, ERR_NO_MEMORY if `out` is full, or the result of a picture. */
int template_draw(const struct template *template, const struct template_view *view,
                  struct buf *out) MUST_CHECK;

/* Escapes text for pictures, in an element or a double-quoted attribute. */
void template_escape(struct buf *out, struct slice text, enum template_place place);
/* Returns the code point of a UTF-8 character. */
uint32_t template_code_point(struct slice character);
/* Returns whether an element shows the character by its code point, because it is invisible or
 * changes the position of others. */
bool template_is_unseen(uint32_t point);
/* Returns the text of a word in a language; NULL: the group has none. */
const char *template_word(const struct template_words *words, const char *group, struct slice word,
                          enum language language);
/* Writes any value as JSON on one line; omits values that are nested too deeply. */
void template_json(struct buf *out, const struct json *json);
/* Writes a number formatted for the language. */
void template_number(struct buf *out, int64_t number, enum language language);

#endif
