#include "http/page.h"

#include "http/query.h"
#include "service/list.h"
#include "service/service.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 500

int page_read(struct page *page, const struct exchange *exchange, struct error *error)
{
	struct slice cursor;
	page->limit = LIMIT_DEFAULT;
	page->position = 0;
	int result = query_integer(&exchange->parameters, "limit", 1, LIMIT_MAX, &page->limit, error);
	if (!result && query_get(&exchange->parameters, "cursor", &cursor))
		result = cursor_open(&exchange->service->cursor_secret, slice_of(page->binding), cursor,
		                     &page->position, error);
	return result;
}

void page_begin(struct page *page, struct exchange *exchange)
{
	page->writer = (struct json_writer){.out = &exchange->out};
	list_begin(&page->writer);
}

void page_end(struct page *page, struct exchange *exchange, bool more, int64_t last)
{
	char cursor[CURSOR_SIZE];
	cursor_make(&exchange->service->cursor_secret, slice_of(page->binding), last, cursor);
	list_end_with_cursor(&page->writer, more ? cursor : NULL);
	answer_out(exchange, 200);
}
