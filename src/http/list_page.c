#include "http/list_page.h"

#include <stdio.h>

#include "http/query_parameters.h"
#include "service/list.h"
#include "service/service.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 500
#define BINDING_SIZE (sizeof((struct page *)0)->binding + sizeof "\ndesc")

static const char *const order_texts[] = {[ORDER_ASCENDING] = "asc", [ORDER_DESCENDING] = "desc"};

static struct slice binding_in(const struct page *page, enum list_order order,
                               char text[BINDING_SIZE])
{
	const char *order_text = order == page->usual ? "" : order_texts[order];
	int size =
		snprintf(text, BINDING_SIZE, "%s%s%s", page->binding, *order_text ? "\n" : "", order_text);
	return slice_make(text, (size_t)size);
}

static int open_cursor(const struct page *page, const struct exchange *exchange,
                       struct slice cursor, enum list_order order, int64_t *ret_position,
                       struct error *error)
{
	char text[BINDING_SIZE];
	return cursor_open(&exchange->service->cursor_secret, binding_in(page, order, text), cursor,
	                   ret_position, error);
}

static int read_order(struct page *page, const struct exchange *exchange, bool *ret_given,
                      struct error *error)
{
	struct slice text;
	page->asked.order = page->usual;
	*ret_given = query_get(&exchange->parameters, "order", &text);
	if (!*ret_given)
		return 0;
	for (enum list_order order = ORDER_ASCENDING; order <= ORDER_DESCENDING; order++) {
		page->asked.order = order;
		if (slice_is(text, order_texts[order]))
			return 0;
	}
	return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_CHOICE, "order", "asc, desc", NULL);
}

static int read_cursor(struct page *page, const struct exchange *exchange, bool order_given,
                       struct error *error)
{
	struct slice cursor;
	if (!query_get(&exchange->parameters, "cursor", &cursor))
		return 0;
	enum list_order order = page->asked.order;
	int result = open_cursor(page, exchange, cursor, order, &page->asked.past, error);
	if (!result)
		return 0;
	enum list_order other = order == ORDER_ASCENDING ? ORDER_DESCENDING : ORDER_ASCENDING;
	if (open_cursor(page, exchange, cursor, other, &page->asked.past, NULL))
		return result;
	page->asked.order = other;
	return order_given
	           ? error_set(error, ERR_VALIDATION, MSG_HTTP_CURSOR_ORDER, order_texts[other], NULL)
	           : 0;
}

int page_read(struct page *page, const struct exchange *exchange, struct error *error)
{
	bool order_given;
	page->asked = (struct list_page){.limit = LIMIT_DEFAULT};
	int result = read_order(page, exchange, &order_given, error);
	if (!result)
		result =
			query_integer(&exchange->parameters, "limit", 1, LIMIT_MAX, &page->asked.limit, error);
	return result ? result : read_cursor(page, exchange, order_given, error);
}

void page_begin(struct page *page, struct exchange *exchange)
{
	page->writer = (struct json_writer){.out = &exchange->out};
	list_begin(&page->writer);
}

void page_end(struct page *page, struct exchange *exchange, bool more, int64_t last)
{
	char cursor[CURSOR_SIZE], text[BINDING_SIZE];
	cursor_make(&exchange->service->cursor_secret, binding_in(page, page->asked.order, text), last,
	            cursor);
	list_end_with_cursor(&page->writer, more ? cursor : NULL);
	answer_out(exchange, 200);
}
