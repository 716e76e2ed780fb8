#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "net/http_multi.h"

#define PEERS_MAX 64
#define PATIENCE_US (20 * US_PER_SECOND)

/* ---- a server that answers every request at once, or never ---- */

struct server {
	const char *address;
	bool silent;
	int listener;
	int port;
	atomic_int connections;
	atomic_int requests;
	atomic_bool stopping;
	pthread_t thread;
};

static struct address_guard loopback, only_second;

/* Bodies are smaller than a segment of the loopback interface, so that one read is one request. */
static bool serve_peer(struct server *server, int peer)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char request[8192];

	if (recv(peer, request, sizeof request, 0) <= 0)
		return false;
	atomic_fetch_add(&server->requests, 1);
	return server->silent || send(peer, answer, sizeof answer - 1, MSG_NOSIGNAL) > 0;
}

static void *serve(void *context)
{
	struct server *server = context;
	struct pollfd peers[PEERS_MAX + 1] = {{.fd = server->listener, .events = POLLIN}};
	nfds_t count = 1;

	while (!atomic_load(&server->stopping)) {
		poll(peers, count, 20);
		if (peers[0].revents && count <= PEERS_MAX) {
			peers[count++] =
				(struct pollfd){.fd = accept(server->listener, NULL, NULL), .events = POLLIN};
			atomic_fetch_add(&server->connections, 1);
		}
		for (nfds_t i = 1; i < count; i++)
			if (peers[i].revents && !serve_peer(server, peers[i].fd)) {
				close(peers[i].fd);
				peers[i--] = peers[--count];
			}
	}
	while (count > 1)
		close(peers[--count].fd);
	return NULL;
}

static void start(struct server *server, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	socklen_t size = sizeof address;

	inet_pton(AF_INET, server->address, &address.sin_addr);
	server->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(server->listener, 64), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
	server->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
	atomic_store(&server->stopping, true);
	pthread_join(server->thread, NULL);
	close(server->listener);
}

/* ---- a resolver with scripted answers ---- */

#define SCRIPTED_NAME "receiver.test"
static const char *scripted[4]; /* answers of the next look-up of SCRIPTED_NAME */
static atomic_int look_ups;

static struct addrinfo *make_address(const char *text, const char *port)
{
	struct addrinfo *made = calloc(1, sizeof *made + sizeof(struct sockaddr_in));
	assert_non_null(made);
	struct sockaddr_in *address = (struct sockaddr_in *)(void *)(made + 1);
	*address = (struct sockaddr_in){.sin_family = AF_INET,
	                                .sin_port = htons((uint16_t)atoi(port ? port : "0"))};
	inet_pton(AF_INET, text, &address->sin_addr);
	*made = (struct addrinfo){.ai_family = AF_INET,
	                          .ai_socktype = SOCK_STREAM,
	                          .ai_protocol = IPPROTO_TCP,
	                          .ai_addrlen = sizeof *address,
	                          .ai_addr = (struct sockaddr *)address};
	return made;
}

/* Replaces the function of the system, for libcurl too. Allocates its results as freeaddrinfo
 * expects them. */
int getaddrinfo(const char *name, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret)
{
	typedef int real_function(const char *, const char *, const struct addrinfo *,
	                          struct addrinfo **);
	if (!name || strcmp(name, SCRIPTED_NAME) != 0) {
		real_function *real = (real_function *)dlsym(RTLD_NEXT, "getaddrinfo");
		return real(name, port, hints, ret);
	}
	atomic_fetch_add(&look_ups, 1);
	struct addrinfo **end = ret;
	*ret = NULL;
	for (size_t i = 0; scripted[i]; i++, end = &(*end)->ai_next)
		*end = make_address(scripted[i], port);
	return *ret ? 0 : EAI_NONAME;
}

/* ---- exchanges ---- */

static void set_up(struct http_exchange *exchange, char url[96], const char *host, int port)
{
	snprintf(url, 96, "http://%s:%d/hook", host, port);
	*exchange = (struct http_exchange){.request = {.url = url,
	                                               .allow_http = true,
	                                               .guard = &loopback,
	                                               .timeout_ms = 60000,
	                                               .body = slice_of("{}"),
	                                               .content_type = "application/json"}};
}

static struct http_exchange *take(struct http_multi *many)
{
	struct http_exchange *taken = http_multi_collect(many, PATIENCE_US);
	assert_non_null(taken);
	return taken;
}

TEST_CASE(test_connections_are_used_again)
{
	enum { AT_ONCE = 4, ROUNDS = 25 };
	struct server server = {.address = "127.0.0.1"};
	struct http_multi *many;
	struct http_exchange exchanges[AT_ONCE];
	char urls[AT_ONCE][96];
	int done = 0;

	start(&server, 0);
	assert_int_equal(http_multi_start(&many, NULL), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < AT_ONCE; i++) {
			set_up(&exchanges[i], urls[i], "127.0.0.1", server.port);
			http_multi_submit(many, &exchanges[i]);
		}
		for (int left = AT_ONCE; left > 0;)
			for (struct http_exchange *at = take(many); at; at = at->next, left--, done++) {
				assert_int_equal(at->result, 0);
				assert_int_equal(at->answer.status, 200);
				assert_string_equal(at->answer.body.data, "ok");
				assert_true(at->duration_us > 0);
				http_answer_free(&at->answer);
			}
	}
	assert_null(http_multi_stop(many));
	stop(&server);
	assert_int_equal(done, AT_ONCE * ROUNDS);
	assert_int_equal(atomic_load(&server.requests), AT_ONCE * ROUNDS);
	assert_in_range(atomic_load(&server.connections), 1, AT_ONCE);
}

TEST_CASE(test_one_that_hangs_delays_nobody)
{
	struct server quick = {.address = "127.0.0.1"}, slow = {.address = "127.0.0.1", .silent = true};
	struct http_multi *many;
	struct http_exchange hanging, exchange;
	char slow_url[96], url[96];

	start(&quick, 0);
	start(&slow, 0);
	assert_int_equal(http_multi_start(&many, NULL), 0);
	set_up(&hanging, slow_url, "127.0.0.1", slow.port);
	hanging.request.timeout_ms = 700;
	http_multi_submit(many, &hanging);
	for (int i = 0; i < 20; i++) {
		set_up(&exchange, url, "127.0.0.1", quick.port);
		http_multi_submit(many, &exchange);
		struct http_exchange *taken = take(many);
		if (taken == &hanging) { /* on a stalled machine it may have ended by now */
			assert_int_equal(hanging.result, ERR_NETWORK);
			taken = taken->next ? taken->next : take(many);
		}
		assert_ptr_equal(taken, &exchange);
		assert_int_equal(exchange.result, 0);
		http_answer_free(&exchange.answer);
	}
	if (!hanging.duration_us)
		assert_ptr_equal(take(many), &hanging);
	assert_int_equal(hanging.result, ERR_NETWORK);
	assert_null(http_multi_stop(many));
	stop(&quick);
	stop(&slow);
}

TEST_CASE(test_stopping_gives_back_what_is_under_way)
{
	enum { COUNT = 3 };
	struct server server = {.address = "127.0.0.1", .silent = true};
	struct http_multi *many;
	struct http_exchange exchanges[COUNT];
	char urls[COUNT][96];
	int given_back = 0;

	start(&server, 0);
	assert_int_equal(http_multi_start(&many, NULL), 0);
	for (int i = 0; i < COUNT; i++) {
		set_up(&exchanges[i], urls[i], "127.0.0.1", server.port);
		http_multi_submit(many, &exchanges[i]);
	}
	assert_null(http_multi_collect(many, 1000));
	for (struct http_exchange *at = http_multi_stop(many); at; at = at->next, given_back++)
		assert_int_equal(at->result, ERR_NETWORK);
	assert_int_equal(given_back, COUNT);
	stop(&server);
}

TEST_CASE(test_what_cannot_be_sent_comes_back_at_once)
{
	static const char *const urls[] = {"ftp://127.0.0.1/", "http://user:pw@127.0.0.1/", "http://",
	                                   "file:///etc/passwd"};
	struct http_multi *many;
	struct http_exchange exchange;
	char url[96];

	assert_int_equal(http_multi_start(&many, NULL), 0);
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		set_up(&exchange, url, "127.0.0.1", 9);
		exchange.request.url = urls[i];
		http_multi_submit(many, &exchange);
		assert_ptr_equal(take(many), &exchange);
		if (exchange.result != ERR_VALIDATION)
			fail_msg("%s: %d", urls[i], exchange.result);
	}
	assert_null(http_multi_stop(many));
}

static int send_to_scripted(int port)
{
	struct http_multi *many;
	struct http_exchange exchange;
	char url[96];

	assert_int_equal(http_multi_start(&many, NULL), 0);
	set_up(&exchange, url, SCRIPTED_NAME, port);
	exchange.request.guard = &only_second;
	http_multi_submit(many, &exchange);
	assert_ptr_equal(take(many), &exchange);
	if (!exchange.result) {
		assert_string_equal(exchange.answer.address, "127.0.0.2");
		http_answer_free(&exchange.answer);
	}
	assert_null(http_multi_stop(many));
	return exchange.result;
}

/* 127.0.0.2 represents a public address, 127.0.0.1 a forbidden one. */
TEST_CASE(test_the_address_connected_to_is_the_one_that_is_checked)
{
	struct server allowed = {.address = "127.0.0.2"}, forbidden = {.address = "127.0.0.1"};

	start(&forbidden, 0); /* first: a port that is free here is probably free there */
	start(&allowed, forbidden.port);
	atomic_store(&look_ups, 0);
	scripted[0] = "127.0.0.1"; /* both at once: the forbidden one is skipped */
	scripted[1] = "127.0.0.2";
	assert_int_equal(send_to_scripted(allowed.port), 0);
	scripted[0] = "127.0.0.2"; /* an allowed answer, then another one */
	scripted[1] = NULL;
	assert_int_equal(send_to_scripted(allowed.port), 0);
	scripted[0] = "127.0.0.1";
	assert_int_equal(send_to_scripted(allowed.port), ERR_REFUSED);
	assert_int_equal(atomic_load(&look_ups), 3);
	stop(&allowed);
	stop(&forbidden);
	assert_int_equal(atomic_load(&allowed.connections), 2);
	assert_int_equal(atomic_load(&forbidden.connections), 0);
}

int main(void)
{
	if (network_list_parse(slice_of("127.0.0.0/8"), &loopback.allowed, NULL) != 0 ||
	    network_list_parse(slice_of("127.0.0.2"), &only_second.allowed, NULL) != 0)
		return 1;
	return tests_run(NULL, NULL, NULL, NULL);
}
