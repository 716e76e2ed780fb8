/* Additional data of the page of the request log. */
#ifndef CONSOLE_REQUEST_PAGES_H
#define CONSOLE_REQUEST_PAGES_H

#include "console/visit.h"

/* "requests": the rows that the query selects, with "requests_last"; "sampled": whether one of them
 * represents several requests; "shown": the number of rows; "all": the number of requests that they
 * represent. */
int request_list_data(struct visit *visit, struct json_writer *data) MUST_CHECK;

#endif
