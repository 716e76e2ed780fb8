/* What the pages of webhook endpoints show beside the answers of operations. */
#ifndef CONSOLE_WEBHOOKS_H
#define CONSOLE_WEBHOOKS_H

#include "console/visit.h"

/* "types": the types of notices, each with "type", "what" (of the texts notice_type.…) and
 * "chosen": whether it was typed. "every": whether all are chosen. */
int webhooks_page(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* The endpoint of the path: "endpoint", as `webhook show` has it; "types" and "every" as above, but
 * what it wants where nothing was typed; "state", for the plots of its deliveries in 90 days. */
int endpoint_page(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "attempts" at the notice and the endpoint of the path, none where it was never queued for it; and
 * "header", how the headers of a delivery begin. */
int delivery_page(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
