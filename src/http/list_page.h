/* A page of a list: the parameters of the request, and the envelope and cursor of the answer. */
#ifndef HTTP_LIST_PAGE_H
#define HTTP_LIST_PAGE_H

#include "http/exchange.h"

struct page {
	/* Operation, chain and filters for which a cursor is valid. Set by the caller,
	 * NUL-terminated. */
	char binding[420];
	enum list_order usual; /* default order; set by the caller */
	struct list_page asked;
	struct json_writer writer; /* writer of the answer's body */
};

/* Reads the parameters "order", "limit" and "cursor". Without "order", the order of the cursor
 * applies. Cursors of the default order are bound as in versions without an order.
 * ERR_VALIDATION. */
int page_read(struct page *page, const struct exchange *exchange, struct error *error) MUST_CHECK;
/* Starts the answer; the caller then writes the items. */
void page_begin(struct page *page, struct exchange *exchange);
/* Ends the list and answers. `last`: position of the last item, for the next page. */
void page_end(struct page *page, struct exchange *exchange, bool more, int64_t last);

#endif
