#include "archive/xml_text.h"

void xml_add_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': buf_add_text(out, "&amp;"); break;
		case '<': buf_add_text(out, "&lt;"); break;
		case '>': buf_add_text(out, "&gt;"); break;
		case '"': buf_add_text(out, "&quot;"); break;
		default: buf_add_byte(out, (unsigned char)*text < ' ' ? ' ' : *text);
		}
	}
}
