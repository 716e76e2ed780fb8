#include "db/sqlite/page_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "base/tuned.h"

#define WINDOW_PAGES 4096

static int64_t window_pages(void)
{
	return tuned_up_to("page_list_window", WINDOW_PAGES);
}

int page_list_open(const char *path, bool create, struct page_list *ret_list, struct error *error)
{
	struct page_list list = {.path = path};
	int flags = create ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY;
	list.file = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (list.file < 0)
		return file_fail(error, create ? "creating" : "opening", path);
	list.window = calloc(WINDOW_PAGES, sizeof *list.window);
	if (!list.window) {
		page_list_close(&list);
		return ERR_NO_MEMORY;
	}
	*ret_list = list;
	return OK;
}

void page_list_close(struct page_list *list)
{
	descriptor_close(&list->file);
	free(list->window);
	*list = (struct page_list){.file = -1};
}

static int write_window(struct page_list *list, struct error *error)
{
	if (!list->dirty)
		return OK;
	struct slice text = slice_make(list->window, (size_t)window_pages() * SHA256_SIZE);
	if (!file_write_at(list->file, text, (uint64_t)list->first * SHA256_SIZE))
		return file_fail(error, "writing", list->path);
	list->dirty = false;
	return OK;
}

static int load_window(struct page_list *list, int64_t page, struct error *error)
{
	int64_t first = (page - 1) / window_pages() * window_pages();
	if (list->loaded && list->first == first)
		return OK;
	int result = write_window(list, error);
	if (result)
		return result;
	size_t size = (size_t)window_pages() * SHA256_SIZE, filled = 0;
	char *bytes = (char *)list->window;
	while (filled < size) {
		off_t at = (off_t)(first * SHA256_SIZE) + (off_t)filled;
		ssize_t got = pread(list->file, bytes + filled, size - filled, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return file_fail(error, "reading", list->path);
		if (got == 0)
			break;
		filled += (size_t)got;
	}
	memset(bytes + filled, 0, size - filled);
	list->first = first;
	list->loaded = true;
	return OK;
}

int page_list_get(struct page_list *list, int64_t page, struct sha256 *ret, struct error *error)
{
	int result = load_window(list, page, error);
	if (!result)
		*ret = list->window[page - 1 - list->first];
	return result;
}

int page_list_put(struct page_list *list, int64_t page, const struct sha256 *digest,
                  struct error *error)
{
	int result = load_window(list, page, error);
	if (result)
		return result;
	list->window[page - 1 - list->first] = *digest;
	list->dirty = true;
	return OK;
}

static int digest_list(struct page_list *list, uint64_t *ret_size, struct sha256 *ret,
                       struct error *error)
{
	if (lseek(list->file, 0, SEEK_SET) < 0)
		return file_fail(error, "reading", list->path);
	return file_digest(list->file, list->path, ret_size, ret, error);
}

int page_list_finish(struct page_list *list, int64_t count, struct sha256 *ret_digest,
                     struct error *error)
{
	uint64_t size = 0;
	int result = write_window(list, error);
	if (result)
		return result;
	if (ftruncate(list->file, (off_t)(count * SHA256_SIZE)) != 0 || !durable_sync_open(list->file))
		return file_fail(error, "writing", list->path);
	return digest_list(list, &size, ret_digest, error);
}

int page_list_check(struct page_list *list, int64_t count, const struct sha256 *digest,
                    struct error *error)
{
	uint64_t size = 0;
	struct sha256 found;
	int result = digest_list(list, &size, &found, error);
	if (!result && (size != (uint64_t)count * SHA256_SIZE || !sha256_equal(&found, digest)))
		result = error_cause(error, ERR_CORRUPT, "%s does not match its manifest", list->path);
	return result;
}
