/* Provider manual: an operator confirms payments. Nothing is charged here, and no service is
 * contacted. */
#include "payment/provider.h"

static int manual_open(const struct payment_settings *settings, void **ret_state,
                       struct error *error)
{
	(void)settings, (void)error;
	*ret_state = NULL;
	return OK;
}

static void manual_close(void *state)
{
	(void)state;
}

static int manual_charge(void *state, const struct payment_order *order,
                         struct payment_result *result, struct error *error)
{
	(void)state, (void)order, (void)error;
	result->outcome = PAYMENT_PENDING;
	return OK;
}

static int manual_look_up(void *state, const struct payment_order *order, const char *reference,
                          int64_t since_us, struct payment_result *result, struct error *error)
{
	(void)reference, (void)since_us;
	return manual_charge(state, order, result, error);
}

static int manual_refund(void *state, const char *reference, const char *idempotency_key,
                         struct payment_result *result, struct error *error)
{
	(void)reference, (void)idempotency_key;
	return manual_charge(state, NULL, result, error);
}

const struct payment_driver payment_manual = {
	.name = "manual",
	.open = manual_open,
	.close = manual_close,
	.charge = manual_charge,
	.look_up = manual_look_up,
	.page = manual_charge,
	.refund = manual_refund,
};
