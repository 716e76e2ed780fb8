/* Stripe's webhook events: signature and content. */
#include <ctype.h>
#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/digest.h"
#include "payment/stripe/stripe.h"

#define TOLERANCE_US (300 * US_PER_SECOND)
#define HEADER_MAX 4096
#define SIGNATURES_MAX 16
#define SECONDS_DIGITS_MAX 12

/* ---- the signature ---- */

struct signature {
	struct slice time; /* as written, because it is signed */
	int64_t time_us;
	unsigned count;
	struct sha256 values[SIGNATURES_MAX]; /* signatures of scheme v1 */
};

static bool read_time(struct slice text, int64_t *ret_us)
{
	int64_t seconds = 0;
	if (!text.size || text.size > SECONDS_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (!isdigit((unsigned char)text.data[i]))
			return false;
		seconds = seconds * 10 + (text.data[i] - '0');
	}
	*ret_us = seconds * US_PER_SECOND;
	return true;
}

/* Parses "t=…" once and "v1=…" at least once; ignores other schemes. */
static bool read_signature(struct slice header, struct signature *ret)
{
	*ret = (struct signature){0};
	if (header.size > HEADER_MAX)
		return false;
	while (header.size) {
		const char *comma = memchr(header.data, ',', header.size);
		size_t size = comma ? (size_t)(comma - header.data) : header.size;
		struct slice item = slice_make(header.data, size);
		header =
			slice_make(header.data + size + (comma != NULL), header.size - size - (comma != NULL));
		while (item.size && item.data[0] == ' ')
			item = slice_make(item.data + 1, item.size - 1);
		if (item.size > 2 && memcmp(item.data, "t=", 2) == 0) {
			if (ret->time.size)
				return false;
			ret->time = slice_make(item.data + 2, item.size - 2);
			if (!read_time(ret->time, &ret->time_us))
				return false;
		} else if (item.size > 3 && memcmp(item.data, "v1=", 3) == 0 &&
		           ret->count < SIGNATURES_MAX) {
			struct slice hex = slice_make(item.data + 3, item.size - 3);
			ret->count += hex_decode(hex, ret->values[ret->count].bytes, SHA256_SIZE);
		}
	}
	return ret->time.size && ret->count;
}

static bool next_secret(const char **rest, struct slice *ret_secret)
{
	while (**rest == ',' || **rest == ' ')
		(*rest)++;
	size_t size = strcspn(*rest, ", ");
	*ret_secret = slice_make(*rest, size);
	*rest += size;
	return size > 0;
}

static bool is_signed(const struct signature *signature, const char *secrets, struct slice text)
{
	struct slice secret;
	bool good = false;
	while (next_secret(&secrets, &secret)) {
		struct sha256 right = hmac_sha256(secret, text);
		for (unsigned i = 0; i < signature->count; i++)
			good |= CRYPTO_memcmp(right.bytes, signature->values[i].bytes, SHA256_SIZE) == 0;
	}
	return good;
}

int stripe_check_signature(const char *secrets, struct slice header, struct slice body,
                           int64_t now_us, int64_t *ret_sent_us, struct error *error)
{
	struct signature signature;
	if (!read_signature(header, &signature))
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_SIGNATURE, NULL);
	BUF_AUTO struct buf text;
	buf_init(&text, PAYMENT_NOTICE_SIZE_MAX + 64);
	buf_add_slice(&text, signature.time);
	buf_add_byte(&text, '.');
	buf_add_slice(&text, body);
	if (buf_check(&text))
		return ERR_NO_MEMORY;
	if (!is_signed(&signature, secrets, buf_slice(&text)))
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_SIGNATURE, NULL);
	int64_t apart_us = now_us - signature.time_us;
	if (apart_us > TOLERANCE_US || apart_us < -TOLERANCE_US)
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_SIGNATURE_AGE, NULL);
	*ret_sent_us = signature.time_us;
	return OK;
}

/* ---- the event ---- */

static void copy_currency(const struct json *object, struct payment_notice *notice)
{
	stripe_copy(object, "currency", notice->currency, sizeof notice->currency);
	for (char *at = notice->currency; *at; at++)
		*at = (char)toupper((unsigned char)*at);
}

static void copy_metadata(const struct json *object, struct payment_notice *notice)
{
	const struct json *metadata = json_member(object, "metadata");
	stripe_copy(metadata, "sale_code", notice->sale_code, sizeof notice->sale_code);
	stripe_copy(metadata, "attempt", notice->idempotency_key, sizeof notice->idempotency_key);
}

/* A payment without a sale code is from another application that uses the same Stripe account. */
static void read_intent(const struct json *intent, enum payment_notice_kind kind,
                        struct payment_notice *notice)
{
	copy_metadata(intent, notice);
	stripe_copy(intent, "id", notice->reference, sizeof notice->reference);
	if (!*notice->sale_code || !*notice->reference)
		return;
	if (kind == PAYMENT_NOTICE_FAILED) {
		struct payment_result result = {0};
		stripe_read_intent(intent, NULL, true, &result);
		memcpy(notice->code, result.code, sizeof notice->code);
	} else {
		if (!json_get_integer(intent, "amount_received", &notice->amount_minor))
			return;
		copy_currency(intent, notice);
	}
	notice->kind = kind;
}

/* A refunded charge counts only if it is fully refunded. */
static void read_charge(const struct json *charge, struct payment_notice *notice)
{
	const struct json *whole = json_member(charge, "refunded");
	copy_metadata(charge, notice);
	copy_currency(charge, notice);
	stripe_copy_id(charge, "payment_intent", notice->reference, sizeof notice->reference);
	if (whole && whole->type == JSON_TRUE && *notice->reference &&
	    json_get_integer(charge, "amount_refunded", &notice->amount_minor))
		notice->kind = PAYMENT_NOTICE_REFUNDED;
}

/* A lost dispute: the customer's bank has taken the money back. */
static void read_dispute(const struct json *dispute, struct payment_notice *notice)
{
	struct slice status;
	copy_currency(dispute, notice);
	stripe_copy_id(dispute, "payment_intent", notice->reference, sizeof notice->reference);
	if (json_get_text(dispute, "status", &status) && slice_is(status, "lost") &&
	    *notice->reference && json_get_integer(dispute, "amount", &notice->amount_minor)) {
		notice->kind = PAYMENT_NOTICE_REFUNDED;
		notice->by_bank = true;
	}
}

static void read_object(const struct json *object, struct payment_notice *notice)
{
	if (strcmp(notice->type, "payment_intent.succeeded") == 0)
		read_intent(object, PAYMENT_NOTICE_PAID, notice);
	else if (strcmp(notice->type, "payment_intent.payment_failed") == 0 ||
	         strcmp(notice->type, "payment_intent.canceled") == 0)
		read_intent(object, PAYMENT_NOTICE_FAILED, notice);
	else if (strcmp(notice->type, "charge.refunded") == 0)
		read_charge(object, notice);
	else if (strcmp(notice->type, "charge.dispute.closed") == 0)
		read_dispute(object, notice);
}

int stripe_read_event(struct slice body, struct payment_notice *notice, struct error *error)
{
	static const struct json_limits limits = {.depth_max = 64, .value_max = 50000};
	ARENA_AUTO struct arena arena;
	struct json *event = NULL;
	int64_t seconds = 0;
	arena_init(&arena, STRIPE_JSON_MEMORY);
	int result = json_parse(&arena, body, &limits, &event, error);
	if (result)
		return result;
	stripe_copy(event, "id", notice->id, sizeof notice->id);
	stripe_copy(event, "type", notice->type, sizeof notice->type);
	const struct json *object = json_member(json_member(event, "data"), "object");
	if (!*notice->id || !*notice->type || !object || object->type != JSON_OBJECT ||
	    !json_get_integer(event, "created", &seconds) || seconds < 0 ||
	    seconds > INT64_MAX / US_PER_SECOND)
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_NOTICE, NULL);
	notice->created_us = seconds * US_PER_SECOND;
	read_object(object, notice);
	return OK;
}
