/* Charging for a purchase through a payment provider: `manual`, where an operator confirms what
 * came by other means, and `stripe` (PaymentIntents off session).
 *
 * Calls may reach the network and block for up to PAYMENT_TIMEOUT_MS each, so they have no place
 * inside a transaction.
 * A provider is used by any number of threads at a time. Nothing is logged here; `reason` and an
 * error's cause are fit for the log and hold no secret.
 *
 * A payment is made once: each attempt at a purchase has one idempotency key, stored before the
 * first call and used in every further one with the very same order. As long as the outcome is
 * PAYMENT_UNKNOWN the caller repeats payment_charge, which first finds out what became of the
 * attempt where the provider's answer alone does not tell. Providers forget keys after a day: once
 * PAYMENT_REPEAT_US have passed since the first call only payment_look_up may be used, which never
 * charges. */
#ifndef PAYMENT_PAYMENT_H
#define PAYMENT_PAYMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define PAYMENT_TIMEOUT_MS 30000
#define PAYMENT_REPEAT_US (INT64_C(20) * 3600 * 1000000)
#define PAYMENT_SALE_SIZE 65 /* with the NUL: sale codes, idempotency keys, … */
#define PAYMENT_KEY_SIZE 129
#define PAYMENT_REFERENCE_SIZE 129
#define PAYMENT_URL_SIZE 2049
#define PAYMENT_CODE_SIZE 65
#define PAYMENT_REASON_SIZE 256
#define PAYMENT_AMOUNT_MAX INT64_C(99999999) /* minor units */
#define PAYMENT_NOTICE_SIZE_MAX (256 * 1024)

/* All text is the caller's and only read while opening. NULL counts as empty. */
struct payment_settings {
	const char *provider;              /* "manual" (also when empty) or "stripe" */
	const char *stripe_url;            /* https://api.stripe.com */
	const char *stripe_key;            /* secret */
	const char *stripe_webhook_secret; /* secret; several, with commas, while one is replaced */
	const char *allow_networks;        /* private networks where the provider may stand */
	const char *return_url;            /* where a payment page leads back to; empty: no pages */
};

struct payment_provider;

/* ERR_VALIDATION (unknown provider, no key, URL or networks not usable; the sentence names the
 * setting), ERR_NO_MEMORY. Nothing is sent. A URL may be plain http only when its host is a literal
 * address inside allow_networks. */
int payment_provider_open(const struct payment_settings *settings,
                          struct payment_provider **ret_provider, struct error *error) MUST_CHECK;
/* Wipes the secrets; NULL-safe. */
void payment_provider_close(struct payment_provider *provider);
/* "manual", "stripe". */
const char *payment_provider_name(const struct payment_provider *provider);
/* Whether payment_charge can take money by itself: false for manual. */
bool payment_provider_charges(const struct payment_provider *provider);

/* Asks the provider for something that changes nothing, with the key. OK: it answered as it should
 * (manual: always); ERR_REFUSED: it does not take the key; ERR_NETWORK. */
int payment_provider_ask(struct payment_provider *provider, struct error *error) MUST_CHECK;

/* What is to be paid. Texts are printable UTF-8 without control characters. */
struct payment_order {
	const char *sale_code;       /* sal_… */
	const char *idempotency_key; /* of this attempt */
	int64_t amount_minor;        /* cents, pence; taxes included; 1 to PAYMENT_AMOUNT_MAX */
	const char *currency;        /* "EUR", "GBP", "USD" */
	const char *customer;        /* the provider's name of the customer; may be empty */
	const char *payment_method;  /* the provider's name of the method to charge; may be empty */
	const char *description;     /* shown to the customer */
};

enum payment_outcome {
	PAYMENT_UNKNOWN, /* no telling whether money moves: repeat (see above) */
	PAYMENT_NONE,    /* of payment_look_up alone: the provider knows no such attempt */
	PAYMENT_PENDING, /* taken on; a notice (or an operator) will tell */
	PAYMENT_PAID,
	PAYMENT_DECLINED,        /* the charge was declined */
	PAYMENT_ACTION_REQUIRED, /* the customer must authenticate; nothing was charged */
	PAYMENT_METHOD_MISSING,  /* no customer or method, or the provider knows none of that name */
	PAYMENT_REFUSED,         /* the provider does not take the order: expired method, amount, … */
};

/* "unknown", "none", "pending", "paid", "declined", "action_required", "method_missing",
 * "refused". */
const char *payment_outcome_text(enum payment_outcome outcome);

struct payment_result {
	enum payment_outcome outcome;
	char reference[PAYMENT_REFERENCE_SIZE]; /* the provider's name of the payment; may be empty */
	char payment_url[PAYMENT_URL_SIZE];     /* page to pay by hand; empty: none */
	char code[PAYMENT_CODE_SIZE];           /* the provider's own, such as "insufficient_funds" */
	char reason[PAYMENT_REASON_SIZE];       /* what happened, for the log */
	int retry_after_seconds;                /* PAYMENT_UNKNOWN: the provider's wish; 0: none */
};

/* Charges, once for an idempotency key. 0 whenever *ret_result was filled, PAYMENT_UNKNOWN
 * included (network cut, time-out, 409, 429, 5xx, credentials not accepted); the last four outcomes
 * are final for the key: a new attempt needs a new one. Where nothing was charged and pages are
 * configured, payment_url leads to one on which the same sale can be paid; a notice tells of it.
 * manual: PAYMENT_PENDING. ERR_VALIDATION: the order is not usable; ERR_NO_MEMORY. */
int payment_charge(struct payment_provider *provider, const struct payment_order *order,
                   struct payment_result *ret_result, struct error *error) MUST_CHECK;

/* What became of an attempt; never charges. By `reference` where it is known (not NULL or empty),
 * else by the order's customer and idempotency key among the payments made since `since_us` (the
 * first call of payment_charge). PAYMENT_NONE counts only if the last payment_charge ended more
 * than PAYMENT_TIMEOUT_MS ago. */
int payment_look_up(struct payment_provider *provider, const struct payment_order *order,
                    const char *reference, int64_t since_us, struct payment_result *ret_result,
                    struct error *error) MUST_CHECK;

/* A payment of a customer for a sale of ours, made or under way at the provider, whoever asked for
 * it. */
struct payment_made {
	char sale_code[PAYMENT_SALE_SIZE];
	char reference[PAYMENT_REFERENCE_SIZE];
	bool paid; /* else under way */
};
typedef int payment_made_function(void *context, const struct payment_made *made,
                                  struct error *error);
/* Tells of those that a customer (not empty) made since `since_us`, or up to a day before it. 0, or
 * what the function answered, which ends it. ERR_NETWORK: no answer that tells; ERR_REFUSED: the
 * provider does not tell, or there are too many to look through. Changes nothing. manual: none. */
int payment_look_at_customer(struct payment_provider *provider, const char *customer,
                             int64_t since_us, payment_made_function *function, void *context,
                             struct error *error) MUST_CHECK;

/* Only a page on which the sale can be paid by hand, without charging anything: payment_url, or
 * empty where the provider has none (manual, no return_url, provider not reachable: reason). */
int payment_page(struct payment_provider *provider, const struct payment_order *order,
                 struct payment_result *ret_result, struct error *error) MUST_CHECK;

/* Gives the whole payment back, once for an idempotency key. PAYMENT_PAID: the refund is made or
 * under way (or had been made before); PAYMENT_UNKNOWN: repeat; PAYMENT_REFUSED: it cannot be
 * given back. manual: PAYMENT_PENDING, an operator sees to it. */
int payment_refund(struct payment_provider *provider, const char *reference,
                   const char *idempotency_key, struct payment_result *ret_result,
                   struct error *error) MUST_CHECK;

/* Notices of a provider can come late, twice and out of order. They say what is, so that order
 * hardly matters: PAID holds against FAILED whichever comes first (a later attempt at the same
 * payment may succeed), REFUNDED against both. */
enum payment_notice_kind {
	PAYMENT_NOTICE_OTHER, /* nothing to do: another type, part of a refund, not our sale */
	PAYMENT_NOTICE_PAID,
	PAYMENT_NOTICE_FAILED,   /* an attempt failed or was called off */
	PAYMENT_NOTICE_REFUNDED, /* wholly given back; or taken back by the customer's bank, wholly or
	                            in part, as amount_minor says */
};

struct payment_notice {
	enum payment_notice_kind kind;
	char id[PAYMENT_REFERENCE_SIZE]; /* the same when the notice comes again */
	char type[PAYMENT_CODE_SIZE];    /* the provider's own, for the log */
	int64_t created_us; /* of what it tells, and when it was sent: both by the provider's clock */
	int64_t sent_us;
	char sale_code[PAYMENT_SALE_SIZE]; /* empty with REFUNDED when only the reference is known */
	char idempotency_key[PAYMENT_KEY_SIZE]; /* of the attempt; empty for a page's payment */
	char reference[PAYMENT_REFERENCE_SIZE]; /* never empty but for OTHER */
	int64_t amount_minor;                   /* PAID: received; REFUNDED: given back; else 0 */
	char currency[4];                       /* "EUR"; empty where it does not matter */
	char code[PAYMENT_CODE_SIZE];           /* FAILED: why, as in payment_result */
	bool by_bank;                           /* REFUNDED: taken back by the customer's bank */
};

/* Checks the signature over `body` (at most PAYMENT_NOTICE_SIZE_MAX) and reads it. `signature` is
 * the provider's header (payment_notice_header). ERR_VALIDATION: signature missing, wrong, or older
 * or newer than 300 s against `now_us`, or a body that cannot be read; ERR_NOT_FOUND: this provider
 * sends no notices. Pure: no network. */
int payment_read_notice(const struct payment_provider *provider, struct slice signature,
                        struct slice body, int64_t now_us, struct payment_notice *ret_notice,
                        struct error *error) MUST_CHECK;

/* The header that carries the signature ("Stripe-Signature"); NULL when it sends no notices. */
const char *payment_notice_header(const struct payment_provider *provider);

#endif
