/* Shared parts of HTML pages: frame, headers, escaping, and the forms of /verify. In English and
 * Spanish; the pages work without script. */
#ifndef HTTP_HTML_H
#define HTTP_HTML_H

#include "http/exchange.h"

#define HTML_TYPE "text/html; charset=utf-8"
/* Icons for the head of a page. */
#define HTML_ICONS                                                                                 \
	"<link rel=\"icon\" href=\"/favicon.ico\" sizes=\"32x32\">\n"                                  \
	"<link rel=\"icon\" href=\"/assets/mark.svg\" type=\"image/svg+xml\">\n"
#define TEXT(language, english, spanish) ((language) == LANGUAGE_SPANISH ? (spanish) : (english))

/* Escapes text for an element or an attribute value. */
void html_escape(struct buf *out, struct slice text);
/* Writes the beginning of a page up to the first heading, which is the title. */
void html_begin(const struct exchange *exchange, const char *title, struct buf *out);
/* Write the forms of /verify, and the end of the page. */
void html_forms(const struct exchange *exchange, struct buf *out);
void html_end(struct buf *out);

/* Answers with the page; without memory, with an error. */
void html_answer(struct exchange *exchange, int status, const struct buf *page);
/* Adds security headers and Vary. Call after answer_with. */
void html_headers(struct exchange *exchange);
/* Replaces `out` by a page about exchange->error. */
void html_error(struct exchange *exchange, int status);

/* Writes "12 February 2026, 10:31:05 UTC" for a JSON time; writes other text unchanged. */
void html_time(struct buf *out, enum language language, struct slice time);

/* Writes an issued certification from the result of verification_lookup. `digest` (hex) marks the
 * file in question; NULL: none. */
void html_issued(struct buf *out, enum language language, const struct json *found,
                 const char *digest);

#endif
