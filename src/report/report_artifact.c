#include "report/report_artifact.h"

#include <stdbool.h>
#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\0';
}

static bool is_delimiter(char c)
{
	return c == '(' || c == ')' || c == '<' || c == '>' || c == '[' || c == ']' || c == '/' ||
	       c == '{' || c == '}' || c == '%';
}

/* Returns the position after the literal string that begins at `at`. */
static size_t skip_string(struct slice content, size_t at)
{
	int depth = 0;
	for (; at < content.size; at++) {
		char c = content.data[at];
		if (c == '\\')
			at++;
		else if (c == '(')
			depth++;
		else if (c == ')' && --depth == 0)
			return at + 1;
	}
	return content.size;
}

/* Returns the next operator from `at` on, skipping operands; empty at the end. */
static struct slice next_operator(struct slice content, size_t at)
{
	while (at < content.size) {
		char c = content.data[at];
		if (c == '(') {
			at = skip_string(content, at);
			continue;
		}
		if (is_space(c) || (is_delimiter(c) && c != '/')) {
			at++;
			continue;
		}
		size_t end = at + 1;
		while (end < content.size && !is_space(content.data[end]) &&
		       !is_delimiter(content.data[end]))
			end++;
		bool hexadecimal =
			at > 0 && content.data[at - 1] == '<' && end < content.size && content.data[end] == '>';
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '\'' || c == '"';
		if (letter && !hexadecimal)
			return slice_make(content.data + at, end - at);
		at = end;
	}
	return slice_make(content.data + content.size, 0);
}

int report_mark_artifacts(struct slice content, struct buf *out, struct error *error)
{
	size_t at = 0;    /* after the last operator, where operands begin */
	size_t taken = 0; /* bytes already appended to out */
	int depth = 0;
	buf_add_text(out, "/Artifact BMC\n");
	for (;;) {
		struct slice operator= next_operator(content, at);
		if (operator.size == 0)
			break;
		size_t end = (size_t)(operator.data - content.data) + operator.size;
		bool opens = slice_is(operator, "BDC") || slice_is(operator, "BMC");
		bool closes = slice_is(operator, "EMC");
		if (opens && depth++ == 0) {
			buf_add(out, content.data + taken, at - taken);
			buf_add_text(out, "\nEMC");
			taken = at;
		}
		if (closes && --depth == 0) {
			buf_add(out, content.data + taken, end - taken);
			buf_add_text(out, "\n/Artifact BMC");
			taken = end;
		}
		if (depth < 0)
			break;
		at = end;
	}
	if (depth != 0)
		return error_cause(error, ERR_INTERNAL, "unbalanced marked-content sequences in a page");
	buf_add(out, content.data + taken, content.size - taken);
	buf_add_text(out, "\nEMC\n");
	return buf_check(out);
}
