#include "service/certify_range.h"
#include "service/quiet.h"

static int check_all(struct service *service, const struct certification_order *order,
                     const struct certification *certification, struct error *why)
{
	int result = quiet_refuse(service, why);
	if (!result)
		result = service_check_writes(order->key, why);
	if (!result)
		result = store_judge_certification(
			service->store, service->settings->certification_open_per_account, certification, why);
	return result;
}

int certification_estimate(struct service *service, const struct certification_order *order,
                           struct certification_estimate *ret, struct error *error)
{
	struct certification certification;
	BUF_AUTO struct buf versions;
	buf_init(&versions, CONFIG_VERSIONS_TEXT_MAX);
	*ret = (struct certification_estimate){0};
	int result =
		certification_foresee(service, order, &certification, &versions, &ret->sealed, error);
	if (!result)
		result = store_estimate_content(service->store, certification.account, certification.chain,
		                                certification.first_sequence, certification.last_sequence,
		                                &ret->content_bytes, &ret->content_exact, error);
	if (!result)
		result = certification_expect_bytes(service, &certification, error);
	if (result)
		return result;
	ret->first_sequence = certification.first_sequence;
	ret->last_sequence = certification.last_sequence;
	ret->fee = certification.mode == MODE_TEST ? 0 : certification.fee;
	ret->refusal = check_all(service, order, &certification, &ret->why);
	/* What is nobody's fault says nothing of the request, but that the service is quiet. */
	bool is_fault = ret->refusal && error_http_status(ret->refusal) >= 500;
	if (!is_fault || quiet_is(service))
		return OK;
	*error = ret->why;
	return ret->refusal;
}
