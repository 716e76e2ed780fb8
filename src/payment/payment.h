/* Charges purchases through a payment provider. Each provider is a folder with its driver
 * (provider.h) and its settings; payment_settings.def lists them.
 *
 * Calls may block on the network for up to PAYMENT_TIMEOUT_MS each, so never call them inside a
 * transaction.
 * Any number of threads may use a provider at a time. Nothing is logged here. `reason` and the
 * causes of errors are suitable for the log and contain no secrets.
 *
 * A payment is made once: each attempt at a purchase has one idempotency key. The key is stored
 * before the first call and used in every further call with the identical order. While the outcome
 * is PAYMENT_UNKNOWN the caller repeats payment_charge, which first looks up the attempt if the
 * provider's answer is not conclusive. Providers forget keys after a day. Once PAYMENT_REPEAT_US
 * have passed since the first call, only payment_get may be used, which never charges. */
#ifndef PAYMENT_PAYMENT_H
#define PAYMENT_PAYMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/setting.h"

#define PAYMENT_TIMEOUT_MS 30000
#define PAYMENT_REPEAT_US (INT64_C(20) * 3600 * 1000000)
#define PAYMENT_SALE_SIZE 65 /* of sale codes and idempotency keys, with NUL */
#define PAYMENT_KEY_SIZE 129
#define PAYMENT_REFERENCE_SIZE 129
#define PAYMENT_URL_SIZE 2049
#define PAYMENT_CODE_SIZE 65
#define PAYMENT_REASON_SIZE 256
#define PAYMENT_AMOUNT_MAX INT64_C(99999999) /* minor units */
#define PAYMENT_NOTICE_SIZE_MAX (256 * 1024)

/* Members are named after the keys of payment_settings.def, which describes them. All text is the
 * caller's and only read while opening. NULL counts as empty; an empty `provider` is "manual". */
struct payment_settings {
#define DRIVER(name)
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help) SETTING_FIELD_##type key;
#include "payment/payment_settings.def"
#undef DRIVER
#undef RELOADS
#undef SETTING
};

/* Reports what is wrong with the settings, those of the chosen provider included. Nothing is
 * sent. */
void payment_check_settings(const struct payment_settings *settings,
                            const struct setting_check *check);

struct payment_provider;

/* Opens a provider without contacting it. ERR_VALIDATION (unknown provider, missing key, or URL or
 * networks not valid; the message names the setting), ERR_NO_MEMORY. A plain http URL is allowed
 * only if its host is a literal address inside allow_networks. */
int payment_provider_open(const struct payment_settings *settings,
                          struct payment_provider **ret_provider, struct error *error) MUST_CHECK;
/* Wipes the secrets; NULL-safe. */
void payment_provider_close(struct payment_provider *provider);
/* Returns the value of payment.provider. */
const char *payment_provider_name(const struct payment_provider *provider);
/* Returns the address of the provider's service; NULL: none (manual). */
const char *payment_provider_address(const struct payment_provider *provider);
/* Returns the setting at fault when payment_provider_ask fails. */
const char *payment_fault_setting(const struct payment_provider *provider, enum error_blame fault);
/* Returns whether payment_charge can charge: false for manual. */
bool payment_provider_charges(const struct payment_provider *provider);

/* Checks the key with a read-only request. OK: success (manual: always); ERR_REFUSED: the provider
 * refuses the key; ERR_NETWORK. */
int payment_provider_ask(struct payment_provider *provider, struct error *error) MUST_CHECK;

/* An order. Texts are printable UTF-8 without control characters. */
struct payment_order {
	const char *sale_code;       /* sal_… */
	const char *idempotency_key; /* of this attempt */
	int64_t amount_minor;        /* cents, pence; taxes included; 1 to PAYMENT_AMOUNT_MAX */
	const char *currency;        /* "EUR", "GBP", "USD" */
	const char *customer;        /* the provider's identifier of the customer; may be empty */
	const char *payment_method;  /* the provider's identifier of the payment method; may be empty */
	const char *description;     /* shown to the customer */
};

enum payment_outcome {
	PAYMENT_UNKNOWN, /* it is unknown whether the charge is made: repeat (see above) */
	PAYMENT_NONE,    /* payment_get only: the provider has no such attempt */
	PAYMENT_PENDING, /* accepted; a notice (or an operator) reports the outcome */
	PAYMENT_PAID,
	PAYMENT_DECLINED,        /* the charge was declined */
	PAYMENT_ACTION_REQUIRED, /* the customer must authenticate; nothing was charged */
	PAYMENT_METHOD_MISSING,  /* no customer or method, or unknown to the provider */
	PAYMENT_REFUSED,         /* the provider refused the order: expired method, amount, … */
};

/* Returns "unknown", "none", "pending", "paid", "declined", "action_required", "method_missing" or
 * "refused". */
const char *payment_outcome_text(enum payment_outcome outcome);

struct payment_result {
	enum payment_outcome outcome;
	char reference[PAYMENT_REFERENCE_SIZE]; /* the provider's identifier of the payment; may be
	                                           empty */
	char payment_url[PAYMENT_URL_SIZE];     /* page for manual payment; empty: none */
	char code[PAYMENT_CODE_SIZE];           /* the provider's code, such as "insufficient_funds" */
	char reason[PAYMENT_REASON_SIZE];       /* explanation for the log */
	int retry_after_seconds; /* PAYMENT_UNKNOWN: requested by the provider; 0: none */
};

/* Charges once per idempotency key. Returns 0 if *ret_result was filled, including PAYMENT_UNKNOWN
 * (network failure, timeout, 409, 429, 5xx, credentials refused). The last four outcomes are final
 * for the key: a new attempt needs a new key. If nothing was charged and pages are configured,
 * payment_url is a page on which the same sale can be paid; a notice reports it. manual:
 * PAYMENT_PENDING. ERR_VALIDATION: the order is not valid; ERR_NO_MEMORY. */
int payment_charge(struct payment_provider *provider, const struct payment_order *order,
                   struct payment_result *ret_result, struct error *error) MUST_CHECK;

/* Gets the state of an attempt; never charges. Searches by `reference` if known (not NULL or
 * empty), else by the order's customer and idempotency key in the payments since `since_us` (the
 * first call of payment_charge). PAYMENT_NONE is reliable only if the last payment_charge ended
 * more than PAYMENT_TIMEOUT_MS ago. */
int payment_get(struct payment_provider *provider, const struct payment_order *order,
                const char *reference, int64_t since_us, struct payment_result *ret_result,
                struct error *error) MUST_CHECK;

/* A customer's payment for one of our sales, made or in progress at the provider, regardless of who
 * started it. */
struct customer_payment {
	char sale_code[PAYMENT_SALE_SIZE];
	char reference[PAYMENT_REFERENCE_SIZE];
	bool paid; /* else in progress */
};
typedef int customer_payment_visitor(void *context, const struct customer_payment *made,
                                     struct error *error);
/* Calls `function` for each payment of a customer (not empty) since `since_us`, or up to a day
 * before it. Returns 0, or a result of `function` other than 0, which stops. ERR_NETWORK: no usable
 * answer; ERR_REFUSED: the provider refuses, or there are too many payments. Changes nothing.
 * manual: none. */
int payment_list_by_customer(struct payment_provider *provider, const char *customer,
                             int64_t since_us, customer_payment_visitor *function, void *context,
                             struct error *error) MUST_CHECK;

/* Creates only a page for manual payment of the sale, without charging: payment_url, or empty if
 * the provider has none (manual, no return_url, provider unreachable: see reason). */
int payment_page(struct payment_provider *provider, const struct payment_order *order,
                 struct payment_result *ret_result, struct error *error) MUST_CHECK;

/* Refunds the whole payment, once per idempotency key. PAYMENT_PAID: the refund is made or in
 * progress (or was made before); PAYMENT_UNKNOWN: repeat; PAYMENT_REFUSED: not refundable. manual:
 * PAYMENT_PENDING, an operator refunds. */
int payment_refund(struct payment_provider *provider, const char *reference,
                   const char *idempotency_key, struct payment_result *ret_result,
                   struct error *error) MUST_CHECK;

/* Notices may be late, repeated and out of order. They state facts, so order hardly matters: PAID
 * overrides FAILED in any order (a later attempt at the same payment may succeed), and REFUNDED
 * overrides both. */
enum payment_notice_kind {
	PAYMENT_NOTICE_OTHER, /* no action: another type, a partial refund, not our sale */
	PAYMENT_NOTICE_PAID,
	PAYMENT_NOTICE_FAILED,   /* an attempt failed or was canceled */
	PAYMENT_NOTICE_REFUNDED, /* fully refunded; or taken back by the customer's bank, fully or
	                            partly (amount_minor) */
};

struct payment_notice {
	enum payment_notice_kind kind;
	char id[PAYMENT_REFERENCE_SIZE]; /* equal for repeated notices */
	char type[PAYMENT_CODE_SIZE];    /* the provider's type, for the log */
	int64_t created_us;              /* time of the fact, and of sending; by the provider's clock */
	int64_t sent_us;
	char sale_code[PAYMENT_SALE_SIZE];      /* empty for REFUNDED if only the reference is known */
	char idempotency_key[PAYMENT_KEY_SIZE]; /* of the attempt; empty for payments on a page */
	char reference[PAYMENT_REFERENCE_SIZE]; /* never empty except for OTHER */
	int64_t amount_minor;                   /* PAID: received; REFUNDED: refunded; else 0 */
	char currency[4];                       /* "EUR"; empty if not relevant */
	char code[PAYMENT_CODE_SIZE];           /* FAILED: reason, as in payment_result */
	bool by_bank;                           /* REFUNDED: taken back by the customer's bank */
};

/* Verifies the signature over `body` (at most PAYMENT_NOTICE_SIZE_MAX) and parses it. `signature`
 * is the header named by payment_notice_header. ERR_VALIDATION: the signature is missing, wrong, or
 * more than 300 s from `now_us`, or the body is not valid. ERR_NOT_FOUND: this provider sends no
 * notices. Pure: no network. */
int payment_read_notice(const struct payment_provider *provider, struct slice signature,
                        struct slice body, int64_t now_us, struct payment_notice *ret_notice,
                        struct error *error) MUST_CHECK;

/* Returns the name of the header with the signature; NULL: no notices. */
const char *payment_notice_header(const struct payment_provider *provider);

#endif
