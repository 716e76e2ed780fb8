/* What the pages for people share: frame, headers, escaping, and the forms of /verify. In English
 * and Spanish; they need no script. */
#ifndef HTTP_HTML_H
#define HTTP_HTML_H

#include "http/exchange.h"

#define HTML_TYPE "text/html; charset=utf-8"
/* In the head of a page. */
#define HTML_ICONS                                                                                 \
	"<link rel=\"icon\" href=\"/favicon.ico\" sizes=\"32x32\">\n"                                  \
	"<link rel=\"icon\" href=\"/assets/mark.svg\" type=\"image/svg+xml\">\n"
#define TEXT(language, english, spanish) ((language) == LANGUAGE_SPANISH ? (spanish) : (english))

/* As text or as the value of an attribute. */
void html_escape(struct buf *out, struct slice text);
/* Up to the first heading, which is the title. */
void html_begin(const struct exchange *exchange, const char *title, struct buf *out);
/* The forms of /verify, and the end. */
void html_forms(const struct exchange *exchange, struct buf *out);
void html_end(struct buf *out);

/* Answers with the page, or ERR_NO_MEMORY. */
void html_answer(struct exchange *exchange, int status, const struct buf *page);
/* After answer_with: what a browser may do with it. */
void html_headers(struct exchange *exchange);
/* Puts a page about exchange->error in the place of `out`. */
void html_error(struct exchange *exchange, int status);

/* "12 February 2026, 10:31:05 UTC", from a time as JSON has it; other texts as they are. */
void html_time(struct buf *out, enum language language, struct slice time);

/* A certification that this service issued, as verification_lookup tells it; `digest` (hex) marks
 * the file that was asked about, NULL: none. */
void html_issued(struct buf *out, enum language language, const struct json *found,
                 const char *digest);

#endif
