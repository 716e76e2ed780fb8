/* A strict streaming reader of multipart/form-data (RFC 7578, RFC 2046): bytes go in as they come,
 * parts come out through callbacks, and nothing but a header line is held. Lines end in CR LF, and
 * nothing but a line's end stands before the first delimiter or behind the last.
 *
 * Not thread safe. */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include "base/arena.h"
#include "base/error.h"

#define MULTIPART_BOUNDARY_MAX 70
#define MULTIPART_LINE_MAX 2048
#define MULTIPART_HEADER_LINES_MAX 16
#define MULTIPART_PARTS_MAX 8

struct multipart_sink {
	/* A part begins; the slices live in the arena. file_name.data is NULL when there is none. */
	int (*begin)(void *context, struct slice name, struct slice file_name, struct error *error);
	int (*data)(void *context, struct slice data, struct error *error);
	int (*end)(void *context, struct error *error);
	void *context;
};

enum multipart_state {
	MULTIPART_DELIMITER, /* within "--boundary" at the very start */
	MULTIPART_AFTER_DELIMITER,
	MULTIPART_HEADERS,
	MULTIPART_DATA,
	MULTIPART_EPILOGUE,
};

struct multipart {
	struct arena *arena;
	struct multipart_sink sink;
	enum multipart_state state;
	char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CR LF -- boundary */
	size_t delimiter_size;
	size_t matched;
	char line[MULTIPART_LINE_MAX];
	size_t line_size;
	unsigned lines;
	unsigned parts;
	struct slice name;
	struct slice file_name;
};

/* Takes the boundary from the Content-Type's value. 0 or ERR_VALIDATION. */
int multipart_begin(struct multipart *multipart, struct slice content_type, struct arena *arena,
                    const struct multipart_sink *sink, struct error *error) MUST_CHECK;
/* 0, ERR_VALIDATION, ERR_NO_MEMORY, or what the sink answered; after a failure it is void. */
int multipart_feed(struct multipart *multipart, struct slice data, struct error *error) MUST_CHECK;
/* ERR_VALIDATION when the last delimiter has not come. */
int multipart_end(struct multipart *multipart, struct error *error) MUST_CHECK;

/* Of a part that must be a file, as `begin` got it. ERR_VALIDATION without a file's name: then the
 * part is a text field, most often one for which the sender forgot to say that a file is meant, or
 * a form in which none was chosen. */
int multipart_file_check(struct slice name, struct slice file_name, struct error *error) MUST_CHECK;

#endif
