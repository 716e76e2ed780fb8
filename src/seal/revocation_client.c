#include "seal/revocation_client.h"

#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/percent.h"
#include "base/thread.h"
#include "net/http.h"
#include "seal/certificate.h"
#include "seal/responder.h"
#include "seal/revocation_cache.h"
#include "seal/revocation_data.h"

#define TIMEOUT_DEFAULT_MS 10000
#define TIMEOUTS_OF_A_PATH 3
#define CLOCK_TOLERANCE_US (300 * US_PER_SECOND)

/* A complete result for a caller that cannot wait. The same request gets the same bytes again. */
#define HURRIED_KEPT_MAX 64
#define HURRIED_KEPT_US (60 * 60 * US_PER_SECOND)
struct hurried_answer {
	struct sha256 question;
	int64_t until_us; /* monotonic; 0: unused */
	struct validation_set set;
};

struct revocation_client {
	struct signer *signer;
	struct address_guard guard;
	int timeout_ms;
	struct revocation_cache *cache;
	atomic_bool is_hurried; /* a caller that cannot wait long is waiting */
	pthread_mutex_t hurried_lock;
	struct hurried_answer hurried[HURRIED_KEPT_MAX];
	size_t hurried_next;
};

/* A request for data about one certificate. */
struct wanted {
	struct revocation_client *client;
	X509 *certificate;
	X509 *issuer;
	int64_t time_us;
	int64_t deadline_us; /* monotonic */
	bool hurried;        /* failures do not count against the source, since it had little time */
	struct validation_set *set;
	char *cause; /* REVOCATION_CAUSE_SIZE bytes: why the data is unavailable */
};

struct revocation_client *revocation_client_create(const struct revocation_client_options *options)
{
	struct revocation_client *client = calloc(1, sizeof *client);

	if (!client)
		return NULL;
	client->signer = options->signer;
	client->guard = options->guard;
	client->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_DEFAULT_MS;
	client->cache = revocation_cache_create();
	if (!client->cache) {
		free(client);
		return NULL;
	}
	pthread_mutex_init(&client->hurried_lock, NULL);
	return client;
}

void revocation_client_free(struct revocation_client *client)
{
	if (!client)
		return;
	revocation_cache_free(client->cache);
	for (size_t i = 0; i < HURRIED_KEPT_MAX; i++)
		validation_set_free(&client->hurried[i].set);
	pthread_mutex_destroy(&client->hurried_lock);
	free(client);
}

/* ---- one request ---- */

/* ERR_METHOD: the source rejects the method. */
static int send_request(const struct wanted *wanted, const char *url, struct slice body,
                        size_t limit, struct buf *out, struct error *error)
{
	const struct revocation_client *client = wanted->client;
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	int64_t left_ms = (wanted->deadline_us - clock_monotonic_us()) / 1000;

	if (left_ms <= 0)
		return error_cause(error, ERR_NETWORK, "no time left for a request");
	struct http_request request = {
		.method = body.size == 0 ? "GET" : "POST",
		.url = url,
		.content_type = body.size == 0 ? NULL : "application/ocsp-request",
		.body = body,
		.timeout_ms = left_ms < client->timeout_ms ? (int)left_ms : client->timeout_ms,
		.answer_limit = limit,
		.allow_http = true, /* the response is signed */
		.guard = &client->guard,
	};
	int result = http_send(&request, &answer, error);
	if (result == ERR_TOO_LARGE)
		return error_cause(error, ERR_NETWORK, "more than %zu bytes", request.answer_limit);
	if (result)
		return result;
	if (answer.status != 200)
		return error_cause(error, answer.status == 405 ? ERR_METHOD : ERR_NETWORK, "HTTP status %d",
		                   answer.status);
	buf_add_slice(out, buf_slice(&answer.body));
	return buf_check(out);
}

/* Appends the request to the URL (RFC 6960 appendix A.1). */
static int add_to_url(const struct revocation_request *question, struct buf *url)
{
	BUF_AUTO struct buf text;
	size_t size = BASE64_SIZE(question->request.size);

	buf_init(&text, HTTP_URL_MAX);
	char *base64 = buf_extend(&text, size + 1);
	if (!base64)
		return ERR_TOO_LARGE;
	base64_encode(question->request.data, question->request.size, base64);
	buf_add_text(url, question->url);
	if (url->size > 0 && url->data[url->size - 1] != '/')
		buf_add_byte(url, '/');
	buf_add_percent(url, slice_make(base64, size), "");
	return buf_check(url);
}

/* Sends a request by POST; falls back to GET for responders that only serve prepared responses. */
static int send_question(const struct wanted *wanted, const struct revocation_request *question,
                         struct buf *out, struct error *error)
{
	const struct revocation_client *client = wanted->client;
	BUF_AUTO struct buf url;
	bool list = question->request.size == 0;

	if (!list && client->signer && strcmp(question->url, RESPONDER_URL) == 0)
		return signer_ocsp(client->signer, question->request, out, error);
	int result = send_request(wanted, question->url, question->request,
	                          list ? REVOCATION_CRL_MAX : REVOCATION_OCSP_MAX, out, error);
	buf_init(&url, HTTP_URL_MAX);
	if (result == ERR_METHOD && !list && add_to_url(question, &url) == 0)
		result =
			send_request(wanted, url.data, slice_make(NULL, 0), REVOCATION_OCSP_MAX, out, error);
	return result == ERR_METHOD ? ERR_NETWORK : result;
}

static int get_responder_list(const struct wanted *wanted, X509 *responder, struct error *error);

/* Verifies the data and checks that it is usable now. */
static int check(const struct wanted *wanted, struct slice der, bool list,
                 struct revocation_facts *ret_facts, struct error *error)
{
	int64_t now_us = clock_now_us();
	X509 *responder = NULL;
	int result =
		list ? revocation_check_crl(der, wanted->certificate, wanted->issuer, ret_facts, error)
			 : revocation_check_ocsp(der, wanted->certificate, wanted->issuer, ret_facts,
	                                 &responder, error);

	if (!result && ret_facts->status == REVOCATION_STATUS_NONE)
		result = error_cause(error, ERR_NOT_FOUND, "it does not know the certificate");
	if (!result && ret_facts->issued_us > now_us + CLOCK_TOLERANCE_US)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "it was issued in the future");
	if (!result && ret_facts->next_us != TIME_NONE && ret_facts->next_us < now_us)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "it is no longer current");
	if (!result && responder)
		result = get_responder_list(wanted, responder, error);
	X509_free(responder);
	return result;
}

static int add(const struct wanted *wanted, struct slice der, bool list, struct error *error)
{
	return validation_set_add(wanted->set, list ? VALIDATION_CRL : VALIDATION_OCSP, der, error);
}

/* Returns whether the error is local and not the source's. */
static bool is_local_error(int result)
{
	return result == ERR_NO_MEMORY || result == ERR_TOO_LARGE;
}

static int ask_and_check(const struct wanted *wanted, const struct revocation_request *question,
                         struct buf *der, struct error *error)
{
	struct revocation_cache *cache = wanted->client->cache;
	bool list = question->request.size == 0;
	struct revocation_facts facts;
	char reason[REVOCATION_CAUSE_SIZE];

	if (revocation_cache_is_in_backoff(cache, question->url, reason))
		return error_cause(error, ERR_NETWORK, "%s", reason);
	int result = send_question(wanted, question, der, error);
	if (!result)
		result = check(wanted, buf_slice(der), list, &facts, error);
	if (!result) {
		revocation_cache_note_success(cache, question->url);
		revocation_cache_put(cache, question, buf_slice(der), &facts, clock_now_us());
	} else if (!is_local_error(result) && !wanted->hurried) {
		revocation_cache_note_failure(cache, question->url, error_reason(error, result));
	}
	return result;
}

/* Adds the data of one source to the set; falls back to cached data that is still current. */
static int get_from(const struct wanted *wanted, const struct revocation_request *question,
                    struct error *error)
{
	BUF_AUTO struct buf kept;
	BUF_AUTO struct buf der;
	bool list = question->request.size == 0;
	struct revocation_facts facts;
	int result = ERR_NETWORK;

	buf_init(&kept, REVOCATION_CRL_MAX);
	buf_init(&der, REVOCATION_CRL_MAX);
	enum revocation_cache_state state = revocation_cache_get(
		wanted->client->cache, question, wanted->time_us, clock_now_us(), &kept);
	if (state != REVOCATION_CACHE_FRESH) {
		result = ask_and_check(wanted, question, &der, error);
		if (!result)
			return add(wanted, buf_slice(&der), list, error);
	}
	if (state != REVOCATION_CACHE_MISS) {
		result = check(wanted, buf_slice(&kept), list, &facts, error);
		if (!result)
			result = add(wanted, buf_slice(&kept), list, error);
	}
	return result;
}

/* ---- one certificate ---- */

/* Tries each source until one returns data. Otherwise keeps the cause of the first failure, unless
 * a cause is set already. */
static int try_each(const struct wanted *wanted, const struct revocation_urls *urls,
                    struct slice request, bool *ret_got)
{
	for (size_t i = 0; i < urls->count && !*ret_got; i++) {
		struct revocation_request question = {urls->urls[i], request};
		struct error error = {0};
		int result = get_from(wanted, &question, &error);
		*ret_got = !result;
		if (is_local_error(result))
			return result;
		if (result && wanted->cause[0] == '\0')
			snprintf(wanted->cause, REVOCATION_CAUSE_SIZE, "%s: %s", question.url,
			         error_reason(&error, result));
	}
	return OK;
}

static int get_responder_list(const struct wanted *wanted, X509 *responder, struct error *error)
{
	struct wanted about = *wanted;
	char cause[REVOCATION_CAUSE_SIZE] = "";
	struct revocation_sources *sources = malloc(sizeof *sources);
	bool got = false;

	about.certificate = responder;
	about.cause = cause;
	int result = sources ? revocation_sources(responder, sources, error) : ERR_NO_MEMORY;
	if (!result)
		result = try_each(&about, &sources->crl, slice_make(NULL, 0), &got);
	free(sources);
	if (!result && !got)
		result =
			error_cause(error, ERR_INVALID_EVIDENCE, "revocation data of the responder itself: %s",
		                cause[0] ? cause : "nothing is published");
	return result;
}

static int get_any(const struct wanted *wanted, struct error *error)
{
	BUF_AUTO struct buf request;
	struct revocation_sources *sources = malloc(sizeof *sources);
	bool got = false;

	buf_init(&request, 4096);
	int result = sources ? revocation_sources(wanted->certificate, sources, error) : ERR_NO_MEMORY;
	if (!result && sources->ocsp.count > 0)
		result = revocation_ocsp_request(wanted->certificate, wanted->issuer, &request, error);
	if (!result && sources->ocsp.count > 0)
		result = try_each(wanted, &sources->ocsp, buf_slice(&request), &got);
	if (!result && !got)
		result = try_each(wanted, &sources->crl, slice_make(NULL, 0), &got);
	free(sources);
	if (got)
		wanted->cause[0] = '\0';
	return result;
}

static int add_certificate(struct validation_set *set, X509 *certificate, struct error *error)
{
	unsigned char *der = NULL;
	int size = i2d_X509(certificate, &der);
	int result = size > 0 ? validation_set_add(set, VALIDATION_CERTIFICATE,
	                                           slice_make(der, (size_t)size), error)
	                      : ERR_NO_MEMORY;

	OPENSSL_free(der);
	return result;
}

/* ---- a path ---- */

static int fetch_until(struct revocation_client *client, struct slice path_pem,
                       const struct revocation_moment *at, int64_t deadline_us, bool hurried,
                       struct validation_set *set,
                       struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX],
                       size_t *ret_count, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *path = NULL;
	char causes[REVOCATION_PATH_MAX][REVOCATION_CAUSE_SIZE] = {0};
	size_t count = 0;

	/* Detects an invalid path before any request is sent. */
	int result = revocation_judge(path_pem, set, at, ret_verdicts, &count, error);
	if (!result)
		result = certificates_read(path_pem, &path, error);
	for (size_t i = 0; !result && i < count; i++) {
		struct wanted wanted = {
			client,   sk_X509_value(path, (int)i), NULL, at->time_us, deadline_us, hurried, set,
			causes[i]};
		result = add_certificate(set, wanted.certificate, error);
		wanted.issuer = i + 1 < count ? sk_X509_value(path, (int)i + 1) : NULL;
		if (!result && wanted.issuer && ret_verdicts[i].outcome != REVOCATION_GOOD_AFTER)
			result = get_any(&wanted, error);
	}
	if (!result)
		result = revocation_judge(path_pem, set, at, ret_verdicts, &count, error);
	for (size_t i = 0; !result && i < count; i++)
		if (!revocation_is_sufficient(ret_verdicts[i].outcome) && causes[i][0])
			memcpy(ret_verdicts[i].cause, causes[i], REVOCATION_CAUSE_SIZE);
	if (!result)
		*ret_count = count;
	return result;
}

int revocation_fetch(struct revocation_client *client, struct slice path_pem,
                     const struct revocation_moment *at, struct validation_set *set,
                     struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX], size_t *ret_count,
                     struct error *error)
{
	thread_assert_may_block();
	int64_t wait_us = client->timeout_ms * INT64_C(1000) * TIMEOUTS_OF_A_PATH;
	return fetch_until(client, path_pem, at, clock_monotonic_us() + wait_us, false, set,
	                   ret_verdicts, ret_count, error);
}

static struct sha256 hurried_question(struct slice path_pem, const struct revocation_moment *at)
{
	struct sha256 path = sha256_of(path_pem.data, path_pem.size);
	char question[SHA256_SIZE + sizeof at->time_us];
	memcpy(question, path.bytes, SHA256_SIZE);
	memcpy(question + SHA256_SIZE, &at->time_us, sizeof at->time_us);
	return sha256_of(question, sizeof question);
}

/* Looks up a cached result. */
static int find_result(struct revocation_client *client, const struct sha256 *question,
                       struct validation_set *set, bool *ret_found, struct error *error)
{
	int result = OK;
	*ret_found = false;
	pthread_mutex_lock(&client->hurried_lock);
	for (size_t i = 0; i < HURRIED_KEPT_MAX && !*ret_found; i++) {
		const struct hurried_answer *answer = &client->hurried[i];
		*ret_found =
			answer->until_us > clock_monotonic_us() && sha256_equal(&answer->question, question);
		if (*ret_found)
			result = validation_set_add_all(set, &answer->set, error);
	}
	pthread_mutex_unlock(&client->hurried_lock);
	return result;
}

/* Caches a result; does nothing without memory. */
static void cache_result(struct revocation_client *client, const struct sha256 *question,
                         const struct validation_set *set)
{
	pthread_mutex_lock(&client->hurried_lock);
	struct hurried_answer *answer = &client->hurried[client->hurried_next++ % HURRIED_KEPT_MAX];
	validation_set_free(&answer->set);
	*answer = (struct hurried_answer){.question = *question};
	if (!validation_set_add_all(&answer->set, set, NULL))
		answer->until_us = clock_monotonic_us() + HURRIED_KEPT_US;
	pthread_mutex_unlock(&client->hurried_lock);
}

static bool is_whole(const struct revocation_verdict *verdicts, size_t count)
{
	bool whole = count > 0;
	for (size_t i = 0; i + 1 < count; i++)
		whole &= revocation_is_sufficient(verdicts[i].outcome);
	return whole;
}

int revocation_fetch_bounded(struct revocation_client *client, struct slice path_pem,
                             const struct revocation_moment *at, int wait_ms,
                             struct validation_set *set,
                             struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX],
                             size_t *ret_count, struct error *error)
{
	thread_assert_may_block();
	struct sha256 question = hurried_question(path_pem, at);
	bool found;
	int result = find_result(client, &question, set, &found, error);
	if (result || found)
		return result ? result
		              : revocation_judge(path_pem, set, at, ret_verdicts, ret_count, error);
	bool alone = !atomic_exchange(&client->is_hurried, true);
	int64_t wait_us = alone ? wait_ms * INT64_C(1000) : 0;
	result = fetch_until(client, path_pem, at, clock_monotonic_us() + wait_us, true, set,
	                     ret_verdicts, ret_count, error);
	if (alone)
		atomic_store(&client->is_hurried, false);
	if (!result && is_whole(ret_verdicts, *ret_count))
		cache_result(client, &question, set);
	return result;
}
