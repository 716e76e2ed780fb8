/* The values of request headers, and what is written into response headers. Pure. */
#ifndef HTTP_HEADER_H
#define HTTP_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* RFC 9110 section 12.5.4 between English and Spanish; of equal ones the first named wins, and
 * English when neither is. */
enum language header_language(struct slice accept_language);

/* Whether JSON is wanted (RFC 9110 section 12.5.1): it is named, and HTML not with more weight.
 * Whether HTML is: with more weight than JSON. Neither is where none of them is named. */
bool header_prefers_json(struct slice accept);
bool header_prefers_html(struct slice accept);

/* The media type without its parameters, compared without regard to case. */
bool header_media_type_is(struct slice content_type, const char *media_type);

#define HEADER_PARAMETERS_MAX 32 /* of one header; for callers to count */

/* The next `; name=value` of a header value: 1, 0 at the end, ERR_VALIDATION for what is none, or
 * ERR_NO_MEMORY. A value in quotes has \" and \\ undone, into the arena: no more of that than the
 * value has. */
int header_parameter(struct slice *rest, struct arena *arena, struct slice *ret_name,
                     struct slice *ret_value) MUST_CHECK;

/* Whether it has 1 to 255 visible ASCII characters. */
bool header_is_idempotency_key(struct slice value);

/* RFC 9110 section 5.1: what a name is made of. Section 5.5: no control character but the tab. */
bool header_is_token(struct slice name);
bool header_is_text(struct slice value);

bool header_name_is(struct slice name, const char *text); /* without regard to case */
struct slice header_trim(struct slice value);             /* spaces and tabs off both ends */

/* `attachment` with a file name: a plain one that any client reads, and the exact one (RFC 6266,
 * RFC 8187). Nothing in `name` can leave the header's value. */
void header_disposition(struct slice name, struct buf *out);

/* One range of bytes (RFC 9110 section 14.2) of a representation of `size` bytes. */
enum header_range { RANGE_NONE, RANGE_PART, RANGE_UNSATISFIABLE };
enum header_range header_range(struct slice value, uint64_t size, uint64_t *ret_offset,
                               uint64_t *ret_size);

/* Whether If-None-Match names the entity tag, strong or weak, or is "*" (RFC 9110 sections 8.8.3.2
 * and 13.1.2). What is broken names nothing from there on. */
bool header_tag_listed(struct slice none_match, const char *tag);

/* %XX undone, into the arena; '+' stays what it is. ERR_VALIDATION when broken, not UTF-8, or
 * holding NUL; ERR_NO_MEMORY. */
int header_unescape(struct slice text, struct arena *arena, struct slice *ret) MUST_CHECK;

#endif
