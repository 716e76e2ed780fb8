/* What the HTTP library can do here at the most: answers every request at once, with no work and
 * nothing stored, in polling threads and under settings like those of src/http/loop.c. The answer
 * has the size and the headers of a registration's. It is composed for each request, as headers
 * that differ force the service to do. Serves until its standard input ends.
 *
 *     bench-ceiling [--port PORT] [--threads N]
 *
 * Prints the port it listens on. */
#include <arpa/inet.h>
#include <getopt.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 2048
#define THREADS_MAX 16
#define CONNECTION_MEMORY 16384

static const char body[] =
	"{\"event_id\":\"evt_01k9x2m4q7r5t8v0w3y6z1a2b4\","
	"\"channel_id\":\"chn_01k9x2m4q7r5t8v0w3y6z1a2b4\","
	"\"client_ref\":\"0123456789abcdef0123456789abcdef\",\"sequence\":1234567,"
	"\"received_at\":\"2026-01-02T03:04:05.678901Z\",\"occurred_at\":null,\"hash\":"
	"\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\","
	"\"hash_alg\":\"sha-256\",\"modality\":\"content\",\"chain_hash\":"
	"\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\","
	"\"status\":\"registered\","
	"\"timestamp\":{\"type\":\"pending\",\"reference\":null,\"sealed_at\":null},"
	"\"config_version\":1,\"mode\":\"live\"}";

static const char *const headers[][2] = {
	{"Content-Type", "application/json"},
	{"X-Request-Id", "req_01k9x2m4q7r5t8v0w3y6z1a2b4"},
	{"Content-Language", "en"},
	{"Vary", "Accept-Language"},
	{"RateLimit-Limit", "4000000"},
	{"RateLimit-Remaining", "3999999"},
	{"RateLimit-Reset", "1"},
	{"Cache-Control", "no-store"},
};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
	static char seen;
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	if (*size) {
		*size = 0;
		return MHD_YES;
	}
	struct MHD_Response *response =
		MHD_create_response_from_buffer(sizeof body - 1, (void *)body, MHD_RESPMEM_PERSISTENT);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_CREATED, response);
	MHD_destroy_response(response);
	return result;
}

/* The library's own polling threads of version 0.9.75 are not used: when exactly as many events
 * wait as it takes at once, they wait for another before they handle them, and clients that all
 * wait for their answers wait for good. */
static void *run(void *context)
{
	struct MHD_Daemon *daemon = context;
	struct epoll_event event = {.events = EPOLLIN};
	int poller = epoll_create1(EPOLL_CLOEXEC);
	int library = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, library, &event) < 0)
		exit(2);
	for (;;) {
		MHD_UNSIGNED_LONG_LONG wait_ms = 0;
		if (MHD_get_timeout(daemon, &wait_ms) != MHD_YES || wait_ms > 1000)
			wait_ms = 1000;
		epoll_wait(poller, &event, 1, (int)wait_ms);
		MHD_run(daemon);
	}
	return NULL;
}

static int start_thread(int listener, unsigned threads)
{
	pthread_t thread;
	struct MHD_Daemon *daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		answer, NULL, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
		CONNECTIONS_MAX / threads, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, 60u,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	return daemon ? pthread_create(&thread, NULL, run, daemon) : -1;
}

int main(int count, char **arguments)
{
	static const struct option options[] = {{"port", required_argument, NULL, 'p'},
	                                        {"threads", required_argument, NULL, 't'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	static const int one = 1;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	unsigned threads = 2;
	for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
		if (option == 'p')
			address.sin_port = htons((uint16_t)atoi(optarg));
		else if (option == 't')
			threads = (unsigned)atoi(optarg);
		else if (option == 'h')
			return puts("bench-ceiling [--port PORT] [--threads N]   answer at once, until the "
			            "standard input ends") < 0;
		else
			return 2;
	}
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, SOMAXCONN) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0) {
		perror("bench-ceiling");
		return 2;
	}
	for (unsigned i = 0; i < threads; i++)
		if (start_thread(i == 0 ? listener : dup(listener), threads))
			return 2;
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return 0;
}
