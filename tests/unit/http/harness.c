#include "harness.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "issue/links.h"
#include "service/keys.h"
#include "store/certifications/certifications.h"

static void must(int result, const struct error *error)
{
	if (result)
		fail_msg("%d %s %s", result, error->english, error->cause);
}

static void make_key(struct sample *sample, enum mode mode, char text[KEY_TEXT_MAX],
                     char key_id[ID_SIZE])
{
	key_generate("svc", mode, text);
	sample_add_key(sample, mode, text, key_id);
}

static void populate(struct harness *harness)
{
	struct sample *sample = &harness->sample;
	for (int modality = 0; modality < 2; modality++) {
		if (modality)
			sample_add_channel(sample, (enum modality)modality);
		else
			sample_fill(sample, harness->service.store, (enum modality)modality, 1000);
		memcpy(harness->channel_id[modality], sample->channel_id, ID_SIZE);
		for (int mode = 0; mode < 2; mode++)
			make_key(sample, (enum mode)mode, harness->key[modality][mode],
			         harness->key_id[modality][mode]);
	}
	memcpy(harness->account_id, sample->account_id, ID_SIZE);
}

void harness_add_client(struct harness *harness, char key[KEY_TEXT_MAX])
{
	struct sample other = harness->sample;
	char key_id[ID_SIZE];
	sample_fill(&other, harness->service.store, MODALITY_CONTENT, 1000);
	make_key(&other, MODE_LIVE, key, key_id);
}

void harness_issue(struct harness *harness, const char *data, size_t size)
{
	struct error error = {0};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct certification certification;
	struct content_writer *writer;
	struct certification_claim claim = {
		.holder = "test", .now_us = clock_now_us(), .lease_us = US_PER_DAY};
	assert_int_equal(
		store_claim_certification(harness->service.store, &claim, &arena, &certification, &error),
		OK);
	struct document documents[2] = {{.kind = DOCUMENT_REPORT,
	                                 .language = LANGUAGE_SPANISH,
	                                 .name = "report-es.pdf",
	                                 .object = "issued/aa/one",
	                                 .size_bytes = (int64_t)size,
	                                 .sha256 = sha256_of(data, size)}};
	documents[1] = documents[0];
	documents[1].kind = DOCUMENT_PART;
	strcpy(documents[1].name, "<a> & \"b\" 'c'.zip");
	documents[1].sha256 = sha256_of("", 0);
	assert_int_equal(content_write_begin(harness->service.content, &writer, &error), 0);
	assert_int_equal(content_write(writer, data, size, &error), 0);
	assert_int_equal(content_write_commit(writer, documents[0].object, &error), 0);
	assert_int_equal(store_complete_certification(harness->service.store, &certification, "test",
	                                              clock_now_us(), documents, 2, &error),
	                 0);
}

static struct harness *started;

void harness_start(struct harness *harness, void (*adjust)(struct settings *settings))
{
	struct error error = {0};
	struct settings *settings = &harness->settings;
	memset(harness, 0, sizeof *harness);
	started = harness;
	sample_create_directory(&harness->sample);
	snprintf(harness->content_url, sizeof harness->content_url, "file:%s/content",
	         harness->sample.directory);
	settings->service_prefix = "svc";
	settings->service_public_url = "http://127.0.0.1:8080";
	settings->service_listen = "127.0.0.1:0";
	settings->service_admin_listen = "127.0.0.1:0";
	settings->service_trusted_proxies = "";
	settings->http_cors_origins = "";
	settings->log_requests = "none";
	settings->log_addresses = "none";
	settings->service_data_dir = harness->sample.directory;
	settings->store_url = harness->sample.url;
	settings->content_url = harness->content_url;
	settings->http_loops = 1; /* some tests inspect the only one */
	settings->http_connections = 512;
	settings->http_connections_per_address = 512;
	settings->http_body_memory = 64;
	settings->http_upload_space = 64;
	settings->http_idle_timeout = 3 * US_PER_SECOND;
	settings->http_transfer_timeout = 30 * US_PER_SECOND;
	settings->http_deadline = 10 * US_PER_SECOND;
	settings->rate_live = 1000;
	settings->rate_test = 1000;
	settings->requests_per_day = 1000;
	settings->seal_interval = 60 * US_PER_SECOND;
	settings->certification_link_lifetime = 7 * US_PER_DAY;
	settings->webhook_schedule = "1m";
	settings->account_unpaid_limit = 100;
	if (adjust)
		adjust(settings);
	log_set_level(LOG_ERROR + 1);
	must(service_open(settings, true, &harness->service, &error), &error);
	must(links_open(&harness->service, &error), &error);
	populate(harness);
	must(http_start(&harness->service, NULL, &harness->server, &error), &error);
	assert_true(http_port(harness->server) > 0);
}

void harness_stop(struct harness *harness)
{
	http_stop(harness->server);
	links_close(&harness->service);
	service_close(&harness->service);
	sample_remove_directory(&harness->sample);
}

int harness_tear_down(void **state)
{
	harness_stop(started);
	return 0;
}

/* ---- the client ---- */

static int connect_to(uint16_t port)
{
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval patience = {.tv_sec = 600}; /* for an answer that never comes */
	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
	return descriptor;
}

int harness_connect(const struct harness *harness)
{
	return connect_to(http_port(harness->server));
}

void harness_send(int descriptor, const void *data, size_t size)
{
	const char *at = data;
	while (size) {
		ssize_t sent = send(descriptor, at, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return; /* the server stopped reading; its answer decides */
		at += sent;
		size -= (size_t)sent;
	}
}

const char *reply_header(const struct reply *reply, const char *name)
{
	static _Thread_local char value[1024];
	size_t size = strlen(name);
	value[0] = '\0';
	for (const char *line = strstr(reply->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, name, size) == 0 && line[2 + size] == ':') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(line + 4 + size, "\r"),
			         line + 4 + size);
			break;
		}
	}
	return value;
}

void harness_read(int descriptor, bool no_body, struct reply *reply)
{
	size_t size = 0;
	memset(reply, 0, sizeof *reply);
	while (size < sizeof reply->head - 1 && !strstr(reply->head, "\r\n\r\n")) {
		if (recv(descriptor, reply->head + size, 1, 0) != 1) {
			reply->closed = true;
			return;
		}
		size++;
	}
	assert_int_equal(sscanf(reply->head, "HTTP/1.1 %d ", &reply->status), 1);
	reply->closed = strcasecmp(reply_header(reply, "Connection"), "close") == 0;
	size_t length = strtoul(reply_header(reply, "Content-Length"), NULL, 10);
	reply->body = calloc(1, length + 1);
	assert_non_null(reply->body);
	while (!no_body && reply->body_size < length) {
		ssize_t got =
			recv(descriptor, reply->body + reply->body_size, length - reply->body_size, 0);
		if (got <= 0)
			fail_msg("the body ended early");
		reply->body_size += (size_t)got;
	}
}

void harness_ask(const struct harness *harness, struct reply *reply, const char *method,
                 const char *path, const char *key, const char *headers, const void *body,
                 size_t size)
{
	char head[4096], authorization[128] = "", length[64] = "";
	int descriptor = harness_connect(harness);
	if (key)
		snprintf(authorization, sizeof authorization, "Authorization: Bearer %s\r\n", key);
	if (body)
		snprintf(length, sizeof length, "Content-Length: %zu\r\n", size);
	snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: test\r\n%s%s%s\r\n", method, path,
	         authorization, length, headers ? headers : "");
	harness_send(descriptor, head, strlen(head));
	harness_send(descriptor, body, size);
	harness_read(descriptor, strcmp(method, "HEAD") == 0, reply);
	close(descriptor);
}

void harness_post(const struct harness *harness, struct reply *reply, const char *path,
                  const char *key, const char *json)
{
	harness_ask(harness, reply, "POST", path, key, "Content-Type: application/json\r\n", json,
	            strlen(json));
}

void harness_ask_operators(const struct harness *harness, struct reply *reply, const char *path)
{
	char head[128];
	int descriptor = connect_to(http_monitor_port(harness->server));
	snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path);
	harness_send(descriptor, head, strlen(head));
	harness_read(descriptor, false, reply);
	close(descriptor);
}

void reply_free(struct reply *reply)
{
	free(reply->body);
	reply->body = NULL;
}

void reply_expect(struct reply *reply, int status, const char *code)
{
	char expected[64];
	snprintf(expected, sizeof expected, "\"code\":\"%s\"", code ? code : "");
	if (reply->status != status || (code && !strstr(reply->body, expected)))
		fail_msg("expected %d %s, got %s%s", status, code ? code : "", reply->head,
		         reply->body ? reply->body : "");
	reply_free(reply);
}

static int objects;

static int count_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
	objects += type == FTW_F;
	return 0;
}

static long cut_size;

static int cut_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
	if (type != FTW_F)
		return 0;
	return cut_size < 0 ? unlink(path) : truncate(path, cut_size);
}

void harness_cut_objects(const struct harness *harness, long size)
{
	cut_size = size;
	assert_int_equal(nftw(harness->content_url + strlen("file:"), cut_one, 16, FTW_PHYS), 0);
}

int harness_count_objects(const struct harness *harness)
{
	objects = 0;
	nftw(harness->content_url + strlen("file:"), count_one, 16, FTW_PHYS);
	return objects;
}
