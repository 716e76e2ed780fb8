#include "seal/authority.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pem.h"
#include "base/schedule.h"
#include "net/http.h"
#include "seal/certificate.h"
#include "seal/issuers.h"
#include "seal/trust.h"

#define TIMEOUT_DEFAULT_MS 10000
#define TIME_BOUND_DEFAULT_US (60 * US_PER_SECOND)
#define TOKEN_RESOLUTION_US US_PER_SECOND /* a token's time may lack fractions of a second */
#define BACKOFF_FIRST_US (5 * US_PER_SECOND)
#define BACKOFF_MAX_US (300 * US_PER_SECOND)
/* Longer, because each attempt after a rejection consumes a token. */
#define REJECTED_FIRST_US (600 * US_PER_SECOND)
#define REJECTED_MAX_US (6 * 3600 * US_PER_SECOND)

enum known_time { TIME_UNKNOWN, TIME_DISAGREED, TIME_AGREED };

/* Back-off state after consecutive failures. */
struct backoff {
	int64_t failures;
	int64_t next_try_us; /* monotonic */
	char last_reason[AUTHORITY_REASON_SIZE];
};

struct authority {
	struct authority_options options; /* texts in the arena */
	bool embedded;
	struct buf roots; /* PEM */
	/* Under the mutex: */
	struct backoff backoffs[DIGEST_ALGORITHM_COUNT]; /* per digest algorithm, since an authority may
	                                                    not support all */
	struct backoff rejected;                         /* set by authorities_reject */
	struct sha256 rejected_path;
	enum known_time time; /* its last time compared with the local clock */
	int64_t latest_us;    /* latest value of that time, minus clock_boot_us */
	int64_t earliest_us;  /* earliest value, minus clock_boot_us */
	struct sha256 path;   /* digest of its last path (DER); zeros: none yet */
	struct buf path_pem;
	struct authority_certificates seen;
	struct authority_health health;
};

struct authorities {
	pthread_mutex_t mutex;
	struct arena arena;
	struct signer *signer;
	struct address_guard guard;
	int timeout_ms;
	int64_t time_bound_us;
	int64_t latest_us; /* local clock at creation, minus clock_boot_us */
	struct issuers *issuers;
	size_t count;
	struct authority items[AUTHORITIES_MAX];
};

static const char *const kind_texts[] = {
	[AUTHORITY_DEVELOPMENT] = "development",
	[AUTHORITY_NON_QUALIFIED] = "non_qualified",
	[AUTHORITY_QUALIFIED] = "qualified",
};

const char *authority_kind_text(enum authority_kind kind)
{
	return kind_texts[kind];
}

bool authority_kind_parse(struct slice text, enum authority_kind *ret_kind)
{
	for (size_t i = 0; i < sizeof kind_texts / sizeof *kind_texts; i++) {
		if (slice_is(text, kind_texts[i])) {
			*ret_kind = (enum authority_kind)i;
			return true;
		}
	}
	return false;
}

static bool keep_texts(struct arena *arena, struct authority_options *options)
{
	const char **const texts[] = {
		&options->name,       &options->url,
		&options->roots_path, &options->policy,
		&options->user,       &options->password,
		&options->bearer,     &options->client_certificate,
		&options->client_key, &options->tls_roots_path,
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (*texts[i] && !(*texts[i] = arena_text(arena, *texts[i])))
			return false;
	return true;
}

static int load_roots(const struct authorities *authorities, struct authority *authority,
                      struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;

	if (authority->embedded) {
		if (!authorities->signer)
			return error_cause(error, ERR_VALIDATION, "embedded: requires a signing process");
		buf_add_slice(&authority->roots, signer_timestamp_roots(authorities->signer));
	} else {
		if (!authority->options.roots_path)
			return error_cause(error, ERR_VALIDATION, "%s: no trusted roots",
			                   authority->options.name);
		int result = file_read_whole(authority->options.roots_path, &authority->roots, error);
		if (result)
			return result;
	}
	if (buf_check(&authority->roots) != 0)
		return ERR_NO_MEMORY;
	/* Parsed at the start, so that a file without certificates is reported then. */
	int result = certificates_read(buf_slice(&authority->roots), &certificates, error);
	if (result != ERR_VALIDATION || authority->embedded)
		return result;
	const char *fault = pem_certificates_fault(buf_slice(&authority->roots));
	return error_cause(error, result, "%s %s", authority->options.roots_path,
	                   fault ? fault : "has an unreadable certificate, or more than 64");
}

/* Copies the host and port of a URL, without credentials. */
static void name_host(const char *url, char host[AUTHORITY_NAME_SIZE])
{
	const char *begin = strstr(url, "//");
	begin = begin ? begin + 2 : url;
	size_t size = strcspn(begin, "/?#");
	const char *at = memrchr(begin, '@', size);
	if (at) {
		size -= (size_t)(at + 1 - begin);
		begin = at + 1;
	}
	if (strcmp(url, AUTHORITY_EMBEDDED_URL) == 0)
		begin = "embedded", size = strlen(begin);
	snprintf(host, AUTHORITY_NAME_SIZE, "%.*s", (int)size, begin);
	for (char *character = host; *character; character++)
		if (*character == '"' || *character == '\\' || (unsigned char)*character < 0x21)
			*character = '_';
}

static bool has_credentials(const struct authority_options *options)
{
	return options->user || options->bearer || options->client_certificate;
}

static int add_authority(struct authorities *authorities, const struct authority_options *options,
                         struct error *error)
{
	struct authority *authority = &authorities->items[authorities->count++];

	buf_init(&authority->roots, PEM_FILE_MAX);
	buf_init(&authority->path_pem, PEM_FILE_MAX);
	authority->options = *options;
	if (!authority->options.name)
		authority->options.name = options->url;
	if (!options->url)
		return error_cause(error, ERR_VALIDATION, "a timestamp authority has no URL");
	if (!keep_texts(&authorities->arena, &authority->options))
		return ERR_NO_MEMORY;
	authority->embedded = strcmp(options->url, AUTHORITY_EMBEDDED_URL) == 0;
	name_host(options->url, authority->health.host);
	authority->health.kind = authority->embedded ? AUTHORITY_DEVELOPMENT : options->kind;
	if (authority->embedded)
		authority->options.kind = AUTHORITY_DEVELOPMENT;
	else if (http_url_check(slice_of(options->url), true, "tsa.url", error) != 0 ||
	         strlen(options->url) >= AUTHORITY_REASON_SIZE)
		return error_cause(error, ERR_VALIDATION, "%s: invalid URL", authority->health.host);
	else if (has_credentials(options) && strncasecmp(options->url, "https://", 8) != 0)
		return error_cause(error, ERR_VALIDATION, "%s: credentials require https://",
		                   authority->options.name);
	return load_roots(authorities, authority, error);
}

int authorities_create(const struct authorities_options *options,
                       struct authorities **ret_authorities, struct error *error)
{
	if (options->count < 1 || options->count > AUTHORITIES_MAX)
		return error_cause(error, ERR_VALIDATION,
		                   "the number of timestamp authorities must be 1 to %d", AUTHORITIES_MAX);
	struct authorities *authorities = calloc(1, sizeof *authorities);
	if (!authorities)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&authorities->mutex, NULL);
	authorities->latest_us = clock_now_us() - clock_boot_us();
	arena_init(&authorities->arena, (size_t)1 << 20);
	authorities->signer = options->signer;
	authorities->guard = options->guard;
	authorities->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_DEFAULT_MS;
	authorities->time_bound_us =
		options->time_bound_us > 0 ? options->time_bound_us : TIME_BOUND_DEFAULT_US;
	authorities->issuers = issuers_create(&options->guard, authorities->timeout_ms);
	int result = authorities->issuers ? 0 : ERR_NO_MEMORY;
	for (size_t i = 0; !result && i < options->count; i++)
		result = add_authority(authorities, &options->authorities[i], error);
	if (result) {
		authorities_free(authorities);
		return result;
	}
	*ret_authorities = authorities;
	return 0;
}

void authorities_free(struct authorities *authorities)
{
	if (!authorities)
		return;
	for (size_t i = 0; i < authorities->count; i++) {
		buf_free(&authorities->items[i].roots);
		buf_free(&authorities->items[i].path_pem);
	}
	issuers_free(authorities->issuers);
	arena_free(&authorities->arena);
	pthread_mutex_destroy(&authorities->mutex);
	free(authorities);
}

static void inherit(struct authority *authority, const struct authority *former)
{
	authority->time = former->time;
	authority->latest_us = former->latest_us;
	authority->earliest_us = former->earliest_us;
	authority->rejected = former->rejected;
	authority->rejected_path = former->rejected_path;
	authority->path = former->path;
	authority->seen = former->seen;
	/* Inherits the counters but not the name and kind. */
	struct authority_health own = authority->health;
	authority->health = former->health;
	memcpy(authority->health.host, own.host, sizeof own.host);
	authority->health.kind = own.kind;
	buf_add_slice(&authority->path_pem, buf_slice(&former->path_pem));
}

void authorities_inherit(struct authorities *authorities, struct authorities *former)
{
	pthread_mutex_lock(&former->mutex);
	authorities->latest_us = former->latest_us;
	for (size_t i = 0; i < authorities->count; i++)
		for (size_t at = 0; at < former->count; at++)
			if (strcmp(authorities->items[i].options.url, former->items[at].options.url) == 0) {
				inherit(&authorities->items[i], &former->items[at]);
				break;
			}
	pthread_mutex_unlock(&former->mutex);
}

void authority_result_free(struct authority_result *result)
{
	if (!result)
		return;
	buf_free(&result->request);
	buf_free(&result->response);
	buf_free(&result->token);
	buf_free(&result->path);
}

static int refuse_credentials(const struct authority_options *options, int status,
                              struct error *error)
{
	error_cause(error, ERR_AUTHORITY, "HTTP %d: the authority %s credentials", status,
	            has_credentials(options) ? "rejected the" : "requires");
	error_blame(error, BLAME_PASSWORD);
	return ERR_AUTHORITY;
}

static int send_request(const struct authorities *authorities, const struct authority *authority,
                        struct slice der, struct buf *out, struct error *error)
{
	const struct authority_options *options = &authority->options;
	HTTP_ANSWER_AUTO struct http_answer answer = {0};

	if (authority->embedded)
		return signer_timestamp(authorities->signer, der, out, error);
	struct http_request request = {
		.method = "POST",
		.url = options->url,
		.content_type = "application/timestamp-query",
		.body = der,
		.timeout_ms = authorities->timeout_ms,
		.answer_limit = TIMESTAMP_RESPONSE_MAX,
		.allow_http = true, /* the response is signed */
		.user = options->user,
		.password = options->password,
		.bearer = options->bearer,
		.client_certificate = options->client_certificate,
		.client_key = options->client_key,
		.authority_file = options->tls_roots_path,
		.guard = &authorities->guard,
	};
	int result = http_send(&request, &answer, error);
	if (result)
		return result;
	if (answer.status == 401 || answer.status == 403)
		return refuse_credentials(options, answer.status, error);
	if (answer.status != 200 &&
	    answer.status != 201) /* some authorities return 201 (Created) for a token */
		return error_cause(error, ERR_AUTHORITY, "HTTP %d", answer.status);
	buf_add_slice(out, buf_slice(&answer.body));
	return buf_check(out);
}

/* Records a time. The current time is not earlier than the timestamp, and not later than the
 * timestamp plus the time since the request. A time that disagrees with the local clock never
 * replaces one that agrees: the authority may be wrong, or the clock of a machine that just
 * started. */
static void note_time(struct authorities *authorities, struct authority *authority,
                      int64_t gen_time_us, int64_t asked_us, bool agrees)
{
	pthread_mutex_lock(&authorities->mutex);
	if (agrees || authority->time != TIME_AGREED) {
		authority->time = agrees ? TIME_AGREED : TIME_DISAGREED;
		authority->latest_us = gen_time_us + TOKEN_RESOLUTION_US - asked_us;
		authority->earliest_us = gen_time_us - clock_boot_us();
	}
	pthread_mutex_unlock(&authorities->mutex);
}

int64_t authorities_latest_time_us(struct authorities *authorities)
{
	int64_t latest_us = authorities->latest_us;
	enum known_time best = TIME_UNKNOWN;
	pthread_mutex_lock(&authorities->mutex);
	for (size_t i = 0; i < authorities->count; i++) {
		const struct authority *authority = &authorities->items[i];
		if (authority->time > best ||
		    (authority->time == best && authority->latest_us > latest_us)) {
			best = authority->time;
			latest_us = authority->latest_us;
		}
	}
	pthread_mutex_unlock(&authorities->mutex);
	return clock_boot_us() + latest_us;
}

/* Returns how far `now_us` is after the interval (positive) or before it (negative); 0: within. */
static int64_t off_span_us(int64_t now_us, int64_t earliest_us, int64_t latest_us)
{
	if (now_us > latest_us)
		return now_us - latest_us;
	return now_us < earliest_us ? now_us - earliest_us : 0;
}

bool authorities_compare_clock(struct authorities *authorities, int64_t *ret_off_us)
{
	/* Read before locking, so that waiting for the mutex does not make the clock appear ahead. */
	int64_t ahead_of_boot_us = clock_now_us() - clock_boot_us();
	bool any = false;
	int64_t best_us = 0;
	pthread_mutex_lock(&authorities->mutex);
	for (size_t i = 0; i < authorities->count; i++) {
		const struct authority *authority = &authorities->items[i];
		int64_t off_us =
			off_span_us(ahead_of_boot_us, authority->earliest_us, authority->latest_us);
		if (authority->time != TIME_UNKNOWN && (!any || llabs(off_us) < llabs(best_us))) {
			any = true;
			best_us = off_us;
		}
	}
	pthread_mutex_unlock(&authorities->mutex);
	*ret_off_us = best_us;
	return any;
}

static int check_time(struct authorities *authorities, struct authority *authority,
                      int64_t gen_time_us, int64_t asked_us, int64_t earliest_us,
                      struct error *error)
{
	int64_t off_us = gen_time_us - clock_now_us();
	bool agrees = off_us <= authorities->time_bound_us && off_us >= -authorities->time_bound_us;
	note_time(authorities, authority, gen_time_us, asked_us, agrees);
	if (!agrees)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the time differs from the local clock by %lld ms",
		                   (long long)(off_us / 1000));
	if (gen_time_us < earliest_us)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the time is %lld ms earlier than permitted",
		                   (long long)(earliest_us - gen_time_us) / 1000);
	return OK;
}

/* Verifies the response and completes the path to a root. */
static int check_response(const struct authorities *authorities, const struct authority *authority,
                          struct authority_result *result, struct error *error)
{
	BUF_AUTO struct buf known;
	struct slice roots = buf_slice(&authority->roots);
	struct slice token;
	int code = 0;

	buf_init(&known, TIMESTAMP_PATH_MAX);
	if (timestamp_response_token(buf_slice(&result->response), &token, NULL) == 0)
		code = issuers_complete(authorities->issuers, token, roots, &known, error);
	if (code != 0)
		return code;
	struct timestamp_path path = {.known = buf_slice(&known), .complete = &result->path};
	code = timestamp_verify_response(buf_slice(&result->request), buf_slice(&result->response),
	                                 roots, &path, &result->token, &result->facts, error);
	return code ? code : timestamp_response_end_with_token(&result->response, error);
}

/* Without memory the previous path is kept. */
static void note_path(struct authorities *authorities, struct authority *authority,
                      struct slice path)
{
	struct authority_certificates seen = {0};
	struct sha256 digest = sha256_of(path.data, path.size);
	int64_t from_us;
	struct buf pem;

	pthread_mutex_lock(&authorities->mutex);
	bool known = sha256_equal(&authority->path, &digest);
	pthread_mutex_unlock(&authorities->mutex);
	if (known)
		return;
	buf_init(&pem, PEM_FILE_MAX);
	snprintf(seen.name, sizeof seen.name, "%s", authority->options.name);
	if (trust_path_to_pem(path, &pem, NULL) == 0 &&
	    trust_describe_path(buf_slice(&pem), &seen.certificate, &from_us, &seen.valid_until_us,
	                        NULL) == 0) {
		pthread_mutex_lock(&authorities->mutex);
		struct buf former = authority->path_pem;
		authority->path_pem = pem;
		authority->path = digest;
		authority->seen = seen;
		pthread_mutex_unlock(&authorities->mutex);
		pem = former;
	}
	buf_free(&pem);
}

bool authorities_get_certificates(struct authorities *authorities, size_t index,
                                  struct authority_certificates *ret_seen, struct buf *path_pem)
{
	if (index >= authorities->count)
		return false;
	pthread_mutex_lock(&authorities->mutex);
	const struct authority *authority = &authorities->items[index];
	bool any = authority->path_pem.size > 0;
	*ret_seen = authority->seen;
	if (any && path_pem)
		buf_add_slice(path_pem, buf_slice(&authority->path_pem));
	pthread_mutex_unlock(&authorities->mutex);
	return any;
}

/* Makes one attempt. Fills *result except the fields that the caller knows. */
static int try_authority(struct authorities *authorities, struct authority *authority,
                         const struct digest *imprint, int64_t earliest_us,
                         struct authority_result *result, struct error *error)
{
	int64_t asked_us = clock_boot_us();
	buf_init(&result->request, TIMESTAMP_REQUEST_MAX);
	buf_init(&result->response, TIMESTAMP_RESPONSE_MAX);
	buf_init(&result->token, TIMESTAMP_RESPONSE_MAX);
	buf_init(&result->path, TIMESTAMP_PATH_MAX);
	int code = timestamp_request_over(imprint, authority->options.policy, &result->request, error);
	if (code == 0)
		code = send_request(authorities, authority, buf_slice(&result->request), &result->response,
		                    error);
	if (code == 0)
		code = check_response(authorities, authority, result, error);
	if (code == 0)
		code = check_time(authorities, authority, result->facts.gen_time_us, asked_us, earliest_us,
		                  error);
	if (code == 0)
		note_path(authorities, authority, buf_slice(&result->path));
	return code;
}

/* A request to the authorities. */
struct question {
	const struct digest *imprint;
	int64_t earliest_us;
	const char *except; /* URL of an authority to skip; NULL: none */
	bool skip_rejected; /* skip rejected authorities */
};

static bool is_backing_off(const struct backoff *backoff, char reason[AUTHORITY_REASON_SIZE])
{
	bool alone = clock_monotonic_us() < backoff->next_try_us;
	if (alone)
		memcpy(reason, backoff->last_reason, AUTHORITY_REASON_SIZE);
	return alone;
}

static bool is_left_alone(struct authorities *authorities, const struct authority *authority,
                          const struct question *question, char reason[AUTHORITY_REASON_SIZE])
{
	pthread_mutex_lock(&authorities->mutex);
	bool alone = (question->skip_rejected && is_backing_off(&authority->rejected, reason)) ||
	             is_backing_off(&authority->backoffs[question->imprint->algorithm], reason);
	pthread_mutex_unlock(&authorities->mutex);
	return alone;
}

static void extend_backoff(struct backoff *backoff, int64_t first_us, int64_t longest_us,
                           const char *reason)
{
	backoff->next_try_us =
		clock_monotonic_us() + backoff_us(++backoff->failures, first_us, longest_us);
	snprintf(backoff->last_reason, sizeof backoff->last_reason, "%s", reason);
}

static void note_health(struct authority_health *health, const char *reason)
{
	health->fails = reason;
	if (!reason) {
		health->successes++;
		health->last_success_us = clock_now_us();
		return;
	}
	health->failures++;
	health->failed_boot_us = clock_boot_us();
	snprintf(health->reason, sizeof health->reason, "%s", reason);
}

bool authorities_get_health(struct authorities *authorities, size_t index,
                            struct authority_health *ret)
{
	if (index >= authorities->count)
		return false;
	pthread_mutex_lock(&authorities->mutex);
	*ret = authorities->items[index].health;
	pthread_mutex_unlock(&authorities->mutex);
	return true;
}

/* Records the outcome of an attempt (`reason` NULL: success). A failure of an attempt that began
 * before another failure was recorded does not extend the back-off. */
static void note_outcome(struct authorities *authorities, struct authority *authority,
                         enum digest_algorithm algorithm, int64_t started_us, const char *reason)
{
	struct backoff *backoff = &authority->backoffs[algorithm];
	pthread_mutex_lock(&authorities->mutex);
	note_health(&authority->health, reason);
	if (!reason) {
		backoff->failures = 0;
		backoff->next_try_us = 0;
	} else if (backoff->next_try_us <= started_us) {
		extend_backoff(backoff, BACKOFF_FIRST_US, BACKOFF_MAX_US, reason);
	}
	pthread_mutex_unlock(&authorities->mutex);
}

void authorities_reject(struct authorities *authorities, const struct authority_result *given,
                        const char *reason)
{
	struct sha256 path = sha256_of(given->path.data, given->path.size);
	pthread_mutex_lock(&authorities->mutex);
	for (size_t i = 0; i < authorities->count; i++) {
		struct authority *authority = &authorities->items[i];
		if (strcmp(authority->options.url, given->url) != 0)
			continue;
		if (!sha256_equal(&authority->rejected_path, &path))
			authority->rejected.failures = 0;
		authority->rejected_path = path;
		extend_backoff(&authority->rejected, REJECTED_FIRST_US, REJECTED_MAX_US, reason);
	}
	pthread_mutex_unlock(&authorities->mutex);
}

static void note_failure(struct authority_failures *failures, const struct authority *authority,
                         const char *reason, bool in_backoff, enum error_blame fault)
{
	assert(failures->count < AUTHORITIES_MAX);
	size_t index = failures->count++;

	snprintf(failures->items[index].name, AUTHORITY_NAME_SIZE, "%s", authority->options.name);
	snprintf(failures->items[index].reason, AUTHORITY_REASON_SIZE, "%s", reason);
	failures->items[index].in_backoff = in_backoff;
	failures->items[index].fault = fault;
}

static const char *cause_of(const struct error *error, int code)
{
	return error->cause[0] ? error->cause : error_general_message(code, LANGUAGE_ENGLISH);
}

static int ask_each(struct authorities *authorities, const struct question *question,
                    struct authority_result *ret_result, struct authority_failures *ret_failures,
                    struct error *error)
{
	struct authority_failures failures = {0};
	int code = ERR_AUTHORITY;
	bool no_memory = false;

	for (size_t i = 0; code != 0 && i < authorities->count; i++) {
		struct authority *authority = &authorities->items[i];
		struct authority_result result = {.kind = authority->options.kind};
		struct error reason = {0};
		char last_reason[AUTHORITY_REASON_SIZE];
		int64_t started_us = clock_monotonic_us();

		if (question->except && strcmp(authority->options.url, question->except) == 0)
			continue;
		if (is_left_alone(authorities, authority, question, last_reason)) {
			note_failure(&failures, authority, last_reason, true, BLAME_NONE);
			continue;
		}
		code = try_authority(authorities, authority, question->imprint, question->earliest_us,
		                     &result, &reason);
		if (code == 0) {
			note_outcome(authorities, authority, question->imprint->algorithm, started_us, NULL);
			snprintf(result.name, sizeof result.name, "%s", authority->options.name);
			snprintf(result.url, sizeof result.url, "%s", authority->options.url);
			*ret_result = result;
			break;
		}
		const char *cause = cause_of(&reason, code);
		/* Lack of memory may be local, so it causes no back-off. */
		if (code == ERR_NO_MEMORY)
			no_memory = true;
		else
			note_outcome(authorities, authority, question->imprint->algorithm, started_us, cause);
		note_failure(&failures, authority, cause, false, reason.fault);
		authority_result_free(&result);
	}
	if (ret_failures)
		*ret_failures = failures;
	if (code != 0 && failures.count == 0)
		return error_cause(error, ERR_AUTHORITY, "there is no other timestamp authority");
	if (code != 0)
		return error_cause(error, no_memory ? ERR_NO_MEMORY : ERR_AUTHORITY, "%s: %s",
		                   failures.items[0].name, failures.items[0].reason);
	return 0;
}

int authorities_timestamp(struct authorities *authorities, const struct sha256 *imprint,
                          int64_t earliest_us, struct authority_result *ret_result,
                          struct authority_failures *ret_failures, struct error *error)
{
	struct digest digest = digest_of_sha256(imprint);
	const struct question question = {.imprint = &digest, .earliest_us = earliest_us};
	return ask_each(authorities, &question, ret_result, ret_failures, error);
}

int authorities_timestamp_over(struct authorities *authorities, const struct digest *imprint,
                               struct authority_result *ret_result,
                               struct authority_failures *ret_failures, struct error *error)
{
	const struct question question = {
		.imprint = imprint, .earliest_us = TIME_NONE, .skip_rejected = true};
	return ask_each(authorities, &question, ret_result, ret_failures, error);
}

int authorities_timestamp_independent(struct authorities *authorities, const struct sha256 *imprint,
                                      int64_t earliest_us, const struct authority_result *first,
                                      struct authority_result *ret_result,
                                      struct authority_failures *ret_failures, struct error *error)
{
	struct digest digest = digest_of_sha256(imprint);
	const struct question question = {
		.imprint = &digest, .earliest_us = earliest_us, .except = first->url};
	return ask_each(authorities, &question, ret_result, ret_failures, error);
}

bool authorities_request_time_of(struct authorities *authorities, size_t index,
                                 struct authority_failures *failures)
{
	if (index >= authorities->count)
		return false;
	struct authority *authority = &authorities->items[index];
	struct digest anything = {.algorithm = DIGEST_SHA256};
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct error reason = {0};
	int64_t started_us = clock_monotonic_us();
	random_bytes(anything.bytes, SHA256_SIZE);
	int code = try_authority(authorities, authority, &anything, TIME_NONE, &result, &reason);
	if (code != ERR_NO_MEMORY)
		note_outcome(authorities, authority, anything.algorithm, started_us,
		             code ? cause_of(&reason, code) : NULL);
	if (code)
		note_failure(failures, authority, cause_of(&reason, code), false, reason.fault);
	return true;
}

void authorities_request_time(struct authorities *authorities, int64_t bound_us,
                              struct authority_failures *ret_failures)
{
	*ret_failures = (struct authority_failures){0};
	for (size_t i = 0; authorities_request_time_of(authorities, i, ret_failures); i++)
		if (clock_now_us() - authorities_latest_time_us(authorities) <= bound_us)
			return;
}

int authorities_trust(const struct authorities *authorities, struct buf *out, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < authorities->count && !result; i++)
		if (authorities->items[i].roots.size > 0)
			result = trust_add_roots(buf_slice(&authorities->items[i].roots), out, error);
	return result;
}
