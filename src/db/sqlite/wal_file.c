/* VFS that writes the write-ahead log in large chunks.
 *
 * SQLite writes a frame in two calls, header and page, and a batch has about a hundred frames.
 * Consecutive writes are buffered here and written before any other operation on the file. A commit
 * is synced before any reader uses its frames (synchronous=FULL), so readers see only data that is
 * in the file. Data that cannot be written or synced belongs to a transaction that SQLite then
 * rolls back, and is discarded. It must not be written later, because a crash could then restore
 * it, and it must not block smaller transactions. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuned.h"
#include "db/sqlite/sqlite_internal.h"

/* SQLite's VFS. It locks out other processes while the file is open and has the log's index in
 * memory. So there is no "-shm" file, which could be out of date and whose pages need disk
 * space. */
#define BASE_VFS "unix-excl"
#define PIECE_SIZE (64 * 1024)
/* Maximum truncation at each reset of a log that had become long. The file system may discard the
 * freed blocks on the device while a commit waits. */
#define CUT_SIZE (2 * 1024 * 1024)

struct log_file {
	sqlite3_file base;
	sqlite3_int64 offset;   /* of the buffer */
	int size, piece_size;   /* PIECE_SIZE, less in tests */
	sqlite3_int64 cut_size; /* CUT_SIZE, less in tests */
	char *piece;            /* NULL until the first write */
	sqlite3_int64 own[];    /* SQLite's file */
};

static sqlite3_vfs *base_vfs;
static sqlite3_vfs vfs;

static struct log_file *log_of(sqlite3_file *file)
{
	return (struct log_file *)file;
}

static sqlite3_file *own_of(struct log_file *log)
{
	return (sqlite3_file *)log->own;
}

static int write_out(struct log_file *log)
{
	assert(log->size >= 0 && log->size <= log->piece_size && (log->piece || !log->size));
	sqlite3_file *own = own_of(log);
	int result = SQLITE_OK;
	if (log->size)
		result = own->pMethods->xWrite(own, log->piece, log->size, log->offset);
	if (result == SQLITE_OK)
		log->size = 0;
	return result;
}

static int write_out_or_forget(struct log_file *log)
{
	int result = write_out(log);
	log->size = 0;
	return result;
}

static int log_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	struct log_file *log = log_of(file);
	bool joins = offset == log->offset + log->size && size <= log->piece_size - log->size;
	int result = joins ? SQLITE_OK : write_out_or_forget(log);
	if (result != SQLITE_OK)
		return result;
	if (!log->piece)
		log->piece = malloc((size_t)log->piece_size);
	if (!log->piece || size > log->piece_size)
		return own_of(log)->pMethods->xWrite(own_of(log), data, size, offset);
	if (!log->size)
		log->offset = offset;
	assert(log->offset + log->size == offset && log->size + size <= log->piece_size);
	memcpy(log->piece + log->size, data, (size_t)size);
	log->size += size;
	return SQLITE_OK;
}

static int log_read(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
	sqlite3_file *own = own_of(log_of(file));
	int result = write_out(log_of(file));
	return result == SQLITE_OK ? own->pMethods->xRead(own, data, size, offset) : result;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	sqlite3_file *own = own_of(log_of(file));
	sqlite3_int64 there = 0;
	int result = write_out(log_of(file));
	if (result == SQLITE_OK)
		result = own->pMethods->xFileSize(own, &there);
	if (result == SQLITE_OK && size > 0 && there - size > log_of(file)->cut_size)
		size = there - log_of(file)->cut_size;
	return result == SQLITE_OK ? own->pMethods->xTruncate(own, size) : result;
}

static int log_sync(sqlite3_file *file, int flags)
{
	sqlite3_file *own = own_of(log_of(file));
	int result = write_out_or_forget(log_of(file));
	return result == SQLITE_OK ? own->pMethods->xSync(own, flags) : result;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
	sqlite3_file *own = own_of(log_of(file));
	int result = write_out(log_of(file));
	return result == SQLITE_OK ? own->pMethods->xFileSize(own, ret_size) : result;
}

/* Buffered data does not belong to a commit. */
static int log_close(sqlite3_file *file)
{
	struct log_file *log = log_of(file);
	free(log->piece);
	return own_of(log)->pMethods->xClose(own_of(log));
}

static int log_lock(sqlite3_file *file, int level)
{
	return own_of(log_of(file))->pMethods->xLock(own_of(log_of(file)), level);
}

static int log_unlock(sqlite3_file *file, int level)
{
	return own_of(log_of(file))->pMethods->xUnlock(own_of(log_of(file)), level);
}

static int log_is_reserved(sqlite3_file *file, int *ret)
{
	return own_of(log_of(file))->pMethods->xCheckReservedLock(own_of(log_of(file)), ret);
}

static int log_control(sqlite3_file *file, int operation, void *argument)
{
	return own_of(log_of(file))->pMethods->xFileControl(own_of(log_of(file)), operation, argument);
}

static int log_sector_size(sqlite3_file *file)
{
	return own_of(log_of(file))->pMethods->xSectorSize(own_of(log_of(file)));
}

static int log_characteristics(sqlite3_file *file)
{
	return own_of(log_of(file))->pMethods->xDeviceCharacteristics(own_of(log_of(file)));
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xLock = log_lock,
	.xUnlock = log_unlock,
	.xCheckReservedLock = log_is_reserved,
	.xFileControl = log_control,
	.xSectorSize = log_sector_size,
	.xDeviceCharacteristics = log_characteristics,
};

static int open_file(sqlite3_vfs *ours, sqlite3_filename name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
	if (!(flags & SQLITE_OPEN_WAL))
		return base_vfs->xOpen(base_vfs, name, file, flags, ret_flags);
	struct log_file *log = log_of(file);
	*log = (struct log_file){.piece_size = (int)tuned_up_to("log_piece", PIECE_SIZE),
	                         .cut_size = tuned_up_to("log_cut", CUT_SIZE)};
	int result = base_vfs->xOpen(base_vfs, name, own_of(log), flags, ret_flags);
	if (own_of(log)->pMethods)
		log->base.pMethods = &methods;
	return result;
}

/* Derives our VFS from SQLite's, with other functions for logs. Disables memory statistics first:
 * they are unused and cost a lock per allocation. It must run before the library is initialized. */
static bool make_vfs(void)
{
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_vfs *found = sqlite3_vfs_find(BASE_VFS);
	if (!found)
		return false;
	vfs = *found;
	vfs.szOsFile += (int)sizeof(struct log_file);
	vfs.zName = "constancia";
	vfs.xOpen = open_file;
	if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
		return false;
	base_vfs = found;
	return true;
}

const char *sqlite_vfs(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	bool made = base_vfs || make_vfs();
	pthread_mutex_unlock(&lock);
	return made ? vfs.zName : NULL;
}
