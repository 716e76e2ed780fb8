/* Additional data of the pages about billing and usage. */
#ifndef CONSOLE_BILLING_PAGES_H
#define CONSOLE_BILLING_PAGES_H

#include "console/visit.h"

/* "topup": the answer of `topup show` if the account has a top-up. "pages": whether the provider
 * offers payment pages. */
int billing_page_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* For one purchase: the provider of payment pages, if there is one. */
int purchase_page_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Redirects to the payment page of the purchase {sale}, or to the console's page of the purchase if
 * there is none. */
int purchase_payment_page(struct visit *visit) MUST_CHECK;
/* "shown": the effective filter; "history": the balance by day, by default for the last 90 days. */
int balance_history_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "shown": the filter and the columns; "usage": its rows, with "usage_last"; "days": usage by day
 * for the plot. By default the last 90 days; by month, all months. */
int usage_page_data(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
