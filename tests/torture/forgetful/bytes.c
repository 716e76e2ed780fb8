#include "bytes.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

struct page {
	size_t references;
	unsigned char data[PAGE_SIZE];
};

static struct page *page_take(struct page *page)
{
	if (page)
		page->references++;
	return page;
}

static void page_give(struct page *page)
{
	if (page && --page->references == 0)
		free(page);
}

static void page_replace(struct page **place, struct page *page)
{
	page_take(page);
	page_give(*place);
	*place = page;
}

static struct page *page_copy(const struct page *page)
{
	struct page *copy = malloc(sizeof *copy);
	if (!copy)
		err(1, "page");
	if (page)
		memcpy(copy->data, page->data, PAGE_SIZE);
	else
		memset(copy->data, 0, PAGE_SIZE);
	copy->references = 1;
	return copy;
}

/* The page to write to, which is not shared. */
static struct page *page_own(struct page **place)
{
	if (*place && (*place)->references == 1)
		return *place;
	struct page *copy = page_copy(*place);
	page_give(*place);
	return *place = copy;
}

static void *grow(void *array, size_t old_count, size_t count, size_t size)
{
	char *grown = realloc(array, count * size);
	if (!grown)
		err(1, "pages");
	memset(grown + old_count * size, 0, (count - old_count) * size);
	return grown;
}

static void reach(struct bytes *bytes, uint64_t size)
{
	size_t needed = (size_t)((size + PAGE_SIZE - 1) / PAGE_SIZE);
	if (needed <= bytes->page_count)
		return;
	size_t count = bytes->page_count * 2 > needed ? bytes->page_count * 2 : needed;
	bytes->visible = grow(bytes->visible, bytes->page_count, count, sizeof *bytes->visible);
	bytes->durable = grow(bytes->durable, bytes->page_count, count, sizeof *bytes->durable);
	bytes->dirty = grow(bytes->dirty, bytes->page_count, count, sizeof *bytes->dirty);
	bytes->page_count = count;
}

void bytes_free(struct bytes *bytes)
{
	for (size_t i = 0; i < bytes->page_count; i++) {
		page_give(bytes->visible[i]);
		page_give(bytes->durable[i]);
	}
	free(bytes->visible);
	free(bytes->durable);
	free(bytes->dirty);
	*bytes = (struct bytes){0};
}

size_t bytes_read(const struct bytes *bytes, uint64_t offset, void *data, size_t size)
{
	if (offset >= bytes->visible_size)
		return 0;
	if (size > bytes->visible_size - offset)
		size = (size_t)(bytes->visible_size - offset);
	for (size_t done = 0; done < size;) {
		size_t at = (size_t)((offset + done) % PAGE_SIZE);
		size_t part = PAGE_SIZE - at < size - done ? PAGE_SIZE - at : size - done;
		const struct page *page = bytes->visible[(offset + done) / PAGE_SIZE];
		if (page)
			memcpy((char *)data + done, page->data + at, part);
		else
			memset((char *)data + done, 0, part);
		done += part;
	}
	return size;
}

void bytes_write(struct bytes *bytes, uint64_t offset, const void *data, size_t size)
{
	reach(bytes, offset + size);
	for (size_t done = 0; done < size;) {
		size_t at = (size_t)((offset + done) % PAGE_SIZE);
		size_t part = PAGE_SIZE - at < size - done ? PAGE_SIZE - at : size - done;
		size_t number = (size_t)((offset + done) / PAGE_SIZE);
		struct page *page = page_own(&bytes->visible[number]);
		memcpy(page->data + at, (const char *)data + done, part);
		bytes->dirty[number] = 1;
		done += part;
	}
	if (offset + size > bytes->visible_size)
		bytes->visible_size = offset + size;
}

void bytes_resize(struct bytes *bytes, uint64_t size)
{
	reach(bytes, size);
	if (size < bytes->visible_size) {
		size_t number = (size_t)(size / PAGE_SIZE);
		size_t at = (size_t)(size % PAGE_SIZE);
		if (at && bytes->visible[number]) {
			struct page *page = page_own(&bytes->visible[number]);
			memset(page->data + at, 0, PAGE_SIZE - at);
			bytes->dirty[number++] = 1;
		}
		for (; number * PAGE_SIZE < bytes->visible_size; number++) {
			page_replace(&bytes->visible[number], NULL);
			bytes->dirty[number] = 1;
		}
	}
	bytes->visible_size = size;
}

static void sync_page(struct bytes *bytes, size_t number)
{
	page_replace(&bytes->durable[number], bytes->visible[number]);
	bytes->dirty[number] = 0;
}

void bytes_sync(struct bytes *bytes)
{
	for (size_t i = 0; i < bytes->page_count; i++)
		if (bytes->dirty[i])
			sync_page(bytes, i);
	bytes->durable_size = bytes->visible_size;
}

void bytes_forget_dirty(struct bytes *bytes)
{
	if (bytes->page_count)
		memset(bytes->dirty, 0, bytes->page_count);
}

void bytes_write_back(struct bytes *bytes, struct choice *choice)
{
	if (!bytes->page_count)
		return;
	size_t start = (size_t)choice_below(choice, bytes->page_count);
	for (size_t i = 0; i < bytes->page_count; i++) {
		size_t number = (start + i) % bytes->page_count;
		if (!bytes->dirty[number])
			continue;
		sync_page(bytes, number);
		uint64_t end = (number + 1) * PAGE_SIZE;
		if (end > bytes->visible_size)
			end = bytes->visible_size;
		if (end > bytes->durable_size)
			bytes->durable_size = end;
		return;
	}
}

/* ---- cuts ---- */

/* Some sectors of the one, some of the other. */
static struct page *tear(const struct page *durable, const struct page *visible,
                         struct choice *choice, size_t sector_size)
{
	struct page *torn = page_copy(durable);
	for (size_t at = 0; at < PAGE_SIZE; at += sector_size) {
		if (choice_below(choice, 2))
			continue;
		if (visible)
			memcpy(torn->data + at, visible->data + at, sector_size);
		else
			memset(torn->data + at, 0, sector_size);
	}
	return torn;
}

/* Takes a reference for who gets it. */
static struct page *choose_page(const struct bytes *bytes, size_t number, struct choice *choice,
                                size_t sector_size, struct loss *loss)
{
	struct page *durable = bytes->durable[number], *visible = bytes->visible[number];
	if (!bytes->dirty[number])
		return page_take(durable);
	if (choice->kept_percent && sector_size < PAGE_SIZE && choice_below(choice, 4) == 0) {
		loss->torn++;
		return tear(durable, visible, choice, sector_size);
	}
	bool kept = choice_keep(choice);
	if (kept)
		loss->kept++;
	else
		loss->lost++;
	return page_take(kept ? visible : durable);
}

static uint64_t choose_size(const struct bytes *bytes, struct choice *choice)
{
	uint64_t low = bytes->durable_size, high = bytes->visible_size;
	if (low == high || !choice_keep(choice))
		return low;
	if (high > low && choice_below(choice, 2))
		return low + choice_below(choice, high - low);
	return high;
}

struct bytes bytes_after_cut(const struct bytes *bytes, struct choice *choice, size_t sector_size,
                             struct loss *loss)
{
	struct bytes found = {.visible_size = choose_size(bytes, choice)};
	reach(&found, bytes->page_count * PAGE_SIZE);
	for (size_t i = 0; i < bytes->page_count; i++)
		found.visible[i] = choose_page(bytes, i, choice, sector_size, loss);
	/* Beyond its end a file holds zeros, whatever was there before. */
	uint64_t size = found.visible_size;
	found.visible_size = found.page_count * PAGE_SIZE;
	bytes_resize(&found, size);
	bytes_sync(&found);
	for (size_t i = 0; i < found.page_count; i++)
		page_replace(&found.durable[i], found.visible[i]);
	return found;
}
