/* Copies of the database page by page, complete or only the pages that changed since an earlier
 * copy.
 *
 * SQLite's backup interface copies the pages of a snapshot into a second database. That database is
 * the file system (VFS) of this file: it has no file, but receives each page once, compares its
 * digest with that of the earlier copy, and writes what is needed. Page 1 is received again at the
 * end, so it stays in memory until then. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "db/sqlite/page_chain.h"
#include "db/sqlite/page_list.h"
#include "db/sqlite/sqlite_internal.h"

#define STEP_PAGES 512
#define PAUSE_MAX_US 1000000
#define VFS_NAME_SIZE 48

struct copy {
	struct sqlite_db *db;
	const struct db_page_target *target;
	struct page_list list, before;
	int file;
	int64_t page_size, page_count;
	int64_t changed;     /* pages written to the file */
	int64_t written_out; /* bytes */
	uint8_t *first_page;
	bool has_first_page;
	uint8_t *record;
	int failure; /* of the file system below, with the reason in *error */
	struct error *error;
	int log_pages; /* of the store's log at the last step */
	sqlite3_vfs vfs;
	char name[VFS_NAME_SIZE];
};

struct copy_file {
	sqlite3_file base;
	struct copy *copy;
};

/* ---- the pages ---- */

static int write_record(struct copy *copy, int64_t page, const void *data)
{
	size_t size = (size_t)copy->page_size;
	uint64_t at = (uint64_t)(page - 1) * size;
	struct slice bytes = slice_make(data, size);
	if (copy->target->before) {
		page_record_fill(copy->record, page, data, size);
		bytes = slice_make(copy->record, PAGE_NUMBER_SIZE + size);
		at = (uint64_t)copy->changed * bytes.size;
	}
	if (!file_write_at(copy->file, bytes, at))
		return file_fail(copy->error, "writing", copy->target->path);
	copy->changed++;
	return OK;
}

static int put_page(struct copy *copy, int64_t page, const void *data)
{
	struct sha256 digest = sha256_of(data, (size_t)copy->page_size), earlier = {0};
	int result = page_list_get(&copy->list, page, &earlier, copy->error);
	if (!result && !page_is_unwritten(&earlier))
		result =
			error_cause(copy->error, ERR_INTERNAL, "page %lld was written twice", (long long)page);
	if (!result)
		result = page_list_put(&copy->list, page, &digest, copy->error);
	if (result)
		return result;
	memset(&earlier, 0, sizeof earlier);
	if (copy->target->before && page <= copy->target->base.page_count)
		result = page_list_get(&copy->before, page, &earlier, copy->error);
	if (!result && !sha256_equal(&digest, &earlier))
		result = write_record(copy, page, data);
	return result;
}

/* The copy is a file without a write-ahead log, so that it can be opened without other files. */
static int put_first_page(struct copy *copy)
{
	enum { WRITE_VERSION = 18, READ_VERSION = 19, ROLLBACK_JOURNAL = 1 };
	if (!copy->has_first_page)
		return error_cause(copy->error, ERR_INTERNAL, "the copy has no first page");
	copy->first_page[WRITE_VERSION] = copy->first_page[READ_VERSION] = ROLLBACK_JOURNAL;
	return put_page(copy, 1, copy->first_page);
}

/* ---- the file system of the copy ---- */

static int sink_close(sqlite3_file *file)
{
	(void)file;
	return SQLITE_OK;
}

/* Only page 1 is ever read back. */
static int sink_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
	struct copy *copy = ((struct copy_file *)file)->copy;
	memset(data, 0, (size_t)size);
	if (offset >= copy->page_count * copy->page_size)
		return SQLITE_IOERR_SHORT_READ;
	if (!copy->has_first_page || offset + size > copy->page_size)
		return SQLITE_IOERR_READ;
	memcpy(data, copy->first_page + offset, (size_t)size);
	return SQLITE_OK;
}

static int sink_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	struct copy *copy = ((struct copy_file *)file)->copy;
	if (copy->failure || size != copy->page_size || offset % size)
		return SQLITE_IOERR_WRITE;
	int64_t page = offset / size + 1;
	if (page > copy->page_count)
		copy->page_count = page;
	if (page == 1) {
		memcpy(copy->first_page, data, (size_t)size);
		copy->has_first_page = true;
		return SQLITE_OK;
	}
	copy->failure = put_page(copy, page, data);
	return copy->failure ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

static int sink_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct copy *copy = ((struct copy_file *)file)->copy;
	copy->page_count = size / copy->page_size;
	return SQLITE_OK;
}

static int sink_sync(sqlite3_file *file, int flags)
{
	(void)file, (void)flags;
	return SQLITE_OK;
}

static int sink_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	struct copy *copy = ((struct copy_file *)file)->copy;
	*ret_size = copy->page_count * copy->page_size;
	return SQLITE_OK;
}

static int sink_lock(sqlite3_file *file, int level)
{
	(void)file, (void)level;
	return SQLITE_OK;
}

static int sink_is_reserved(sqlite3_file *file, int *ret_reserved)
{
	(void)file;
	*ret_reserved = 0;
	return SQLITE_OK;
}

static int sink_control(sqlite3_file *file, int operation, void *argument)
{
	(void)file, (void)operation, (void)argument;
	return SQLITE_NOTFOUND;
}

static int sink_traits(sqlite3_file *file)
{
	(void)file;
	return 0;
}

static const sqlite3_io_methods sink_methods = {
	.iVersion = 1,
	.xClose = sink_close,
	.xRead = sink_read,
	.xWrite = sink_write,
	.xTruncate = sink_truncate,
	.xSync = sink_sync,
	.xFileSize = sink_size,
	.xLock = sink_lock,
	.xUnlock = sink_lock,
	.xCheckReservedLock = sink_is_reserved,
	.xFileControl = sink_control,
	.xSectorSize = sink_traits,
	.xDeviceCharacteristics = sink_traits,
};

/* The database itself only; it has no journal. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
	(void)name;
	file->pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	((struct copy_file *)file)->copy = vfs->pAppData;
	file->pMethods = &sink_methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret_exists)
{
	(void)vfs, (void)name, (void)flags;
	*ret_exists = 0;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs, (void)name, (void)sync;
	return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int size, char *path)
{
	(void)vfs;
	snprintf(path, (size_t)size, "%s", name);
	return SQLITE_OK;
}

static bool register_vfs(struct copy *copy)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
	if (!usual)
		return false;
	snprintf(copy->name, sizeof copy->name, "constancia-pages-%p", (void *)copy);
	copy->vfs = *usual;
	copy->vfs.pNext = NULL;
	copy->vfs.zName = copy->name;
	copy->vfs.pAppData = copy;
	copy->vfs.szOsFile = (int)sizeof(struct copy_file);
	copy->vfs.xOpen = vfs_open;
	copy->vfs.xAccess = vfs_access;
	copy->vfs.xDelete = vfs_delete;
	copy->vfs.xFullPathname = vfs_full_name;
	return sqlite3_vfs_register(&copy->vfs, 0) == SQLITE_OK;
}

/* ---- copying ---- */

static int fail(struct copy *copy, int code)
{
	if (copy->failure)
		return copy->failure;
	int result = (code & 0xff) == SQLITE_NOMEM     ? ERR_NO_MEMORY
	             : (code & 0xff) == SQLITE_CORRUPT ? ERR_CORRUPT
	                                               : ERR_IO;
	return error_cause(copy->error, result, "copying the pages: %s", sqlite3_errstr(code));
}

/* Writes the file out while it grows, because a large sync at the end would delay registrations. */
static int write_out(struct copy *copy)
{
	int64_t record = copy->page_size + (copy->target->before ? PAGE_NUMBER_SIZE : 0);
	int64_t size = copy->changed * record;
	if (size - copy->written_out < DURABLE_CHUNK)
		return OK;
	if (!durable_write_out(copy->file, copy->written_out, size - copy->written_out))
		return file_fail(copy->error, "writing out", copy->target->path);
	copy->written_out = size;
	return OK;
}

static int copy_steps(struct copy *copy, sqlite3 *to, sqlite3 *from)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
	if (!backup)
		return fail(copy, sqlite3_errcode(to));
	int code, result = OK;
	do {
		int64_t begin_us = clock_monotonic_us();
		code = sqlite3_backup_step(backup, STEP_PAGES);
		if (code == SQLITE_OK)
			result = write_out(copy);
		int64_t took_us = clock_monotonic_us() - begin_us;
		if (code == SQLITE_OK && sqlite_has_log_grown(copy->db, &copy->log_pages))
			usleep((useconds_t)(took_us < PAUSE_MAX_US ? took_us : PAUSE_MAX_US));
	} while (!result && code == SQLITE_OK);
	int finished = sqlite3_backup_finish(backup);
	if (!result && code != SQLITE_DONE)
		result = fail(copy, code);
	return result || finished == SQLITE_OK ? result : fail(copy, finished);
}

/* The reader's transaction keeps the snapshot between the steps. */
static int copy_snapshot(struct copy *copy, struct db_connection *reader)
{
	sqlite3 *to = NULL;
	int result = db_begin(reader, copy->error);
	if (result)
		return result;
	sqlite3 *from = sqlite_connection(reader)->sqlite;
	int code = sqlite3_exec(from, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_open_v2("copy", &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, copy->name);
	if (code == SQLITE_OK)
		code = sqlite3_exec(
			to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = 256",
			NULL, NULL, NULL);
	result = code == SQLITE_OK ? copy_steps(copy, to, from) : fail(copy, code);
	sqlite3_close(to);
	return result;
}

static int finish(struct copy *copy, struct db_pages *ret)
{
	int result = put_first_page(copy);
	if (result)
		return result;
	if (!copy->target->before &&
	    ftruncate(copy->file, (off_t)(copy->page_count * copy->page_size)) != 0)
		return file_fail(copy->error, "writing", copy->target->path);
	if (!durable_sync_open(copy->file))
		return file_fail(copy->error, "syncing", copy->target->path);
	*ret = (struct db_pages){.page_size = copy->page_size,
	                         .page_count = copy->page_count,
	                         .changed_pages = copy->changed};
	result = page_list_finish(&copy->list, copy->page_count, &ret->digest, copy->error);
	return result ? result : durable_sync_above(copy->target->path, copy->error);
}

static int begin(struct copy *copy)
{
	const struct db_page_target *target = copy->target;
	if (target->before && target->base.page_size != copy->page_size)
		return error_cause(copy->error, ERR_REFUSED, "the page size changed");
	copy->first_page = malloc((size_t)copy->page_size);
	copy->record = malloc((size_t)copy->page_size + PAGE_NUMBER_SIZE);
	if (!copy->first_page || !copy->record)
		return ERR_NO_MEMORY;
	int result = page_list_open(target->list_path, true, &copy->list, copy->error);
	if (!result && target->before)
		result = page_list_open(target->before, false, &copy->before, copy->error)
		             ?: page_list_check(&copy->before, target->base.page_count,
		                                &target->base.digest, copy->error);
	if (result)
		return result;
	copy->file = open(target->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (copy->file < 0)
		return file_fail(copy->error, "creating", target->path);
	return register_vfs(copy) ? OK : ERR_NO_MEMORY;
}

int sqlite_backup_pages(struct db *base, const struct db_page_target *target, struct db_pages *ret,
                        struct error *error)
{
	struct error own = {0};
	struct copy copy = {.db = sqlite_db(base),
	                    .target = target,
	                    .list.file = -1,
	                    .before.file = -1,
	                    .file = -1,
	                    .page_size = sqlite_db(base)->page_size,
	                    .error = error ? error : &own};
	int result = begin(&copy);
	if (!result) {
		struct db_connection *reader = db_take_reader(base);
		result = copy_snapshot(&copy, reader);
		db_give(reader);
	}
	if (!result)
		result = finish(&copy, ret);
	if (copy.vfs.zName)
		sqlite3_vfs_unregister(&copy.vfs);
	descriptor_close(&copy.file);
	page_list_close(&copy.before);
	page_list_close(&copy.list);
	free(copy.record);
	free(copy.first_page);
	return result;
}
