/* Provider stripe: off-session PaymentIntents, Checkout pages for manual payment, refunds. */
#include "payment/stripe/stripe.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "base/percent.h"
#include "net/http.h"
#include "payment/provider.h"

#define API_VERSION "Stripe-Version: 2024-06-20"
#define SECRET_MAX 255
#define SECRETS_MAX 1024
#define ROOT_MAX 512
#define FORM_MAX 16384
/* Leaves time, within the whole call, for a lookup or a page request after the charge. */
#define CHARGE_TIMEOUT_US (20 * US_PER_SECOND)
#define CALL_TIMEOUT_US (PAYMENT_TIMEOUT_MS * INT64_C(1000))
#define ANSWER_MAX ((size_t)1 << 20)
#define LIST_PAGE 50
#define LIST_PAGES_MAX 20
/* How far back an attempt is searched while its key may be repeated. */
#define SEARCH_BACK_US (25 * 3600 * US_PER_SECOND)
/* Allowed difference between Stripe's clock and ours: an attempt must be found even if a clock is
 * hours off. */
#define CLOCK_SKEW_US US_PER_DAY

struct stripe {
	char root[ROOT_MAX + 1]; /* without a trailing slash */
	bool plain_http;
	struct address_guard guard;
	char key[SECRET_MAX + 1];
	char webhook_secrets[SECRETS_MAX + 1];
	char return_url[HTTP_URL_MAX + 1];
};

/* ---- opening ---- */

/* Copies a secret of printable ASCII; spaces are allowed only in a list. */
static bool copy_secret(const char *text, bool list, char *copy, size_t size)
{
	size_t length = text ? strlen(text) : 0;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < (list ? 0x20 : 0x21) || (unsigned char)text[i] >= 0x7f)
			return false;
	if (length >= size)
		return false;
	memcpy(copy, text ? text : "", length);
	copy[length] = '\0';
	return true;
}

/* Gets the literal address of "http://127.0.0.1:80/…" or "http://[::1]/…". Returns false if there
 * is none. */
static bool literal_host(const char *url, struct sockaddr_storage *ret)
{
	char host[INET6_ADDRSTRLEN] = "";
	const char *start = url + strlen("http://");
	bool bracketed = *start == '[';
	start += bracketed;
	size_t size = strcspn(start, bracketed ? "]" : ":/?");
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	memset(ret, 0, sizeof *ret);
	if (size >= sizeof host)
		return false;
	memcpy(host, start, size);
	if (!bracketed && inet_pton(AF_INET, host, &four->sin_addr) == 1)
		ret->ss_family = AF_INET;
	else if (bracketed && inet_pton(AF_INET6, host, &six->sin6_addr) == 1)
		ret->ss_family = AF_INET6;
	return ret->ss_family != 0;
}

/* The key is sent over plain http only to addresses that the operator permits. */
static int take_root(struct stripe *stripe, const char *url, struct error *error)
{
	struct sockaddr_storage address;
	size_t size = strlen(url);
	stripe->plain_http = strncasecmp(url, "http://", 7) == 0;
	int result =
		http_url_check(slice_make(url, size), stripe->plain_http, "payment.stripe_url", error);
	if (result)
		return result;
	while (size && url[size - 1] == '/')
		size--;
	bool allowed = !stripe->plain_http ||
	               (literal_host(url, &address) &&
	                network_list_contains(&stripe->guard.allowed, (struct sockaddr *)&address));
	if (!allowed || size > ROOT_MAX || memchr(url, '?', size))
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_URL, "payment.stripe_url", NULL);
	memcpy(stripe->root, url, size);
	return OK;
}

static void stripe_close(void *state)
{
	struct stripe *stripe = state;
	if (stripe)
		explicit_bzero(stripe, sizeof *stripe);
	free(stripe);
}

static int take_settings(struct stripe *stripe, const struct payment_settings *settings,
                         struct error *error)
{
	const char *networks = settings->allow_networks ? settings->allow_networks : "";
	const char *page = settings->return_url ? settings->return_url : "";
	int result = network_list_parse(slice_of(networks), &stripe->guard.allowed, error);
	if (!result)
		result = take_root(stripe, settings->stripe_url ? settings->stripe_url : "", error);
	if (!result && *page)
		result = http_url_check(slice_of(page), true, "payment.return_url", error);
	if (result)
		return result;
	snprintf(stripe->return_url, sizeof stripe->return_url, "%s", page);
	if (!copy_secret(settings->stripe_key, false, stripe->key, sizeof stripe->key) || !*stripe->key)
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_SECRET, "payment.stripe_key", "stripe",
		                 NULL);
	if (!copy_secret(settings->stripe_webhook_secret, true, stripe->webhook_secrets,
	                 sizeof stripe->webhook_secrets) ||
	    !*stripe->webhook_secrets)
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_SECRET, "payment.stripe_webhook_secret",
		                 "stripe", NULL);
	return OK;
}

static int stripe_open(const struct payment_settings *settings, void **ret_state,
                       struct error *error)
{
	struct stripe *stripe = calloc(1, sizeof *stripe);
	if (!stripe)
		return ERR_NO_MEMORY;
	int result = take_settings(stripe, settings, error);
	if (result) {
		stripe_close(stripe);
		return result;
	}
	*ret_state = stripe;
	return OK;
}

/* ---- exchanges ---- */

/* Appends a form field. Names are constants whose brackets need no escape. */
static void field(struct buf *form, const char *name, const char *value)
{
	if (form->size)
		buf_add_byte(form, '&');
	buf_add_text(form, name);
	buf_add_byte(form, '=');
	buf_add_percent(form, slice_of(value), "");
}

static void field_integer(struct buf *form, const char *name, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)value);
	field(form, name, text);
}

/* Returns the time left until `until_us` (monotonic), the end of a call. At least 1, because 0
 * means no limit. */
static int timeout_ms(int64_t until_us)
{
	int64_t rest_ms = (until_us - clock_monotonic_us()) / 1000;
	return rest_ms > 1 ? (int)rest_ms : 1;
}

static int64_t call_end(void)
{
	return clock_monotonic_us() + CALL_TIMEOUT_US;
}

static int get(const struct stripe *stripe, const char *path, int64_t until_us,
               struct http_answer *ret_answer, struct error *error)
{
	char url[HTTP_URL_MAX + 1];
	int size = snprintf(url, sizeof url, "%s%s", stripe->root, path);
	if (size < 0 || (size_t)size >= sizeof url)
		return error_cause(error, ERR_VALIDATION, "a URL for Stripe is too long");
	struct http_request request = {
		.url = url,
		.headers = (const char *const[]){API_VERSION},
		.header_count = 1,
		.timeout_ms = timeout_ms(until_us),
		.answer_limit = ANSWER_MAX,
		.allow_http = stripe->plain_http,
		.bearer = stripe->key,
		.guard = &stripe->guard,
	};
	return http_send(&request, ret_answer, error);
}

static int post(const struct stripe *stripe, const char *path, const struct buf *form,
                const char *idempotency_key, const char *suffix, int64_t until_us,
                struct http_answer *ret_answer, struct error *error)
{
	char url[HTTP_URL_MAX + 1];
	char header[PAYMENT_KEY_SIZE + 64];
	if (buf_check(form))
		return ERR_NO_MEMORY;
	snprintf(url, sizeof url, "%s%s", stripe->root, path);
	snprintf(header, sizeof header, "Idempotency-Key: %s%s", idempotency_key, suffix);
	struct http_request request = {
		.method = "POST",
		.url = url,
		.content_type = "application/x-www-form-urlencoded",
		.headers = (const char *const[]){API_VERSION, header},
		.header_count = 2,
		.body = buf_slice(form),
		.timeout_ms = timeout_ms(until_us),
		.answer_limit = ANSWER_MAX,
		.allow_http = stripe->plain_http,
		.bearer = stripe->key,
		.guard = &stripe->guard,
	};
	return http_send(&request, ret_answer, error);
}

/* Without an answer the outcome is unknown for any cause; only lack of memory is an error of the
 * caller. */
static int no_answer(int result, const struct error *cause, struct payment_result *ret)
{
	if (result == ERR_NO_MEMORY)
		return result;
	ret->outcome = PAYMENT_UNKNOWN;
	snprintf(ret->reason, sizeof ret->reason, "no answer: %.200s", cause->cause);
	return OK;
}

static int retry_after(const struct http_answer *answer)
{
	struct slice text = http_answer_header(answer, "Retry-After");
	int seconds = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || seconds > 86400)
			return 0;
		seconds = seconds * 10 + (text.data[i] - '0');
	}
	return seconds;
}

static const char *stripe_address(const void *state)
{
	return ((const struct stripe *)state)->root;
}

/* Uses a request that payment_get needs, too. */
static int stripe_ask(void *state, struct error *error)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	int result = get(state, "/v1/payment_intents?limit=1", call_end(), &answer, error);
	if (result || answer.status == 200)
		return result;
	bool refused = answer.status == 401 || answer.status == 403;
	result =
		error_cause(error, refused ? ERR_REFUSED : ERR_NETWORK, "list of payments: status %d%s",
	                answer.status, refused ? ", the key is not accepted" : "");
	error_blame(error, refused ? BLAME_PASSWORD : BLAME_NONE);
	return result;
}

/* ---- lookup ---- */

/* Reads a page of a customer's PaymentIntents. *ret_more: another page follows after the intent
 * `last`. */
typedef int page_function(void *context, const struct http_answer *answer, bool *ret_more,
                          char last[PAYMENT_REFERENCE_SIZE], struct error *error);

/* The list is sorted from newest to oldest and, unlike the search API, includes a payment
 * immediately. */
static int walk(const struct stripe *stripe, const char *customer, int64_t since_us,
                int64_t until_us, page_function *function, void *context, struct error *error)
{
	char last[PAYMENT_REFERENCE_SIZE] = "";
	bool more = true;
	for (int page = 0; more && page < LIST_PAGES_MAX; page++) {
		BUF_AUTO struct buf form;
		buf_init(&form, 1024);
		field(&form, "customer", customer);
		field_integer(&form, "created[gte]", (since_us - CLOCK_SKEW_US) / US_PER_SECOND);
		field_integer(&form, "limit", LIST_PAGE);
		if (*last)
			field(&form, "starting_after", last);
		if (buf_check(&form))
			return ERR_NO_MEMORY;
		char path[1100];
		HTTP_ANSWER_AUTO struct http_answer answer = {0};
		snprintf(path, sizeof path, "/v1/payment_intents?%s", form.data);
		int code = get(stripe, path, until_us, &answer, error);
		if (!code)
			code = function(context, &answer, &more, last, error);
		if (code)
			return code;
	}
	return more ? error_cause(error, ERR_REFUSED, "too many payments to search") : OK;
}

struct search {
	const struct payment_order *order;
	struct payment_result *result;
	bool found;
};

static int search_page(void *context, const struct http_answer *answer, bool *ret_more,
                       char last[PAYMENT_REFERENCE_SIZE], struct error *error)
{
	struct search *search = context;
	if (answer->status != 200)
		return error_cause(error, ERR_NETWORK, "list of payments: status %d", answer->status);
	int code = stripe_find_intent(buf_slice(&answer->body), search->order, &search->found, ret_more,
	                              last, search->result, error);
	*ret_more &= !search->found;
	return code;
}

static int find_attempt(const struct stripe *stripe, const struct payment_order *order,
                        int64_t since_us, int64_t until_us, struct payment_result *result,
                        struct error *error)
{
	struct search search = {.order = order, .result = result};
	int code = walk(stripe, order->customer, since_us, until_us, search_page, &search, error);
	if (code || search.found)
		return code;
	result->outcome = PAYMENT_NONE;
	snprintf(result->reason, sizeof result->reason,
	         "the customer's payments do not include this attempt");
	return OK;
}

struct look {
	customer_payment_visitor *function;
	void *context;
};

static int list_page(void *context, const struct http_answer *answer, bool *ret_more,
                     char last[PAYMENT_REFERENCE_SIZE], struct error *error)
{
	const struct look *look = context;
	if (answer->status == 200)
		return stripe_each_made(buf_slice(&answer->body), look->function, look->context, ret_more,
		                        last, error);
	struct payment_result refusal = {0};
	stripe_read_charge(answer->status, buf_slice(&answer->body), NULL, &refusal);
	*ret_more = false;
	if (refusal.outcome == PAYMENT_METHOD_MISSING)
		return OK; /* unknown customer: no payments */
	return error_cause(error, refusal.outcome == PAYMENT_UNKNOWN ? ERR_NETWORK : ERR_REFUSED,
	                   "list of payments: %.200s", refusal.reason);
}

static int stripe_list_by_customer(void *state, const char *customer, int64_t since_us,
                                   customer_payment_visitor *function, void *context,
                                   struct error *error)
{
	struct look look = {function, context};
	return walk(state, customer, since_us, call_end(), list_page, &look, error);
}

static int find_reference(const struct stripe *stripe, const struct payment_order *order,
                          const char *reference, struct payment_result *result, struct error *error)
{
	BUF_AUTO struct buf path;
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	buf_init(&path, 1024);
	buf_add_text(&path, "/v1/payment_intents/");
	buf_add_percent(&path, slice_of(reference), "");
	if (buf_check(&path))
		return ERR_NO_MEMORY;
	int code = get(stripe, path.data, call_end(), &answer, error);
	if (code)
		return code;
	if (answer.status != 200)
		return error_cause(error, ERR_NETWORK, "payment %s: status %d", reference, answer.status);
	stripe_read_charge(answer.status, buf_slice(&answer.body), order, result);
	return OK;
}

static int stripe_look_up(void *state, const struct payment_order *order, const char *reference,
                          int64_t since_us, struct payment_result *result, struct error *error)
{
	struct error cause = {0};
	int code = OK;
	(void)error;
	if (*reference)
		code = find_reference(state, order, reference, result, &cause);
	else if (*order->customer)
		code = find_attempt(state, order, since_us, call_end(), result, &cause);
	else /* payment_charge sends nothing without a customer */
		result->outcome = PAYMENT_NONE;
	return code ? no_answer(code, &cause, result) : OK;
}

/* ---- pages ---- */

static void page_form(const struct stripe *stripe, const struct payment_order *order,
                      struct buf *form)
{
	char currency[4] = "";
	for (int i = 0; i < 3; i++)
		currency[i] = (char)(order->currency[i] | 0x20);
	field(form, "mode", "payment");
	if (*order->customer)
		field(form, "customer", order->customer);
	field(form, "client_reference_id", order->sale_code);
	field(form, "metadata[sale_code]", order->sale_code);
	field(form, "payment_intent_data[metadata][sale_code]", order->sale_code);
	field(form, "line_items[0][quantity]", "1");
	field(form, "line_items[0][price_data][currency]", currency);
	field_integer(form, "line_items[0][price_data][unit_amount]", order->amount_minor);
	field(form, "line_items[0][price_data][product_data][name]",
	      *order->description ? order->description : order->sale_code);
	field(form, "success_url", stripe->return_url);
}

static int read_page(const struct http_answer *answer, struct payment_result *result)
{
	ARENA_AUTO struct arena arena;
	struct json *json = NULL;
	arena_init(&arena, STRIPE_JSON_MEMORY);
	if (answer->status == 200 && !json_parse(&arena, buf_slice(&answer->body), NULL, &json, NULL))
		stripe_copy(json, "url", result->payment_url, sizeof result->payment_url);
	if (http_url_check(slice_of(result->payment_url), true, "url", NULL))
		*result->payment_url = '\0';
	return answer->status;
}

static int make_page(const struct stripe *stripe, const struct payment_order *order,
                     int64_t until_us, struct payment_result *result)
{
	struct error cause = {0};
	BUF_AUTO struct buf form;
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	if (!*stripe->return_url)
		return OK;
	buf_init(&form, FORM_MAX);
	page_form(stripe, order, &form);
	int code = post(stripe, "/v1/checkout/sessions", &form, order->idempotency_key, ".page",
	                until_us, &answer, &cause);
	if (code)
		return no_answer(code, &cause, result);
	int status = read_page(&answer, result);
	if (!*result->payment_url)
		snprintf(result->reason, sizeof result->reason, "no payment page (status %d)", status);
	return OK;
}

static int stripe_page(void *state, const struct payment_order *order,
                       struct payment_result *result, struct error *error)
{
	(void)error;
	return make_page(state, order, call_end(), result);
}

/* ---- charging ---- */

static void charge_form(const struct payment_order *order, struct buf *form)
{
	char currency[4] = "";
	for (int i = 0; i < 3; i++)
		currency[i] = (char)(order->currency[i] | 0x20);
	field_integer(form, "amount", order->amount_minor);
	field(form, "currency", currency);
	field(form, "customer", order->customer);
	field(form, "payment_method", order->payment_method);
	field(form, "confirm", "true");
	field(form, "off_session", "true");
	field(form, "automatic_payment_methods[enabled]", "true");
	field(form, "automatic_payment_methods[allow_redirects]", "never");
	if (*order->description)
		field(form, "description", order->description);
	field(form, "metadata[sale_code]", order->sale_code);
	field(form, "metadata[attempt]", order->idempotency_key);
}

/* Stripe stores the first response to a key, including its own errors, and replays it regardless of
 * the payment's state. Repeating the call is then useless; the payment itself can be queried. */
static bool is_stale(const struct http_answer *answer)
{
	return slice_is(http_answer_header(answer, "Idempotent-Replayed"), "true") &&
	       answer->status >= 500;
}

static int charge_once(struct stripe *stripe, const struct payment_order *order, int64_t until_us,
                       struct payment_result *result)
{
	struct error cause = {0};
	BUF_AUTO struct buf form;
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	buf_init(&form, FORM_MAX);
	charge_form(order, &form);
	int code = post(stripe, "/v1/payment_intents", &form, order->idempotency_key, "",
	                clock_monotonic_us() + CHARGE_TIMEOUT_US, &answer, &cause);
	if (code)
		return no_answer(code, &cause, result);
	stripe_read_charge(answer.status, buf_slice(&answer.body), order, result);
	if (result->outcome != PAYMENT_UNKNOWN)
		return OK;
	result->retry_after_seconds = retry_after(&answer);
	if (!is_stale(&answer))
		return OK;
	struct payment_result found = {0};
	code = find_attempt(stripe, order, clock_now_us() - SEARCH_BACK_US, until_us, &found, &cause);
	if (code)
		return no_answer(code, &cause, result);
	if (found.outcome != PAYMENT_NONE && found.outcome != PAYMENT_UNKNOWN)
		*result = found;
	return OK;
}

static int stripe_charge(void *state, const struct payment_order *order,
                         struct payment_result *result, struct error *error)
{
	int code = OK;
	int64_t until_us = call_end();
	(void)error;
	if (*order->customer && *order->payment_method)
		code = charge_once(state, order, until_us, result);
	else
		result->outcome = PAYMENT_METHOD_MISSING;
	if (code || result->outcome == PAYMENT_UNKNOWN || result->outcome == PAYMENT_PAID ||
	    result->outcome == PAYMENT_PENDING)
		return code;
	struct payment_result page = {0};
	code = make_page(state, order, until_us, &page);
	memcpy(result->payment_url, page.payment_url, sizeof page.payment_url);
	return code;
}

static int stripe_refund(void *state, const char *reference, const char *idempotency_key,
                         struct payment_result *result, struct error *error)
{
	struct error cause = {0};
	BUF_AUTO struct buf form;
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	(void)error;
	buf_init(&form, FORM_MAX);
	field(&form, "payment_intent", reference);
	int code = post(state, "/v1/refunds", &form, idempotency_key, "", call_end(), &answer, &cause);
	if (code)
		return no_answer(code, &cause, result);
	stripe_read_refund(answer.status, buf_slice(&answer.body), result);
	if (result->outcome == PAYMENT_UNKNOWN)
		result->retry_after_seconds = retry_after(&answer);
	return OK;
}

/* ---- notices ---- */

static int stripe_read_notice(const void *state, struct slice signature, struct slice body,
                              int64_t now_us, struct payment_notice *notice, struct error *error)
{
	const struct stripe *stripe = state;
	int64_t sent_us = 0;
	int result =
		stripe_check_signature(stripe->webhook_secrets, signature, body, now_us, &sent_us, error);
	if (!result)
		result = stripe_read_event(body, notice, error);
	notice->sent_us = sent_us;
	return result;
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool is_test_key(const char *key)
{
	return begins_with(key, "sk_test_") || begins_with(key, "rk_test_");
}

/* Reports keys in each other's place, by the prefixes that Stripe gives them. */
static void stripe_check_settings(const struct payment_settings *settings,
                                  const struct setting_check *check)
{
	const char *key = settings->stripe_key, *secret = settings->stripe_webhook_secret;
	if (begins_with(key, "pk_"))
		setting_fault(check, "payment.stripe_key",
		              "must be a secret or restricted key (sk_live_… or rk_live_…), not a "
		              "publishable key");
	else if (begins_with(key, "whsec_"))
		setting_fault(check, "payment.stripe_key",
		              "must be a secret or restricted key (sk_live_… or rk_live_…), not the "
		              "secret of a webhook endpoint");
	else if (is_test_key(key))
		setting_warn(check, "payment.stripe_key",
		             "is a key of Stripe's test mode: no payment is real");
	if (begins_with(secret, "sk_") || begins_with(secret, "rk_") || begins_with(secret, "pk_"))
		setting_fault(check, "payment.stripe_webhook_secret",
		              "must be the secret of the webhook endpoint (whsec_…), not an API key");
}

const struct payment_driver payment_stripe = {
	.name = "stripe",
	.check_settings = stripe_check_settings,
	.address = stripe_address,
	.address_setting = "payment.stripe_url",
	.key_setting = "payment.stripe_key",
	.charges = true,
	.notice_header = "Stripe-Signature",
	.open = stripe_open,
	.close = stripe_close,
	.charge = stripe_charge,
	.look_up = stripe_look_up,
	.list_by_customer = stripe_list_by_customer,
	.page = stripe_page,
	.refund = stripe_refund,
	.ask = stripe_ask,
	.read_notice = stripe_read_notice,
};
