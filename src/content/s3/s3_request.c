/* A request to the S3 service, with retries. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/tuned.h"
#include "content/s3/s3.h"
#include "content/s3/s3_xml.h"

#define TRIES_MAX 5
#define PAUSE_FIRST_MS 100
#define PATIENCE_TIMEOUTS 3 /* no further attempt after this number of timeouts in total */
#define SLOW_TIMEOUTS 6
#define BYTES_PER_MS 64 /* minimum speed of a transfer */
#define PROBE_TIMEOUT_MS 3000
#define READY_US (10 * US_PER_SECOND) /* validity of an answer */
#define ASK_AGAIN_US (5 * US_PER_SECOND)

/* ---- sessions ---- */

static struct http_session *take_session(struct s3_store *store)
{
	struct http_session *session = NULL;
	pthread_mutex_lock(&store->lock);
	if (store->session_count)
		session = store->sessions[--store->session_count];
	pthread_mutex_unlock(&store->lock);
	return session ? session : http_session_open();
}

static void give_session(struct s3_store *store, struct http_session *session)
{
	pthread_mutex_lock(&store->lock);
	if (store->session_count < store->sessions_max) {
		store->sessions[store->session_count++] = session;
		session = NULL;
	}
	pthread_mutex_unlock(&store->lock);
	http_session_close(session);
}

/* ---- answers ---- */

void s3_answer_free(struct s3_answer *answer)
{
	if (answer)
		http_answer_free(&answer->http);
}

bool s3_header(const struct s3_answer *answer, const char *name, char *text, size_t size)
{
	struct slice value = http_answer_header(&answer->http, name);
	if (!value.size || value.size >= size)
		return false;
	memcpy(text, value.data, value.size);
	text[value.size] = '\0';
	return true;
}

int s3_protocol_error(struct error *error, const char *what)
{
	return error_cause(error, ERR_NETWORK, "content: implausible answer of the S3 service: %s",
	                   what);
}

static bool is_one_of(const char *code, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(code, *list) == 0)
			return true;
	return false;
}

/* Returns whether a failure is temporary, so that a retry may succeed. */
static bool is_temporary(int status, const char *code)
{
	static const char *const passing[] = {"BadDigest",
	                                      "IncompleteBody",
	                                      "InternalError",
	                                      "OperationAborted",
	                                      "RequestTimeout",
	                                      "ServiceUnavailable",
	                                      "SlowDown",
	                                      "XAmzContentSHA256Mismatch",
	                                      "XAmzContentChecksumMismatch",
	                                      NULL};
	return (status >= 500 && status != 501 && status != 507) || status == 429 || status == 408 ||
	       is_one_of(code, passing);
}

static bool is_full(int status, const char *code)
{
	static const char *const full[] = {"InsufficientStorage", "QuotaExceeded", "XMinioStorageFull",
	                                   NULL};
	return status == 507 || is_one_of(code, full);
}

static bool is_absent(const struct s3_request *request, int status, const char *code)
{
	static const char *const absent[] = {"NoSuchKey", "NoSuchUpload", NULL};
	return request->name && (is_one_of(code, absent) || (status == 404 && !*code));
}

/* Returns what a refusal is about. A HEAD request has a status only. */
static enum error_blame fault_of(int status, const char *code)
{
	if (strcmp(code, "SignatureDoesNotMatch") == 0)
		return BLAME_PASSWORD;
	return status == 401 || status == 403 ? BLAME_USER : BLAME_NONE;
}

/* Evaluates a complete answer. An answer that cannot be parsed for lack of memory may say
 * anything. */
static int judge(const struct s3_request *request, struct s3_answer *answer, bool *ret_again,
                 struct error *error)
{
	struct s3_error parsed = {0};
	int status = answer->http.status;
	int reading =
		answer->http.body.size ? s3_xml_error(buf_slice(&answer->http.body), &parsed) : ERR_IO;
	if (reading == ERR_NO_MEMORY)
		return error_cause(error, reading, "content: no memory for an answer");
	bool is_error = !reading;
	if (status >= 200 && status <= 299 && !is_error) {
		struct slice checksum = http_answer_header(&answer->http, "x-amz-checksum-sha256");
		*ret_again = request->checksum && checksum.size && !slice_is(checksum, request->checksum);
		return *ret_again
		           ? s3_protocol_error(error, "the checksum differs from that of the request")
		           : OK;
	}
	memcpy(answer->code, parsed.code, sizeof answer->code);
	/* An <Error> after status 200 occurred while the service was processing. */
	bool full = is_full(status, parsed.code);
	*ret_again = !full && (is_temporary(status, parsed.code) || (status < 300 && is_error));
	int result = *ret_again ? ERR_NETWORK : ERR_IO;
	if (full)
		result = ERR_NO_SPACE;
	else if (is_absent(request, status, parsed.code))
		result = ERR_NOT_FOUND;
	bool no_bucket = status == 404 && !request->name && !*parsed.code;
	error_cause(error, result, "content: S3 answers %s with %d %s%s%s", request->method, status,
	            no_bucket ? "(no such bucket)" : parsed.code, *parsed.message ? ": " : "",
	            parsed.message);
	error_blame(error, fault_of(status, parsed.code));
	return result;
}

/* ---- an attempt ---- */

static int fill_request(const struct s3_store *store, const struct s3_request *request,
                        struct buf *url, const char *const *headers, size_t header_count,
                        struct http_request *ret)
{
	int timeout_ms = store->timeout_ms * (request->slow ? SLOW_TIMEOUTS : 1);
	uint64_t moving_ms = request->expected_bytes / BYTES_PER_MS;
	if (request->probe && timeout_ms > PROBE_TIMEOUT_MS)
		timeout_ms = PROBE_TIMEOUT_MS;
	buf_add_text(url, store->place.endpoint);
	s3_add_path(&store->place, request->name, url);
	if (request->query)
		buf_printf(url, "?%s", request->query);
	*ret = (struct http_request){
		.method = request->method,
		.url = url->data,
		.content_type = request->upload || strcmp(request->method, "POST") == 0
	                        ? "application/octet-stream"
	                        : NULL,
		.headers = headers,
		.header_count = header_count,
		.body = request->body,
		.upload = request->upload,
		.take = request->take,
		.take_context = request->context,
		.timeout_ms = (int)(2 * (uint64_t)timeout_ms + moving_ms),
		.connect_timeout_ms = timeout_ms,
		.stall_timeout_ms = timeout_ms,
		.answer_limit = S3_ANSWER_MAX,
		.allow_http = strncmp(store->place.endpoint, "http:", 5) == 0,
		.user = store->access_key,
		.password = store->secret_key,
		.aws_sigv4 = store->signature,
		.guard = &store->guard,
	};
	return buf_check(url);
}

static int make_attempt(struct s3_store *store, const struct s3_request *request,
                        struct s3_answer *answer, bool *ret_again, struct error *error)
{
	char hash[32 + 2 * SHA256_SIZE] = "x-amz-content-sha256: ";
	const char *headers[1 + sizeof request->headers / sizeof *request->headers] = {hash};
	size_t count = 1;
	struct sha256 digest = request->body_sha256 ? *request->body_sha256
	                                            : sha256_of(request->body.data, request->body.size);
	struct http_request http;
	struct error inner = {0};
	BUF_AUTO struct buf url;
	buf_init(&url, S3_URL_MAX);
	hex_encode(digest.bytes, SHA256_SIZE, hash + strlen(hash));
	for (; count - 1 < sizeof request->headers / sizeof *request->headers &&
	       request->headers[count - 1];
	     count++)
		headers[count] = request->headers[count - 1];
	int result = fill_request(store, request, &url, headers, count, &http);
	if (result)
		return error_cause(error, result, "content: the request's URL cannot be made");
	struct http_session *session = take_session(store);
	if (!session)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a request");
	http.session = session;
	result = http_send(&http, &answer->http, &inner);
	give_session(store, session);
	if (!result)
		return judge(request, answer, ret_again, error);
	*ret_again = result == ERR_NETWORK;
	if (result != ERR_NO_MEMORY)
		result = *ret_again || result == ERR_REFUSED ? ERR_NETWORK : ERR_IO;
	error_cause(error, result, "content: S3, %s: %s", request->method, inner.cause);
	error_blame(error, inner.fault);
	return result;
}

static void pause_before(int try_number)
{
	uint16_t random;
	random_bytes(&random, sizeof random);
	int64_t most_ms = (int64_t)PAUSE_FIRST_MS << try_number;
	int64_t ms = most_ms / 2 + most_ms * random / 2 / UINT16_MAX;
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

int s3_send(struct s3_store *store, const struct s3_request *request, struct s3_answer *ret_answer,
            struct error *error)
{
	int64_t give_up_us =
		clock_monotonic_us() + INT64_C(1000) * PATIENCE_TIMEOUTS * store->timeout_ms;
	*ret_answer = (struct s3_answer){0};
	for (int try_number = 0;; try_number++) {
		bool again = false;
		if (request->restart)
			request->restart(request->context);
		int result = make_attempt(store, request, ret_answer, &again, error);
		if (!result || result == ERR_NOT_FOUND) {
			pthread_mutex_lock(&store->lock);
			store->answered_us = clock_monotonic_us();
			pthread_mutex_unlock(&store->lock);
		}
		if (!again || request->probe || try_number + 1 == TRIES_MAX ||
		    clock_monotonic_us() > give_up_us)
			return result;
		s3_answer_free(ret_answer);
		*ret_answer = (struct s3_answer){0};
		pause_before(try_number);
	}
}

/* ---- small requests ---- */

int s3_head(struct s3_store *store, const char *name, struct s3_object *ret_object,
            struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	struct s3_request request = {.method = "HEAD", .name = name};
	struct s3_object object = {0};
	char size[24];
	int result = s3_send(store, &request, &answer, error);
	if (result)
		return result;
	if (!s3_header(&answer, "Content-Length", size, sizeof size) ||
	    strspn(size, "0123456789") != strlen(size) || strlen(size) > 18)
		return s3_protocol_error(error, "HEAD without a Content-Length");
	object.size = strtoull(size, NULL, 10);
	(void)s3_header(&answer, "ETag", object.etag, sizeof object.etag);
	(void)s3_header(&answer, S3_UPLOAD_HEADER, object.upload, sizeof object.upload);
	*ret_object = object;
	return OK;
}

/* Registration that needs no content store continues without it, so this is a check and does not
 * wait. A recent answer to any request is sufficient, and a failure is not checked again at
 * once. */
int s3_ready(struct content_store *base, struct error *error)
{
	struct s3_store *store = (struct s3_store *)base;
	struct error failure = {0};
	int64_t now_us = clock_monotonic_us();
	pthread_mutex_lock(&store->lock);
	bool answered = store->answered_us && now_us - store->answered_us < READY_US;
	bool asked = store->asked_us && now_us - store->asked_us < ASK_AGAIN_US;
	failure = store->failure;
	pthread_mutex_unlock(&store->lock);
	if (answered)
		return OK;
	if (!asked) {
		S3_ANSWER_AUTO struct s3_answer answer;
		struct s3_request request = {.method = "HEAD", .probe = true};
		error_clear(&failure);
		int result = s3_send(store, &request, &answer, &failure);
		pthread_mutex_lock(&store->lock);
		store->asked_us = result ? clock_monotonic_us() : 0;
		store->failure = failure;
		pthread_mutex_unlock(&store->lock);
	}
	if (failure.code && error)
		*error = failure;
	return failure.code;
}
