#include "tools/proxied_request.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"

#define PIECE 65536
#define STOP_POLL_MS 100
#define IDLE_MS 60000
#define CHUNK_LINE_MAX 1024

/* ---- the connection ---- */

void proxy_peer_init(struct proxy_peer *peer, int socket, const atomic_bool *stop)
{
	*peer = (struct proxy_peer){.socket = socket, .stop = stop};
	buf_init(&peer->input, PROXY_HEAD_MAX + PIECE);
}

void proxy_peer_free(struct proxy_peer *peer)
{
	descriptor_close(&peer->socket);
	buf_free(&peer->input);
}

bool proxy_peer_write(struct proxy_peer *peer, struct slice bytes)
{
	while (bytes.size > 0) {
		ssize_t size = send(peer->socket, bytes.data, bytes.size, MSG_NOSIGNAL);
		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return false;
		bytes = slice_make(bytes.data + size, bytes.size - (size_t)size);
	}
	return true;
}

/* Receives more input. Returns false at the end of the connection. */
static bool receive(struct proxy_peer *peer)
{
	char piece[PIECE];
	for (int waited_ms = 0; waited_ms < IDLE_MS && !atomic_load(peer->stop);
	     waited_ms += STOP_POLL_MS) {
		struct pollfd pollfd = {.fd = peer->socket, .events = POLLIN};
		int ready = poll(&pollfd, 1, STOP_POLL_MS);
		if (ready < 0 && errno != EINTR)
			return false;
		if (ready <= 0)
			continue;
		size_t room = peer->input.limit - peer->input.size;
		ssize_t size = recv(peer->socket, piece, room < PIECE ? room : PIECE, 0);
		if (size <= 0)
			return false;
		buf_add(&peer->input, piece, (size_t)size);
		return buf_check(&peer->input) == 0;
	}
	return false;
}

static void use(struct proxy_peer *peer, size_t size)
{
	peer->input.size -= size;
	if (peer->input.size)
		memmove(peer->input.data, peer->input.data + size, peer->input.size);
}

/* ---- the head ---- */

static bool has_name(struct slice line, const char *name)
{
	size_t size = strlen(name);
	return line.size > size && line.data[size] == ':' && strncasecmp(line.data, name, size) == 0;
}

bool proxy_is_of_connection(struct slice header_line)
{
	static const char *const names[] = {
		"Connection",
		"Keep-Alive",
		"Proxy-Authenticate",
		"Proxy-Authorization",
		"Proxy-Connection",
		"TE",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (has_name(header_line, names[i]))
			return true;
	return false;
}

static const char *value_of(const char *line)
{
	const char *value = strchr(line, ':') + 1;
	return value + strspn(value, " \t");
}

/* What the head says about the body and the connection. */
struct framing {
	uint64_t length;
	bool chunked, expects;
};

static int take_header(struct proxied_request *request, struct framing *framing, const char *line,
                       struct error *error)
{
	struct slice whole = slice_of(line);
	char *end;
	if (!strchr(line, ':'))
		return error_cause(error, ERR_VALIDATION, "a header without a colon");
	if (has_name(whole, "Content-Length")) {
		errno = 0;
		framing->length = strtoull(value_of(line), &end, 10);
		if (errno || *end || value_of(line)[0] == '-')
			return error_cause(error, ERR_VALIDATION, "a Content-Length that is no number");
	} else if (has_name(whole, "Transfer-Encoding")) {
		framing->chunked = strcasecmp(value_of(line), "chunked") == 0;
		if (!framing->chunked)
			return error_cause(error, ERR_VALIDATION, "a Transfer-Encoding other than chunked");
	} else if (has_name(whole, "Connection")) {
		request->keep_alive = strcasecmp(value_of(line), "close") != 0;
	} else if (has_name(whole, "Expect")) {
		framing->expects = true;
	} else if (has_name(whole, "Content-Type")) {
		request->content_type = value_of(line);
	} else if (!has_name(whole, "Host") && !proxy_is_of_connection(whole)) {
		if (request->header_count == PROXY_HEADERS_MAX)
			return error_cause(error, ERR_TOO_LARGE, "more than %d headers", PROXY_HEADERS_MAX);
		request->headers[request->header_count++] = line;
	}
	return 0;
}

/* Reads "METHOD TARGET HTTP/1.1", which is changed. */
static bool take_request_line(struct proxied_request *request, char *line)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;
	if (!version || target == line || target[1] != '/' || strncmp(version, " HTTP/1.", 8) != 0)
		return false;
	for (const char *at = line; at < version; at++)
		if (at != target && (*at <= ' ' || *at > '~'))
			return false;
	*target = *version = '\0';
	request->method = line;
	request->target = target + 1;
	request->keep_alive = strcmp(version + 1, "HTTP/1.1") == 0;
	return true;
}

/* Splits the head, which ends in an empty line, into lines. */
static int parse_head(char *head, struct proxied_request *request, struct framing *framing,
                      struct error *error)
{
	char *next = strstr(head, "\r\n");
	*next = '\0';
	if (!take_request_line(request, head))
		return error_cause(error, ERR_VALIDATION, "not a request of HTTP/1.1");
	for (char *line = next + 2; *line != '\r'; line = next + 2) {
		next = strstr(line, "\r\n");
		*next = '\0';
		int result = take_header(request, framing, line, error);
		if (result)
			return result;
	}
	return 0;
}

static int read_head(struct proxy_peer *peer, struct arena *arena, struct proxied_request *request,
                     struct framing *framing, struct error *error)
{
	const char *end = NULL;
	while (
		!(peer->input.size && (end = memmem(peer->input.data, peer->input.size, "\r\n\r\n", 4)))) {
		if (peer->input.size > PROXY_HEAD_MAX)
			return error_cause(error, ERR_TOO_LARGE, "a head over %d bytes", PROXY_HEAD_MAX);
		if (!receive(peer))
			return ERR_NOT_FOUND;
	}
	size_t size = (size_t)(end - peer->input.data) + 4;
	if (memchr(peer->input.data, '\0', size))
		return error_cause(error, ERR_VALIDATION, "a head with a NUL");
	char *head = arena_copy(arena, peer->input.data, size);
	if (!head)
		return ERR_NO_MEMORY;
	use(peer, size);
	return parse_head(head, request, framing, error);
}

/* ---- the body ---- */

/* Copies `size` bytes of the connection to the file. */
static int copy_body(struct proxy_peer *peer, struct proxied_request *request, uint64_t size,
                     struct error *error)
{
	if (size > PROXY_BODY_MAX - request->body_size)
		return error_cause(error, ERR_TOO_LARGE, "a body over %llu bytes",
		                   (unsigned long long)PROXY_BODY_MAX);
	while (size > 0) {
		if (!peer->input.size && !receive(peer))
			return ERR_NOT_FOUND;
		size_t taken = peer->input.size < size ? peer->input.size : (size_t)size;
		if (!file_write_all(request->body, slice_make(peer->input.data, taken)))
			return file_fail(error, "write", "a temporary file");
		use(peer, taken);
		request->body_size += taken;
		size -= taken;
	}
	return 0;
}

/* Reads a line of the chunked encoding, without its end. */
static int read_line(struct proxy_peer *peer, char line[CHUNK_LINE_MAX], struct error *error)
{
	const char *end = NULL;
	while (!(peer->input.size && (end = memmem(peer->input.data, peer->input.size, "\r\n", 2)))) {
		if (peer->input.size >= CHUNK_LINE_MAX)
			break;
		if (!receive(peer))
			return ERR_NOT_FOUND;
	}
	size_t size = end ? (size_t)(end - peer->input.data) : CHUNK_LINE_MAX;
	if (size >= CHUNK_LINE_MAX)
		return error_cause(error, ERR_VALIDATION, "a chunk without a size");
	memcpy(line, peer->input.data, size);
	line[size] = '\0';
	use(peer, size + 2);
	return 0;
}

static int copy_chunks(struct proxy_peer *peer, struct proxied_request *request,
                       struct error *error)
{
	char line[CHUNK_LINE_MAX], *end;
	for (;;) {
		int result = read_line(peer, line, error);
		errno = 0;
		unsigned long long size = result ? 0 : strtoull(line, &end, 16);
		if (!result && (errno || end == line || (*end && *end != ';')))
			result = error_cause(error, ERR_VALIDATION, "a chunk without a size");
		if (!result && size > 0)
			result = copy_body(peer, request, size, error);
		if (!result && size > 0)
			result = read_line(peer, line, error);
		if (!result && size > 0)
			continue;
		while (!result && *line) /* trailers, which are not sent on */
			result = read_line(peer, line, error);
		return result;
	}
}

static int read_body(struct proxy_peer *peer, struct proxied_request *request,
                     const struct framing *framing, struct error *error)
{
	const char *folder = getenv("TMPDIR");
	if (!framing->chunked && !framing->length)
		return 0;
	request->body = file_open_unnamed(folder && *folder ? folder : "/tmp");
	if (request->body < 0)
		return file_fail(error, "create", "a temporary file");
	if (framing->expects && !proxy_peer_write(peer, slice_of("HTTP/1.1 100 Continue\r\n\r\n")))
		return ERR_NOT_FOUND;
	return framing->chunked ? copy_chunks(peer, request, error)
	                        : copy_body(peer, request, framing->length, error);
}

int proxied_request_read(struct proxy_peer *peer, struct arena *arena,
                         struct proxied_request *ret_request, struct error *error)
{
	struct framing framing = {0};
	*ret_request = (struct proxied_request){.body = -1};
	int result = read_head(peer, arena, ret_request, &framing, error);
	if (!result && framing.chunked && framing.length)
		result = error_cause(error, ERR_VALIDATION, "two framings of one body");
	return result ? result : read_body(peer, ret_request, &framing, error);
}

void proxied_request_free(struct proxied_request *request)
{
	descriptor_close(&request->body);
}
