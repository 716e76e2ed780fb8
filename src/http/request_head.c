#include "http/request_head.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "http/credential.h"
#include "http/header.h"
#include "http/http_internal.h"

bool head_parser_is_lenient(void)
{
	return atoi(MHD_get_version()) < 1;
}

/* ---- before the library parses the head ---- */

static const char no_cookie[] = "";

/* Removes scheme and host from an absolute target, as sent to proxies (RFC 9112 section 3.2.2). */
static struct slice without_authority(struct slice target)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		size_t size = strlen(schemes[i]);
		if (target.size <= size || strncasecmp(target.data, schemes[i], size) != 0)
			continue;
		size_t end = size;
		while (end < target.size && target.data[end] != '/' && target.data[end] != '?')
			end++;
		return end == size ? target : slice_make(target.data + end, target.size - end);
	}
	return target;
}

static void split_target(struct exchange *exchange, struct slice target)
{
	struct slice rest = without_authority(target);
	const char *mark = rest.size ? memchr(rest.data, '?', rest.size) : NULL;
	exchange->path = slice_make(rest.data, mark ? (size_t)(mark - rest.data) : rest.size);
	exchange->query =
		mark ? slice_make(mark + 1, rest.size - exchange->path.size - 1) : (struct slice){"", 0};
	if (!exchange->path.size && target.size) /* only a host without a path */
		exchange->path = slice_of("/");
}

bool request_head_begin(struct exchange *exchange, const char *uri)
{
	size_t size = strlen(uri);
	exchange->head.target_end = uri + size;
	char *copy = arena_copy(&exchange->arena, uri, size);
	if (!copy)
		return false;
	split_target(exchange, slice_make(copy, size));
	/* The library copies and parses only the first Cookie value; this empty one prevents that. */
	(void)MHD_set_connection_value(exchange->connection, MHD_HEADER_KIND, "Cookie", no_cookie);
	/* Ends the query in the library's buffer, so that the library does not parse it. */
	char *mark = strchr(uri, '?');
	if (mark && mark[1])
		mark[1] = '\0';
	return true;
}

/* ---- faults ---- */

static void find_fault(struct head *head, enum message fault)
{
	if (head->fault == MSG_NONE)
		head->fault = fault;
	head->framing_broken |= fault != MSG_HTTP_HEAD_LARGE;
}

int request_head_judge(const struct exchange *exchange, struct error *error)
{
	enum message fault = exchange->head.fault;
	if (fault == MSG_NONE)
		return 0;
	return error_set(error, fault == MSG_HTTP_HEAD_LARGE ? ERR_HEAD_LARGE : ERR_VALIDATION, fault,
	                 NULL);
}

static bool begins_with(struct slice name, const char *text)
{
	size_t size = strlen(text);
	return name.size > size && strncasecmp(name.data, text, size) == 0;
}

/* ---- positions of the lines ----
 *
 * libmicrohttpd before 1.0 hides some malformed heads: a folded line becomes part of the previous
 * name, text after a NUL is omitted, and a line that starts with a colon or a NUL ends the head.
 * Each case leaves a gap between lines. The gaps are detectable, because the slices point into the
 * original head, with NULs in place of colons and line ends. */

static bool is_blank(const char *data, ptrdiff_t size)
{
	for (ptrdiff_t i = 0; i < size; i++)
		if (data[i] != ' ' && data[i] != '\t')
			return false;
	return size >= 0;
}

static void follow_line(struct head *head, struct slice name, const char *value, size_t value_size)
{
	if (!value || name.data - head->line_end != 2 ||
	    !is_blank(name.data + name.size + 1, value - (name.data + name.size + 1))) {
		find_fault(head, MSG_HTTP_HEAD_BROKEN);
		return;
	}
	head->line_end = value + value_size;
}

/* ---- lines ---- */

static void read_length(struct head *head, struct slice value)
{
	head->content_lengths++;
	head->content_length = 0;
	if (!value.size || value.size > 18)
		find_fault(head, MSG_HTTP_FRAMING);
	for (size_t i = 0; i < value.size; i++) {
		if (!isdigit((unsigned char)value.data[i]))
			find_fault(head, MSG_HTTP_FRAMING);
		head->content_length = head->content_length * 10 + (uint64_t)(value.data[i] - '0');
	}
}

/* Reads Transfer-Encoding. `whole` includes white space, which libraries before 1.0 treat as part
 * of the coding; they would wait for the end of the connection. */
static void read_coding(struct head *head, struct slice value, struct slice whole)
{
	bool misread = head_parser_is_lenient() && whole.size != value.size;
	if (head->chunked || misread || !header_name_is(value, "chunked"))
		find_fault(head, MSG_HTTP_FRAMING);
	head->chunked = true;
}

static void read_none_match(struct head *head, struct slice value)
{
	for (size_t i = 0; i < NONE_MATCH_LINES_MAX; i++) {
		if (!head->none_match[i].size) {
			head->none_match[i] = value;
			return;
		}
	}
}

/* Disables "100 Continue" if there is no body (RFC 9110 section 10.1.1). The library would send it
 * anyway and treat the following data as an empty body. */
static void disable_continue(struct exchange *exchange)
{
	struct head *head = &exchange->head;
	const char *first =
		MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, "Expect");
	if (!first || head->chunked || head->content_length)
		return;
	if (*first)
		*(char *)first = '0'; /* modifies the library's buffer */
	head->expect_continue = false;
}

/* Reads X-Forwarded-For. Several lines form one list (RFC 9110 section 5.3). */
static void read_forwarded(struct head *head, struct slice value)
{
	struct slice *lines = head->forwarded_for;
	size_t count = 0;
	if (!value.size)
		return;
	while (count < FORWARDED_LINES_MAX && lines[count].size)
		count++;
	if (count == FORWARDED_LINES_MAX)
		memmove(lines, lines + 1, --count * sizeof *lines);
	lines[count] = value;
}

/* Reads the headers that determine the end of the request and its host. */
static bool read_framing(struct head *head, struct slice name, struct slice value,
                         struct slice whole)
{
	if (header_name_is(name, "Content-Length"))
		read_length(head, value);
	else if (header_name_is(name, "Transfer-Encoding"))
		read_coding(head, value, whole);
	else if (header_name_is(name, "Host"))
		head->hosts++;
	else if (begins_with(name, "Content-Length") || begins_with(name, "Transfer-Encoding"))
		find_fault(head, MSG_HTTP_FRAMING);
	else
		return false;
	return true;
}

/* Keeps a value that may occur once, and the name of a repeated header in *repeated. */
static void read_single(struct slice *kept, struct slice value, const char *name,
                        const char **repeated)
{
	if (kept->data && !*repeated)
		*repeated = name;
	*kept = value;
}

/* Reads the headers that a browser adds to requests of pages of other origins. */
static bool read_cross_origin(struct head *head, struct slice name, struct slice value)
{
	if (header_name_is(name, "Origin")) {
		head->origin_repeated |= head->origin.data != NULL;
		head->origin = value;
	} else if (header_name_is(name, "Access-Control-Request-Method")) {
		head->asks_for_method = true;
	} else {
		return false;
	}
	return true;
}

static void read_meaning(struct exchange *exchange, struct slice name, struct slice value)
{
	struct head *head = &exchange->head;
	if (header_name_is(name, exchange->server->key_header))
		read_single(&head->api_key, value, exchange->server->key_header, &head->repeated_key);
	else if (header_name_is(name, exchange->server->scenario_header))
		read_single(&head->scenario, value, exchange->server->scenario_header,
		            &head->repeated_scenario);
	else if (header_name_is(name, "Idempotency-Key")) {
		head->idempotency_key_repeated |= head->idempotency_key.data != NULL;
		head->idempotency_key = value;
	} else if (header_name_is(name, "Authorization")) {
		head->authorization_repeated |= head->authorization.data != NULL;
		head->authorization = value;
	} else if (header_name_is(name, "Cookie")) {
		if (!head->cookie.data)
			head->cookie = value;
	} else if (header_name_is(name, "Content-Type"))
		read_single(&head->content_type, value, "Content-Type", &head->repeated_of_body);
	else if (header_name_is(name, "Content-Encoding"))
		read_single(&head->content_encoding, value, "Content-Encoding", &head->repeated_of_body);
	else if (header_name_is(name, "Accept-Language"))
		head->accept_language = value;
	else if (header_name_is(name, "Accept"))
		head->accept = value;
	else if (header_name_is(name, "Range"))
		head->range = value;
	else if (header_name_is(name, "If-Range")) {
		head->if_range = head->has_if_range ? slice_make("", 0) : value;
		head->has_if_range = true;
	} else if (header_name_is(name, "If-None-Match"))
		read_none_match(head, value);
	else if (header_name_is(name, "Expect"))
		head->expect_continue = header_name_is(value, "100-continue");
	else if (header_name_is(name, "X-Forwarded-For"))
		read_forwarded(head, value);
	else if (credential_is_misplaced(name, value, exchange->service->settings->service_prefix))
		head->misplaced_key = name;
}

static enum MHD_Result read_line(void *context, enum MHD_ValueKind kind, const char *name_data,
                                 size_t name_size, const char *value_data, size_t value_size)
{
	struct exchange *exchange = context;
	struct head *head = &exchange->head;
	if (value_data == no_cookie)
		return MHD_YES;
	struct slice name = slice_make(name_data ? name_data : "", name_size);
	struct slice whole = slice_make(value_data ? value_data : "", value_size);
	struct slice value = header_trim(whole);
	head->lines++;
	if (head_parser_is_lenient())
		follow_line(head, name, value_data, value_size);
	if (!header_is_token(name) || !header_is_text(value))
		find_fault(head, MSG_HTTP_HEAD_BROKEN);
	else if (!read_framing(head, name, value, whole) && !read_cross_origin(head, name, value))
		read_meaning(exchange, name, value);
	return MHD_YES;
}

/* ---- the complete head ---- */

static size_t head_size(const struct exchange *exchange)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	return info ? info->header_size : 0;
}

static bool is_valid_target(const struct exchange *exchange)
{
	struct slice parts[] = {exchange->path, exchange->query};
	for (size_t part = 0; part < 2; part++)
		for (size_t i = 0; i < parts[part].size; i++)
			if ((unsigned char)parts[part].data[i] <= 0x20 || parts[part].data[i] == 0x7f)
				return false;
	return true;
}

/* Checks for exactly one Host, which is optional in HTTP/1.0 (RFC 9112 section 3.2). */
static bool has_valid_host(const struct head *head, const char *version)
{
	return head->hosts == 1 || (head->hosts == 0 && strcmp(version, "HTTP/1.0") == 0);
}

static bool means_body(const char *method)
{
	return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
	       strcmp(method, "PATCH") == 0;
}

static void check_framing(struct head *head, const char *method, const char *version)
{
	if (head->content_lengths > 1 || (head->chunked && head->content_lengths) ||
	    (head->chunked && strcmp(version, "HTTP/1.0") == 0))
		find_fault(head, MSG_HTTP_FRAMING);
	if (!has_valid_host(head, version))
		find_fault(head, MSG_HTTP_HOST);
	if (means_body(method) && !head->chunked && !head->content_lengths)
		find_fault(head, MSG_HTTP_LENGTH_MISSING);
}

void request_head_read(struct exchange *exchange, const char *method, const char *version)
{
	struct head *head = &exchange->head;
	size_t size = head_size(exchange);
	head->line_end = version + strlen(version);
	if (head_parser_is_lenient() && version != head->target_end + 1)
		find_fault(head, MSG_HTTP_HEAD_BROKEN);
	if (!is_valid_target(exchange))
		find_fault(head, MSG_HTTP_HEAD_BROKEN);
	MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, read_line, exchange);
	if (head_parser_is_lenient() && head->line_end + 4 != method + size)
		find_fault(head, MSG_HTTP_HEAD_BROKEN);
	check_framing(head, method, version);
	disable_continue(exchange);
	if (size > HEAD_SIZE_MAX || head->lines > HEAD_LINES_MAX)
		find_fault(head, MSG_HTTP_HEAD_LARGE);
	if (head->accept_language.size)
		exchange->language = header_language(head->accept_language);
}
