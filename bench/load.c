/* A load generator for HTTP/1.1 that costs little itself: one thread, epoll, N connections,
 * requests composed beforehand with only what must differ written in place.
 *
 *     bench-load --url http://127.0.0.1:8080/v1/events [--connections N] [--rate N]
 *                [--seconds S | --requests N] [--keys-file FILE] [--payload-bytes N]
 *                [--method POST|GET] [--batch N] [--json]
 *
 * A key of the file (one a line) goes with each request in turn. Every POST has a client_ref and
 * content of its own; with --batch it has N declarations, one a line, and its answer is discarded
 * unread after the head. In a closed loop each connection sends when it was answered, and latency
 * is from handing a request to the kernel to the end of its answer. With a rate requests are due at
 * equal distances, whatever became of earlier ones, and latency is from when a request was due: the
 * wait for a free connection is included. SIGTERM ends the run early. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "histogram.h"

static const char usage[] =
	"bench-load --url URL [OPTIONS]   load an HTTP/1.1 service\n\n"
	"  --connections N     keep-alive connections (1)\n"
	"  --rate N            requests due a second, answered or not; without it a closed loop\n"
	"  --seconds S         how long, or\n"
	"  --requests N        how many requests\n"
	"  --keys-file FILE    API keys, one a line; a request takes the next one\n"
	"  --payload-bytes N   size of a declared payload\n"
	"  --method POST|GET\n"
	"  --batch N           declarations of a request, for /v1/events/batch\n"
	"  --json              one JSON document instead of a line";

#define KEYS_MAX 100000
#define CONNECTIONS_MAX 4096
#define HEAD_SIZE 8192
#define REFERENCE_SIZE 32
#define ORDER_SIZE 16
#define STATUS_COUNT 600
#define PAYLOAD_MAX 262144
#define BATCH_MAX 1000
#define STALLED_NS INT64_C(30000000000)

struct request_template {
	char *text;
	size_t size;
	/* what differs from request to request, in the first declaration; NULL in a GET */
	char *reference, *order;
};

struct connection {
	int descriptor;
	int64_t from_ns;    /* what its latency is counted from; 0: nothing is under way */
	size_t head_size;   /* bytes in head */
	uint64_t body_left; /* of an answer whose head is complete */
	int status;         /* 0: the head is not complete */
	bool closing;       /* the server said so */
	struct connection *next_idle;
	char *unsent; /* rest of a request that the socket did not take */
	size_t unsent_size, unsent_done;
	char head[HEAD_SIZE];
};

static const char *url, *method = "POST", *keys_path;
static unsigned connection_count = 1;
static uint64_t requests_max = UINT64_MAX;
static double seconds = 5, rate; /* 0: a closed loop */
static size_t payload_size = 200;
static size_t batch;     /* declarations of a request; 0: not a batch */
static size_t line_size; /* of one of them */
static bool json;

static char host[256], port[16], path[1024];
static struct addrinfo *address;
static struct request_template *templates;
static size_t template_count;
static struct connection *connections, *idle;
static int poller;

static struct histogram latencies;
static uint64_t statuses[STATUS_COUNT];
static uint64_t started, finished, broken, reconnected;
static uint64_t random_state[2];
static int64_t begin_ns;
static bool stopping;
static volatile sig_atomic_t told_to_stop;

static void fail(const char *what)
{
	fprintf(stderr, "bench-load: %s: %s\n", what, errno ? strerror(errno) : "not usable");
	exit(2);
}

/* splitmix64: a bijection of a counter, so that nothing repeats within a run. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void put_hex(char *text, uint64_t value)
{
	for (int i = 0; i < 16; i++, value >>= 4)
		text[i] = "0123456789abcdef"[value & 15];
}

/* ---- requests ---- */

static void parse_url(void)
{
	if (sscanf(url, "http://%255[^:/]:%15[0-9]%1023[^ ]", host, port, path) != 3)
		fail("--url must be http://HOST:PORT/PATH");
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	if (getaddrinfo(host, port, &hints, &address))
		fail(host);
}

/* A registration whose payload has the wanted size in canonical form. */
static char *compose_body(size_t *ret_size)
{
	static const char payload_start[] =
		"{\"type\":\"order.delivered\",\"order\":\"0123456789abcdef\",\"amount\":129.95,"
		"\"lines\":[1,2,3],\"express\":true,\"note\":\"";
	size_t fixed = sizeof payload_start - 1 + 2;
	size_t padding = payload_size > fixed ? payload_size - fixed : 0;
	char *body = malloc(padding + 1024), *end = body;
	if (!body)
		fail("memory");
	end +=
		sprintf(end, "{\"client_ref\":\"%0*d\",\"payload\":%s", REFERENCE_SIZE, 0, payload_start);
	memset(end, 'x', padding);
	end += padding;
	end += sprintf(end, "\"}}");
	*ret_size = (size_t)(end - body);
	return body;
}

/* Repeats the declaration, one a line. */
static char *compose_lines(char *body, size_t *size)
{
	line_size = *size + 1;
	char *lines = malloc(line_size * batch);
	if (!lines)
		fail("memory");
	for (size_t i = 0; i < batch; i++) {
		memcpy(lines + i * line_size, body, *size);
		lines[(i + 1) * line_size - 1] = '\n';
	}
	free(body);
	*size = line_size * batch;
	return lines;
}

static void compose(struct request_template *template, const char *key)
{
	size_t body_size = 0;
	char *body = strcmp(method, "POST") == 0 ? compose_body(&body_size) : NULL;
	if (body && batch)
		body = compose_lines(body, &body_size);
	template->text = malloc(HEAD_SIZE + body_size);
	if (!template->text)
		fail("memory");
	int size = snprintf(template->text, HEAD_SIZE, "%s %s HTTP/1.1\r\nHost: %s:%s\r\n", method,
	                    path, host, port);
	if (*key)
		size += snprintf(template->text + size, (size_t)(HEAD_SIZE - size),
		                 "Authorization: Bearer %s\r\n", key);
	if (body)
		size += snprintf(template->text + size, (size_t)(HEAD_SIZE - size),
		                 "Content-Type: application/%s\r\nContent-Length: %zu\r\n",
		                 batch ? "x-ndjson" : "json", body_size);
	size += snprintf(template->text + size, (size_t)(HEAD_SIZE - size), "\r\n");
	if (body) {
		char *start = template->text + size;
		memcpy(start, body, body_size);
		template->reference = (char *)memmem(start, body_size, "client_ref", 10) + 13;
		template->order = (char *)memmem(start, body_size, "\"order\":\"", 9) + 9;
	}
	template->size = (size_t)size + body_size;
	free(body);
}

static void compose_all(void)
{
	templates = calloc(KEYS_MAX, sizeof *templates);
	if (!templates)
		fail("memory");
	FILE *file = keys_path ? fopen(keys_path, "r") : NULL;
	if (keys_path && !file)
		fail(keys_path);
	char line[256];
	while (file && template_count < KEYS_MAX && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line)
			compose(&templates[template_count++], line);
	}
	if (file)
		fclose(file);
	if (template_count == 0)
		compose(&templates[template_count++], "");
}

/* ---- connections ---- */

static void watch(struct connection *connection, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};
	if (epoll_ctl(poller, operation, connection->descriptor, &event) < 0)
		fail("epoll_ctl");
}

static void connect_one(struct connection *connection)
{
	static const int one = 1;
	connection->descriptor =
		socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, address->ai_protocol);
	if (connection->descriptor < 0)
		fail("socket");
	if (connect(connection->descriptor, address->ai_addr, address->ai_addrlen) < 0)
		fail("connect");
	setsockopt(connection->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	fcntl(connection->descriptor, F_SETFL, O_NONBLOCK);
	watch(connection, EPOLL_CTL_ADD, EPOLLIN);
}

static void reconnect(struct connection *connection)
{
	close(connection->descriptor);
	reconnected++;
	connection->head_size = connection->unsent_size = connection->unsent_done = 0;
	connection->status = 0;
	connection->closing = false;
	connection->from_ns = 0;
	connect_one(connection);
}

static void keep_unsent(struct connection *connection, const char *data, size_t size)
{
	char *unsent = realloc(connection->unsent, size);
	if (!unsent)
		fail("memory");
	memcpy(unsent, data, size);
	connection->unsent = unsent;
	connection->unsent_size = size;
	connection->unsent_done = 0;
	watch(connection, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

/* With a rate: when the request that comes next is due. */
static int64_t next_due_ns(void)
{
	return begin_ns + (int64_t)((double)started * 1e9 / rate);
}

static void send_next(struct connection *connection, int64_t now_ns)
{
	connection->from_ns = 0;
	if (stopping || started >= requests_max) {
		stopping = true;
		return;
	}
	int64_t from_ns = rate > 0 ? next_due_ns() : now_ns;
	if (from_ns > now_ns) {
		connection->next_idle = idle;
		idle = connection;
		return;
	}
	struct request_template *template = &templates[started++ % template_count];
	for (size_t i = 0; template->reference && i < (batch ? batch : 1); i++) {
		uint64_t value = next_random(&random_state[0]);
		put_hex(template->reference + i * line_size, value);
		put_hex(template->reference + i * line_size + 16, random_state[1]);
		put_hex(template->order + i * line_size, value);
	}
	connection->from_ns = from_ns;
	ssize_t sent = send(connection->descriptor, template->text, template->size, MSG_NOSIGNAL);
	if (sent < 0)
		sent = 0; /* the next read or write on it tells why */
	if ((size_t)sent < template->size)
		keep_unsent(connection, template->text + sent, template->size - (size_t)sent);
}

static void send_rest(struct connection *connection)
{
	ssize_t sent = send(connection->descriptor, connection->unsent + connection->unsent_done,
	                    connection->unsent_size - connection->unsent_done, MSG_NOSIGNAL);
	if (sent > 0)
		connection->unsent_done += (size_t)sent;
	if (connection->unsent_done == connection->unsent_size)
		watch(connection, EPOLL_CTL_MOD, EPOLLIN);
}

static void break_off(struct connection *connection)
{
	bool under_way = connection->from_ns != 0;
	if (under_way)
		broken++;
	reconnect(connection);
	if (under_way)
		send_next(connection, bench_now_ns());
}

/* Reads the head that ends at `end`; false when it is not understood. */
static bool read_head(struct connection *connection, const char *end)
{
	const char *line = connection->head;
	if (end - line < 12 || memcmp(line, "HTTP/1.1 ", 9) != 0)
		return false;
	int status = atoi(line + 9);
	bool sized = status < 200 || status == 204 || status == 304;
	connection->body_left = 0;
	while ((line = memchr(line, '\n', (size_t)(end - line))) && ++line < end) {
		if ((*line | 0x20) != 'c')
			continue;
		if (strncasecmp(line, "content-length:", 15) == 0) {
			connection->body_left = strtoull(line + 15, NULL, 10);
			sized = true;
		} else if (strncasecmp(line, "connection: close", 17) == 0) {
			connection->closing = true;
		}
	}
	connection->status = status;
	return sized && status >= 100 && status < STATUS_COUNT;
}

static void complete(struct connection *connection)
{
	int64_t now_ns = bench_now_ns();
	int status = connection->status;
	connection->status = 0;
	if (status < 200) /* an interim answer: the real one follows */
		return;
	histogram_add(&latencies, now_ns - connection->from_ns);
	statuses[status]++;
	finished++;
	if (connection->closing)
		reconnect(connection);
	send_next(connection, now_ns);
}

/* Takes what has arrived in head; false when it is not understood. */
static bool take(struct connection *connection)
{
	for (;;) {
		size_t used = 0;
		if (connection->status == 0) {
			char *end = memmem(connection->head, connection->head_size, "\r\n\r\n", 4);
			if (!end)
				return connection->head_size < HEAD_SIZE;
			if (!read_head(connection, end + 2))
				return false;
			used = (size_t)(end + 4 - connection->head);
		}
		size_t there = connection->head_size - used;
		size_t body = there < connection->body_left ? there : (size_t)connection->body_left;
		connection->body_left -= body;
		connection->head_size = there - body;
		memmove(connection->head, connection->head + used + body, connection->head_size);
		if (connection->body_left > 0)
			return true;
		complete(connection);
		if (connection->head_size == 0)
			return true;
	}
}

/* Discards the body of a batch's answer, as far as it has arrived, without copying it. */
static ssize_t discard(struct connection *connection)
{
	ssize_t size = recv(connection->descriptor, NULL, connection->body_left - 1, MSG_TRUNC);
	if (size > 0)
		connection->body_left -= (size_t)size;
	return size;
}

static void receive(struct connection *connection)
{
	if (batch && connection->head_size == 0 && connection->body_left > 1) {
		ssize_t gone = discard(connection);
		if (gone == 0 || (gone < 0 && errno != EAGAIN && errno != EINTR))
			break_off(connection);
		return;
	}
	ssize_t size = recv(connection->descriptor, connection->head + connection->head_size,
	                    HEAD_SIZE - connection->head_size, 0);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size <= 0) {
		break_off(connection);
		return;
	}
	connection->head_size += (size_t)size;
	if (!take(connection))
		break_off(connection);
}

/* ---- the run ---- */

static void tell_to_stop(int number)
{
	told_to_stop = number;
}

static void send_due(int64_t now_ns)
{
	while (idle && !stopping && (started >= requests_max || next_due_ns() <= now_ns)) {
		struct connection *connection = idle;
		idle = connection->next_idle;
		send_next(connection, now_ns);
	}
}

static void wait_and_receive(int64_t now_ns)
{
	struct epoll_event events[256];
	struct timespec patience = {.tv_sec = 1};
	int64_t left_ns = idle && !stopping ? next_due_ns() - now_ns : INT64_MAX;
	if (left_ns < 1000000000)
		patience = (struct timespec){.tv_nsec = left_ns > 0 ? left_ns : 0};
	int count = epoll_pwait2(poller, events, 256, &patience, NULL);
	for (int i = 0; i < count; i++) {
		struct connection *connection = events[i].data.ptr;
		if (events[i].events & EPOLLOUT)
			send_rest(connection);
		if (events[i].events & ~(uint32_t)EPOLLOUT)
			receive(connection);
	}
}

/* What was due until now is sent all the same. */
static void end_early(int64_t now_ns)
{
	told_to_stop = 0;
	if (rate > 0)
		requests_max = (uint64_t)((double)(now_ns - begin_ns) * rate / 1e9);
	else
		stopping = true;
}

static void run(void)
{
	begin_ns = bench_now_ns();
	int64_t now_ns = begin_ns, progress_ns = begin_ns;
	int64_t end_ns = begin_ns + (int64_t)(seconds * 1e9);
	uint64_t progress = 0;
	if (rate > 0 && requests_max == UINT64_MAX)
		requests_max = (uint64_t)(rate * seconds);
	for (unsigned i = 0; i < connection_count; i++)
		send_next(&connections[i], begin_ns);
	while (finished + broken < started || !stopping) {
		wait_and_receive(now_ns);
		now_ns = bench_now_ns();
		if (told_to_stop)
			end_early(now_ns);
		if (rate > 0)
			send_due(now_ns);
		else if (now_ns >= end_ns)
			stopping = true;
		if (finished != progress) {
			progress = finished;
			progress_ns = now_ns;
		} else if (now_ns - progress_ns > STALLED_NS) {
			break;
		}
	}
	seconds = (double)(now_ns - begin_ns) / 1e9;
}

static void print_result(void)
{
	double p50 = histogram_quantile_us(&latencies, 0.5);
	double p99 = histogram_quantile_us(&latencies, 0.99);
	double p999 = histogram_quantile_us(&latencies, 0.999);
	double max = (double)latencies.max_ns / 1000;
	uint64_t unfinished = started - finished - broken;
	printf(
		json ? "{\"requests\": %llu, \"seconds\": %.3f, \"rate\": %.1f, \"p50_us\": %.1f, "
			   "\"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, \"broken\": %llu, "
			   "\"unfinished\": %llu, \"reconnected\": %llu, \"status\": {"
			 : "%llu requests in %.3f s: %.1f/s; latency p50 %.1f µs, p99 %.1f µs, p99.9 %.1f µs, "
			   "max %.1f µs; %llu broken, %llu unfinished, %llu reconnected; status",
		(unsigned long long)finished, seconds, (double)finished / seconds, p50, p99, p999, max,
		(unsigned long long)broken, (unsigned long long)unfinished,
		(unsigned long long)reconnected);
	const char *comma = "";
	for (int i = 0; i < STATUS_COUNT; i++)
		if (statuses[i]) {
			printf(json ? "%s\"%d\": %llu" : "%s %d: %llu", comma, i,
			       (unsigned long long)statuses[i]);
			comma = json ? ", " : ",";
		}
	printf(json ? "}}\n" : "\n");
}

static void read_options(int count, char **arguments)
{
	static const struct option options[] = {{"url", required_argument, NULL, 'u'},
	                                        {"connections", required_argument, NULL, 'c'},
	                                        {"rate", required_argument, NULL, 'r'},
	                                        {"seconds", required_argument, NULL, 's'},
	                                        {"requests", required_argument, NULL, 'n'},
	                                        {"keys-file", required_argument, NULL, 'k'},
	                                        {"payload-bytes", required_argument, NULL, 'p'},
	                                        {"method", required_argument, NULL, 'm'},
	                                        {"batch", required_argument, NULL, 'b'},
	                                        {"json", no_argument, NULL, 'j'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;)
		switch (option) {
		case 'u': url = optarg; break;
		case 'c': connection_count = (unsigned)atoi(optarg); break;
		case 'r': rate = atof(optarg); break;
		case 's': seconds = atof(optarg); break;
		case 'n':
			requests_max = strtoull(optarg, NULL, 10);
			seconds = 1e9;
			break;
		case 'k': keys_path = optarg; break;
		case 'p': payload_size = strtoul(optarg, NULL, 10); break;
		case 'm': method = optarg; break;
		case 'b': batch = strtoul(optarg, NULL, 10); break;
		case 'j': json = true; break;
		case 'h': puts(usage); exit(0);
		default: exit(2);
		}
	if (!url || optind != count || rate < 0 || connection_count < 1 ||
	    connection_count > CONNECTIONS_MAX || payload_size > PAYLOAD_MAX || batch > BATCH_MAX)
		fail("options; see the head of bench/load.c");
}

int main(int count, char **arguments)
{
	read_options(count, arguments);
	parse_url();
	compose_all();
	if (getrandom(random_state, sizeof random_state, 0) != sizeof random_state)
		fail("getrandom");
	poller = epoll_create1(EPOLL_CLOEXEC);
	connections = calloc(connection_count, sizeof *connections);
	if (poller < 0 || !connections)
		fail("start");
	for (unsigned i = 0; i < connection_count; i++)
		connect_one(&connections[i]);
	signal(SIGTERM, tell_to_stop);
	run();
	print_result();
	return finished && !broken && finished == started ? 0 : 1;
}
