/* Evaluation of Stripe's answers. */
#include <stdio.h>
#include <strings.h>

#include "payment/stripe/stripe.h"

static const struct json_limits limits = {.depth_max = 64, .value_max = 100000};

void stripe_copy(const struct json *object, const char *name, char *text, size_t size)
{
	struct slice value;
	*text = '\0';
	if (json_get_text(object, name, &value) && value.size < size &&
	    (!value.size || !memchr(value.data, '\0', value.size))) {
		memcpy(text, value.data, value.size);
		text[value.size] = '\0';
	}
}

void stripe_copy_id(const struct json *object, const char *name, char *text, size_t size)
{
	const struct json *member = json_member(object, name);
	if (member && member->type == JSON_OBJECT)
		stripe_copy(member, "id", text, size);
	else
		stripe_copy(object, name, text, size);
}

static void explain(struct payment_result *result, const char *what, int status, const char *code)
{
	snprintf(result->reason, sizeof result->reason, "%s (status %d%s%s)", what, status,
	         *code ? ", " : "", code);
}

/* Codes by cause. All others are PAYMENT_DECLINED or, for other than card errors,
 * PAYMENT_REFUSED. */
static bool is_one_of(const char *code, const char *const *codes)
{
	for (; *codes; codes++)
		if (strcmp(code, *codes) == 0)
			return true;
	return false;
}

static enum payment_outcome card_outcome(const char *code)
{
	static const char *const action[] = {"authentication_required",
	                                     "payment_intent_authentication_failure",
	                                     "payment_intent_action_required", NULL};
	static const char *const unusable[] = {"expired_card",
	                                       "incorrect_number",
	                                       "invalid_number",
	                                       "invalid_expiry_month",
	                                       "invalid_expiry_year",
	                                       "payment_method_not_available",
	                                       "payment_method_unactivated",
	                                       NULL};
	if (is_one_of(code, action))
		return PAYMENT_ACTION_REQUIRED;
	return is_one_of(code, unusable) ? PAYMENT_REFUSED : PAYMENT_DECLINED;
}

/* ---- intents ---- */

/* The issuer's reason is more specific than "card_declined". */
static void copy_code(const struct json *fault, struct payment_result *result)
{
	stripe_copy(fault, "decline_code", result->code, sizeof result->code);
	if (!*result->code)
		stripe_copy(fault, "code", result->code, sizeof result->code);
}

static enum payment_outcome fault_outcome(const struct json *fault)
{
	char code[PAYMENT_CODE_SIZE];
	char decline[PAYMENT_CODE_SIZE];
	stripe_copy(fault, "code", code, sizeof code);
	stripe_copy(fault, "decline_code", decline, sizeof decline);
	enum payment_outcome outcome = card_outcome(code);
	return outcome == PAYMENT_DECLINED ? card_outcome(decline) : outcome;
}

static bool matches(const struct json *intent, const struct payment_order *order)
{
	struct slice currency;
	int64_t amount;
	return json_get_integer(intent, "amount", &amount) && amount == order->amount_minor &&
	       json_get_text(intent, "currency", &currency) && currency.size == 3 &&
	       strncasecmp(currency.data, order->currency, 3) == 0;
}

static bool is_paid_whole(const struct json *intent)
{
	int64_t amount = 0, received = -1;
	return json_get_integer(intent, "amount", &amount) &&
	       json_get_integer(intent, "amount_received", &received) && received == amount;
}

static enum payment_outcome status_outcome(const struct json *intent, const char *status,
                                           bool settled)
{
	if (strcmp(status, "succeeded") == 0)
		return is_paid_whole(intent) ? PAYMENT_PAID : PAYMENT_UNKNOWN;
	if (strcmp(status, "processing") == 0)
		return PAYMENT_PENDING;
	if (strcmp(status, "canceled") == 0)
		return PAYMENT_DECLINED;
	if (!settled)
		return PAYMENT_UNKNOWN;
	if (strcmp(status, "requires_action") == 0)
		return PAYMENT_ACTION_REQUIRED;
	if (strcmp(status, "requires_confirmation") == 0)
		return PAYMENT_DECLINED;
	if (strcmp(status, "requires_payment_method") == 0) {
		const struct json *fault = json_member(intent, "last_payment_error");
		return fault && fault->type == JSON_OBJECT ? fault_outcome(fault) : PAYMENT_DECLINED;
	}
	return PAYMENT_UNKNOWN;
}

void stripe_read_intent(const struct json *intent, const struct payment_order *order, bool settled,
                        struct payment_result *result)
{
	char status[PAYMENT_CODE_SIZE];
	stripe_copy(intent, "id", result->reference, sizeof result->reference);
	stripe_copy(intent, "status", status, sizeof status);
	result->outcome = PAYMENT_UNKNOWN;
	if (!*result->reference || !*status) {
		snprintf(result->reason, sizeof result->reason, "the answer is not a PaymentIntent");
		return;
	}
	if (order && !matches(intent, order)) {
		snprintf(result->reason, sizeof result->reason,
		         "%s has another amount or currency than the order", result->reference);
		return;
	}
	result->outcome = status_outcome(intent, status, settled);
	const struct json *fault = json_member(intent, "last_payment_error");
	if (result->outcome != PAYMENT_PAID && fault && fault->type == JSON_OBJECT)
		copy_code(fault, result);
	snprintf(result->reason, sizeof result->reason, "%.100s is %s%s%s", result->reference, status,
	         *result->code ? ": " : "", result->code);
}

/* ---- errors ---- */

static enum payment_outcome refused_request(const char *code, const char *param)
{
	bool names_payer = strcmp(param, "payment_method") == 0 || strcmp(param, "customer") == 0;
	if (strcmp(code, "resource_missing") == 0 && names_payer)
		return PAYMENT_METHOD_MISSING;
	return PAYMENT_REFUSED;
}

/* An error is final only if Stripe itself sent it and it states that nothing is in progress. */
static void read_fault(int status, const struct json *fault, struct payment_result *result)
{
	char type[PAYMENT_CODE_SIZE], code[PAYMENT_CODE_SIZE], param[PAYMENT_CODE_SIZE];
	stripe_copy(fault, "type", type, sizeof type);
	stripe_copy(fault, "code", code, sizeof code);
	stripe_copy(fault, "param", param, sizeof param);
	copy_code(fault, result);
	const struct json *intent = json_member(fault, "payment_intent");
	stripe_copy(intent, "id", result->reference, sizeof result->reference);
	result->outcome = PAYMENT_UNKNOWN;
	if (status == 402 && strcmp(type, "card_error") == 0)
		result->outcome = fault_outcome(fault);
	else if ((status == 400 || status == 404) && strcmp(type, "invalid_request_error") == 0 &&
	         strcmp(code, "lock_timeout") != 0 && strcmp(code, "idempotency_key_in_use") != 0)
		result->outcome = card_outcome(code) == PAYMENT_ACTION_REQUIRED
		                      ? PAYMENT_ACTION_REQUIRED
		                      : refused_request(code, param);
	explain(result, *type ? type : "no conclusive answer", status, result->code);
}

void stripe_read_charge(int status, struct slice body, const struct payment_order *order,
                        struct payment_result *result)
{
	ARENA_AUTO struct arena arena;
	struct json *json = NULL;
	arena_init(&arena, STRIPE_JSON_MEMORY);
	result->outcome = PAYMENT_UNKNOWN;
	if (json_parse(&arena, body, &limits, &json, NULL)) {
		explain(result, "the answer is not JSON", status, "");
		return;
	}
	if (status >= 200 && status <= 299)
		stripe_read_intent(json, order, true, result);
	else
		read_fault(status, json_member(json, "error"), result);
}

void stripe_read_refund(int status, struct slice body, struct payment_result *result)
{
	ARENA_AUTO struct arena arena;
	struct json *json = NULL;
	arena_init(&arena, STRIPE_JSON_MEMORY);
	result->outcome = PAYMENT_UNKNOWN;
	if (json_parse(&arena, body, &limits, &json, NULL)) {
		explain(result, "the answer is not JSON", status, "");
		return;
	}
	if (status < 200 || status > 299) {
		read_fault(status, json_member(json, "error"), result);
		if (strcmp(result->code, "charge_already_refunded") == 0)
			result->outcome = PAYMENT_PAID;
		else if (result->outcome != PAYMENT_UNKNOWN)
			result->outcome = PAYMENT_REFUSED;
		return;
	}
	char state[PAYMENT_CODE_SIZE];
	stripe_copy(json, "id", result->reference, sizeof result->reference);
	stripe_copy(json, "status", state, sizeof state);
	if (*result->reference && (strcmp(state, "succeeded") == 0 || strcmp(state, "pending") == 0))
		result->outcome = PAYMENT_PAID;
	else if (strcmp(state, "failed") == 0 || strcmp(state, "canceled") == 0)
		result->outcome = PAYMENT_REFUSED;
	explain(result, "refund", status, state);
}

/* ---- lists ---- */

static bool is_attempt(const struct json *intent, const struct payment_order *order)
{
	const struct json *metadata = json_member(intent, "metadata");
	struct slice key, sale;
	return json_get_text(metadata, "attempt", &key) && slice_is(key, order->idempotency_key) &&
	       json_get_text(metadata, "sale_code", &sale) && slice_is(sale, order->sale_code);
}

/* Gets the payments of a page; the list is in the arena. */
static int read_list(struct arena *arena, struct slice body, const struct json **ret_first,
                     bool *ret_more, struct error *error)
{
	struct json *json = NULL;
	if (json_parse(arena, body, &limits, &json, NULL))
		return error_cause(error, ERR_NETWORK, "the list of payments is not JSON");
	const struct json *data = json_member(json, "data");
	const struct json *more = json_member(json, "has_more");
	if (!data || data->type != JSON_ARRAY || !more ||
	    (more->type != JSON_TRUE && more->type != JSON_FALSE))
		return error_cause(error, ERR_NETWORK, "the answer is not a list of payments");
	*ret_more = more->type == JSON_TRUE && data->count > 0;
	*ret_first = data->first;
	return OK;
}

static int nothing_named(struct error *error)
{
	return error_cause(error, ERR_NETWORK, "the list of payments has no identifiers");
}

int stripe_find_intent(struct slice body, const struct payment_order *order, bool *ret_found,
                       bool *ret_more, char last[PAYMENT_REFERENCE_SIZE],
                       struct payment_result *result, struct error *error)
{
	ARENA_AUTO struct arena arena;
	const struct json *intent = NULL;
	arena_init(&arena, STRIPE_JSON_MEMORY);
	int code = read_list(&arena, body, &intent, ret_more, error);
	if (code)
		return code;
	*ret_found = false;
	for (; intent; intent = intent->next) {
		stripe_copy(intent, "id", last, PAYMENT_REFERENCE_SIZE);
		if (is_attempt(intent, order)) {
			stripe_read_intent(intent, order, true, result);
			*ret_found = true;
			return OK;
		}
	}
	return *ret_more && !*last ? nothing_named(error) : OK;
}

/* Authorized money that awaits capture is no longer available to the customer. */
static bool is_made(const struct json *intent, struct customer_payment *made)
{
	char status[PAYMENT_CODE_SIZE];
	stripe_copy(intent, "status", status, sizeof status);
	stripe_copy(intent, "id", made->reference, sizeof made->reference);
	stripe_copy(json_member(intent, "metadata"), "sale_code", made->sale_code,
	            sizeof made->sale_code);
	made->paid = strcmp(status, "succeeded") == 0 || strcmp(status, "requires_capture") == 0;
	return *made->sale_code && (made->paid || strcmp(status, "processing") == 0);
}

int stripe_each_made(struct slice body, customer_payment_visitor *function, void *context,
                     bool *ret_more, char last[PAYMENT_REFERENCE_SIZE], struct error *error)
{
	ARENA_AUTO struct arena arena;
	const struct json *intent = NULL;
	arena_init(&arena, STRIPE_JSON_MEMORY);
	int code = read_list(&arena, body, &intent, ret_more, error);
	for (; intent && !code; intent = intent->next) {
		struct customer_payment made = {0};
		if (is_made(intent, &made))
			code = function(context, &made, error);
		stripe_copy(intent, "id", last, PAYMENT_REFERENCE_SIZE);
	}
	return !code && *ret_more && !*last ? nothing_named(error) : code;
}
