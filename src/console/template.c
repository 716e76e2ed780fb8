#include "console/template.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "console/template_value.h"

struct scope {
	const struct json *data;
	const struct scope *outer;
};

struct drawing {
	const struct template *template;
	const struct template_view *view;
	struct buf *out;
	int result; /* result of a picture */
};

/* Returns a string; NULL: none. */
static const char *string(const struct drawing *drawing, template_string string)
{
	return string ? drawing->template->strings + string : NULL;
}

/* ---- names ---- */

static const struct json *member(const struct json *json, struct slice name)
{
	if (!json || json->type != JSON_OBJECT)
		return NULL;
	for (const struct json *child = json->first; child; child = child->next)
		if (slice_equal(child->name, name))
			return child;
	return NULL;
}

static struct slice first_part(const char *path)
{
	return slice_make(path, strcspn(path, "."));
}

static const struct json *find(const struct drawing *drawing, const struct scope *scope,
                               template_string name)
{
	const char *path = string(drawing, name);
	if (strcmp(path, ".") == 0)
		return scope->data;
	bool global = *path == '@';
	path += global;
	struct slice part = first_part(path);
	const struct json *found = global ? member(drawing->view->globals, part) : NULL;
	for (; scope && !global && !found; scope = scope->outer)
		found = member(scope->data, part);
	while (found && part.data[part.size]) {
		part = first_part(part.data + part.size + 1);
		found = member(found, part);
	}
	return found;
}

/* ---- blocks ---- */

static bool is_there(const struct json *json)
{
	if (!json)
		return false;
	switch (json->type) {
	case JSON_NULL:
	case JSON_FALSE: return false;
	case JSON_NUMBER: return json->number != 0;
	case JSON_STRING: return json->text.size > 0;
	case JSON_ARRAY: return json->count > 0;
	default: return true;
	}
}

/* Returns the text of a value; booleans have texts too. */
static struct slice plain(const struct json *json)
{
	if (!json)
		return slice_of("");
	switch (json->type) {
	case JSON_TRUE: return slice_of("true");
	case JSON_FALSE: return slice_of("false");
	case JSON_NUMBER:
	case JSON_STRING: return json->text;
	default: return slice_of("");
	}
}

static bool holds(const struct drawing *drawing, const struct scope *scope,
                  const struct template_op *op)
{
	const struct json *json = find(drawing, scope, op->text);
	bool holds = is_there(json);
	if (op->equals)
		holds = slice_is(plain(json), string(drawing, op->equals));
	else if (op->other)
		holds = slice_equal(plain(json), plain(find(drawing, scope, op->other)));
	return holds != op->negated;
}

/* ---- texts ---- */

static void draw_value(const struct drawing *drawing, const struct scope *scope,
                       const struct template_op *op)
{
	const struct template_value value = {
		.json = find(drawing, scope, op->text),
		.other = op->other ? find(drawing, scope, op->other) : NULL,
		.type = op->type,
		.place = op->place,
		.language = drawing->view->language,
	};
	template_value_draw(&value, drawing->out);
}

static void draw_text(const struct drawing *drawing, const struct scope *scope,
                      const struct template_op *op)
{
	const struct template_text *words = &drawing->template->texts[op->words];
	const struct template_op *values = op + 1;
	bool one = false;
	if (words->plural)
		one = slice_is(plain(find(drawing, scope, values[words->plural - 1].text)), "1");
	/* Placeholders are bytes from 1 up; texts contain no such bytes. */
	for (const char *at = string(drawing, words->forms[drawing->view->language][one]); *at;) {
		if ((unsigned char)*at <= op->then) {
			draw_value(drawing, scope, &values[*at++ - 1]);
			continue;
		}
		size_t size = 1;
		while ((unsigned char)at[size] > op->then)
			size++;
		buf_add(drawing->out, at, size);
		at += size;
	}
}

struct word_key {
	const char *name;
	const char *strings;
};

static int compare_words(const void *key, const void *element)
{
	const struct word_key *wanted = key;
	const struct template_word *word = element;
	return strcmp(wanted->name, wanted->strings + word->name);
}

const char *template_word(const struct template_words *words, const char *group, struct slice word,
                          enum language language)
{
	char name[100];
	if (!words || !words->count || word.size >= sizeof name || memchr(word.data, '\0', word.size))
		return NULL;
	int size = snprintf(name, sizeof name, "%s.%.*s", group, (int)word.size, word.data);
	if (size < 0 || (size_t)size >= sizeof name)
		return NULL;
	for (char *at = name; *at; at++)
		if (*at == ' ' || *at == '-')
			*at = '_';
	const struct word_key key = {name, words->strings};
	const struct template_word *found =
		bsearch(&key, words->words, words->count, sizeof *words->words, compare_words);
	return found ? words->strings + found->forms[language] : NULL;
}

static void draw_word(const struct drawing *drawing, const struct scope *scope,
                      const struct template_op *op)
{
	const struct template_view *view = drawing->view;
	struct slice value = plain(find(drawing, scope, op->text));
	const char *group = string(drawing, op->other);
	const char *word = value.size ? template_word(view->words, group, value, view->language) : NULL;
	template_escape(drawing->out, word ? slice_of(word) : value, op->place);
}

/* ---- the page ---- */

static void draw_ops(struct drawing *drawing, const struct scope *scope,
                     const struct template_op *ops, size_t count);

static void draw_block(struct drawing *drawing, const struct scope *scope,
                       const struct template_op *op)
{
	const struct json *json = find(drawing, scope, op->text);
	bool any = json && (op->kind == TEMPLATE_EACH ? json->type == JSON_ARRAY && json->count > 0
	                                              : json->type == JSON_OBJECT);
	if (!any) {
		draw_ops(drawing, scope, op + 1 + op->then, op->otherwise);
		return;
	}
	struct scope inner = {json, scope};
	if (op->kind == TEMPLATE_WITH) {
		draw_ops(drawing, &inner, op + 1, op->then);
		return;
	}
	for (inner.data = json->first; inner.data && !drawing->out->failed;
	     inner.data = inner.data->next)
		draw_ops(drawing, &inner, op + 1, op->then);
}

static void draw_picture(struct drawing *drawing, const struct scope *scope, const char *name)
{
	const struct template_view *view = drawing->view;
	if (view->picture && !drawing->result)
		drawing->result = view->picture(name, scope->data, view->language, drawing->out);
}

static void draw_ops(struct drawing *drawing, const struct scope *scope,
                     const struct template_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i += 1 + ops[i].then + ops[i].otherwise) {
		const struct template_op *op = &ops[i];
		switch ((enum template_kind)op->kind) {
		case TEMPLATE_LITERAL: buf_add(drawing->out, string(drawing, op->text), op->size); break;
		case TEMPLATE_VALUE: draw_value(drawing, scope, op); break;
		case TEMPLATE_TEXT_WITH: draw_text(drawing, scope, op); break;
		case TEMPLATE_WORD: draw_word(drawing, scope, op); break;
		case TEMPLATE_PICTURE: draw_picture(drawing, scope, string(drawing, op->text)); break;
		case TEMPLATE_EACH:
		case TEMPLATE_WITH: draw_block(drawing, scope, op); break;
		case TEMPLATE_IF:
			if (holds(drawing, scope, op))
				draw_ops(drawing, scope, op + 1, op->then);
			else
				draw_ops(drawing, scope, op + 1 + op->then, op->otherwise);
			break;
		case TEMPLATE_END: assert(false && "within a page"); break;
		}
	}
}

int template_draw(const struct template *template, const struct template_view *view,
                  struct buf *out)
{
	struct drawing drawing = {.template = template, .view = view, .out = out};
	const struct scope outermost = {view->data, NULL};
	draw_ops(&drawing, &outermost, template->ops, template->count);
	return drawing.result ? drawing.result : buf_check(out);
}
