/* A page of a list: what a request asks for, and the envelope and cursor of its answer. */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include "http/exchange.h"

struct page {
	/* Operation, chain and filters: a cursor is good for the same again. Given, 0 closed. */
	char binding[300];
	enum list_order usual; /* when no order is asked for; given */
	struct list_page asked;
	struct json_writer writer; /* of the answer's body */
};

/* Reads the parameters "order", "limit" and "cursor"; without an order a cursor's own. Cursors of
 * the usual order are bound as they were before there was another. ERR_VALIDATION. */
int page_read(struct page *page, const struct exchange *exchange, struct error *error) MUST_CHECK;
/* Begins the answer; what comes between are the items. */
void page_begin(struct page *page, struct exchange *exchange);
/* Ends and gives the answer. `last`: the position of the last item, for the next page. */
void page_end(struct page *page, struct exchange *exchange, bool more, int64_t last);

#endif
