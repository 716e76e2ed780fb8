/* Interface of a payment provider; internal to this folder. payment.c checks the order and zeroes
 * *ret_result before it calls a driver. An "optional" member may be NULL, with the stated
 * meaning. */
#ifndef PAYMENT_PROVIDER_H
#define PAYMENT_PROVIDER_H

#include "payment/payment.h"

struct payment_driver {
	const char *name;
	/* Reports further faults of settings that `open` accepts; NULL: none. */
	void (*check_settings)(const struct payment_settings *settings,
	                       const struct setting_check *check);
	bool charges;
	/* Optional: no notices; read_notice is not called. */
	const char *notice_header;
	/* Optional: the provider has no service. */
	const char *(*address)(const void *state);
	/* Optional, with address: the settings of that address and of the key. */
	const char *address_setting, *key_setting;
	/* `state` is passed to the other functions. */
	int (*open)(const struct payment_settings *settings, void **ret_state, struct error *error);
	void (*close)(void *state); /* NULL-safe */
	int (*charge)(void *state, const struct payment_order *order, struct payment_result *result,
	              struct error *error);
	int (*look_up)(void *state, const struct payment_order *order, const char *reference,
	               int64_t since_us, struct payment_result *result, struct error *error);
	/* Optional: no payments are made. */
	int (*list_by_customer)(void *state, const char *customer, int64_t since_us,
	                        customer_payment_visitor *function, void *context, struct error *error);
	int (*page)(void *state, const struct payment_order *order, struct payment_result *result,
	            struct error *error);
	int (*refund)(void *state, const char *reference, const char *idempotency_key,
	              struct payment_result *result, struct error *error);
	/* Optional: no service to contact. */
	int (*ask)(void *state, struct error *error);
	/* Optional, with notice_header. */
	int (*read_notice)(const void *state, struct slice signature, struct slice body, int64_t now_us,
	                   struct payment_notice *notice, struct error *error);
};

/* payment_manual and so on: one for each line of payment_settings.def. */
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help)
#define DRIVER(name) extern const struct payment_driver payment_##name;
#include "payment/payment_settings.def"
#undef DRIVER
#undef RELOADS
#undef SETTING

#endif
