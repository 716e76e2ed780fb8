#include "payment/payment.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "net/address.h"
#include "payment/provider.h"

#define DESCRIPTION_MAX 500
#define NAMES_SIZE 256

struct payment_provider {
	const struct payment_driver *driver;
	void *state;
};

static const struct payment_driver *const drivers[] = {
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help)
#define DRIVER(name) &payment_##name,
#include "payment/payment_settings.def"
#undef DRIVER
#undef RELOADS
#undef SETTING
};

#define DRIVERS_COUNT (sizeof drivers / sizeof *drivers)

static const struct payment_driver *find_driver(const char *name)
{
	if (!name || !*name)
		name = "manual";
	for (size_t i = 0; i < DRIVERS_COUNT; i++)
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	return NULL;
}

/* Writes "manual, one or other", with `last` before the last name. */
static void list_names(const char *last, char text[NAMES_SIZE])
{
	int size = 0;
	for (size_t i = 0; i < DRIVERS_COUNT && size < NAMES_SIZE; i++) {
		const char *glue = i == 0 ? "" : i + 1 < DRIVERS_COUNT ? ", " : last;
		size += snprintf(text + size, (size_t)(NAMES_SIZE - size), "%s%s", glue, drivers[i]->name);
	}
}

/* Returns the setting that the message names. */
static const char *find_setting(const struct error *error)
{
	static const char *const names[] = {"payment.stripe_key", "payment.stripe_webhook_secret",
	                                    "payment.stripe_url", "payment.return_url"};
	const char *message = error_message(error, LANGUAGE_ENGLISH);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strstr(message, names[i]))
			return names[i];
	return "payment.provider";
}

void payment_check_settings(const struct payment_settings *settings,
                            const struct setting_check *check)
{
	char names[NAMES_SIZE], what[NAMES_SIZE + 16];
	struct payment_provider *provider = NULL;
	struct error error = {0};
	network_list_check(settings->allow_networks, check, "payment.allow_networks");
	if (!find_driver(settings->provider)) {
		list_names(" or ", names);
		snprintf(what, sizeof what, "must be %s", names);
		setting_fault(check, "payment.provider", what);
		return;
	}
	if (payment_provider_open(settings, &provider, &error))
		setting_fault(check, find_setting(&error), error_message(&error, LANGUAGE_ENGLISH));
	else if (find_driver(settings->provider)->check_settings)
		find_driver(settings->provider)->check_settings(settings, check);
	payment_provider_close(provider);
}

int payment_provider_open(const struct payment_settings *settings,
                          struct payment_provider **ret_provider, struct error *error)
{
	const struct payment_driver *driver = find_driver(settings->provider);
	if (!driver) {
		char names[NAMES_SIZE];
		list_names(", ", names);
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_PROVIDER, names, settings->provider,
		                 NULL);
	}
	struct payment_provider *provider = calloc(1, sizeof *provider);
	if (!provider)
		return ERR_NO_MEMORY;
	provider->driver = driver;
	int result = driver->open(settings, &provider->state, error);
	if (result) {
		payment_provider_close(provider);
		return result;
	}
	*ret_provider = provider;
	return OK;
}

void payment_provider_close(struct payment_provider *provider)
{
	if (!provider)
		return;
	provider->driver->close(provider->state);
	free(provider);
}

const char *payment_provider_name(const struct payment_provider *provider)
{
	return provider->driver->name;
}

const char *payment_provider_address(const struct payment_provider *provider)
{
	return provider->driver->address ? provider->driver->address(provider->state) : NULL;
}

const char *payment_fault_setting(const struct payment_provider *provider, enum error_blame fault)
{
	const struct payment_driver *driver = provider->driver;
	if (fault == BLAME_NETWORK)
		return "payment.allow_networks";
	const char *setting = fault == BLAME_PASSWORD ? driver->key_setting : driver->address_setting;
	return setting ? setting : "payment.provider";
}

bool payment_provider_charges(const struct payment_provider *provider)
{
	return provider->driver->charges;
}

const char *payment_notice_header(const struct payment_provider *provider)
{
	return provider->driver->notice_header;
}

const char *payment_outcome_text(enum payment_outcome outcome)
{
	static const char *const texts[] = {"unknown",        "none",     "pending",
	                                    "paid",           "declined", "action_required",
	                                    "method_missing", "refused"};
	assert((size_t)outcome < sizeof texts / sizeof *texts);
	return texts[outcome];
}

/* ---- orders ---- */

static bool fits(const char *text, size_t least, size_t most)
{
	size_t size = text ? strlen(text) : 0;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return size >= least && size <= most && (!size || utf8_valid(slice_make(text, size)));
}

static bool is_currency(const char *text)
{
	return text &&
	       (strcmp(text, "EUR") == 0 || strcmp(text, "GBP") == 0 || strcmp(text, "USD") == 0);
}

/* Checks an order and replaces missing texts with empty ones for the drivers. */
static int check_order(const struct payment_order *order, struct payment_order *ret_order,
                       struct error *error)
{
	const char *fault = NULL;
	if (!fits(order->sale_code, 1, PAYMENT_SALE_SIZE - 1))
		fault = "sale code";
	else if (!fits(order->idempotency_key, 1, PAYMENT_KEY_SIZE - 1))
		fault = "idempotency key";
	else if (order->amount_minor < 1 || order->amount_minor > PAYMENT_AMOUNT_MAX)
		fault = "amount";
	else if (!is_currency(order->currency))
		fault = "currency";
	else if (!fits(order->customer, 0, PAYMENT_REFERENCE_SIZE - 1))
		fault = "customer";
	else if (!fits(order->payment_method, 0, PAYMENT_REFERENCE_SIZE - 1))
		fault = "payment method";
	else if (!fits(order->description, 0, DESCRIPTION_MAX))
		fault = "description";
	if (fault)
		return error_cause(error, ERR_VALIDATION, "payment order: %s not usable", fault);
	*ret_order = *order;
	ret_order->customer = order->customer ? order->customer : "";
	ret_order->payment_method = order->payment_method ? order->payment_method : "";
	ret_order->description = order->description ? order->description : "";
	return OK;
}

/* ---- calls ---- */

int payment_provider_ask(struct payment_provider *provider, struct error *error)
{
	return provider->driver->ask ? provider->driver->ask(provider->state, error) : OK;
}

int payment_charge(struct payment_provider *provider, const struct payment_order *order,
                   struct payment_result *ret_result, struct error *error)
{
	struct payment_result result = {0};
	struct payment_order clean;
	int code = check_order(order, &clean, error);
	if (!code)
		code = provider->driver->charge(provider->state, &clean, &result, error);
	if (!code)
		*ret_result = result;
	return code;
}

int payment_get(struct payment_provider *provider, const struct payment_order *order,
                const char *reference, int64_t since_us, struct payment_result *ret_result,
                struct error *error)
{
	struct payment_result result = {0};
	struct payment_order clean;
	int code = check_order(order, &clean, error);
	if (!code && !fits(reference, 0, PAYMENT_REFERENCE_SIZE - 1))
		code = error_cause(error, ERR_VALIDATION, "payment reference not usable");
	if (!code)
		code = provider->driver->look_up(provider->state, &clean, reference ? reference : "",
		                                 since_us, &result, error);
	if (!code)
		*ret_result = result;
	return code;
}

int payment_list_by_customer(struct payment_provider *provider, const char *customer,
                             int64_t since_us, customer_payment_visitor *function, void *context,
                             struct error *error)
{
	if (!provider->driver->list_by_customer)
		return OK;
	if (!fits(customer, 1, PAYMENT_REFERENCE_SIZE - 1))
		return error_cause(error, ERR_REFUSED, "the customer's identifier is not valid");
	return provider->driver->list_by_customer(provider->state, customer, since_us, function,
	                                          context, error);
}

int payment_page(struct payment_provider *provider, const struct payment_order *order,
                 struct payment_result *ret_result, struct error *error)
{
	struct payment_result result = {0};
	struct payment_order clean;
	int code = check_order(order, &clean, error);
	if (!code)
		code = provider->driver->page(provider->state, &clean, &result, error);
	if (!code)
		*ret_result = result;
	return code;
}

int payment_refund(struct payment_provider *provider, const char *reference,
                   const char *idempotency_key, struct payment_result *ret_result,
                   struct error *error)
{
	struct payment_result result = {0};
	if (!fits(reference, 1, PAYMENT_REFERENCE_SIZE - 1) ||
	    !fits(idempotency_key, 1, PAYMENT_KEY_SIZE - 1))
		return error_cause(error, ERR_VALIDATION, "refund: reference or key not usable");
	int code =
		provider->driver->refund(provider->state, reference, idempotency_key, &result, error);
	if (!code)
		*ret_result = result;
	return code;
}

int payment_read_notice(const struct payment_provider *provider, struct slice signature,
                        struct slice body, int64_t now_us, struct payment_notice *ret_notice,
                        struct error *error)
{
	struct payment_notice notice = {0};
	if (!provider->driver->read_notice)
		return error_cause(error, ERR_NOT_FOUND, "%s sends no notices", provider->driver->name);
	if (body.size > PAYMENT_NOTICE_SIZE_MAX)
		return error_cause(error, ERR_VALIDATION, "notice of %zu bytes", body.size);
	int result =
		provider->driver->read_notice(provider->state, signature, body, now_us, &notice, error);
	if (!result)
		*ret_notice = notice;
	return result;
}
