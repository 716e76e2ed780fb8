/* Receivers of notices that cost little themselves: one thread, epoll, many ports; every request is
 * answered with 200 once it is complete.
 *
 *     bench-receivers [--ports N] [--silent N]
 *
 * Prints its ports on one line: N that answer, then those that take a connection and never answer.
 * For each line on standard input it prints what has come, as JSON: requests, and the seconds
 * between the first and the last of them; the line "reset" sets the counts to 0. Ends with its
 * standard input. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORTS_MAX 1000
#define REQUEST_MAX 16384
#define EVENTS_MAX 256

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct peer {
	int descriptor;
	bool listens;
	bool silent;
	size_t size; /* of the request so far */
	char request[REQUEST_MAX + 1];
};

static int poller;
static uint64_t requests;
static double first_s, last_s;

static void fail(const char *what)
{
	fprintf(stderr, "bench-receivers: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct peer *watch(int descriptor, bool listens, bool silent)
{
	struct peer *peer = calloc(1, sizeof *peer);
	if (!peer)
		fail("memory");
	*peer = (struct peer){.descriptor = descriptor, .listens = listens, .silent = silent};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
	if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) != 0)
		fail("epoll");
	return peer;
}

static void open_port(bool silent)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, size) != 0 ||
	    listen(descriptor, 1024) != 0 ||
	    getsockname(descriptor, (struct sockaddr *)&address, &size) != 0)
		fail("port");
	watch(descriptor, true, silent);
	printf("%d ", ntohs(address.sin_port));
}

/* Bytes of the whole request in front; 0 while it is not whole. */
static size_t whole_request(struct peer *peer)
{
	peer->request[peer->size] = '\0';
	char *end = strstr(peer->request, "\r\n\r\n");
	if (!end)
		return 0;
	char *length = strcasestr(peer->request, "\r\ncontent-length:");
	size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
	size_t whole = (size_t)(end + 4 - peer->request) + body;
	return whole <= peer->size ? whole : 0;
}

static void count_request(void)
{
	last_s = now_s();
	if (requests++ == 0)
		first_s = last_s;
}

static bool take(struct peer *peer)
{
	ssize_t got = read(peer->descriptor, peer->request + peer->size, REQUEST_MAX - peer->size);
	if (got <= 0)
		return got < 0 && errno == EAGAIN;
	peer->size += (size_t)got;
	size_t whole;
	while ((whole = whole_request(peer)) > 0) {
		count_request();
		memmove(peer->request, peer->request + whole, peer->size - whole);
		peer->size -= whole;
		if (write(peer->descriptor, answer, sizeof answer - 1) != (ssize_t)sizeof answer - 1)
			return false;
	}
	return peer->size < REQUEST_MAX;
}

static void let_in(struct peer *listener)
{
	int one = 1;
	int descriptor;
	while ((descriptor = accept4(listener->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
	       0) {
		setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		watch(descriptor, false, listener->silent);
	}
}

static void handle(struct peer *peer)
{
	char nowhere[4096];
	if (peer->listens) {
		let_in(peer);
		return;
	}
	bool goes_on = peer->silent ? read(peer->descriptor, nowhere, sizeof nowhere) > 0 : take(peer);
	if (!goes_on) {
		close(peer->descriptor);
		free(peer);
	}
}

/* False at the end of standard input. */
static bool tell(void)
{
	char line[256];
	ssize_t size = read(STDIN_FILENO, line, sizeof line);
	if (size <= 0)
		return false;
	printf("{\"requests\": %llu, \"seconds\": %.6f}\n", (unsigned long long)requests,
	       last_s - first_s);
	fflush(stdout);
	if (size >= 5 && memcmp(line, "reset", 5) == 0)
		requests = 0;
	return true;
}

int main(int count, char **words)
{
	static const struct option options[] = {
		{"ports", required_argument, NULL, 'p'}, {"silent", required_argument, NULL, 's'}, {0}};
	int ports = 1, silent = 0, option;
	while ((option = getopt_long(count, words, "", options, NULL)) != -1) {
		if (option == 'p')
			ports = atoi(optarg);
		else if (option == 's')
			silent = atoi(optarg);
		else
			return 2;
	}
	if (ports < 0 || silent < 0 || ports + silent > PORTS_MAX)
		return 2;
	poller = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < ports + silent; i++)
		open_port(i >= ports);
	printf("\n");
	fflush(stdout);
	struct epoll_event input = {.events = EPOLLIN};
	epoll_ctl(poller, EPOLL_CTL_ADD, STDIN_FILENO, &input);
	struct epoll_event events[EVENTS_MAX];
	for (;;) {
		int ready = epoll_wait(poller, events, EVENTS_MAX, -1);
		for (int i = 0; i < ready; i++) {
			if (events[i].data.ptr)
				handle(events[i].data.ptr);
			else if (!tell())
				return 0;
		}
	}
}
