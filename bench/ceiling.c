/* What the HTTP library can do here at the most: answers every request at once, with no work and
 * nothing stored, under the settings of src/http. The answer has the size and the headers of a
 * registration's. Serves until its standard input ends.
 *
 *     bench-ceiling [--port PORT] [--threads N]
 *
 * Prints the port it listens on. */
#include <arpa/inet.h>
#include <getopt.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char body[] =
    "{\"event_id\":\"evt_01k9x2m4q7r5t8v0w3y6z1a2b4\",\"channel_id\":\"chn_01k9x2m4q7r5t8v0w3y6z1a2b4"
    "\",\"client_ref\":\"0123456789abcdef0123456789abcdef\",\"sequence\":1234567,\"received_at\":"
    "\"2026-01-02T03:04:05.678901Z\",\"occurred_at\":null,\"hash\":"
    "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"hash_alg\":\"sha-256\","
    "\"modality\":\"content\",\"chain_hash\":"
    "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"status\":\"registered\","
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
	return MHD_queue_response(connection, MHD_HTTP_CREATED, context);
}

int main(int count, char **arguments)
{
	static const struct option options[] = {{"port", required_argument, NULL, 'p'},
	                                        {"threads", required_argument, NULL, 't'},
	                                        {NULL, 0, NULL, 0}};
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned threads = 2;
	for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
		if (option == 'p')
			address.sin_port = htons((uint16_t)atoi(optarg));
		else if (option == 't')
			threads = (unsigned)atoi(optarg);
		else
			return 2;
	}
	struct MHD_Response *response = MHD_create_response_from_buffer(
	    sizeof body - 1, (void *)body, MHD_RESPMEM_PERSISTENT);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	struct MHD_Daemon *daemon = MHD_start_daemon(
	    MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
	    NULL, answer, response, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
	    MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0, MHD_OPTION_CONNECTION_LIMIT, 2048u,
	    MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_END);
	if (!daemon)
		return 2;
	printf("%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	MHD_stop_daemon(daemon);
	MHD_destroy_response(response);
	return 0;
}
