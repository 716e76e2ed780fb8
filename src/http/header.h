/* Parses values of request headers and writes values of response headers. Pure functions. */
#ifndef HTTP_HEADER_H
#define HTTP_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Chooses between English and Spanish (RFC 9110 section 12.5.4). With equal weights the one named
 * first wins; without either, English. */
enum language header_language(struct slice accept_language);

/* Content negotiation between JSON and HTML (RFC 9110 section 12.5.1). JSON is preferred if it is
 * named and HTML has no higher weight. HTML is preferred if its weight is higher than that of JSON.
 * If neither is named, neither is preferred. */
bool header_prefers_json(struct slice accept);
bool header_prefers_html(struct slice accept);

/* Returns whether the media type without parameters is equal, ignoring case. */
bool header_media_type_is(struct slice content_type, const char *media_type);

#define HEADER_PARAMETERS_MAX 32 /* of one header; enforced by callers */

/* What a backslash means in a quoted value. */
enum header_escapes {
	ESCAPES_ALL,  /* the next character is meant literally (RFC 9110 section 5.6.4) */
	ESCAPES_FORM, /* only \" and \\ are escapes: a form has paths of Windows in it */
	ESCAPES_NONE, /* it is a character like any other, as browsers send it in file names */
};
/* Reads the next `; name=value` of a header value, and skips semicolons without a parameter.
 * Returns 1, 0 at the end, ERR_VALIDATION for a malformed parameter, or ERR_NO_MEMORY. Quoted
 * values are unescaped into the arena, which takes at most the size of the value. */
int header_parameter(struct slice *rest, enum header_escapes escapes, struct arena *arena,
                     struct slice *ret_name, struct slice *ret_value) MUST_CHECK;

/* Returns whether the value has 1 to 255 visible ASCII characters. */
bool header_is_idempotency_key(struct slice value);

/* Checks a field name (RFC 9110 section 5.1) and a field value (section 5.5: no control characters
 * except tab). */
bool header_is_token(struct slice name);
bool header_is_text(struct slice value);

bool header_name_is(struct slice name, const char *text); /* ignoring case */
struct slice header_trim(struct slice value);             /* removes spaces and tabs at both ends */

/* Writes `attachment` with a plain file name for all clients and the exact one (RFC 6266, RFC
 * 8187). `name` cannot break out of the header value. */
void header_disposition(struct slice name, struct buf *out);

/* Reads one byte range (RFC 9110 section 14.2) of a representation of `size` bytes. */
enum header_range { RANGE_NONE, RANGE_PART, RANGE_UNSATISFIABLE };
enum header_range header_range(struct slice value, uint64_t size, uint64_t *ret_offset,
                               uint64_t *ret_size);

/* Returns whether If-None-Match contains the entity tag, strong or weak, or is "*" (RFC 9110
 * sections 8.8.3.2 and 13.1.2). A malformed list is ignored from the error on. */
bool header_has_entity_tag(struct slice none_match, const char *tag);

/* Decodes %XX into the arena; '+' is unchanged. ERR_VALIDATION: malformed, not UTF-8, or contains
 * NUL; ERR_NO_MEMORY. */
int header_unescape(struct slice text, struct arena *arena, struct slice *ret) MUST_CHECK;

#endif
