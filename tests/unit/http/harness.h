/* A real server on a loopback port with a real store in a temporary directory, and a client that
 * sends exactly what a test gives it. */
#ifndef TEST_HTTP_HARNESS_H
#define TEST_HTTP_HARNESS_H

#include "testing.h"
#include "http/server.h"
#include "sample.h"
#include "service/service.h"
#include "store/accounts/accounts.h"

struct harness {
	struct settings settings;
	struct service service;
	struct http_server *server;
	struct sample sample; /* its channel is the last one */
	char content_url[128];
	char account_id[ID_SIZE];
	char channel_id[2][ID_SIZE];  /* by modality */
	char key[2][2][KEY_TEXT_MAX]; /* by modality and mode */
	char key_id[2][2][ID_SIZE];
};

/* Prepares the settings, which `adjust` (may be NULL) then changes; fails the test on errors. */
void harness_start(struct harness *harness, void (*adjust)(struct settings *settings));
void harness_stop(struct harness *harness);
/* Stops the harness that was started last. A tear-down function of cmocka. */
int harness_tear_down(void **state);
/* Makes a live key of another account, whose channel takes content. */
void harness_add_client(struct harness *harness, char key[KEY_TEXT_MAX]);
/* Issues the oldest waiting certification, with a report of these bytes and a part that is not
 * stored and whose name has characters that are special in HTML. */
void harness_issue(struct harness *harness, const char *data, size_t size);

struct reply {
	int status;
	char head[8192];
	char *body; /* malloc; NUL-terminated */
	size_t body_size;
	bool closed; /* the server announced that it closes the connection */
};

int harness_connect(const struct harness *harness);
void harness_send(int descriptor, const void *data, size_t size);
/* Reads one answer; `no_body` after HEAD. */
void harness_read(int descriptor, bool no_body, struct reply *reply);
/* Sends a request on a new connection. `key` and `headers` ("Name: value\r
"…) may be NULL. */
void harness_ask(const struct harness *harness, struct reply *reply, const char *method,
                 const char *path, const char *key, const char *headers, const void *body,
                 size_t size);
/* Sends a POST request with a body of JSON. */
void harness_post(const struct harness *harness, struct reply *reply, const char *path,
                  const char *key, const char *json);
/* Sends a GET request to the operator's listener. */
void harness_ask_operators(const struct harness *harness, struct reply *reply, const char *path);
void reply_free(struct reply *reply);
/* Returns the value of a header, "" if it is missing. Valid in this thread until its next call. */
const char *reply_header(const struct reply *reply, const char *name);
/* Checks the status, and of an error the code; frees the reply. */
void reply_expect(struct reply *reply, int status, const char *code);
/* Truncates every file below the content directory to `size` bytes; deletes it if negative. */
void harness_cut_objects(const struct harness *harness, long size);
/* Returns the number of files below the content directory. */
int harness_count_objects(const struct harness *harness);

#endif
