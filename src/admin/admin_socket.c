#include "admin/admin_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/epoch.h"
#include "base/file.h"
#include "base/log.h"

#define EXCHANGES_MAX 8
#define REQUEST_TIME_MS 5000
#define ANSWER_TIME_S 30
#define LINGER_TIME_MS 1000
#define ANSWER_MAX (ADMIN_RESULT_MAX + 4096)
#define BACKLOG 16

struct admin_server {
	struct admin *admin;
	char *path;
	int listener;
	int wake[2]; /* the write end is closed to stop the server */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	unsigned running;
	bool stopping;
};

struct exchange {
	struct admin_server *server;
	int connection;
	uid_t uid;
};

/* ---- addresses ---- */

/* A path that is too long for sun_path is addressed through the descriptor of its directory, which
 * *ret_directory keeps open (otherwise -1). */
static int socket_address(const char *path, struct sockaddr_un *ret, int *ret_directory,
                          struct error *error)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	*ret_directory = -1;
	if (strlen(path) < sizeof ret->sun_path) {
		memcpy(ret->sun_path, path, strlen(path) + 1);
		return OK;
	}
	const char *slash = strrchr(path, '/');
	char *directory = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	int descriptor = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	free(directory);
	if (descriptor < 0)
		return error_cause(error, ERR_IO, "opening the directory of %s: %s", path, strerror(errno));
	int size =
		snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d%s", descriptor, slash);
	if (size >= (int)sizeof ret->sun_path) {
		close(descriptor);
		return error_cause(error, ERR_IO, "the name of the socket %s is too long", path);
	}
	*ret_directory = descriptor;
	return OK;
}

/* ---- lines ---- */

static bool send_all(int connection, const char *data, size_t size)
{
	while (size) {
		ssize_t sent = send(connection, data, size, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		data += sent;
		size -= (size_t)sent;
	}
	return true;
}

/* Reads up to a line feed, which is removed. timeout_ms -1: no timeout. ERR_USAGE: no line feed
 * arrived in time or within the size limit; ERR_IO, ERR_NO_MEMORY. */
static int read_line(int connection, struct buf *line, int timeout_ms)
{
	int64_t deadline_us = clock_monotonic_us() + timeout_ms * INT64_C(1000);
	for (;;) {
		int left_ms = -1;
		if (timeout_ms >= 0)
			left_ms = (int)((deadline_us - clock_monotonic_us()) / 1000);
		struct pollfd ready = {.fd = connection, .events = POLLIN};
		if (timeout_ms >= 0 && left_ms <= 0)
			return ERR_USAGE;
		int polled = poll(&ready, 1, left_ms);
		char chunk[8192];
		ssize_t got = polled > 0 ? recv(connection, chunk, sizeof chunk, 0) : polled;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? ERR_IO : ERR_USAGE;
		const char *end = memchr(chunk, '\n', (size_t)got);
		buf_add(line, chunk, end ? (size_t)(end - chunk) : (size_t)got);
		if (buf_check(line))
			return line->full ? ERR_USAGE : ERR_NO_MEMORY;
		if (end)
			return OK;
	}
}

/* ---- one exchange ---- */

static void error_answer(const struct error *error, struct buf *answer)
{
	struct json_writer writer = {.out = answer};
	json_begin_object(&writer, NULL);
	json_begin_object(&writer, "error");
	json_text(&writer, "code", error_code_text(error->code));
	json_integer(&writer, "exit", error_exit_code(error->code));
	json_text(&writer, "message", error_command_message(error));
	json_text(&writer, "cause", *error->cause ? error->cause : NULL);
	json_end_object(&writer);
	json_end_object(&writer);
}

static int execute(struct exchange *exchange, struct slice line, struct buf *answer,
                   struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)8 << 20);
	struct json *request;
	struct slice name;
	static const struct json_limits limits = {.depth_max = 4, .value_max = 100};
	int result = json_parse(&arena, line, &limits, &request, error);
	if (result)
		return result;
	if (!json_get_text(request, "operation", &name))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_REQUEST, NULL);
	struct slice claimed = {0};
	struct admin_caller caller = {0};
	(void)json_get_text(request, "claimed", &claimed);
	const char *said = claimed.size ? arena_copy(&arena, claimed.data, claimed.size) : NULL;
	result = admin_actor(exchange->uid, "socket", said, &arena, &caller.actor);
	if (result)
		return result;
	const struct admin_operation *operation = admin_find(name);
	if (!operation) {
		const char *text = arena_copy(&arena, name.data, name.size);
		return error_set(error, ERR_USAGE, MSG_ADMIN_UNKNOWN_OPERATION, text ? text : "", NULL);
	}
	buf_add_text(answer, "{\"result\":");
	epoch_enter();
	result = admin_run(exchange->server->admin, operation, json_member(request, "arguments"),
	                   &caller, answer, error);
	epoch_leave();
	buf_add_byte(answer, '}');
	return result ? result : buf_check(answer);
}

/* Reads and discards what the client still sends. Closing with unread data would discard the
 * response. */
static void linger(int connection)
{
	char chunk[8192];
	int64_t deadline_us = clock_monotonic_us() + LINGER_TIME_MS * INT64_C(1000);
	(void)shutdown(connection, SHUT_WR);
	for (;;) {
		int left_ms = (int)((deadline_us - clock_monotonic_us()) / 1000);
		struct pollfd ready = {.fd = connection, .events = POLLIN};
		if (left_ms <= 0 || poll(&ready, 1, left_ms) <= 0 ||
		    recv(connection, chunk, sizeof chunk, MSG_DONTWAIT) <= 0)
			return;
	}
}

static void exchange_end(struct exchange *exchange)
{
	struct admin_server *server = exchange->server;
	linger(exchange->connection);
	close(exchange->connection);
	free(exchange);
	pthread_mutex_lock(&server->mutex);
	server->running--;
	pthread_cond_signal(&server->ended);
	pthread_mutex_unlock(&server->mutex);
}

static void *exchange_run(void *argument)
{
	struct exchange *exchange = argument;
	BUF_AUTO struct buf line;
	BUF_AUTO struct buf answer;
	buf_init(&line, ADMIN_REQUEST_MAX);
	buf_init(&answer, ANSWER_MAX);
	struct error error = {0};
	int result = OK;
	if (exchange->uid != geteuid() && exchange->uid != 0)
		result = error_set(&error, ERR_REFUSED, MSG_ADMIN_PEER, NULL);
	else
		result = read_line(exchange->connection, &line, REQUEST_TIME_MS);
	if (result == ERR_USAGE)
		error_set(&error, result, MSG_ADMIN_BAD_REQUEST, NULL);
	else if (!result)
		result = execute(exchange, buf_slice(&line), &answer, &error);
	if (result) {
		error.code = result;
		buf_clear(&answer);
		error_answer(&error, &answer);
	}
	buf_add_byte(&answer, '\n');
	if (!buf_check(&answer))
		(void)send_all(exchange->connection, answer.data, answer.size);
	if (answer.data)
		explicit_bzero(answer.data, answer.size); /* it may contain a new key */
	exchange_end(exchange);
	return NULL;
}

/* ---- the server ---- */

static void begin_exchange(struct admin_server *server, int connection)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	struct timeval patience = {.tv_sec = ANSWER_TIME_S};
	struct exchange *exchange = malloc(sizeof *exchange);
	if (!exchange || getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
		free(exchange);
		close(connection);
		return;
	}
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	*exchange = (struct exchange){server, connection, peer.uid};
	pthread_mutex_lock(&server->mutex);
	while (server->running == EXCHANGES_MAX && !server->stopping)
		pthread_cond_wait(&server->ended, &server->mutex);
	bool stopping = server->stopping;
	server->running++;
	pthread_mutex_unlock(&server->mutex);
	pthread_t thread;
	if (stopping) {
		exchange_end(exchange);
		return;
	}
	if (pthread_create(&thread, NULL, exchange_run, exchange) == 0)
		pthread_detach(thread);
	else
		exchange_end(exchange);
}

static void *server_run(void *argument)
{
	struct admin_server *server = argument;
	pthread_setname_np(pthread_self(), "admin");
	struct pollfd ready[] = {{.fd = server->listener, .events = POLLIN},
	                         {.fd = server->wake[0], .events = POLLIN}};
	for (;;) {
		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			break;
		if (ready[1].revents)
			break;
		if (!ready[0].revents)
			continue;
		int connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
		if (connection >= 0)
			begin_exchange(server, connection);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			usleep(100000);
	}
	return NULL;
}

/* On Linux, bind takes the mode of the socket file from the descriptor, so that other users never
 * have access. */
static int listen_on(const char *path, int *ret_listener, struct error *error)
{
	struct sockaddr_un address;
	DESCRIPTOR_AUTO int directory = -1;
	int result = socket_address(path, &address, &directory, error);
	if (result)
		return result;
	struct stat there;
	if (lstat(path, &there) == 0 && S_ISSOCK(there.st_mode))
		(void)unlink(path);
	DESCRIPTOR_AUTO int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || fchmod(listener, 0600) != 0 ||
	    bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
	    chmod(path, 0600) != 0 || listen(listener, BACKLOG) != 0)
		return error_cause(error, ERR_IO, "administration socket %s: %s", path, strerror(errno));
	*ret_listener = descriptor_take(&listener);
	return OK;
}

static void server_free(struct admin_server *server)
{
	if (server->listener >= 0)
		close(server->listener);
	if (server->wake[0] >= 0)
		close(server->wake[0]);
	if (server->wake[1] >= 0)
		close(server->wake[1]);
	pthread_mutex_destroy(&server->mutex);
	pthread_cond_destroy(&server->ended);
	free(server->path);
	free(server);
}

int admin_server_start(struct admin *admin, const char *path, struct admin_server **ret_server,
                       struct error *error)
{
	struct admin_server *server = calloc(1, sizeof *server);
	if (!server)
		return ERR_NO_MEMORY;
	*server = (struct admin_server){
		.admin = admin, .path = strdup(path), .listener = -1, .wake = {-1, -1}};
	pthread_mutex_init(&server->mutex, NULL);
	pthread_cond_init(&server->ended, NULL);
	int result = server->path ? OK : ERR_NO_MEMORY;
	if (!result && pipe2(server->wake, O_CLOEXEC) != 0)
		result = error_cause(error, ERR_IO, "pipe: %s", strerror(errno));
	if (!result)
		result = listen_on(path, &server->listener, error);
	if (!result && pthread_create(&server->thread, NULL, server_run, server) != 0)
		result = error_cause(error, ERR_NO_MEMORY, "a thread for the administration");
	if (result) {
		server_free(server);
		return result;
	}
	*ret_server = server;
	return OK;
}

void admin_server_stop(struct admin_server *server)
{
	if (!server)
		return;
	close(server->wake[1]);
	server->wake[1] = -1;
	pthread_mutex_lock(&server->mutex);
	server->stopping = true;
	pthread_cond_signal(&server->ended);
	pthread_mutex_unlock(&server->mutex);
	pthread_join(server->thread, NULL);
	(void)unlink(server->path);
	pthread_mutex_lock(&server->mutex);
	while (server->running)
		pthread_cond_wait(&server->ended, &server->mutex);
	pthread_mutex_unlock(&server->mutex);
	server_free(server);
}

/* ---- the client ---- */

int admin_exchange(const char *path, struct slice request, struct buf *answer, struct error *error)
{
	struct sockaddr_un address;
	DESCRIPTOR_AUTO int directory = -1;
	if (access(path, F_OK) != 0 && errno == EACCES)
		return error_set(error, ERR_REFUSED, MSG_ADMIN_PEER, NULL);
	if (access(path, F_OK) != 0)
		return error_set(error, ERR_NOT_FOUND, MSG_ADMIN_NO_SERVICE, path, NULL);
	int result = socket_address(path, &address, &directory, error);
	if (result)
		return result;
	DESCRIPTOR_AUTO int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed =
		connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0;
	int reason = errno;
	if (failed && reason == ECONNREFUSED)
		result = error_set(error, ERR_NOT_FOUND, MSG_ADMIN_NO_SERVICE, path, NULL);
	else if (failed && reason == EACCES)
		result = error_set(error, ERR_REFUSED, MSG_ADMIN_PEER, NULL);
	else if (failed)
		result = error_cause(error, ERR_IO, "administration socket %s: %s", path, strerror(reason));
	else if (!send_all(connection, request.data, request.size) || !send_all(connection, "\n", 1) ||
	         read_line(connection, answer, -1))
		result =
			error_cause(error, ERR_UNAVAILABLE,
		                "the service closed the connection before it responded; check whether the "
		                "operation took effect before you repeat it");
	return result;
}
