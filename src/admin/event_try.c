#include "admin/event_try.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "base/log.h"
#include "base/rate.h"
#include "base/thread.h"
#include "service/event_body.h"
#include "service/interface.h"
#include "service/settings.h"

#define WAIT_SECONDS 10
#define ATTEMPT_MEMORY_MAX ((size_t)8 << 20)
#define BODY_MAX ((size_t)256 << 10)

/* Owned by the submitting thread until it stops waiting, then by the sequencer. */
struct attempt {
	struct pending_registration pending;
	pthread_mutex_t mutex;
	pthread_cond_t answer;
	bool answered, abandoned;
	struct arena arena;
	struct buf body, canonical;
	bool forced;               /* a scenario forces the refusal */
	char original_id[ID_SIZE]; /* of such a refusal */
};

static struct attempt *attempt_make(void)
{
	struct attempt *attempt = calloc(1, sizeof *attempt);
	if (!attempt)
		return NULL;
	pthread_mutex_init(&attempt->mutex, NULL);
	pthread_cond_init(&attempt->answer, NULL);
	arena_init(&attempt->arena, ATTEMPT_MEMORY_MAX);
	buf_init(&attempt->body, BODY_MAX);
	buf_init(&attempt->canonical, EVENT_CANONICAL_MAX);
	return attempt;
}

static void attempt_free(struct attempt *attempt)
{
	pthread_mutex_destroy(&attempt->mutex);
	pthread_cond_destroy(&attempt->answer);
	arena_free(&attempt->arena);
	buf_free(&attempt->body);
	buf_free(&attempt->canonical);
	free(attempt);
}

/* ---- waiting ---- */

/* Runs on the sequencer's thread. */
static void done(struct pending_registration *pending)
{
	struct attempt *attempt = pending->context;
	pthread_mutex_lock(&attempt->mutex);
	attempt->answered = true;
	bool abandoned = attempt->abandoned;
	pthread_cond_signal(&attempt->answer);
	pthread_mutex_unlock(&attempt->mutex);
	if (abandoned)
		attempt_free(attempt);
}

/* Returns false if the sequencer owns the attempt from now on. */
static bool await(struct attempt *attempt)
{
	const int64_t until_us = clock_monotonic_us() + WAIT_SECONDS * US_PER_SECOND;
	thread_assert_may_block();
	pthread_mutex_lock(&attempt->mutex);
	while (!attempt->answered && thread_wait_until(&attempt->answer, &attempt->mutex, until_us))
		;
	bool answered = attempt->answered;
	attempt->abandoned = !answered;
	pthread_mutex_unlock(&attempt->mutex);
	return answered;
}

/* ---- what is declared ---- */

/* Writes the body of a request. The content is parsed separately first, because inside the body it
 * could form more than one member. */
static int write_body(const struct event_try *tried, enum modality modality,
                      struct attempt *attempt, struct error *error)
{
	struct json_writer writer = {.out = &attempt->body};
	struct json *content;
	int result = OK;
	json_begin_object(&writer, NULL);
	json_slice(&writer, "client_ref", tried->client_ref);
	if (modality == MODALITY_CONTENT) {
		result = json_parse(&attempt->arena, tried->content, NULL, &content, error);
		json_raw(&writer, "payload", tried->content);
	} else {
		struct sha256 hash = sha256_of(tried->content.data, tried->content.size);
		json_hex(&writer, "hash", hash.bytes, SHA256_SIZE);
		json_text(&writer, "hash_alg", hash_algorithm_text(HASH_SHA256));
	}
	json_end_object(&writer);
	return result ? result : buf_check(&attempt->body);
}

static int declare(const struct event_try *tried, enum modality modality, struct attempt *attempt,
                   struct declaration *ret, struct error *error)
{
	int result = write_body(tried, modality, attempt, error);
	if (!result)
		result = event_body_parse(buf_slice(&attempt->body), modality, &attempt->arena,
		                          &attempt->canonical, ret, error);
	if (!result && attempt->canonical.size > EVENT_INLINE_MAX) {
		char size[24], most[24];
		snprintf(size, sizeof size, "%zu", attempt->canonical.size);
		snprintf(most, sizeof most, "%zu", EVENT_INLINE_MAX);
		result = error_set(error, ERR_TOO_LARGE, MSG_TRY_LARGE, size, most, NULL);
	}
	return result;
}

/* ---- the guard ---- */

/* Takes a token from the rate limit, also for a refused request, as http/guard.c does for a test
 * key. */
static int guard(struct service *service, const struct key_identity *key, struct error *error)
{
	int64_t rate = service->settings->rate_test < 1 ? 1 : service->settings->rate_test;
	struct rate_state state =
		rate_take(service->tries, (uint64_t)key->account, rate, rate, clock_monotonic_us());
	int result = service_check_writes(key, error);
	if (result || state.allowed)
		return result;
	error_set(error, ERR_RATE_LIMITED, MSG_NONE, NULL);
	error->retry_after_seconds = (int)state.retry_after_seconds;
	return ERR_RATE_LIMITED;
}

static int check(struct service *service, const struct event_try *tried,
                 const struct key_identity *key, struct attempt *attempt, struct error *error)
{
	struct declaration declaration = {0};
	char header[SCENARIO_HEADER_SIZE];
	struct scenario forced = {0};
	scenario_header(service->settings->service_prefix, header);
	int result = guard(service, key, error);
	if (!result && tried->scenario.size)
		result = scenario_read(tried->scenario, SCENARIO_EVENT, header, &forced, error);
	if (!result)
		result = declare(tried, key->modality, attempt, &declaration, error);
	attempt->forced = !result && forced.refusal;
	if (attempt->forced)
		result = scenario_refuse(&forced, key->channel_id, attempt->original_id, error);
	bool holds = key->modality == MODALITY_CONTENT;
	attempt->pending = (struct pending_registration){
		.registration = {.account = key->account,
	                     .channel = key->channel,
	                     .chain = key->chain,
	                     .key = key->key,
	                     .declaration = declaration,
	                     .content = holds ? buf_slice(&attempt->canonical) : slice_of(""),
	                     .content_bytes = holds ? (int64_t)attempt->canonical.size : -1,
	                     .arena = &attempt->arena},
		.done = done,
		.context = attempt,
	};
	return result;
}

/* ---- the answer ---- */

struct refusal {
	int code;
	bool forced; /* by a scenario: no failure of the service */
	struct error why;
	char original_id[ID_SIZE]; /* event with the same client_ref; empty: none */
};

static void answer_refusal(const struct service *service, const struct event_try *tried,
                           struct refusal *refusal, struct event_tried *ret, struct buf *answer)
{
	char incident_id[INCIDENT_ID_SIZE] = "";
	error_keep(&refusal->why, refusal->code);
	ret->status = error_http_status(refusal->code);
	ret->retry_after_seconds = error_retry_after(refusal->code, &refusal->why);
	if (ret->status >= 500) {
		incident_id_make(incident_id);
		if (!refusal->forced)
			log_error("test_event_failed", "incident_id", incident_id, "code",
			          error_code_text(refusal->code), "cause",
			          error_reason(&refusal->why, refusal->code));
	}
	struct error_answer said = {
		.code = refusal->code,
		.error = &refusal->why,
		.language = tried->language,
		.public_url = service->settings->service_public_url,
		.incident_id = incident_id,
		.event_id = *refusal->original_id ? refusal->original_id : NULL,
	};
	error_json(&said, answer);
}

static void take_outcome(const struct registration *outcome, struct refusal *refusal,
                         struct event_tried *ret, struct buf *answer)
{
	refusal->code = outcome->result;
	if (outcome->result)
		registration_get_error(outcome, &refusal->why);
	ret->unknown = error_http_status(outcome->result) == 503;
	if (outcome->result == ERR_CONFLICT)
		memcpy(refusal->original_id, outcome->original_id, ID_SIZE);
	if (outcome->result)
		return;
	registered_event_json(outcome->event, outcome->receipt, answer);
	ret->status = outcome->replayed ? 200 : 201;
	ret->replayed = outcome->replayed;
	memcpy(ret->event_id, outcome->event->event_id, ID_SIZE);
}

int event_try(struct service *service, const struct event_try *tried, struct event_tried *ret,
              struct buf *answer, struct error *error)
{
	struct key_identity key;
	struct refusal refusal = {0};
	int result = service_channel_identity(service, tried->channel_id, MODE_TEST, &key, error);
	struct attempt *attempt = result ? NULL : attempt_make();
	if (!attempt)
		return result ? result : ERR_NO_MEMORY;
	*ret = (struct event_tried){.modality = key.modality};
	memcpy(ret->channel_id, key.channel_id, ID_SIZE);
	refusal.code = check(service, tried, &key, attempt, &refusal.why);
	refusal.forced = attempt->forced;
	if (!refusal.code)
		refusal.code = register_submit(service, &attempt->pending, &refusal.why);
	if (!refusal.code && await(attempt)) {
		take_outcome(&attempt->pending.registration, &refusal, ret, answer);
	} else if (!refusal.code) {
		attempt = NULL;
		ret->unknown = true;
		refusal.code =
			error_cause(&refusal.why, ERR_UNAVAILABLE, "the commit has not completed yet");
	}
	if (refusal.code == ERR_CONFLICT && attempt && *attempt->original_id)
		memcpy(refusal.original_id, attempt->original_id, ID_SIZE);
	if (refusal.code)
		answer_refusal(service, tried, &refusal, ret, answer);
	if (attempt)
		attempt_free(attempt);
	return OK;
}
