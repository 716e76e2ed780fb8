#include "http/guard.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>

#include "base/digest.h"
#include "http/credential.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "http/request_head.h"

#define LIVE_BURST 4   /* capacity of a live key's bucket in seconds of its rate */
#define CODE_BUCKET 16 /* bucket of an address for wrong codes; above those of operations */
/* step between the buckets of an address or user */
#define BUCKET_STEP UINT64_C(0x5bd1e9955bd1e995)
#define LIVE_KEYS UINT64_C(0x9ae16a3b2f90404f) /* marks the shared bucket of an account's keys */
#define TEST_KEYS UINT64_C(0xc949d7c7509e6557)
#define CODE_PERIOD_SECONDS 60 /* period of rate.wrong_codes */

/* ---- rates ---- */

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static bool is_port(struct slice text)
{
	bool digits = text.size > 0 && text.size <= 5;
	for (size_t i = 0; i < text.size && digits; i++)
		digits = text.data[i] >= '0' && text.data[i] <= '9';
	return digits;
}

/* Removes port and brackets: some proxies add the client's port, and some write IPv6 in brackets.
 * Examples: 192.0.2.1:80, [2001:db8::1], [2001:db8::1]:80. */
static struct slice without_port(struct slice text)
{
	const char *end = text.data + text.size;
	const char *first = memchr(text.data, ':', text.size);
	const char *bracket = text.data[0] == '[' ? memchr(text.data, ']', text.size) : NULL;
	const char *after = bracket ? bracket + 1 : first;
	bool ends = bracket && after == end;
	bool has_port = after && after < end && *after == ':' &&
	                is_port(slice_make(after + 1, (size_t)(end - after - 1)));
	if (!ends && !has_port)
		return text;
	return bracket ? slice_make(text.data + 1, (size_t)(bracket - text.data - 1))
	               : slice_make(text.data, (size_t)(first - text.data));
}

static bool parse_address(struct slice text, struct sockaddr_storage *ret)
{
	char copy[INET6_ADDRSTRLEN];
	text = without_port(text);
	if (text.size >= sizeof copy)
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	memset(ret, 0, sizeof *ret);
	if (inet_pton(AF_INET, copy, &four->sin_addr) == 1)
		ret->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, copy, &six->sin6_addr) == 1)
		ret->ss_family = AF_INET6;
	return ret->ss_family != 0;
}

/* Removes and returns the last entry. */
static struct slice take_entry(struct slice *list)
{
	const char *comma = memrchr(list->data, ',', list->size);
	size_t start = comma ? (size_t)(comma - list->data) + 1 : 0;
	struct slice entry = slice_make(list->data + start, list->size - start);
	list->size = comma ? start - 1 : 0;
	return header_trim(entry);
}

/* Returns the nearest address that is not a trusted proxy. Entries further left can be forged by
 * anyone. False: the address of the connection. */
static bool forwarded(const struct exchange *exchange, struct sockaddr_storage *address)
{
	const struct network_list *trusted = &exchange->server->trusted_proxies->networks;
	bool found = false;
	for (size_t line = FORWARDED_LINES_MAX; line > 0; line--) {
		struct slice list = exchange->head.forwarded_for[line - 1];
		while (list.size) {
			struct sockaddr_storage next;
			struct slice entry = take_entry(&list);
			if (!entry.size)
				continue;
			if (!network_list_contains(trusted, (const struct sockaddr *)address) ||
			    !parse_address(entry, &next))
				return found;
			*address = next;
			found = true;
		}
	}
	return found;
}

uint64_t guard_address_id(const struct http_server *server, const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	uint8_t bytes[8] = {0}; /* the last byte is 6 for IPv6 */
	uint64_t number;
	if (address->sa_family != AF_INET6) {
		memcpy(bytes, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		memcpy(bytes, six->sin6_addr.s6_addr + 12, 4);
	} else {
		memcpy(bytes, six->sin6_addr.s6_addr, 7); /* a customer may have a /56 */
		bytes[7] = 6;
	}
	memcpy(&number, bytes, sizeof number);
	const uint64_t *salt = server->address_salt;
	return mix(mix(number ^ salt[0]) ^ salt[1]);
}

bool guard_client_address(const struct exchange *exchange, struct sockaddr_storage *ret)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	*ret = (struct sockaddr_storage){0};
	if (info && info->client_addr)
		memcpy(ret, info->client_addr,
		       info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
		                                                : sizeof(struct sockaddr_in));
	return forwarded(exchange, ret);
}

static uint64_t address_id(const struct exchange *exchange)
{
	struct sockaddr_storage address;
	guard_client_address(exchange, &address);
	return guard_address_id(exchange->server, (const struct sockaddr *)&address);
}

uint64_t guard_account_id(int64_t account)
{
	return mix((uint64_t)account);
}

uint64_t guard_owner_id(const struct exchange *exchange)
{
	return exchange->key_known ? guard_account_id(exchange->key.account) : address_id(exchange);
}

static int rate_refusal(const struct exchange *exchange, struct error *error)
{
	enum message message = !exchange->key_known       ? MSG_HTTP_ADDRESS_RATE
	                       : exchange->rate_is_shared ? MSG_HTTP_ACCOUNT_RATE
	                                                  : MSG_NONE;
	error_set(error, ERR_RATE_LIMITED, message, NULL);
	error->retry_after_seconds = (int)exchange->rate.retry_after_seconds;
	return ERR_RATE_LIMITED;
}

static int64_t address_rate(const struct exchange *exchange)
{
	int64_t rate = exchange->service->settings->rate_live;
	return rate > 0 ? rate : 1;
}

/* Takes a token from one of the buckets of an address. Public downloads and pages, and notices of a
 * payment provider, have their own buckets. The operators' listener has none. */
static bool rate_of_bucket(struct exchange *exchange, unsigned bucket, int64_t rate)
{
	if (exchange->loop->is_operators)
		return true;
	exchange->address_id = address_id(exchange);
	uint64_t id = exchange->address_id ^ bucket * BUCKET_STEP;
	exchange->rate =
		rate_take(exchange->server->limiter, id, rate, rate * LIVE_BURST, exchange->started_us);
	return exchange->rate.allowed;
}

static int64_t operation_rate(const struct exchange *exchange)
{
	int64_t rate = address_rate(exchange);
	unsigned costs = exchange->operation->costs;
	return costs > 1 ? (rate + costs - 1) / costs : rate; /* in a separate bucket */
}

static bool rate_by_address(struct exchange *exchange, bool open)
{
	return open
	           ? rate_of_bucket(exchange, 1 + exchange->operation->bucket, operation_rate(exchange))
	           : rate_of_bucket(exchange, 0, address_rate(exchange));
}

/* Returns the bucket for wrong codes, which is separate so that pages do not use it up. */
static bool code_bucket(const struct exchange *exchange, struct rate_bucket *ret)
{
	int64_t most = exchange->service->settings->rate_wrong_codes;
	if (most < 1 || exchange->loop->is_operators)
		return false;
	*ret = (struct rate_bucket){exchange->address_id ^ CODE_BUCKET * BUCKET_STEP, most, most,
	                            CODE_PERIOD_SECONDS};
	return true;
}

static int refuse_code(struct exchange *exchange, const struct rate_state *state,
                       struct error *error)
{
	if (state->allowed)
		return OK;
	exchange->rate = *state;
	error_set(error, ERR_RATE_LIMITED, MSG_HTTP_WRONG_CODES, NULL);
	error->retry_after_seconds = (int)state->retry_after_seconds;
	return ERR_RATE_LIMITED;
}

typedef struct rate_state rate_function(struct rate_limiter *limiter, const struct rate_bucket *of,
                                        int64_t now_us);

static int check_code_rate(struct exchange *exchange, rate_function *rate, struct error *error)
{
	struct rate_bucket bucket;
	if (!code_bucket(exchange, &bucket))
		return OK;
	const struct rate_state state = rate(exchange->server->limiter, &bucket, clock_monotonic_us());
	return refuse_code(exchange, &state, error);
}

int guard_check_code(struct exchange *exchange, struct error *error)
{
	return check_code_rate(exchange, rate_check, error);
}

int guard_count_wrong_code(struct exchange *exchange, struct error *error)
{
	return check_code_rate(exchange, rate_take_of, error);
}

/* A refused form takes a token of public pages. */
static bool take_report_token(struct exchange *exchange)
{
	const struct rate_state beyond = exchange->rate;
	bool found_address =
		exchange->operation->reports_rate && rate_of_bucket(exchange, 1, address_rate(exchange));
	exchange->rate = beyond;
	return found_address;
}

int64_t guard_user_wait(const struct exchange *exchange, const char *user_id)
{
	const struct sha256 digest = sha256_of(user_id, strlen(user_id));
	int64_t rate = operation_rate(exchange);
	uint64_t id;
	memcpy(&id, digest.bytes, sizeof id);
	id ^= exchange->server->address_salt[0] ^ exchange->operation->bucket * BUCKET_STEP;
	const struct rate_state state = rate_take(exchange->server->limiter, mix(id), rate,
	                                          rate * LIVE_BURST, clock_monotonic_us());
	return state.allowed ? 0 : state.retry_after_seconds;
}

/* Returns the key's bucket and the shared bucket of the account's keys of that mode. */
static void key_buckets(const struct exchange *exchange, struct rate_bucket *ret_own,
                        struct rate_bucket *ret_shared)
{
	const struct settings *settings = exchange->service->settings;
	const struct key_identity *key = &exchange->key;
	bool live = key->mode == MODE_LIVE;
	int64_t burst = live ? LIVE_BURST : 1;
	int64_t rate = !live ? settings->rate_test : key->rate > 0 ? key->rate : settings->rate_live;
	if (rate < 1)
		rate = 1;
	int64_t all = live ? account_rate(key->account_rate, key->rate, settings->rate_account, rate)
	                   : account_rate(0, 0, 0, rate);
	uint64_t account = mix((uint64_t)key->account);
	*ret_own =
		(struct rate_bucket){mix(account + (uint64_t)key->key * 2 + 1), rate, rate * burst, 1};
	*ret_shared = (struct rate_bucket){mix(account ^ (live ? LIVE_KEYS : TEST_KEYS)), all,
	                                   all < RATE_MAX ? all * burst : RATE_MAX * burst, 1};
}

/* Takes a token from each of these buckets. */
static bool rate_by_key(struct exchange *exchange)
{
	struct rate_bucket own, shared;
	key_buckets(exchange, &own, &shared);
	exchange->rate = rate_take_both(exchange->server->limiter, &own, &shared, exchange->started_us,
	                                &exchange->rate_is_shared);
	return exchange->rate.allowed;
}

void guard_charge(struct exchange *exchange, int64_t tokens)
{
	struct rate_bucket own, shared;
	bool is_shared;
	assert(tokens >= 0);
	key_buckets(exchange, &own, &shared);
	exchange->charged = rate_charge_both(exchange->server->limiter, &own, &shared, tokens,
	                                     clock_monotonic_us(), &is_shared);
	exchange->is_charged = true;
}

/* ---- the key ---- */

static int check_key_result(struct exchange *exchange, int result, struct error *error)
{
	exchange->key_known = !result;
	if (result == ERR_INVALID_KEY && !error->message)
		error_set(error, result, MSG_HTTP_KEY_UNKNOWN, exchange->service->settings->service_prefix,
		          NULL);
	if (result == ERR_ACCOUNT_DISABLED && exchange->key.key) {
		rate_by_key(exchange);
		return result;
	}
	if (result) {
		bool allowed = exchange->address_charged || rate_by_address(exchange, false);
		bool bad_key =
			result == ERR_INVALID_KEY || result == ERR_REVOKED_KEY || result == ERR_VALIDATION;
		return bad_key && !allowed ? rate_refusal(exchange, error) : result;
	}
	bool allowed = rate_by_key(exchange);
	if (exchange->operation->writes && service_check_writes(&exchange->key, error))
		return error->code;
	return allowed ? 0 : rate_refusal(exchange, error);
}

/* Takes a token of the address for a key lookup, and returns it if the key is valid. Guessing keys
 * therefore queries the store at most at this rate. */
static int charge_look_up(struct exchange *exchange, struct error *error)
{
	if (exchange->question.familiar)
		return GUARD_KEY_LOOKUP;
	if (!rate_by_address(exchange, false))
		return rate_refusal(exchange, error);
	exchange->address_charged = true;
	return GUARD_KEY_LOOKUP;
}

static int check_key(struct exchange *exchange, struct error *error)
{
	char scratch[CREDENTIAL_SCRATCH];
	struct slice text;
	bool known = true;
	int result =
		credential_find(&exchange->head, exchange->query,
	                    exchange->service->settings->service_prefix, scratch, &text, error);
	if (!result && text.size < KEY_TEXT_MAX)
		known = service_find_cached_key(exchange->service, text, &exchange->question, &result,
		                                &exchange->key, error);
	else if (!result)
		result = error_set(error, ERR_INVALID_KEY, MSG_NONE, NULL);
	explicit_bzero(scratch, sizeof scratch);
	return known ? check_key_result(exchange, result, error) : charge_look_up(exchange, error);
}

/* ---- remaining checks ---- */

static int read_scenario(struct exchange *exchange, struct error *error)
{
	struct slice value = exchange->head.scenario;
	if (!value.data || exchange->key.mode != MODE_TEST)
		return 0;
	if (exchange->head.repeated_scenario)
		return error_set(error, ERR_VALIDATION, MSG_HTTP_HEADER_REPEATED,
		                 exchange->head.repeated_scenario, NULL);
	return scenario_read(value, exchange->operation->scenario, exchange->server->scenario_header,
	                     &exchange->forced, error);
}

int guard_forced_error(struct exchange *exchange, struct error *error)
{
	if (!exchange->forced.refusal)
		return 0;
	char *event_id = arena_alloc(&exchange->arena, ID_SIZE);
	if (!event_id)
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	int result = scenario_refuse(&exchange->forced, exchange->key.channel_id, event_id, error);
	exchange->original_id = *event_id ? event_id : NULL;
	return result;
}

static int refuse_route(struct exchange *exchange, int code, enum message message,
                        struct error *error)
{
	if (!rate_by_address(exchange, false))
		return rate_refusal(exchange, error);
	return error_set(error, code, message, NULL);
}

static int refuse_head(struct exchange *exchange, struct error *error)
{
	return rate_by_address(exchange, false) ? request_head_judge(exchange, error)
	                                        : rate_refusal(exchange, error);
}

/* Finds the operation. `OPTIONS *` asks about the server (RFC 9110 section 9.3.7); another OPTIONS
 * is allowed as a preflight only. */
static int find_operation(struct exchange *exchange, const char *method_text, struct error *error)
{
	exchange->route = NULL;
	if (slice_is(exchange->path, "*") && strcmp(method_text, "OPTIONS") == 0) {
		exchange->operation = &operation_server_options;
		return 0;
	}
	int found = route_find(exchange);
	if (found == ERR_NO_MEMORY)
		return error_set(error, found, MSG_NONE, NULL);
	if (found)
		return refuse_route(exchange, found, MSG_HTTP_PATH, error);
	if (cors_is_preflight(exchange, method_text)) {
		exchange->operation = &operation_preflight;
		return 0;
	}
	enum method method = method_parse(method_text);
	exchange->operation = method < METHOD_COUNT ? exchange->route->operations[method] : NULL;
	return exchange->operation ? 0 : refuse_route(exchange, ERR_METHOD, MSG_NONE, error);
}

/* Performs the checks after that of the key, if a key is required. */
static int check_rest(struct exchange *exchange, int result, struct error *error)
{
	static const char *const none[] = {NULL};
	const struct operation *operation = exchange->operation;
	if (!result && !operation->open)
		result = read_scenario(exchange, error);
	if (!result && !operation->parses_query)
		result = query_parse(exchange->query, operation->parameters ? operation->parameters : none,
		                     &exchange->arena, &exchange->parameters, error);
	return result || operation->validates ? result : guard_forced_error(exchange, error);
}

static int count_forwarded(const struct exchange *exchange)
{
	struct sockaddr_storage address;
	if (!exchange->client->by_proxy || !guard_client_address(exchange, &address))
		return 0;
	uint64_t id = guard_address_id(exchange->server, (const struct sockaddr *)&address);
	return client_count_forwarded(exchange->client, id);
}

int guard_check(struct exchange *exchange, const char *method_text, struct error *error)
{
	if (exchange->head.fault != MSG_NONE)
		return refuse_head(exchange, error);
	int counted = count_forwarded(exchange);
	if (counted)
		return error_set(error, counted, MSG_NONE, NULL);
	int found = find_operation(exchange, method_text, error);
	if (found)
		return found;
	/* RFC 9110 section 14.2: ranges apply only to GET. */
	if (strcmp(method_text, "GET") != 0)
		exchange->head.range.size = 0;
	const struct operation *operation = exchange->operation;
	if (!operation->open)
		return check_rest(exchange, check_key(exchange, error), error);
	if (!rate_by_address(exchange, true) && !take_report_token(exchange))
		return rate_refusal(exchange, error);
	return check_rest(exchange, 0, error);
}

int guard_check_looked_up(struct exchange *exchange, int result, struct error *error)
{
	if (exchange->address_charged && (!result || result == ERR_ACCOUNT_DISABLED))
		rate_return(exchange->server->limiter, address_id(exchange),
		            address_rate(exchange) * LIVE_BURST);
	return check_rest(exchange, check_key_result(exchange, result, error), error);
}
