/* A real server on a loopback port over a real store in a temporary directory, and a plain client
 * that says exactly what it is told. */
#ifndef TEST_HTTP_HARNESS_H
#define TEST_HTTP_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* Settings are ready before `adjust` (may be NULL) changes them; ends the test on failure. */
void harness_start(struct harness *harness, void (*adjust)(struct settings *settings));
void harness_stop(struct harness *harness);
/* A live key of another account, for content. */
void harness_add_client(struct harness *harness, char key[KEY_TEXT_MAX]);
/* Issues the certification that has waited for longest, with a report of these bytes, and a part
 * that is not there, with a name of signs that HTML has a use for. */
void harness_issue(struct harness *harness, const char *data, size_t size);

struct reply {
	int status;
	char head[8192];
	char *body; /* malloc; NUL-terminated */
	size_t body_size;
	bool closed; /* the server says it will close */
};

int harness_connect(const struct harness *harness);
void harness_send(int descriptor, const void *data, size_t size);
/* One answer; `no_body` after HEAD. */
void harness_read(int descriptor, bool no_body, struct reply *reply);
/* On a connection of its own. `key` and `headers` ("Name: value\r\n"…) may be NULL. */
void harness_ask(const struct harness *harness, struct reply *reply, const char *method,
                 const char *path, const char *key, const char *headers, const void *body,
                 size_t size);
/* The same with a body of JSON. */
void harness_post(const struct harness *harness, struct reply *reply, const char *path,
                  const char *key, const char *json);
/* GET of the operator's listener. */
void harness_ask_operators(const struct harness *harness, struct reply *reply, const char *path);
void reply_free(struct reply *reply);
/* The header's value, "" when there is none. Of the thread, until its next call. */
const char *reply_header(const struct reply *reply, const char *name);
/* The status, and for errors the code. */
void reply_expect(struct reply *reply, int status, const char *code);
/* Cuts every file below the content directory to `size`; below 0, deletes it. */
void harness_cut_objects(const struct harness *harness, long size);
/* Files below the content directory. */
int harness_count_objects(const struct harness *harness);

#endif
