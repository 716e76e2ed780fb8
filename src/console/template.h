/* Draws pages that compile_templates.py made of HTML files.
 *
 * A page is an array of operations over JSON: literals, values, blocks. No operation writes a value
 * as it is: each is escaped for the place in which it stands, which the compiler found out. In an
 * element what cannot be seen, or turns the direction of what follows, is shown by its number, as
 * reports show it: ‹U+202E›. Thread safe, without any state.
 *
 * A name of a value ("channel.name") is looked for in the innermost {{#each}} or {{#with}} first,
 * then further out; "." is the innermost itself; "@token" is one of `globals`, which no data can
 * cover. What is absent, null, or not of the type that was asked for as text draws nothing. */
#ifndef CONSOLE_TEMPLATE_H
#define CONSOLE_TEMPLATE_H

#include "base/json.h"

enum template_kind {
	TEMPLATE_END,
	TEMPLATE_LITERAL,   /* `text`, `size` bytes of HTML */
	TEMPLATE_VALUE,     /* `text` (and `other`: the currency) as `type` */
	TEMPLATE_TEXT_WITH, /* `words`; the `then` operations that follow are its values */
	TEMPLATE_WORD,      /* the text of the group `other` that the value `text` names */
	TEMPLATE_PICTURE,   /* the one named `text`, of the innermost value */
	TEMPLATE_EACH, /* the `then` operations that follow, for each of the array `text`; when there
	                  is none, the `otherwise` ones behind those */
	TEMPLATE_WITH, /* the same, once, for the object `text` */
	TEMPLATE_IF,   /* whether `text` is there, or as `equals` says, or equal to `other` */
};

/* In which form a value is drawn; numbers and dates as the language writes them. */
enum template_type {
	TEMPLATE_TEXT,     /* text, a number as it was spelled */
	TEMPLATE_NUMBER,   /* 12,345; of an array, how many it has */
	TEMPLATE_CREDITS,  /* 1 credit */
	TEMPLATE_MONEY,    /* an amount ("1234.50") and a currency: 1,234.50 EUR */
	TEMPLATE_BYTES,    /* 1.5 MiB */
	TEMPLATE_DURATION, /* of seconds: 2 h 5 min */
	TEMPLATE_TIME,     /* RFC 3339: 2 January 2026, 03:04:05 UTC; a <time> in an element */
	TEMPLATE_DATE,     /* of a time, or YYYY-MM-DD: 2 January 2026 */
	TEMPLATE_HASH,     /* in an element a <code class="hash"> */
	TEMPLATE_JSON,     /* whatever it is, as JSON */
	TEMPLATE_LOCAL,    /* a whole address within this site; "#" when it is not */
};

enum template_place {
	TEMPLATE_IN_TEXT,      /* between tags */
	TEMPLATE_IN_FIELD,     /* what a reader edits: character by character, as it is */
	TEMPLATE_IN_ATTRIBUTE, /* the same, in double quotes */
	TEMPLATE_IN_ADDRESS,   /* a part of a path, or behind '=' in a query */
	TEMPLATE_IN_LOCAL,     /* a whole address */
};

/* A string is said by where it begins among all strings of pages that were made together; 0: none.
 * Pointers, tens of thousands, would be set at each start of the program, in memory of each
 * process. */
typedef uint32_t template_string;

/* HTML as the place wants it; bytes 1, 2, … stand for values. */
struct template_text {
	template_string forms[2][2]; /* by enum language; for many, for one */
	uint8_t plural;              /* the value that tells which, counted from 1; 0: none */
};

struct template_op {
	uint8_t kind, type, place;
	bool negated;
	uint32_t size, then, otherwise;
	template_string text, other, equals;
	uint32_t words; /* an index of the page's texts */
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
	/* Appends a picture as HTML; what it escapes is its own affair (template_escape). `data` may be
	 * NULL. NULL: pictures are left out. A non-zero result ends the drawing. */
	int (*picture)(const char *name, const struct json *data, enum language language,
	               struct buf *out);
};

/* Appends the page. 0, ERR_NO_MEMORY when `out` is full, or what a picture answered. */
int template_draw(const struct template *template, const struct template_view *view,
                  struct buf *out) MUST_CHECK;

/* For pictures: text in an element or a double-quoted attribute. */
void template_escape(struct buf *out, struct slice text, enum template_place place);
/* Of a character of UTF-8. */
uint32_t template_code_point(struct slice character);
/* Whether an element shows it by its number: a reader would not see it, or it moves others. */
bool template_is_unseen(uint32_t point);
/* The text of a word in a language, NULL when the group has none for it. */
const char *template_word(const struct template_words *words, const char *group, struct slice word,
                          enum language language);
/* Any value as JSON, on one line; what is nested too deeply is left out. */
void template_json(struct buf *out, const struct json *json);
/* A number as the language writes it. */
void template_number(struct buf *out, int64_t number, enum language language);

#endif
