#include "http/multipart.h"

#include <ctype.h>

#include "base/utf8.h"
#include "http/header.h"

#define TEXT(number) #number
#define DIGITS(number) TEXT(number)

static int broken(enum message message, struct error *error)
{
	return error_set(error, ERR_VALIDATION, message, NULL);
}

static int broken_line(struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_HTTP_MULTIPART_LINE, DIGITS(MULTIPART_LINE_MAX),
	                 NULL);
}

static int too_many(struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_HTTP_MULTIPART_PARTS, DIGITS(MULTIPART_PARTS_MAX),
	                 DIGITS(MULTIPART_HEADER_LINES_MAX), NULL);
}

static int too_many_parameters(const char *header, struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_HTTP_PARAMETERS, header,
	                 DIGITS(HEADER_PARAMETERS_MAX), NULL);
}

static bool boundary_good(struct slice boundary)
{
	if (!boundary.size || boundary.size > MULTIPART_BOUNDARY_MAX ||
	    boundary.data[boundary.size - 1] == ' ')
		return false;
	for (size_t i = 0; i < boundary.size; i++) {
		char c = boundary.data[i];
		if (!isalnum((unsigned char)c) && (!c || !strchr("'()+_,-./:=? ", c)))
			return false;
	}
	return true;
}

static int repeated_parameter(const char *header, const char *name, struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_HTTP_PARAMETER_REPEATED, header, name, NULL);
}

static int read_boundary(struct slice content_type, struct arena *arena, struct slice *ret_boundary,
                         struct error *error)
{
	const char *semicolon =
		content_type.size ? memchr(content_type.data, ';', content_type.size) : NULL;
	size_t type_size = semicolon ? (size_t)(semicolon - content_type.data) : content_type.size;
	struct slice rest = slice_make(content_type.data + type_size, content_type.size - type_size);
	struct slice boundary = {NULL, 0}, name, value;
	int status, count = 0;
	while ((status = header_parameter(&rest, ESCAPES_ALL, arena, &name, &value)) == 1) {
		if (++count > HEADER_PARAMETERS_MAX)
			return too_many_parameters("Content-Type", error);
		if (!header_name_is(name, "boundary"))
			continue;
		if (boundary.data)
			return repeated_parameter("Content-Type", "boundary", error);
		boundary = value;
	}
	if (status == ERR_NO_MEMORY)
		return error_set(error, status, MSG_NONE, NULL);
	if (status || !boundary_good(boundary))
		return broken(MSG_HTTP_MULTIPART_BOUNDARY, error);
	*ret_boundary = boundary;
	return 0;
}

int multipart_begin(struct multipart *multipart, struct slice content_type, struct arena *arena,
                    const struct multipart_sink *sink, struct error *error)
{
	struct slice boundary = {NULL, 0};
	int result = read_boundary(content_type, arena, &boundary, error);
	if (result)
		return result;
	multipart->arena = arena;
	multipart->sink = *sink;
	multipart->state = MULTIPART_DELIMITER;
	memcpy(multipart->delimiter, "\r\n--", 4);
	memcpy(multipart->delimiter + 4, boundary.data, boundary.size);
	multipart->delimiter_size = boundary.size + 4;
	multipart->matched = 2; /* the start of the body counts as a line end */
	multipart->line_size = 0;
	multipart->lines = multipart->parts = 0;
	return 0;
}

/* Decodes filename*=UTF-8''…, which some clients send for non-ASCII names. */
static int extended_value(struct slice value, struct arena *arena, struct slice *ret)
{
	if (value.size < 7 || !header_name_is(slice_make(value.data, 5), "utf-8"))
		return ERR_VALIDATION;
	const char *quote = memchr(value.data + 5, '\'', value.size - 5);
	const char *second =
		quote ? memchr(quote + 1, '\'', value.size - (size_t)(quote + 1 - value.data)) : NULL;
	if (quote != value.data + 5 || !second)
		return ERR_VALIDATION;
	size_t skipped = (size_t)(second + 1 - value.data);
	return header_unescape(slice_make(second + 1, value.size - skipped), arena, ret);
}

/* Decodes %22: browsers encode a quotation mark in a file name in this way (HTML standard, form
 * encoding). */
static void undo_quotes(struct slice *name, char *data)
{
	size_t size = 0;
	for (size_t i = 0; i < name->size; i++) {
		bool mark = i + 2 < name->size && memcmp(data + i, "%22", 3) == 0;
		char c = mark ? '"' : data[i];
		i += mark ? 2 : 0;
		data[size++] = c;
	}
	*name = slice_make(data, size);
}

/* The parameters of Content-Disposition; without data: absent. */
struct disposition {
	struct slice name, file_name, exact_name;
	const char *repeated; /* name of the first repeated parameter, or NULL */
};

static int keep_parameter(struct disposition *disposition, struct slice name, struct slice value,
                          struct arena *arena)
{
	struct slice *kept[] = {&disposition->name, &disposition->file_name, &disposition->exact_name};
	static const char *const names[] = {"name", "filename", "filename*"};
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		if (!header_name_is(name, names[i]))
			continue;
		if (kept[i]->data && !disposition->repeated)
			disposition->repeated = names[i];
		const char *copy = arena_copy(arena, value.data, value.size);
		*kept[i] = slice_make(copy, value.size);
		return copy ? 0 : ERR_NO_MEMORY;
	}
	return 0;
}

static int read_parameters(struct slice rest, enum header_escapes escapes, struct arena *arena,
                           struct disposition *ret, struct error *error)
{
	struct disposition disposition = {0};
	struct slice name, value;
	int status, count = 0;
	while ((status = header_parameter(&rest, escapes, arena, &name, &value)) == 1) {
		if (++count > HEADER_PARAMETERS_MAX)
			return too_many_parameters("Content-Disposition", error);
		status = keep_parameter(&disposition, name, value, arena);
		if (status)
			break;
	}
	if (status == ERR_NO_MEMORY)
		return error_set(error, status, MSG_NONE, NULL);
	if (status)
		return broken(MSG_HTTP_MULTIPART_DISPOSITION, error);
	*ret = disposition;
	return 0;
}

/* Sets name and file name of the part. filename* applies before filename (RFC 6266 section 4.3). */
static int take_disposition(struct multipart *multipart, struct disposition *disposition,
                            struct error *error)
{
	struct slice *file_name = &disposition->file_name;
	int status = 0;
	if (disposition->repeated)
		return repeated_parameter("Content-Disposition", disposition->repeated, error);
	if (disposition->exact_name.data)
		status = extended_value(disposition->exact_name, multipart->arena, file_name);
	else if (file_name->data)
		undo_quotes(file_name, (char *)file_name->data);
	if (status == ERR_NO_MEMORY)
		return error_set(error, status, MSG_NONE, NULL);
	if (status || !disposition->name.data || !utf8_valid(disposition->name) ||
	    (file_name->data && !utf8_valid(*file_name)))
		return broken(MSG_HTTP_MULTIPART_DISPOSITION, error);
	multipart->name = disposition->name;
	multipart->file_name = *file_name;
	return 0;
}

/* Reads Content-Disposition. Browsers send a backslash in a file name without an escape. A value
 * that is malformed only because its last backslash escapes the closing quote is theirs. */
static int disposition(struct multipart *multipart, struct slice value, struct error *error)
{
	const char *semicolon = value.size ? memchr(value.data, ';', value.size) : NULL;
	struct slice type =
		slice_make(value.data, semicolon ? (size_t)(semicolon - value.data) : value.size);
	if (!header_name_is(header_trim(type), "form-data") || multipart->name.data)
		return broken(MSG_HTTP_MULTIPART_DISPOSITION, error);
	struct slice rest = slice_make(value.data + type.size, value.size - type.size);
	struct disposition found;
	int result = read_parameters(rest, ESCAPES_FORM, multipart->arena, &found, error);
	if (result == ERR_VALIDATION)
		result = read_parameters(rest, ESCAPES_NONE, multipart->arena, &found, error);
	return result ? result : take_disposition(multipart, &found, error);
}

/* Reads a header line of a part without its end; an empty line starts the data. */
static int header_line(struct multipart *multipart, struct error *error)
{
	struct slice line = slice_make(multipart->line, multipart->line_size);
	multipart->line_size = 0;
	if (!line.size) {
		if (!multipart->name.data)
			return broken(MSG_HTTP_MULTIPART_DISPOSITION, error);
		multipart->state = MULTIPART_DATA;
		multipart->matched = 0;
		return multipart->sink.begin(multipart->sink.context, multipart->name, multipart->file_name,
		                             error);
	}
	const char *colon = memchr(line.data, ':', line.size);
	if (!colon || colon == line.data)
		return broken_line(error);
	if (++multipart->lines > MULTIPART_HEADER_LINES_MAX)
		return too_many(error);
	struct slice name = slice_make(line.data, (size_t)(colon - line.data));
	struct slice value = header_trim(slice_make(colon + 1, line.size - name.size - 1));
	if (header_name_is(name, "Content-Disposition"))
		return disposition(multipart, value, error);
	if (header_name_is(name, "Content-Transfer-Encoding") && !header_name_is(value, "binary") &&
	    !header_name_is(value, "8bit") && !header_name_is(value, "7bit"))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_MULTIPART_ENCODING, NULL);
	return 0;
}

/* Collects a line up to CR LF; consumes *ret_taken bytes of data. */
static int feed_line(struct multipart *multipart, struct slice data, size_t *ret_taken,
                     bool *ret_whole, struct error *error)
{
	const char *end = memchr(data.data, '\n', data.size);
	size_t size = end ? (size_t)(end - data.data) + 1 : data.size;
	*ret_whole = false;
	*ret_taken = size;
	if (size > sizeof multipart->line - multipart->line_size)
		return broken_line(error);
	memcpy(multipart->line + multipart->line_size, data.data, size);
	multipart->line_size += size;
	if (!end)
		return 0;
	if (multipart->line_size < 2 || multipart->line[multipart->line_size - 2] != '\r')
		return broken_line(error);
	multipart->line_size -= 2;
	*ret_whole = true;
	return 0;
}

static int after_delimiter(struct multipart *multipart, struct error *error)
{
	struct slice line = slice_make(multipart->line, multipart->line_size);
	multipart->line_size = 0;
	if (line.size)
		return broken(MSG_HTTP_MULTIPART_END, error);
	if (++multipart->parts > MULTIPART_PARTS_MAX)
		return too_many(error);
	multipart->state = MULTIPART_HEADERS;
	multipart->lines = 0;
	multipart->name = multipart->file_name = (struct slice){NULL, 0};
	return 0;
}

static int pass(struct multipart *multipart, const char *data, size_t size, struct error *error)
{
	return size ? multipart->sink.data(multipart->sink.context, slice_make(data, size), error) : 0;
}

static int end_data(struct multipart *multipart, struct error *error)
{
	multipart->matched = multipart->delimiter_size;
	multipart->state = MULTIPART_AFTER_DELIMITER;
	return multipart->sink.end(multipart->sink.context, error);
}

/* Continues a delimiter of which `matched` bytes have arrived. If it turns out not to be one, these
 * bytes are data. */
static int feed_matched(struct multipart *multipart, struct slice data, size_t *ret_taken,
                        struct error *error)
{
	const char *rest = multipart->delimiter + multipart->matched;
	size_t left = multipart->delimiter_size - multipart->matched;
	size_t size = left < data.size ? left : data.size;
	if (memcmp(data.data, rest, size) == 0) {
		multipart->matched += size;
		*ret_taken = size;
		return size == left ? end_data(multipart, error) : 0;
	}
	size = multipart->matched;
	multipart->matched = 0;
	*ret_taken = 0;
	return pass(multipart, multipart->delimiter, size, error);
}

/* Returns the number of bytes at the end of data that may be the start of a delimiter. Only its
 * first byte is CR, so only the last CR can start it. */
static size_t unfinished(const struct multipart *multipart, struct slice data)
{
	size_t most = multipart->delimiter_size - 1;
	size_t looked_at = data.size < most ? data.size : most;
	const char *cr = memrchr(data.data + data.size - looked_at, '\r', looked_at);
	size_t size = cr ? (size_t)(data.data + data.size - cr) : 0;
	return size && memcmp(cr, multipart->delimiter, size) == 0 ? size : 0;
}

/* Passes on data up to the delimiter in one call. */
static int feed_data(struct multipart *multipart, struct slice data, size_t *ret_taken,
                     struct error *error)
{
	if (multipart->matched)
		return feed_matched(multipart, data, ret_taken, error);
	size_t delimiter_size = multipart->delimiter_size;
	const char *found = memmem(data.data, data.size, multipart->delimiter, delimiter_size);
	size_t kept = found ? 0 : unfinished(multipart, data);
	size_t plain = found ? (size_t)(found - data.data) : data.size - kept;
	*ret_taken = found ? plain + delimiter_size : data.size;
	multipart->matched = kept;
	int result = pass(multipart, data.data, plain, error);
	return result || !found ? result : end_data(multipart, error);
}

static int feed_first(struct multipart *multipart, struct slice data, size_t *ret_taken,
                      struct error *error)
{
	size_t i = 0;
	while (i < data.size && multipart->matched < multipart->delimiter_size) {
		if (data.data[i++] != multipart->delimiter[multipart->matched++])
			return broken(MSG_HTTP_MULTIPART_DELIMITER, error);
	}
	if (multipart->matched == multipart->delimiter_size)
		multipart->state = MULTIPART_AFTER_DELIMITER;
	*ret_taken = i;
	return 0;
}

/* After the last delimiter only a line end is allowed. */
static int feed_epilogue(struct multipart *multipart, struct slice data, struct error *error)
{
	for (size_t i = 0; i < data.size; i++) {
		if (multipart->line_size >= 2 || data.data[i] != "\r\n"[multipart->line_size++])
			return broken(MSG_HTTP_MULTIPART_END, error);
	}
	return 0;
}

static int step(struct multipart *multipart, struct slice data, size_t *ret_taken,
                struct error *error)
{
	bool whole;
	int result;
	switch (multipart->state) {
	case MULTIPART_DELIMITER: return feed_first(multipart, data, ret_taken, error);
	case MULTIPART_AFTER_DELIMITER:
		if (multipart->line_size < 2 && data.data[0] == '-') {
			*ret_taken = 1;
			multipart->line[multipart->line_size++] = '-';
			if (multipart->line_size == 2 && multipart->line[0] == '-') {
				multipart->state = MULTIPART_EPILOGUE;
				multipart->line_size = 0;
			}
			return 0;
		}
		result = feed_line(multipart, data, ret_taken, &whole, error);
		return result || !whole ? result : after_delimiter(multipart, error);
	case MULTIPART_HEADERS:
		result = feed_line(multipart, data, ret_taken, &whole, error);
		return result || !whole ? result : header_line(multipart, error);
	case MULTIPART_DATA: return feed_data(multipart, data, ret_taken, error);
	default: *ret_taken = data.size; return feed_epilogue(multipart, data, error);
	}
}

int multipart_feed(struct multipart *multipart, struct slice data, struct error *error)
{
	while (data.size) {
		size_t taken = 0;
		int result = step(multipart, data, &taken, error);
		if (result)
			return result;
		data = slice_make(data.data + taken, data.size - taken);
	}
	return 0;
}

int multipart_end(struct multipart *multipart, struct error *error)
{
	return multipart->state == MULTIPART_EPILOGUE ? 0 : broken(MSG_HTTP_MULTIPART_END, error);
}

int multipart_file_check(struct slice name, struct slice file_name, struct error *error)
{
	return file_name.size
	           ? 0
	           : error_set(error, ERR_VALIDATION, MSG_HTTP_PART_WITHOUT_FILE, name.data, NULL);
}
