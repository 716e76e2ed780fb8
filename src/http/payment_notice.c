/* POST /payments/{provider}/notices: notices of the payment provider about payments. The provider's
 * signature over the body replaces the API key. */
#include "base/log.h"
#include "base/log_throttle.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "payment/payment.h"
#include "service/purchase.h"

#define SIGNATURE_MAX 4096

static int begin(struct exchange *exchange, struct error *error)
{
	const struct payment_provider *provider = exchange->service->payments;
	const char *name = payment_notice_header(provider);
	if (!name || !slice_is(exchange->arguments[0], payment_provider_name(provider)))
		return error_set(error, ERR_NOT_FOUND, MSG_HTTP_PATH, NULL);
	int result = body_check_encoding(exchange, error);
	if (result)
		return result;
	const char *value = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
	size_t size = value ? strlen(value) : 0;
	if (!size || size > SIGNATURE_MAX)
		return error_set(error, ERR_VALIDATION, MSG_PAYMENT_SIGNATURE, NULL);
	/* Copied, because the connection may be gone when a worker reads it. */
	const char *copy = arena_copy(&exchange->arena, value, size);
	if (!copy)
		return ERR_NO_MEMORY;
	exchange->head.signature = slice_make(copy, size);
	exchange->body_limit = PAYMENT_NOTICE_SIZE_MAX;
	return 0;
}

/* Returns whether the notice must not be sent again: it was processed, is not ours, or needs an
 * operator. */
static bool is_settled(int result)
{
	return !result || result == ERR_NOT_FOUND || result == ERR_REFUSED;
}

static const char *kind_text(enum payment_notice_kind kind)
{
	static const char *const texts[] = {"other", "paid", "failed", "refunded"};
	return texts[kind];
}

static void log_refused(const struct exchange *exchange, const struct error *error)
{
	static struct log_throttle pace = LOG_THROTTLE(1, 60);
	char omitted[LOG_THROTTLE_NUMBER_SIZE];
	if (log_throttle_take(&pace, clock_monotonic_us(), omitted))
		log_warning("payment_notice_refused", "request_id", exchange->request_id, "cause",
		            error_message(error, LANGUAGE_ENGLISH), "omitted", omitted);
}

static int take_notice(struct exchange *exchange, struct error *error)
{
	struct payment_notice notice;
	struct service *service = exchange->service;
	int result =
		payment_read_notice(service->payments, exchange->head.signature, buf_slice(&exchange->body),
	                        store_now_us(service->store), &notice, error);
	if (result) {
		log_refused(exchange, error);
		return result;
	}
	result = service_payment_notice(service, &notice, error);
	if (!is_settled(result))
		return result;
	log_info("payment_notice", "notice_id", notice.id, "type", notice.type, "kind",
	         kind_text(notice.kind), "sale_id", *notice.sale_code ? notice.sale_code : NULL,
	         "reference", *notice.reference ? notice.reference : NULL, "taken",
	         result ? "no" : "yes");
	struct json_writer writer = {.out = &exchange->out};
	json_begin_object(&writer, NULL);
	json_boolean(&writer, "received", true);
	json_end_object(&writer);
	answer_out(exchange, 200);
	return 0;
}

const struct operation operation_payment_notice = {
	.open = true,
	.bucket = 1,
	.begin = begin,
	.work = take_notice,
};
