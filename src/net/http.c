#include "net/transfer.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "net/url.h"

#define TIMEOUT_DEFAULT_MS 10000
#define ANSWER_DEFAULT 65536

struct http_session {
	CURL *easy; /* NULL before the first request */
};

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
	struct http_transfer *transfer = context;
	struct buf *headers = &transfer->answer.headers;
	size_t length = size;

	(void)one;
	if (size >= 5 && memcmp(data, "HTTP/", 5) == 0) {
		buf_clear(headers); /* headers of an interim response are discarded */
		return size;
	}
	while (length > 0 && (data[length - 1] == '\r' || data[length - 1] == '\n'))
		length--;
	if (length == 0)
		return size;
	buf_add(headers, data, length);
	buf_add_byte(headers, '\n');
	return buf_check(headers) == 0 ? size : 0;
}

static bool is_taken_elsewhere(const struct http_transfer *transfer)
{
	long status = 0;

	return transfer->request->take &&
	       curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
	       status >= 200 && status <= 299;
}

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
	struct http_transfer *transfer = context;
	const struct http_request *request = transfer->request;
	if (is_taken_elsewhere(transfer))
		return request->take(request->take_context, slice_make(data, size)) ? size : size + 1;
	struct buf *body = &transfer->answer.body;
	assert(body->size <= transfer->limit); /* else the room would wrap around */
	size_t room = transfer->limit - body->size;

	(void)one;
	buf_add(body, data, size < room ? size : room);
	if (buf_check(body) != 0)
		return size + 1;
	if (size <= room)
		return size;
	transfer->over = true;
	return size + 1; /* any result other than `size` ends the exchange */
}

static size_t give_body(char *data, size_t one, size_t size, void *context)
{
	struct http_transfer *transfer = context;
	const struct http_upload *upload = transfer->request->upload;
	assert(upload && transfer->uploaded <= upload->size);
	uint64_t left = upload->size - transfer->uploaded;
	size_t wanted = left < one * size ? (size_t)left : one * size;

	if (wanted == 0)
		return 0;
	size_t given = upload->read(upload->context, transfer->uploaded, data, wanted);
	assert(given <= wanted); /* libcurl has no room for more */
	transfer->uploaded += given;
	return given > 0 ? given : CURL_READFUNC_ABORT;
}

static int seek_body(void *context, curl_off_t offset, int origin)
{
	struct http_transfer *transfer = context;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->request->upload->size)
		return CURL_SEEKFUNC_FAIL;
	transfer->uploaded = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* libcurl's own speed limit uses an average over several seconds. */
static int watch_progress(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                          curl_off_t up)
{
	struct http_transfer *transfer = context;
	int64_t now_us = clock_monotonic_us();

	(void)down_all;
	(void)up_all;
	if (transfer->moved_us == 0 || down + up != transfer->moved) {
		transfer->moved = down + up;
		transfer->moved_us = now_us;
	}
	transfer->stalled =
		now_us - transfer->moved_us > INT64_C(1000) * transfer->request->stall_timeout_ms;
	return transfer->stalled;
}

static void answer_init(struct http_answer *answer, size_t limit)
{
	*answer = (struct http_answer){0};
	buf_init(&answer->body, limit + 1);
	buf_init(&answer->headers, HTTP_HEADERS_MAX);
}

void http_answer_free(struct http_answer *answer)
{
	if (!answer)
		return;
	buf_free(&answer->body);
	buf_free(&answer->headers);
}

void transfer_free(struct http_transfer *transfer)
{
	assert(transfer->request || !transfer->easy);
	if (transfer->easy && !transfer->request->session)
		curl_easy_cleanup(transfer->easy);
	else if (transfer->easy)
		curl_easy_reset(transfer->easy); /* resets options, keeps connections */
	if (transfer->headers)
		curl_slist_free_all(transfer->headers);
	http_answer_free(&transfer->answer);
}

static bool is_header_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static int add_header(struct http_transfer *transfer, const char *text, struct error *error)
{
	if (!is_header_text(text))
		return error_cause(error, ERR_VALIDATION, "control character in a request header");
	struct curl_slist *longer = curl_slist_append(transfer->headers, text);
	if (!longer)
		return ERR_NO_MEMORY;
	transfer->headers = longer;
	return 0;
}

static int add_headers(struct http_transfer *transfer, struct error *error)
{
	const struct http_request *request = transfer->request;
	char type[256];

	/* Sets or removes Content-Type, so that curl does not choose one; and disables "Expect:
	 * 100-continue". */
	int size = snprintf(type, sizeof type, "Content-Type:%s%s", request->content_type ? " " : "",
	                    request->content_type ? request->content_type : "");
	if (size < 0 || (size_t)size >= sizeof type)
		return error_cause(error, ERR_VALIDATION, "content type too long");
	if (request->header_count > HTTP_REQUEST_HEADERS_MAX)
		return error_cause(error, ERR_VALIDATION, "too many request headers");
	/* libcurl 7.88 signs headers that are removed in this way as if they were sent. */
	bool is_signed = request->aws_sigv4 != NULL;
	int result = is_signed && !request->content_type ? 0 : add_header(transfer, type, error);
	if (!result && !is_signed)
		result = add_header(transfer, "Expect:", error);
	for (size_t i = 0; !result && i < request->header_count; i++)
		result = add_header(transfer, request->headers[i], error);
	return result;
}

static CURLcode set_upload(struct http_transfer *transfer)
{
	CURL *easy = transfer->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);

	code |= curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
	                         (curl_off_t)transfer->request->upload->size);
	code |= curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
	code |= curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
	code |= curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_body);
	return code | curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
}

static CURLcode set_method(CURL *easy, const struct http_request *request)
{
	const char *method = request->method;
	CURLcode code = CURLE_OK;

	if (!method)
		method = request->body.size > 0 ? "POST" : "GET";
	if (strcmp(method, "HEAD") == 0)
		return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	if (!request->upload && (strcmp(method, "POST") == 0 || request->body.size > 0)) {
		code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.size);
		code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
		                         request->body.data ? request->body.data : "");
	}
	return code | curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

static CURLcode set_credentials(CURL *easy, const struct http_request *request)
{
	CURLcode code = CURLE_OK;

	if (request->bearer) {
		code |= curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		code |= curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, request->bearer);
	} else if (request->user) {
		if (request->aws_sigv4)
			code |= curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, request->aws_sigv4);
		else
			code |= curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		code |= curl_easy_setopt(easy, CURLOPT_USERNAME, request->user);
		code |=
			curl_easy_setopt(easy, CURLOPT_PASSWORD, request->password ? request->password : "");
	}
	if (request->client_certificate) {
		code |= curl_easy_setopt(easy, CURLOPT_SSLCERT, request->client_certificate);
		code |= curl_easy_setopt(easy, CURLOPT_SSLKEY, request->client_key);
	}
	if (request->authority_file)
		code |= curl_easy_setopt(easy, CURLOPT_CAINFO, request->authority_file);
	return code;
}

static CURLcode set_options(struct http_transfer *transfer)
{
	const struct http_request *request = transfer->request;
	CURL *easy = transfer->easy;
	long timeout_ms = request->timeout_ms > 0 ? request->timeout_ms : TIMEOUT_DEFAULT_MS;
	long connect_ms = request->connect_timeout_ms > 0 ? request->connect_timeout_ms : timeout_ms;
	CURLcode code = guarded_set_options(easy, &transfer->sockets);

	code |= curl_easy_setopt(easy, CURLOPT_URL, request->url);
	code |=
		curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, request->allow_http ? "http,https" : "https");
	code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	code |= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	if (request->stall_timeout_ms > 0) {
		code |= curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
		code |= curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, watch_progress);
		code |= curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
	}
	code |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "constancia/" CONSTANCIA_VERSION);
	code |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
	code |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	code |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->reason);
	if (request->upload)
		code |= set_upload(transfer);
	code |= set_credentials(easy, request);
	return code | set_method(easy, request);
}

static int take_handle(struct http_transfer *transfer, struct error *error)
{
	struct http_session *session = transfer->request->session;

	if (!session)
		return guarded_handle(&transfer->easy, error);
	int result = session->easy ? OK : guarded_handle(&session->easy, error);
	transfer->easy = session->easy;
	return result;
}

int transfer_prepare(struct http_transfer *transfer, const struct http_request *request,
                     struct error *error)
{
	assert(!transfer->easy && !transfer->headers);
	assert(request->header_count == 0 || request->headers);
	assert(!request->upload || (request->upload->read && request->body.size == 0));
	assert(!request->client_certificate || request->client_key);
	assert(!request->aws_sigv4 || (request->user && request->password));
	assert(request->body.size == 0 || request->body.data);
	transfer->request = request;
	transfer->limit = request->answer_limit > 0 ? request->answer_limit : ANSWER_DEFAULT;
	answer_init(&transfer->answer, transfer->limit);
	if (!request->url || strlen(request->url) > HTTP_URL_MAX)
		return error_cause(error, ERR_VALIDATION, "no URL, or one over %d bytes", HTTP_URL_MAX);
	transfer->sockets.guard = request->guard;
	int result = take_handle(transfer, error);
	if (!result)
		result = add_headers(transfer, error);
	if (result)
		return result;
	if (set_options(transfer) != CURLE_OK)
		return error_cause(error, ERR_NO_MEMORY, "libcurl does not support an option");
	return 0;
}

static int transfer_failure(const struct http_transfer *transfer, CURLcode code,
                            struct error *error)
{
	const char *reason = transfer->reason[0] ? transfer->reason : curl_easy_strerror(code);

	const struct http_answer *answer = &transfer->answer;

	if (buf_check(&answer->body) != 0 || code == CURLE_OUT_OF_MEMORY ||
	    (buf_check(&answer->headers) != 0 && !answer->headers.full))
		return ERR_NO_MEMORY;
	int refused = guarded_check(&transfer->sockets, ERR_REFUSED, error);
	if (refused)
		return refused;
	if (answer->headers.full)
		return error_cause(error, ERR_NETWORK, "response headers over %d bytes", HTTP_HEADERS_MAX);
	if (transfer->stalled)
		return error_cause(error, ERR_NETWORK, "no progress for %d ms",
		                   transfer->request->stall_timeout_ms);
	if (transfer->over)
		return error_cause(error, ERR_TOO_LARGE, "answer over %zu bytes", transfer->limit);
	if (!transfer->sockets.opened &&
	    (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
	     code == CURLE_LOGIN_DENIED))
		return error_cause(error, ERR_VALIDATION, "URL not usable: %s", reason);
	error_cause(error, ERR_NETWORK, "%s", reason);
	error_blame(error, guarded_fault(transfer->easy, code, reason));
	return ERR_NETWORK;
}

/* Passes a complete answer to the caller. */
int transfer_finish(struct http_transfer *transfer, CURLcode code, struct http_answer *ret_answer,
                    struct error *error)
{
	assert(transfer->easy && ret_answer);
	struct http_answer *answer = &transfer->answer;
	char *address = NULL;
	long status = 0;

	answer->cut = transfer->over && transfer->request->cut_over_limit;
	if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && answer->cut))
		return transfer_failure(transfer, code, error);
	if (curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK ||
	    status < 100 || status > 599)
		return error_cause(error, ERR_NETWORK, "no valid status in the response");
	answer->status = (int)status;
	if (curl_easy_getinfo(transfer->easy, CURLINFO_PRIMARY_IP, &address) == CURLE_OK && address)
		snprintf(answer->address, sizeof answer->address, "%s", address);
	*ret_answer = *answer;
	answer_init(answer, 0);
	return 0;
}

int http_send(const struct http_request *request, struct http_answer *ret_answer,
              struct error *error)
{
	assert(request && ret_answer);
	struct http_transfer transfer = {0};
	thread_assert_may_block();

	int result = transfer_prepare(&transfer, request, error);
	if (!result) {
		CURLcode code = curl_easy_perform(transfer.easy);
		result = transfer_finish(&transfer, code, ret_answer, error);
	}
	transfer_free(&transfer);
	return result;
}

struct http_session *http_session_open(void)
{
	return calloc(1, sizeof(struct http_session));
}

void http_session_close(struct http_session *session)
{
	if (session && session->easy)
		curl_easy_cleanup(session->easy);
	free(session);
}

struct slice http_answer_header(const struct http_answer *answer, const char *name)
{
	struct slice rest = buf_slice(&answer->headers);
	size_t length = strlen(name);

	while (rest.size > 0) {
		const char *end = memchr(rest.data, '\n', rest.size);
		assert(end); /* take_header ends each line */
		size_t line = (size_t)(end - rest.data);
		if (line > length && rest.data[length] == ':' &&
		    strncasecmp(rest.data, name, length) == 0) {
			struct slice value = {rest.data + length + 1, line - length - 1};
			while (value.size > 0 && (value.data[0] == ' ' || value.data[0] == '\t'))
				value = slice_make(value.data + 1, value.size - 1);
			while (value.size > 0 &&
			       (value.data[value.size - 1] == ' ' || value.data[value.size - 1] == '\t'))
				value.size--;
			return value;
		}
		rest = slice_make(end + 1, rest.size - line - 1);
	}
	return slice_make(NULL, 0);
}

int http_url_check(struct slice url, bool allow_http, const char *field, struct error *error)
{
	assert(field);
	struct url parts;

	if (url.size <= HTTP_URL_MAX && url_read(url, &parts) &&
	    (url_has_scheme(&parts, "https") || (allow_http && url_has_scheme(&parts, "http"))))
		return OK;
	return error_set(error, ERR_VALIDATION, allow_http ? MSG_NET_URL : MSG_NET_URL_HTTPS, field,
	                 NULL);
}
