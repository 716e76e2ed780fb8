/* What the kernel costs at the least: one thread that waits with epoll_wait, takes each request
 * with one recv and answers it with one send, and looks at nothing. The answer is as long as a
 * registration's. A request must come in one piece, as bench-load sends it, and fit the buffer.
 * Serves until its standard input ends.
 *
 *     bench-floor [--port PORT]
 *
 * Prints the port it listens on. */
#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 128
#define REQUEST_MAX 65536
#define HEAD                                                                                       \
	"HTTP/1.1 201 Created\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"                              \
	"Content-Type: application/json\r\nContent-Language: en\r\nVary: Accept-Language\r\n"          \
	"Cache-Control: no-store\r\nX-Request-Id: req_0123456789abcdef\r\n"                            \
	"RateLimit-Limit: 4000000\r\nRateLimit-Remaining: 3999999\r\nRateLimit-Reset: 1\r\n"           \
	"Content-Length: 560\r\n\r\n"
#define BODY_SIZE 560

static char answer[sizeof HEAD - 1 + BODY_SIZE];

static void take_connection(int poller, int listener)
{
	static const int one = 1;
	int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (descriptor < 0)
		return;
	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = descriptor};
	if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) < 0)
		close(descriptor);
}

static void take_request(int descriptor)
{
	static char request[REQUEST_MAX];
	ssize_t size = recv(descriptor, request, sizeof request, 0);
	if (size <= 0 ||
	    send(descriptor, answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
		close(descriptor);
}

static void *serve(void *context)
{
	int listener = *(int *)context;
	int poller = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
	if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) < 0)
		exit(2);
	for (;;) {
		struct epoll_event events[EVENTS];
		int count = epoll_wait(poller, events, EVENTS, -1);
		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == listener)
				take_connection(poller, listener);
			else
				take_request(events[i].data.fd);
		}
	}
	return NULL;
}

static int usage(bool asked)
{
	fputs("bench-floor [--port PORT]   answer without looking, until the standard input ends\n",
	      asked ? stdout : stderr);
	return asked ? 0 : 2;
}

int main(int count, char **arguments)
{
	static const struct option options[] = {{"port", required_argument, NULL, 'p'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
		if (option != 'p')
			return usage(option == 'h');
		address.sin_port = htons((uint16_t)atoi(optarg));
	}
	memcpy(answer, HEAD, sizeof HEAD - 1);
	memset(answer + sizeof HEAD - 1, ' ', BODY_SIZE);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, SOMAXCONN) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0) {
		perror("bench-floor");
		return 2;
	}
	pthread_t thread;
	if (pthread_create(&thread, NULL, serve, &listener))
		return 2;
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return 0;
}
