/* How much of their bodies requests may hold in memory. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "http/http_internal.h"

#define STALLED 30
#define LARGE 200000
#define FILE_SIZE ((size_t)6 * 1024 * 1024)

static struct harness harness;
#define LIVE harness.key[MODALITY_CONTENT][MODE_LIVE]

static void four_mebibytes(struct settings *settings)
{
	settings->http_body_memory = 4;
}

static void checked(struct settings *settings)
{
	settings->http_check_size = 8;
}

static void large_body(char body[LARGE + 64], const char *client_ref)
{
	int size = sprintf(body, "{\"client_ref\":\"%s\",\"payload\":{\"a\":\"", client_ref);
	memset(body + size, 'x', LARGE);
	strcpy(body + size + LARGE, "\"}}");
}

/* Sends a large body but not its end. */
static int stall(const char *key)
{
	static char body[LARGE];
	char head[256];
	int descriptor = harness_connect(&harness);
	snprintf(head, sizeof head,
	         "POST /v1/events HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"
	         "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n",
	         key, LARGE + 1);
	memset(body, ' ', sizeof body);
	harness_send(descriptor, head, strlen(head));
	harness_send(descriptor, body, sizeof body);
	return descriptor;
}

static double metric(const char *name)
{
	struct reply reply;
	char line[128];
	harness_ask_operators(&harness, &reply, "/metrics");
	snprintf(line, sizeof line, "\nconstancia_%s ", name);
	const char *found = strstr(reply.body, line);
	assert_non_null(found);
	double value = strtod(found + strlen(line), NULL);
	reply_free(&reply);
	return value;
}

/* One client holds all the memory that it may; the body of another one is still read. */
TEST_CASE(test_one_client_leaves_room)
{
	static char body[LARGE + 64];
	char other[KEY_TEXT_MAX];
	int descriptors[STALLED];
	struct reply reply;
	harness_start(&harness, four_mebibytes);
	harness_add_client(&harness, other);
	for (int i = 0; i < STALLED; i++)
		descriptors[i] = stall(LIVE);
	while (metric("http_body_memory_refused_total") == 0)
		usleep(10000);
	assert_true(metric("http_body_bytes") <= 1024 * 1024);
	large_body(body, "other");
	harness_post(&harness, &reply, "/v1/events", other, body);
	reply_expect(&reply, 201, NULL);
	/* Its own small requests are answered, too. */
	harness_post(&harness, &reply, "/v1/events", LIVE, "{\"client_ref\":\"small\",\"payload\":{}}");
	reply_expect(&reply, 201, NULL);
	for (int i = 0; i < STALLED; i++)
		close(descriptors[i]);
	while (metric("http_body_bytes") > 0)
		usleep(10000);
	large_body(body, "own");
	harness_post(&harness, &reply, "/v1/events", LIVE, body);
	reply_expect(&reply, 201, NULL);
	harness_stop(&harness);
}

/* Returns a body of the maximum size, whose payload has the maximum size in canonical form. */
static char *escaped_body(const char *client_ref)
{
	char *body = malloc(EVENT_BODY_MAX + 1);
	int size = sprintf(body, "{\"client_ref\":\"%s\",\"payload\":{\"a\":\"", client_ref);
	assert_non_null(body);
	char *at = body + size;
	for (size_t i = 0; i < PAYLOAD_MAX - 8; i++, at += 6)
		memcpy(at, "\\u0061", 6);
	memset(at, ' ', EVENT_BODY_MAX - (size_t)(at - body));
	memcpy(at, "\"}", 2);
	strcpy(body + EVENT_BODY_MAX - 1, "}");
	return body;
}

/* The longest body may exceed its client's share, but only while the client holds nothing else. */
TEST_CASE(test_an_escaped_body)
{
	char other[KEY_TEXT_MAX], *body = escaped_body("escaped");
	struct reply reply;
	harness_start(&harness, four_mebibytes);
	harness_add_client(&harness, other);
	harness_post(&harness, &reply, "/v1/events", LIVE, body);
	reply_expect(&reply, 201, NULL);
	int descriptor = stall(LIVE);
	while (metric("http_body_bytes") < LARGE)
		usleep(10000);
	harness_post(&harness, &reply, "/v1/events", LIVE, body);
	reply_expect(&reply, 503, "temporarily_unavailable");
	harness_post(&harness, &reply, "/v1/events", other, body);
	reply_expect(&reply, 201, NULL);
	close(descriptor);
	while (metric("http_body_bytes") > 0)
		usleep(10000);
	harness_post(&harness, &reply, "/v1/events", LIVE, body);
	reply_expect(&reply, 200, NULL);
	harness_stop(&harness);
	free(body);
}

/* A file needs the memory of one chunk, however long it is. */
TEST_CASE(test_a_long_file_is_expected_in_pieces)
{
	static const char form[] = "--b\r\nContent-Disposition: form-data; name=\"client_ref\"\r\n\r\nf"
							   "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; "
							   "filename=\"f\"\r\n\r\n";
	static const char end[] = "\r\n--b--\r\n";
	struct reply reply;
	char *body = calloc(1, sizeof form + FILE_SIZE + sizeof end);
	assert_non_null(body);
	memcpy(body, form, sizeof form - 1);
	memcpy(body + sizeof form - 1 + FILE_SIZE, end, sizeof end - 1);
	harness_start(&harness, four_mebibytes);
	harness_ask(&harness, &reply, "POST", "/v1/events", LIVE,
	            "Content-Type: multipart/form-data; boundary=b\r\n", body,
	            sizeof form - 1 + FILE_SIZE + sizeof end - 1);
	reply_expect(&reply, 201, NULL);
	assert_true(metric("http_body_bytes") == 0);
	harness_stop(&harness);
	free(body);
}

/* Connects from its own address, with the smallest receive buffer. */
static int connect_from(const char *text)
{
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int least = 1;
	struct sockaddr_in own = {.sin_family = AF_INET};
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_port = htons(http_port(harness.server)),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(inet_pton(AF_INET, text, &own.sin_addr), 1);
	setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
	assert_int_equal(bind(descriptor, (struct sockaddr *)&own, sizeof own), 0);
	assert_int_equal(connect(descriptor, (struct sockaddr *)&to, sizeof to), 0);
	return descriptor;
}

static bool comes(void)
{
	pthread_mutex_lock(&harness.server->bodies_lock);
	bool some = harness.server->newest_upload;
	pthread_mutex_unlock(&harness.server->bodies_lock);
	return some;
}

/* A file for verification is refused, and the client does not read the answer yet. Nothing of the
 * file may remain that can be evicted, because the eviction would overwrite this answer. */
TEST_CASE(test_a_refused_file_does_not_come)
{
	static const char requests[] = "GET /docs/errors HTTP/1.1\r\nHost: test\r\n\r\n"
								   "POST /verify HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n"
								   "Content-Type: multipart/form-data\r\nConnection: close\r\n\r\n";
	char data[256];
	int least = 1;
	harness_start(&harness, checked);
	setsockopt(harness.server->listen_descriptor, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
	int descriptor = connect_from("127.0.0.2");
	harness_send(descriptor, requests, strlen(requests));
	while (recv(descriptor, data, sizeof data, 0) > 0) {
		for (int times = 0; comes(); times++) {
			assert_true(times < 100);
			usleep(1000);
		}
		usleep(2000);
	}
	close(descriptor);
	harness_stop(&harness);
}

/* Reads how much of bodies is held in total, and by the account of the keys. */
static void read_held(int64_t *ret_all, int64_t *ret_account)
{
	struct http_server *server = harness.server;
	pthread_mutex_lock(&server->bodies_lock);
	*ret_all = server->held;
	*ret_account = share_held(server->bodies, guard_account_id(harness.sample.account));
	pthread_mutex_unlock(&server->bodies_lock);
}

/* A head that needs more than its allowance is read into memory that a request of an account used
 * before. It is charged to its own address. */
TEST_CASE(test_a_long_head_pays_for_itself)
{
	static char code[15000], head[16000];
	struct reply reply;
	int64_t held = 0, of_account = 0;
	harness_start(&harness, NULL);
	harness_ask(&harness, &reply, "GET", "/v1/account/balance", LIVE, NULL, NULL, 0);
	reply_expect(&reply, 200, NULL);
	memset(code, 'A', sizeof code - 1);
	int size =
		snprintf(head, sizeof head,
	             "GET /verify/%s%%41 HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\n", code);
	int descriptor = harness_connect(&harness);
	harness_send(descriptor, head, (size_t)size);
	while (held == 0) {
		usleep(1000);
		read_held(&held, &of_account);
	}
	usleep(20000);
	read_held(&held, &of_account);
	assert_int_equal(of_account, 0);
	assert_true(held > 0);
	close(descriptor);
	harness_stop(&harness);
}

TEST_MAIN(NULL, NULL)
