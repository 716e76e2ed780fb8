/* Preloaded into a service, before other preloaded libraries: follows the writes and checkpoints of
 * the embedded store's write-ahead log, and stops a thread at the requested step until it is
 * released. LOG_STEPS names the shared file (struct steps) for log_steps.py.
 *
 * The log handling of a start is not covered. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

enum step {
	NONE,
	MOVING,      /* before a page is checkpointed: the size-th byte of a checkpoint */
	MOVED,       /* the log is checkpointed: before the file is synced */
	SYNCED,      /* after that sync: before the log is reset */
	CHECKING,    /* after the checkpoint: before the file system is asked whether the sync counts */
	RESET,       /* the log was reset: before its new header is synced */
	SPILLING,    /* a batch has written that many bytes to the log; its COMMIT has not begun */
	COMMITTING,  /* before the sync of a batch with that many bytes in the log */
	COMMITTED,   /* after that sync: before any response */
	REST_MOVED,  /* as MOVED, of a checkpoint by the writer, between two batches */
	REST_SYNCED, /* as SYNCED, of such a checkpoint */
	BEGINNING,   /* before a checkpoint by the checkpointer, which has begun to read */
};

struct steps {
	_Atomic uint32_t wanted; /* the step to stop at, once */
	_Atomic uint32_t at;     /* minimum number of bytes of the step */
	_Atomic uint32_t reached;
	_Atomic uint32_t bytes; /* number of bytes reached */
};

static struct steps *steps;
static _Thread_local bool moving, synced, committing;
static _Thread_local size_t moved;
/* Used by the writer. */
static _Atomic size_t unsynced;
static _Atomic bool was_reset;

__attribute__((constructor)) static void prepare(void)
{
	const char *path = getenv("LOG_STEPS");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *mapped = file < 0
	                   ? MAP_FAILED
	                   : mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		abort();
	close(file);
	steps = mapped;
}

static void reach(enum step step, size_t bytes)
{
	uint32_t wanted = step;
	if (bytes < steps->at || !atomic_compare_exchange_strong(&steps->wanted, &wanted, NONE))
		return;
	steps->bytes = (uint32_t)bytes;
	steps->reached = step;
	while (steps->reached == step)
		usleep(500);
}

static bool ends(int descriptor, const char *ending)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	ssize_t size = readlink(link, path, sizeof path);
	ssize_t wanted = (ssize_t)strlen(ending);
	return size >= wanted && memcmp(path + size - wanted, ending, (size_t)wanted) == 0;
}

static bool is_log(int descriptor)
{
	return ends(descriptor, ".db-wal");
}

static void reach_on(const char *thread, enum step step, size_t bytes)
{
	char name[16] = "";
	if (steps->wanted == step && pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
	    strcmp(name, thread) == 0)
		reach(step, bytes);
}

/* Only the sequencer thread, since other threads commit too. */
static void reach_in_batch(enum step step, size_t bytes)
{
	reach_on("sequencer", step, bytes);
}

/* ---- the calls ---- */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int sqlite3_wal_checkpoint_v2(sqlite3 *store, const char *name, int mode, int *ret_in_log,
                              int *ret_moved)
{
	moving = mode == SQLITE_CHECKPOINT_PASSIVE;
	synced = false;
	moved = 0;
	if (moving)
		reach_on("log-mover", BEGINNING, 0);
	int result = NEXT(sqlite3_wal_checkpoint_v2)(store, name, mode, ret_in_log, ret_moved);
	moving = false;
	return result;
}

int sqlite3_step(sqlite3_stmt *statement)
{
	const char *text = sqlite3_sql(statement);
	committing = text && strcmp(text, "COMMIT") == 0;
	int result = NEXT(sqlite3_step)(statement);
	committing = false;
	return result;
}

static void before_write(int descriptor, size_t size, off64_t at)
{
	if (moving && ends(descriptor, ".db")) {
		moved += size;
		reach(MOVING, moved);
	} else if (is_log(descriptor)) {
		was_reset = was_reset || at == 0;
		if (!committing)
			reach_in_batch(SPILLING, unsynced);
		unsynced += size;
	}
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at)
{
	before_write(descriptor, size, at);
	return NEXT(pwrite64)(descriptor, data, size, at);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at)
{
	return pwrite64(descriptor, data, size, at);
}

static int sync_by(int (*call)(int), int descriptor)
{
	bool file = moving && ends(descriptor, ".db");
	bool log = !moving && is_log(descriptor);
	size_t bytes = unsynced;
	if (file) {
		reach(MOVED, moved);
		reach_in_batch(REST_MOVED, moved);
	}
	if (log && was_reset)
		reach(RESET, bytes);
	if (log)
		reach_in_batch(COMMITTING, bytes);
	int result = call(descriptor);
	if (log) {
		unsynced = 0;
		was_reset = false;
	}
	if (file) {
		synced = true;
		reach(SYNCED, moved);
		reach_in_batch(REST_SYNCED, moved);
	}
	if (log)
		reach_in_batch(COMMITTED, bytes);
	return result;
}

int fsync(int descriptor)
{
	return sync_by(NEXT(fsync), descriptor);
}

int fdatasync(int descriptor)
{
	return sync_by(NEXT(fdatasync), descriptor);
}

int fremovexattr(int descriptor, const char *name)
{
	if (synced)
		reach(CHECKING, moved);
	synced = false;
	return NEXT(fremovexattr)(descriptor, name);
}
