/* The receipt of a paid purchase as a PDF (report/sale.h), drawn by the renderer and signed by the
 * key that signs reports, without a timestamp. What it says comes from the purchase's record; only
 * the seller's name and address are the settings', and of a purchase from before they were recorded
 * the account's name is today's and the tax rate worked out (amount_tax_rate). It is made in
 * memory, and made again whenever it is asked for.
 *
 * Thread safe; waits for the renderer, some seconds at most, and for the signing process. */
#ifndef ISSUE_SALE_RECEIPT_H
#define ISSUE_SALE_RECEIPT_H

#include "service/service.h"
#include "store/money/purchases.h"

#define SALE_RECEIPT_MAX ((size_t)2 << 20)

/* Appends the PDF. ERR_REFUSED: it was never paid. ERR_BUSY: another one is being made, and a node
 * makes one at a time.
 * ERR_RATE_LIMITED: the account had many made (receipt_rate.h); the operator has as many as he
 * likes. ERR_UNAVAILABLE with the sentence: `service` is NULL, for only a running one draws and
 * signs; or this node is quiet, or cannot sign, or draw, now. */
struct sale_receipt_order {
	const struct purchase_record *purchase;
	const char *account_name; /* today's */
	enum language language;
	bool of_operator;
};
int sale_receipt_make(struct service *service, const struct sale_receipt_order *order,
                      struct buf *out, struct error *error) MUST_CHECK;

#endif
