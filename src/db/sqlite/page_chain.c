#include "db/sqlite/page_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/file.h"
#include "db/sqlite/page_list.h"

#define PAGE_SIZE_MIN 512
#define PAGE_SIZE_MAX 65536
#define PAGES_MAX INT64_C(4294967294)

void page_record_fill(uint8_t *record, int64_t page, const void *data, size_t size)
{
	for (int i = 0; i < PAGE_NUMBER_SIZE; i++)
		record[i] = (uint8_t)((uint64_t)page >> (8 * (PAGE_NUMBER_SIZE - 1 - i)));
	memcpy(record + PAGE_NUMBER_SIZE, data, size);
}

static int64_t record_page(const uint8_t *record)
{
	uint64_t page = 0;
	for (int i = 0; i < PAGE_NUMBER_SIZE; i++)
		page = page << 8 | record[i];
	return (int64_t)page;
}

static int check_shape(const struct db_page_chain *chain, struct error *error)
{
	int64_t size = chain->pages.page_size, count = chain->pages.page_count;
	bool valid = size >= PAGE_SIZE_MIN && size <= PAGE_SIZE_MAX && (size & (size - 1)) == 0 &&
	             count >= 1 && count <= PAGES_MAX;
	return valid ? OK : error_cause(error, ERR_CORRUPT, "the manifest has impossible page counts");
}

/* ---- reading records ---- */

/* Opens a file of `unit` bytes per record. */
static int open_records(const char *path, int64_t unit, int *ret_file, int64_t *ret_count,
                        struct error *error)
{
	struct stat facts;
	DESCRIPTOR_AUTO int file = file_open_to_read(path, O_NOFOLLOW, &facts);
	if (file < 0)
		return file_fail(error, "opening", path);
	if (!S_ISREG(facts.st_mode) || facts.st_size % unit)
		return error_cause(error, ERR_CORRUPT, "%s is not complete", path);
	posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret_count = facts.st_size / unit;
	*ret_file = descriptor_take(&file);
	return OK;
}

static int read_record(int file, const char *path, void *record, int64_t unit, int64_t index,
                       struct error *error)
{
	errno = 0;
	if (file_read_at(file, record, (size_t)unit, (uint64_t)(unit * index)))
		return OK;
	return errno ? file_fail(error, "reading", path)
	             : error_cause(error, ERR_CORRUPT, "%s is not complete", path);
}

/* ---- checking ---- */

struct check {
	const struct db_page_chain *chain;
	struct page_list list;
	uint8_t *seen; /* a bit for each page */
	uint8_t *record;
	struct error *error;
};

static bool note_page(struct check *check, int64_t page)
{
	uint8_t *byte = &check->seen[(page - 1) / 8], bit = (uint8_t)(1 << (page - 1) % 8);
	bool before = *byte & bit;
	*byte |= bit;
	return !before;
}

static int compare_page(struct check *check, int64_t page, const void *data, const char *path)
{
	if (page < 1 || page > check->chain->pages.page_count || !note_page(check, page))
		return OK; /* the database had more pages then, or a newer copy was checked */
	struct sha256 expected, found;
	int result = page_list_get(&check->list, page, &expected, check->error);
	if (result || page_is_unwritten(&expected))
		return result;
	found = sha256_of(data, (size_t)check->chain->pages.page_size);
	if (!sha256_equal(&found, &expected))
		result = error_cause(check->error, ERR_CORRUPT, "page %lld in %s is damaged",
		                     (long long)page, path);
	return result;
}

static int check_file(struct check *check, const char *path, bool increment)
{
	int64_t size = check->chain->pages.page_size, count = 0;
	int64_t unit = size + (increment ? PAGE_NUMBER_SIZE : 0);
	DESCRIPTOR_AUTO int file = -1;
	int result = open_records(path, unit, &file, &count, check->error);
	for (int64_t i = 0; !result && i < count; i++) {
		result = read_record(file, path, check->record, unit, i, check->error);
		if (!result && increment)
			result = compare_page(check, record_page(check->record),
			                      check->record + PAGE_NUMBER_SIZE, path);
		else if (!result)
			result = compare_page(check, i + 1, check->record, path);
	}
	return result;
}

static int check_complete(struct check *check)
{
	int result = OK;
	for (int64_t page = 1; !result && page <= check->chain->pages.page_count; page++) {
		struct sha256 expected;
		if (!note_page(check, page))
			continue;
		result = page_list_get(&check->list, page, &expected, check->error);
		if (!result && !page_is_unwritten(&expected))
			result =
				error_cause(check->error, ERR_CORRUPT, "page %lld is missing", (long long)page);
	}
	return result;
}

static int check_all(struct check *check)
{
	const struct db_page_chain *chain = check->chain;
	int result =
		page_list_check(&check->list, chain->pages.page_count, &chain->pages.digest, check->error);
	for (size_t i = chain->count; !result && i-- > 0;)
		result = check_file(check, chain->increments[i], true);
	if (!result)
		result = check_file(check, chain->database, false);
	return result ? result : check_complete(check);
}

int page_chain_check(const struct db_page_chain *chain, struct error *error)
{
	struct check check = {.chain = chain, .list.file = -1, .error = error};
	int result = check_shape(chain, error);
	if (!result)
		result = page_list_open(chain->list_path, false, &check.list, error);
	if (result)
		return result;
	check.seen = calloc((size_t)chain->pages.page_count / 8 + 1, 1);
	check.record = malloc((size_t)chain->pages.page_size + PAGE_NUMBER_SIZE);
	result = check.seen && check.record ? check_all(&check) : ERR_NO_MEMORY;
	free(check.record);
	free(check.seen);
	page_list_close(&check.list);
	return result;
}

/* ---- building ---- */

/* Ignores the pages that the check ignores: the database had more pages then, or a later increment
 * replaces the page whose number is damaged. */
static int apply_increment(const struct db_page_chain *chain, int to, const char *to_path,
                           const char *path, uint8_t *record, struct error *error)
{
	int64_t page_size = chain->pages.page_size, unit = page_size + PAGE_NUMBER_SIZE, count = 0;
	DESCRIPTOR_AUTO int file = -1;
	int result = open_records(path, unit, &file, &count, error);
	for (int64_t i = 0; !result && i < count; i++) {
		result = read_record(file, path, record, unit, i, error);
		int64_t page = result ? 0 : record_page(record);
		if (page < 1 || page > chain->pages.page_count)
			continue;
		struct slice data = slice_make(record + PAGE_NUMBER_SIZE, (size_t)page_size);
		if (!file_write_at(to, data, (uint64_t)((page - 1) * page_size)))
			result = file_fail(error, "writing", to_path);
	}
	return result;
}

static int apply_all(const struct db_page_chain *chain, const char *path, struct error *error)
{
	int64_t page_size = chain->pages.page_size;
	uint8_t *record = malloc((size_t)page_size + PAGE_NUMBER_SIZE);
	if (!record)
		return ERR_NO_MEMORY;
	DESCRIPTOR_AUTO int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int result = file < 0 ? file_fail(error, "opening", path) : OK;
	for (size_t i = 0; !result && i < chain->count; i++)
		result = apply_increment(chain, file, path, chain->increments[i], record, error);
	free(record);
	if (!result && ftruncate(file, (off_t)(chain->pages.page_count * page_size)) != 0)
		result = file_fail(error, "writing", path);
	if (!result && !durable_sync_open(file))
		result = file_fail(error, "syncing", path);
	return result;
}

int page_chain_build(const struct db_page_chain *chain, const char *path, struct error *error)
{
	int result = check_shape(chain, error) ?: durable_copy(chain->database, path, error);
	if (!result)
		result = apply_all(chain, path, error);
	struct db_page_chain built = *chain;
	built.database = path;
	built.count = 0;
	return result ? result : page_chain_check(&built, error);
}
