#include "issue/sale_receipt.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "evidence/signers.h"
#include "report/pdf_sign.h"
#include "report/renderer.h"
#include "service/quiet.h"
#include "service/settings.h"

static const char *null_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

static struct sale_facts facts_of(const struct service *service,
                                  const struct sale_receipt_order *order)
{
	const struct purchase_record *purchase = order->purchase;
	const struct settings *settings = service->settings;
	bool recorded = purchase->account_name != NULL;
	return (struct sale_facts){
		.issued_at_us = clock_now_us(),
		.service_name = settings->service_name,
		.service_url = settings->service_public_url,
		.account_id = purchase->account_id,
		.account_name = recorded ? purchase->account_name : order->account_name,
		.recorded = recorded,
		.country = null_if_empty(purchase->country),
		.customer = null_if_empty(purchase->customer),
		.sale_id = purchase->sale_id,
		.description = purchase->description,
		.credits = purchase->credits,
		.net_minor = purchase->amount_minor,
		.tax_minor = purchase->tax_minor,
		.tax_rate =
			amount_named_rate(purchase->tax_rate, purchase->amount_minor, purchase->tax_minor),
		.currency = currency_text(purchase->currency),
		.created_at_us = purchase->created_at_us,
		.paid_at_us = purchase->paid_at_us,
		.provider = purchase->reference ? purchase->provider : NULL,
		.reference = null_if_empty(purchase->reference),
		.automatic = purchase->automatic,
		.state = purchase->state == PURCHASE_REFUNDED   ? SALE_REFUNDED
	             : purchase->state == PURCHASE_REVERTED ? SALE_REVERTED
	                                                    : SALE_PAID,
		.ended_at_us = purchase->ended_at_us,
	};
}

static int sign(struct service *service, int drawn, int file, struct error *error)
{
	struct cms_signer signer = {service->signer, SIGNER_RECEIPT};
	const struct cms_signing signing = {
		.certificates_pem = signer_certificates(service->signer),
		.sign = cms_sign_with_signer,
		.sign_context = &signer,
	};
	int result = signers_check(service, error);
	return result ? result : pdf_sign_open(drawn, file, clock_now_us(), &signing, error);
}

static int read_back(int file, struct buf *out, struct error *error)
{
	struct stat found;
	if (fstat(file, &found) != 0)
		return error_cause(error, ERR_IO, "a receipt: %s", strerror(errno));
	if ((size_t)found.st_size > SALE_RECEIPT_MAX)
		return error_cause(error, ERR_TOO_LARGE, "a receipt");
	size_t size = (size_t)found.st_size;
	char *bytes = buf_extend(out, size);
	if (!bytes)
		return ERR_NO_MEMORY;
	if (pread(file, bytes, size, 0) != (ssize_t)size)
		return error_cause(error, ERR_IO, "a receipt: %s", strerror(errno));
	return OK;
}

static int draw_and_sign(struct service *service, const struct sale_facts *facts,
                         enum language language, struct buf *out, struct error *error)
{
	DESCRIPTOR_AUTO int drawn = memfd_create("receipt", MFD_CLOEXEC);
	DESCRIPTOR_AUTO int file = memfd_create("signed receipt", MFD_CLOEXEC);
	if (drawn < 0 || file < 0)
		return error_cause(error, ERR_NO_MEMORY, "memfd_create: %s", strerror(errno));
	int result = renderer_draw_sale(service->renderer, facts, language, drawn, error);
	if (!result)
		result = sign(service, drawn, file, error);
	return result ? result : read_back(file, out, error);
}

int sale_receipt_make(struct service *service, const struct sale_receipt_order *order,
                      struct buf *out, struct error *error)
{
	const struct purchase_record *purchase = order->purchase;
	int quiet = service ? quiet_refuse(service, error) : OK;
	if (quiet)
		return quiet;
	if (purchase->paid_at_us == TIME_NONE)
		return error_set(error, ERR_REFUSED, MSG_SALE_NOT_PAID, purchase->sale_id, NULL);
	if (!service || !service->renderer || !service->signer)
		return error_set(error, ERR_UNAVAILABLE, MSG_SALE_NO_SERVICE, NULL);
	if (atomic_exchange(&service->makes_receipt, true))
		return error_set(error, ERR_BUSY, MSG_SALE_BUSY, NULL);
	int result = order->of_operator
	                 ? OK
	                 : receipt_rate_take(&service->receipt_rate, purchase->account_id,
	                                     clock_monotonic_us(), error);
	struct sale_facts facts = facts_of(service, order);
	if (!result)
		result = draw_and_sign(service, &facts, order->language, out, error);
	atomic_store(&service->makes_receipt, false);
	return result;
}
