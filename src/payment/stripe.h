/* Shared by the files of the Stripe provider: what its answers and events mean. Pure functions;
 * their input is what came over the network. */
#ifndef PAYMENT_STRIPE_H
#define PAYMENT_STRIPE_H

#include "base/json.h"
#include "payment/payment.h"

#define STRIPE_JSON_MEMORY ((size_t)16 << 20)

/* Copies a member's text; leaves "" when it is absent, of another type, too long or has a NUL. */
void stripe_copy(const struct json *object, const char *name, char *text, size_t size);
/* The identifier in a member that is either that text or the object with an `id` (expanded). */
void stripe_copy_id(const struct json *object, const char *name, char *text, size_t size);

/* What a PaymentIntent says: outcome, reference, code, reason. It must be over the order's amount
 * and currency (order NULL: not compared); else the outcome is PAYMENT_UNKNOWN and the reason says
 * so. `settled`: no call is under way, so an intent that waits for a method or a confirmation will
 * not go on by itself. */
void stripe_read_intent(const struct json *intent, const struct payment_order *order, bool settled,
                        struct payment_result *result);

/* What the answer to "create and confirm a PaymentIntent" says: the intent or an error, by status
 * and body. */
void stripe_read_charge(int status, struct slice body, const struct payment_order *order,
                        struct payment_result *result);

/* What the answer to "create a refund" says. */
void stripe_read_refund(int status, struct slice body, struct payment_result *result);

/* One page of the list of PaymentIntents: looks for the order's attempt. True when it is there (the
 * result is filled). Else `more` says whether there is a further page, behind the intent `last`.
 * ERR_NETWORK: not such a list. */
int stripe_find_intent(struct slice body, const struct payment_order *order, bool *ret_found,
                       bool *ret_more, char last[PAYMENT_REFERENCE_SIZE],
                       struct payment_result *result, struct error *error) MUST_CHECK;

/* The same page, told payment by payment; what the function answers ends it. */
int stripe_each_made(struct slice body, payment_made_function *function, void *context,
                     bool *ret_more, char last[PAYMENT_REFERENCE_SIZE], struct error *error)
	MUST_CHECK;

/* Stripe-Signature against `secrets` (separated by commas): t=SECONDS,v1=HEX,…; HMAC-SHA256 over
 * "SECONDS.BODY"; at most 300 s from now_us. 0 or ERR_VALIDATION. *ret_sent_us: that time. */
int stripe_check_signature(const char *secrets, struct slice signature, struct slice body,
                           int64_t now_us, int64_t *ret_sent_us, struct error *error) MUST_CHECK;
/* The event itself. 0 or ERR_VALIDATION. */
int stripe_read_event(struct slice body, struct payment_notice *notice, struct error *error)
	MUST_CHECK;

#endif
