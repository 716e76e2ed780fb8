#include "tools/fault_proxy.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tools/api.h"
#include "tools/proxied_request.h"

#define MEMORY_MAX ((size_t)1 << 20)
#define TIMEOUT_MS 120000
#define STOP_POLL_MS 100
#define END_US (2 * US_PER_SECOND)
#define PIECE 65536

struct fault_proxy {
	const struct fault_proxy_options *options;
	struct address_guard guard;
	int socket;
	atomic_bool *stop;
	pthread_mutex_t mutex; /* protects what follows, and the plan */
	unsigned connections;
	uint64_t requests;
};

/* ---- listening ---- */

static int listen_at(const struct addrinfo *address, int *ret_socket)
{
	DESCRIPTOR_AUTO int made =
		socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, address->ai_protocol);
	int on = 1;
	if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(made, address->ai_addr, address->ai_addrlen) != 0 || listen(made, 128) != 0)
		return ERR_IO;
	*ret_socket = descriptor_take(&made);
	return 0;
}

static int open_socket(const char *text, int *ret_socket, struct error *error)
{
	char host[64];
	const char *port = strrchr(text, ':');
	struct addrinfo *found = NULL;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
	                               .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	size_t size = port ? (size_t)(port - text) : 0;
	bool bracketed = size > 2 && text[0] == '[' && text[size - 1] == ']';
	if (size > 0 && size < sizeof host)
		snprintf(host, sizeof host, "%.*s", (int)(bracketed ? size - 2 : size), text + bracketed);
	if (size == 0 || size >= sizeof host || getaddrinfo(host, port + 1, &hints, &found) != 0)
		return tool_fail(error, ERR_USAGE,
		                 "--listen must be ADDRESS:PORT, such as 127.0.0.1:8081.");
	int result = listen_at(found, ret_socket);
	if (result)
		result = file_fail(error, "listen on", text);
	freeaddrinfo(found);
	return result;
}

int fault_proxy_open(const struct fault_proxy_options *options, struct fault_proxy **ret_proxy,
                     struct error *error)
{
	int made = -1;
	int result = http_url_check(slice_of(options->upstream), true, "--to", error);
	if (!result)
		result = open_socket(options->listen, &made, error);
	if (result)
		return result;
	struct fault_proxy *proxy = calloc(1, sizeof *proxy);
	if (!proxy) {
		descriptor_close(&made);
		return ERR_NO_MEMORY;
	}
	proxy->options = options;
	proxy->socket = made;
	api_guard_nothing(&proxy->guard);
	pthread_mutex_init(&proxy->mutex, NULL);
	*ret_proxy = proxy;
	return 0;
}

void fault_proxy_address(const struct fault_proxy *proxy, char text[FAULT_PROXY_ADDRESS_SIZE])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	char host[64] = "", port[8] = "";
	if (getsockname(proxy->socket, (struct sockaddr *)&address, &size) == 0)
		(void)getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
		                  NI_NUMERICHOST | NI_NUMERICSERV);
	bool brackets = strchr(host, ':') != NULL;
	snprintf(text, FAULT_PROXY_ADDRESS_SIZE, "http://%s%s%s:%s", brackets ? "[" : "", host,
	         brackets ? "]" : "", port);
}

/* ---- one request ---- */

struct passage {
	struct fault_proxy *proxy;
	struct proxy_peer *peer;
	struct http_session *session;
	struct proxied_request request;
	struct http_answer answer; /* status 0: none */
	int body;                  /* of the answer: unnamed file, or -1 */
	uint64_t body_size;
};

static void passage_end(struct passage *passage)
{
	proxied_request_free(&passage->request);
	http_answer_free(&passage->answer);
	descriptor_close(&passage->body);
}

static size_t give_body(void *context, uint64_t offset, void *data, size_t size)
{
	const struct passage *passage = context;
	return file_read_at(passage->request.body, data, size, offset) ? size : 0;
}

static bool take_body(void *context, struct slice part)
{
	struct passage *passage = context;
	const char *folder = getenv("TMPDIR");
	if (passage->body < 0)
		passage->body = file_open_unnamed(folder && *folder ? folder : "/tmp");
	passage->body_size += part.size;
	return passage->body >= 0 && passage->body_size <= PROXY_BODY_MAX &&
	       file_write_all(passage->body, part);
}

/* Sends the request on. Without a complete answer the status is 502. */
static void send_on(struct passage *passage)
{
	const struct fault_proxy_options *options = passage->proxy->options;
	const struct proxied_request *request = &passage->request;
	char url[HTTP_URL_MAX + 1];
	const struct http_upload upload = {
		.read = give_body, .context = passage, .size = request->body_size};
	struct http_request http = {.method = request->method,
	                            .url = url,
	                            .content_type = request->content_type,
	                            .headers = request->headers,
	                            .header_count = request->header_count,
	                            .upload = request->body_size ? &upload : NULL,
	                            .take = take_body,
	                            .take_context = passage,
	                            .session = passage->session,
	                            .timeout_ms = TIMEOUT_MS,
	                            .answer_limit = MEMORY_MAX,
	                            .allow_http = true,
	                            .authority_file = options->tls_roots,
	                            .guard = &passage->proxy->guard};
	snprintf(url, sizeof url, "%s%s", options->upstream, request->target);
	int result = http_send(&http, &passage->answer, NULL);
	if (!result && passage->answer.body.size)
		result = take_body(passage, buf_slice(&passage->answer.body)) ? 0 : ERR_IO;
	if (result) {
		http_answer_free(&passage->answer);
		passage->answer = (struct http_answer){.status = 502};
		passage->body_size = 0;
	}
}

static bool is_bodiless(const struct passage *passage)
{
	int status = passage->answer.status;
	return status == 204 || status == 304 || strcmp(passage->request.method, "HEAD") == 0;
}

static void write_head(const struct passage *passage, struct buf *head)
{
	struct slice rest = buf_slice(&passage->answer.headers);
	buf_printf(head, "HTTP/1.1 %d \r\n", passage->answer.status);
	while (rest.size > 0) {
		size_t size = (size_t)((const char *)memchr(rest.data, '\n', rest.size) - rest.data);
		struct slice line = slice_make(rest.data, size);
		bool is_length = size > 15 && strncasecmp(line.data, "Content-Length:", 15) == 0;
		if (!proxy_is_of_connection(line) && (!is_length || is_bodiless(passage))) {
			buf_add_slice(head, line);
			buf_add_text(head, "\r\n");
		}
		rest = slice_make(rest.data + size + 1, rest.size - size - 1);
	}
	if (!is_bodiless(passage))
		buf_printf(head, "Content-Length: %llu\r\n", (unsigned long long)passage->body_size);
	buf_add_text(head, passage->request.keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

/* Answers in full, or with half of the body; without a body, with half of the version. Returns
 * whether the answer is complete. */
static bool answer(struct passage *passage, bool half)
{
	BUF_AUTO struct buf head;
	char piece[PIECE];
	buf_init(&head, HTTP_HEADERS_MAX + 4096);
	write_head(passage, &head);
	if (buf_check(&head))
		return false;
	if (half && !passage->body_size)
		head.size = strlen("HTTP/1");
	if (!proxy_peer_write(passage->peer, buf_slice(&head)))
		return false;
	uint64_t wanted = half ? passage->body_size / 2 : passage->body_size, done = 0;
	while (done < wanted) {
		size_t size = wanted - done < PIECE ? (size_t)(wanted - done) : PIECE;
		if (!file_read_at(passage->body, piece, size, done) ||
		    !proxy_peer_write(passage->peer, slice_make(piece, size)))
			return false;
		done += size;
	}
	return !half;
}

static bool answer_unavailable(struct passage *passage)
{
	static const char body[] = "{\"code\":\"temporarily_unavailable\",\"message\":\"A fault for "
							   "tests: nothing was sent on.\"}";
	BUF_AUTO struct buf text;
	buf_init(&text, 1024);
	buf_printf(&text,
	           "HTTP/1.1 503 \r\nContent-Type: application/json\r\nRetry-After: %u\r\n"
	           "Content-Length: %zu\r\n%s\r\n%s",
	           passage->proxy->options->retry_after_seconds, sizeof body - 1,
	           passage->request.keep_alive ? "" : "Connection: close\r\n", body);
	return !buf_check(&text) && proxy_peer_write(passage->peer, buf_slice(&text));
}

static void pause_for(const struct fault_proxy *proxy, int64_t duration_us)
{
	int64_t until_us = clock_monotonic_us() + duration_us, left_us;
	while ((left_us = until_us - clock_monotonic_us()) > 0 && !atomic_load(proxy->stop))
		api_sleep_us(left_us < STOP_POLL_MS * 1000 ? left_us : STOP_POLL_MS * 1000);
}

static enum fault choose(struct fault_proxy *proxy, uint64_t *ret_number)
{
	pthread_mutex_lock(&proxy->mutex);
	enum fault fault = fault_plan_next(proxy->options->plan);
	*ret_number = ++proxy->requests;
	pthread_mutex_unlock(&proxy->mutex);
	return fault;
}

static void report(struct passage *passage, uint64_t number, enum fault fault)
{
	struct fault_proxy *proxy = passage->proxy;
	const char *target = passage->request.target;
	const struct fault_report made = {.number = number,
	                                  .fault = fault,
	                                  .method = passage->request.method,
	                                  .path = slice_make(target, strcspn(target, "?")),
	                                  .status = passage->answer.status};
	pthread_mutex_lock(&proxy->mutex);
	proxy->options->report(proxy->options->context, &made);
	pthread_mutex_unlock(&proxy->mutex);
}

/* Handles the request that was read. Returns whether the connection continues. */
static bool pass(struct passage *passage)
{
	struct fault_proxy *proxy = passage->proxy;
	uint64_t number;
	enum fault fault = choose(proxy, &number);
	pause_for(proxy, proxy->options->delay_us);
	if (fault != FAULT_UNAVAILABLE)
		send_on(passage);
	report(passage, number, fault);
	if (fault == FAULT_HANG)
		pause_for(proxy, proxy->options->hang_us);
	if (fault == FAULT_HANG || fault == FAULT_LOST)
		return false;
	bool written = fault == FAULT_UNAVAILABLE ? answer_unavailable(passage)
	                                          : answer(passage, fault == FAULT_HALF);
	return written && passage->request.keep_alive;
}

/* ---- connections ---- */

struct connection {
	struct fault_proxy *proxy;
	int socket;
};

static bool serve_one(struct fault_proxy *proxy, struct proxy_peer *peer,
                      struct http_session *session, struct arena *arena)
{
	__attribute__((cleanup(passage_end))) struct passage passage = {
		.proxy = proxy, .peer = peer, .session = session, .body = -1};
	arena_reset(arena);
	int result = proxied_request_read(peer, arena, &passage.request, NULL);
	if (result == ERR_VALIDATION || result == ERR_TOO_LARGE) {
		const char *status = result == ERR_VALIDATION ? "400" : "413";
		char text[96];
		snprintf(text, sizeof text,
		         "HTTP/1.1 %s \r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
		bool ignored = proxy_peer_write(peer, slice_of(text)); /* the connection ends anyway */
		(void)ignored;
		return false;
	}
	return !result && pass(&passage);
}

static void *serve_connection(void *context)
{
	struct connection *connection = context;
	struct fault_proxy *proxy = connection->proxy;
	struct proxy_peer peer;
	ARENA_AUTO struct arena arena;
	struct http_session *session = http_session_open();
	arena_init(&arena, MEMORY_MAX);
	proxy_peer_init(&peer, connection->socket, proxy->stop);
	free(connection);
	while (session && !atomic_load(proxy->stop) && serve_one(proxy, &peer, session, &arena))
		;
	proxy_peer_free(&peer);
	http_session_close(session);
	arena_free(&arena);
	pthread_mutex_lock(&proxy->mutex);
	proxy->connections--;
	pthread_mutex_unlock(&proxy->mutex);
	return NULL;
}

static void start_connection(struct fault_proxy *proxy, int socket)
{
	pthread_t thread;
	pthread_attr_t attributes;
	struct connection *connection = malloc(sizeof *connection);
	pthread_mutex_lock(&proxy->mutex);
	proxy->connections++;
	pthread_mutex_unlock(&proxy->mutex);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (connection)
		*connection = (struct connection){proxy, socket};
	if (!connection || pthread_create(&thread, &attributes, serve_connection, connection) != 0) {
		free(connection);
		close(socket);
		pthread_mutex_lock(&proxy->mutex);
		proxy->connections--;
		pthread_mutex_unlock(&proxy->mutex);
	}
	pthread_attr_destroy(&attributes);
}

static unsigned count_connections(struct fault_proxy *proxy)
{
	pthread_mutex_lock(&proxy->mutex);
	unsigned count = proxy->connections;
	pthread_mutex_unlock(&proxy->mutex);
	return count;
}

bool fault_proxy_run(struct fault_proxy *proxy, atomic_bool *stop)
{
	proxy->stop = stop;
	while (!atomic_load(stop)) {
		struct pollfd pollfd = {.fd = proxy->socket, .events = POLLIN};
		bool full = count_connections(proxy) >= FAULT_PROXY_CONNECTIONS;
		int ready = poll(&pollfd, full ? 0 : 1, full ? 10 : STOP_POLL_MS);
		int accepted = ready > 0 ? accept4(proxy->socket, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (accepted >= 0)
			start_connection(proxy, accepted);
	}
	int64_t until_us = clock_monotonic_us() + END_US;
	while (count_connections(proxy) > 0 && clock_monotonic_us() < until_us)
		api_sleep_us(10000);
	return count_connections(proxy) == 0;
}

void fault_proxy_close(struct fault_proxy *proxy)
{
	if (!proxy)
		return;
	descriptor_close(&proxy->socket);
	pthread_mutex_destroy(&proxy->mutex);
	free(proxy);
}
