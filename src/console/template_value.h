/* Formats and escapes values of a page. */
#ifndef CONSOLE_TEMPLATE_VALUE_H
#define CONSOLE_TEMPLATE_VALUE_H

#include "console/template.h"

struct template_value {
	const struct json *json;  /* NULL: absent */
	const struct json *other; /* the currency of an amount; NULL: absent */
	enum template_type type;
	enum template_place place;
	enum language language;
};

void template_value_draw(const struct template_value *value, struct buf *out);

#endif
