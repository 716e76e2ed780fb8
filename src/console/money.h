/* What the pages on money and usage have beside the answers of their operations. */
#ifndef CONSOLE_MONEY_H
#define CONSOLE_MONEY_H

#include "console/visit.h"

/* "topup": the answer of `topup show`, where the account has one. "pages": whether purchases get a
 * payment page of a provider. */
int money_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Of one purchase: which provider makes payment pages, if one does. */
int money_purchase(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* To the page on which the purchase {sale} can be paid; to the console's own page on it when there
 * is none. */
int money_pay(struct visit *visit) MUST_CHECK;
/* The receipt of the purchase {sale} as a file, in the page's language unless the query has
 * "language". */
int money_receipt(struct visit *visit) MUST_CHECK;
/* "shown": the filter as it holds; "history": the balance by day, the last 90 days unless told. */
int money_history(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "shown": the filter, and which columns there are; "usage": its rows, with "usage_last"; "days":
 * the same by day, for the plot. The last 90 days unless told, by months all. */
int usage_state(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
