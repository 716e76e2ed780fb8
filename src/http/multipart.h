/* A strict streaming parser of multipart/form-data (RFC 7578, RFC 2046). Input is fed as it
 * arrives, and parts are returned by callbacks; only a header line is buffered. Lines end in CR LF.
 * Before the first delimiter and after the last one, only a line end is allowed.
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
	/* Starts a part; the slices are in the arena. file_name.data is NULL if there is none. */
	int (*begin)(void *context, struct slice name, struct slice file_name, struct error *error);
	int (*data)(void *context, struct slice data, struct error *error);
	int (*end)(void *context, struct error *error);
	void *context;
};

enum multipart_state {
	MULTIPART_DELIMITER, /* in "--boundary" at the start of the body */
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

/* Reads the boundary from the Content-Type value. 0 or ERR_VALIDATION. */
int multipart_begin(struct multipart *multipart, struct slice content_type, struct arena *arena,
                    const struct multipart_sink *sink, struct error *error) MUST_CHECK;
/* Parses data. 0, ERR_VALIDATION, ERR_NO_MEMORY, or the result of a callback; after an error the
 * parser must not be used. */
int multipart_feed(struct multipart *multipart, struct slice data, struct error *error) MUST_CHECK;
/* Ends the input. ERR_VALIDATION: the last delimiter is missing. */
int multipart_end(struct multipart *multipart, struct error *error) MUST_CHECK;

/* Checks in `begin` that a part is a file. ERR_VALIDATION: it has no file name and is therefore a
 * text field. Most often the sender did not mark it as a file, or the user did not choose one. */
int multipart_file_check(struct slice name, struct slice file_name, struct error *error) MUST_CHECK;

#endif
