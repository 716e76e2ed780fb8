/* The cheapest download there is: one file by sendfile, and a client that throws away what it gets.
 *
 *     bench-static serve FILE      prints its port; serves until its standard input ends
 *     bench-static fetch HOST PORT TARGET
 *
 * The client prints one JSON document: the status, the bytes of the body and the seconds from the
 * request to its end. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX 8192
#define CHUNK_SIZE ((size_t)256 * 1024)

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* Reads to the empty line, and what was received after it. */
static size_t read_head(int peer, char *head, size_t size_max)
{
	size_t size = 0;
	while (size < size_max - 1) {
		ssize_t got = recv(peer, head + size, size_max - 1 - size, 0);
		if (got <= 0)
			return 0;
		size += (size_t)got;
		head[size] = '\0';
		if (memmem(head, size, "\r\n\r\n", 4))
			return size;
	}
	return 0;
}

static void answer(int peer, int file, off_t size)
{
	char request[REQUEST_MAX], head[128];
	int on = 1;
	setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!read_head(peer, request, sizeof request))
		return;
	int head_size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n",
	                         (long long)size);
	if (send(peer, head, (size_t)head_size, MSG_MORE) != head_size)
		return;
	for (off_t at = 0; at < size;)
		if (sendfile(peer, file, &at, (size_t)(size - at)) <= 0)
			return;
}

struct server {
	int listener, file;
	off_t size;
};

static void *serve_all(void *argument)
{
	const struct server *server = argument;
	for (;;) {
		int peer = accept(server->listener, NULL, NULL);
		if (peer < 0)
			return NULL;
		answer(peer, server->file, server->size);
		close(peer);
	}
}

static int serve(const char *path)
{
	struct stat facts;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int file = open(path, O_RDONLY), listener = socket(AF_INET, SOCK_STREAM, 0);
	if (file < 0 || fstat(file, &facts) < 0)
		fail(path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) < 0 ||
	    listen(listener, 16) < 0 || getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		fail("listen");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	static struct server server;
	server = (struct server){listener, file, facts.st_size};
	pthread_t thread;
	if (pthread_create(&thread, NULL, serve_all, &server) != 0)
		fail("thread");
	while (getchar() != EOF)
		;
	return 0;
}

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int fetch(const char *host, int port, const char *target)
{
	static char chunk[CHUNK_SIZE];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int peer = socket(AF_INET, SOCK_STREAM, 0);
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || peer < 0 ||
	    connect(peer, (struct sockaddr *)&address, sizeof address) < 0)
		fail(host);
	double start = now();
	int request =
		snprintf(chunk, sizeof chunk, "GET %s HTTP/1.1\r\nHost: %s:%d\r\n\r\n", target, host, port);
	if (send(peer, chunk, (size_t)request, 0) != request)
		fail("send");
	size_t size = read_head(peer, chunk, sizeof chunk);
	const char *length = size ? strcasestr(chunk, "\r\nContent-Length:") : NULL;
	if (!length)
		fail("answer");
	size_t head = (size_t)((char *)memmem(chunk, size, "\r\n\r\n", 4) - chunk) + 4;
	int status = atoi(chunk + 9);
	uint64_t bytes = strtoull(length + 17, NULL, 10), left = bytes - (size - head);
	while (left > 0) {
		ssize_t got = recv(peer, chunk, left < sizeof chunk ? (size_t)left : sizeof chunk, 0);
		if (got <= 0)
			fail("the answer ended too early");
		left -= (uint64_t)got;
	}
	printf("{\"status\": %d, \"bytes\": %llu, \"seconds\": %.5f}\n", status,
	       (unsigned long long)bytes, now() - start);
	return status != 200;
}

int main(int count, char **arguments)
{
	if (count == 3 && strcmp(arguments[1], "serve") == 0)
		return serve(arguments[2]);
	if (count == 5 && strcmp(arguments[1], "fetch") == 0)
		return fetch(arguments[2], atoi(arguments[3]), arguments[4]);
	fprintf(stderr, "usage: %s serve FILE | fetch HOST PORT TARGET\n", arguments[0]);
	return 2;
}
