/* Internal to the Stripe provider: parsing of answers and events. Pure functions on untrusted
 * input. */
#ifndef PAYMENT_STRIPE_H
#define PAYMENT_STRIPE_H

#include "base/json.h"
#include "payment/payment.h"

#define STRIPE_JSON_MEMORY ((size_t)16 << 20)

/* Copies a text member. Result "": missing, of another type, too long, or contains a NUL. */
void stripe_copy(const struct json *object, const char *name, char *text, size_t size);
/* Copies an identifier from a member that is either a text or an (expanded) object with an `id`. */
void stripe_copy_id(const struct json *object, const char *name, char *text, size_t size);

/* Evaluates a PaymentIntent: outcome, reference, code, reason. Amount and currency must match the
 * order (order NULL: not compared), else the outcome is PAYMENT_UNKNOWN with a reason. `settled`:
 * no call is in progress, so an intent that requires a method or a confirmation will not
 * continue. */
void stripe_read_intent(const struct json *intent, const struct payment_order *order, bool settled,
                        struct payment_result *result);

/* Evaluates the answer to "create and confirm a PaymentIntent", an intent or an error, by status
 * and body. */
void stripe_read_charge(int status, struct slice body, const struct payment_order *order,
                        struct payment_result *result);

/* Evaluates the answer to "create a refund". */
void stripe_read_refund(int status, struct slice body, struct payment_result *result);

/* Searches a page of PaymentIntents for the order's attempt. *ret_found: found, and the result is
 * filled. Otherwise *ret_more tells whether another page follows after the intent `last`.
 * ERR_NETWORK: not such a list. */
int stripe_find_intent(struct slice body, const struct payment_order *order, bool *ret_found,
                       bool *ret_more, char last[PAYMENT_REFERENCE_SIZE],
                       struct payment_result *result, struct error *error) MUST_CHECK;

/* Calls `function` for each payment of such a page; a result other than 0 stops and is returned. */
int stripe_each_made(struct slice body, customer_payment_visitor *function, void *context,
                     bool *ret_more, char last[PAYMENT_REFERENCE_SIZE], struct error *error)
	MUST_CHECK;

/* Verifies Stripe-Signature with `secrets` (separated by commas): t=SECONDS,v1=HEX,…; HMAC-SHA256
 * over "SECONDS.BODY"; at most 300 s from now_us. Returns 0 or ERR_VALIDATION. *ret_sent_us: the
 * signed time. */
int stripe_check_signature(const char *secrets, struct slice signature, struct slice body,
                           int64_t now_us, int64_t *ret_sent_us, struct error *error) MUST_CHECK;
/* Parses the event. Returns 0 or ERR_VALIDATION. */
int stripe_read_event(struct slice body, struct payment_notice *notice, struct error *error)
	MUST_CHECK;

#endif
