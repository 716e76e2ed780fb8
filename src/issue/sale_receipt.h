/* Creates the receipt of a paid purchase as a PDF (report/sale.h), drawn by the renderer and signed
 * by the key that signs reports, without a timestamp. The contents come from the purchase's record.
 * Only the seller's name and address come from the settings. For a purchase made before these were
 * recorded, the account's present name is used and the tax rate is computed (amount_tax_rate). A
 * receipt is created in memory for each request.
 *
 * Thread safe. Blocks on the renderer, for a few seconds at most, and on the signing process. */
#ifndef ISSUE_SALE_RECEIPT_H
#define ISSUE_SALE_RECEIPT_H

#include "service/service.h"
#include "store/money/purchases.h"

#define SALE_RECEIPT_MAX ((size_t)2 << 20)

/* Appends the PDF. ERR_REFUSED: the purchase was never paid. ERR_BUSY: this node is creating
 * another receipt; it creates one at a time. ERR_RATE_LIMITED: the account requested too many
 * (receipt_rate.h); the operator is not limited. ERR_UNAVAILABLE with a message: `service` is NULL
 * (only a running service can draw and sign), the store is a read-only copy, or this node cannot
 * sign or draw now. */
struct sale_receipt_order {
	const struct purchase_record *purchase;
	const char *account_name; /* present name */
	enum language language;
	bool of_operator;
};
int sale_receipt_make(struct service *service, const struct sale_receipt_order *order,
                      struct buf *out, struct error *error) MUST_CHECK;

#endif
