/* GET /v1/events and /v1/events/{event_id}, with content and evidence record. */
#include <assert.h>
#include <stdio.h>

#include "evidence/event_proof.h"
#include "http/http_internal.h"
#include "http/list_page.h"
#include "http/representation.h"
#include "service/event_body.h"

/* ---- the list ---- */

struct listing {
	struct buf *out;
	int64_t left;
	int64_t last_sequence;
	bool more;
};

static int list_one(void *context, const struct event *event)
{
	struct listing *listing = context;
	if (listing->left == 0) {
		listing->more = true;
		return 0;
	}
	if (listing->last_sequence)
		buf_add_byte(listing->out, ',');
	event_json(event, listing->out);
	listing->last_sequence = event->sequence;
	listing->left--;
	return 0;
}

static int parse_status(const struct query *query, int *ret_status, struct error *error)
{
	struct slice text;
	*ret_status = -1;
	if (!query_get(query, "status", &text))
		return 0;
	for (enum event_status status = STATUS_REGISTERED; status <= STATUS_TEST; status++) {
		if (slice_is(text, event_status_text(status))) {
			*ret_status = (int)status;
			return 0;
		}
	}
	return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_CHOICE, "status",
	                 "registered, unpaid, test", NULL);
}

static int parse_filter(const struct query *query, struct event_filter *filter, struct error *error)
{
	*filter = (struct event_filter){.from_us = TIME_NONE, .to_us = TIME_NONE};
	int result = query_require_values(query, error);
	if (!result)
		result = query_time(query, "from", &filter->from_us, error);
	if (!result)
		result = query_time(query, "to", &filter->to_us, error);
	if (!result)
		result =
			query_integer(query, "seq_from", 1, INT64_C(999999999999999), &filter->seq_from, error);
	if (!result)
		result =
			query_integer(query, "seq_to", 1, INT64_C(999999999999999), &filter->seq_to, error);
	struct certification_range range = {filter->from_us, filter->to_us, filter->seq_from,
	                                    filter->seq_to};
	if (!result)
		result = range_order_check(&range, error);
	return result ? result : parse_status(query, &filter->status, error);
}

static int parse_client_ref(struct exchange *exchange, struct slice *ret, struct error *error)
{
	int given = query_text(&exchange->parameters, "client_ref", &exchange->arena, ret, error);
	return given == 1 ? client_ref_check(*ret, error) : given;
}

static int check_digest_size(struct slice text, enum hash_algorithm algorithm, struct error *error)
{
	char expected[24], actual[24];
	size_t digits = 2 * hash_algorithm_size(algorithm);
	if (text.size == digits)
		return OK;
	snprintf(expected, sizeof expected, "%zu", digits);
	snprintf(actual, sizeof actual, "%zu", text.size);
	return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_HASH_SIZE, expected,
	                 hash_algorithm_text(algorithm), actual, NULL);
}

/* The algorithm follows from the size, unless it is given. */
static int parse_digest(struct exchange *exchange, struct slice *ret, struct error *error)
{
	const struct query *query = &exchange->parameters;
	struct slice text, name;
	enum hash_algorithm algorithm = HASH_SHA256;
	bool named = query_get(query, "hash_alg", &name);
	if (named && !hash_algorithm_parse(name, &algorithm))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_CHOICE, "hash_alg",
		                 "sha-256, sha-512", NULL);
	if (!query_get(query, "hash", &text))
		return named ? error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_HASH_MISSING, NULL) : OK;
	int result = named ? check_digest_size(text, algorithm, error) : OK;
	if (result)
		return result;
	if (!named && text.size == 2 * hash_algorithm_size(HASH_SHA512))
		algorithm = HASH_SHA512;
	size_t size = hash_algorithm_size(algorithm);
	uint8_t *digest = arena_alloc(&exchange->arena, size);
	if (!digest)
		return ERR_NO_MEMORY;
	if (!hex_decode(text, digest, size))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_HASH, NULL);
	*ret = slice_make((const char *)digest, size);
	return OK;
}

/* Sets the filter for which a cursor is valid. A client_ref, which may be long, is included as its
 * digest. */
static void bind_filter(const struct key_identity *key, const struct event_filter *filter,
                        struct page *page)
{
	char digest[2 * SHA256_SIZE + 1] = "";
	if (filter->client_ref.data) {
		struct sha256 sum = sha256_of(filter->client_ref.data, filter->client_ref.size);
		hex_encode(sum.bytes, SHA256_SIZE, digest);
	}
	int size = snprintf(page->binding, sizeof page->binding,
	                    "events\n%lld\n%lld\n%lld\n%lld\n%lld\n%lld\n%d%s%s",
	                    (long long)key->account, (long long)key->chain, (long long)filter->from_us,
	                    (long long)filter->to_us, (long long)filter->seq_from,
	                    (long long)filter->seq_to, filter->status, *digest ? "\n" : "", digest);
	assert(size > 0 && (size_t)size < sizeof page->binding);
	if (filter->digest.data) {
		char digits[2 * DIGEST_SIZE_MAX + 1];
		hex_encode(filter->digest.data, filter->digest.size, digits);
		size_t used = (size_t)size;
		size = snprintf(page->binding + used, sizeof page->binding - used, "\nhash\n%s", digits);
		assert(size > 0 && (size_t)size < sizeof page->binding - used);
	}
}

static int list_events(struct exchange *exchange, struct error *error)
{
	const struct key_identity *key = &exchange->key;
	struct event_filter filter;
	struct page page = {.usual = ORDER_ASCENDING};
	int result = parse_filter(&exchange->parameters, &filter, error);
	if (!result)
		result = parse_client_ref(exchange, &filter.client_ref, error);
	if (!result)
		result = parse_digest(exchange, &filter.digest, error);
	if (result)
		return result;
	bind_filter(key, &filter, &page);
	result = page_read(&page, exchange, error);
	if (!result)
		result = guard_forced_error(exchange, error);
	if (result)
		return result;
	filter.past = page.asked.past;
	filter.order = page.asked.order;
	int64_t stopped_at = 0;
	filter.ret_stopped_at = &stopped_at;
	struct listing listing = {.out = &exchange->out, .left = page.asked.limit};
	page_begin(&page, exchange);
	result = store_list_events(exchange->service->store, key->account, key->chain, &filter,
	                           page.asked.limit + 1, false, list_one, &listing, error);
	if (result)
		return result;
	if (!listing.more && stopped_at)
		page_end(&page, exchange, true, stopped_at);
	else
		page_end(&page, exchange, listing.more, listing.last_sequence);
	return OK;
}

/* ---- one event ---- */

static int find(struct exchange *exchange, struct event *event, struct error *error)
{
	const struct key_identity *key = &exchange->key;
	int64_t sequence = event_id_sequence(exchange->arguments[0], key->channel_id, key->mode);
	if (sequence < 1)
		return error_set(error, ERR_NOT_FOUND, MSG_NONE, NULL);
	return store_get_event(exchange->service->store, key->account, key->chain, sequence,
	                       &exchange->arena, event, error);
}

static int get_event(struct exchange *exchange, struct error *error)
{
	struct event event;
	int result = find(exchange, &event, error);
	if (result)
		return result;
	event_json(&event, &exchange->out);
	if (buf_check(&exchange->out))
		return ERR_NO_MEMORY;
	exchange->out.size--; /* continue the object */
	struct json_writer writer = {.out = &exchange->out, .comma = true};
	result = event_proof_json(exchange->service->store, exchange->key.account, exchange->key.chain,
	                          &event, &exchange->arena, &writer, error);
	if (result)
		return result;
	json_end_object(&writer);
	answer_out(exchange, 200);
	return 0;
}

/* ---- its evidence record ---- */

static int get_evidence_record(struct exchange *exchange, struct error *error)
{
	struct event event;
	int result = find(exchange, &event, error);
	if (!result)
		result = event_evidence_record(exchange->service->store, exchange->service->revocation,
		                               exchange->key.account, exchange->key.chain, &event,
		                               &exchange->arena, &exchange->out, error);
	if (result)
		return result;
	return answer_evidence_record(exchange, slice_of(event.event_id), error);
}

/* ---- its content ---- */

/* Compares the digest of the stored content with the event. Altered content is not served. */
static int check_content(struct exchange *exchange, const struct event *event, struct error *error)
{
	int result = event_check_content(exchange->service->content, event, error);
	return result == ERR_NOT_FOUND
	           ? error_cause(error, ERR_CORRUPT, "the content object %s cannot be read",
	                         event->content_object)
	           : result;
}

static int get_content(struct exchange *exchange, struct error *error)
{
	struct event event;
	int result = find(exchange, &event, error);
	if (result)
		return result;
	if (event.declaration.modality != MODALITY_CONTENT)
		return error_set(error, ERR_NOT_FOUND, MSG_NONE, NULL);
	struct representation content = {
		.type = event.file_name ? "application/octet-stream" : "application/json",
		.file_name = event.file_name,
		.object = event.content_object,
		.body = event.content,
		.size = event.content_object ? (uint64_t)event.content_bytes : event.content.size,
	};
	memcpy(content.digest.bytes, event.declaration.hash, SHA256_SIZE);
	if (!representation_is_cached(exchange, &content))
		result = check_content(exchange, &event, error);
	return result ? result : answer_representation(exchange, &content, error);
}

const struct operation operation_list_events = {
	.parameters = (const char *const[]){"from", "to", "seq_from", "seq_to", "status", "client_ref",
                                        "hash", "hash_alg", "order", "limit", "cursor", NULL},
	.validates = true,
	.work = list_events,
};
const struct operation operation_get_event = {.work = get_event};
const struct operation operation_get_evidence_record = {.work = get_evidence_record};
const struct operation operation_get_content = {.lane = LANE_CONTENT, .work = get_content};
