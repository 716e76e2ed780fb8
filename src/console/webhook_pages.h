/* Additional data of the pages of webhook endpoints. */
#ifndef CONSOLE_WEBHOOK_PAGES_H
#define CONSOLE_WEBHOOK_PAGES_H

#include "console/visit.h"

/* "types": the types of notices, each with "type", "what" (of the texts notice_type.…) and
 * "chosen": whether it was selected in the form. "every": whether all are selected. */
int webhooks_page(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* For the endpoint of the path: "endpoint", the answer of `webhook show`; "types" and "every" as
 * above, by default with the endpoint's selection; "state", for the plots of its deliveries in 90
 * days. */
int endpoint_page(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "attempts" to deliver the notice of the path to the endpoint of the path, empty if it was never
 * queued for it; and "header", the prefix of the delivery headers. */
int delivery_page(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
