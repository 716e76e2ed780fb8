/* Preloaded into a service, before what else is: follows how the log of its embedded store is
 * written and moved into the file, and stops a thread at the step that is asked for, until it may
 * go on. LOG_STEPS names the file over which both sides talk: struct steps, for log_steps.py.
 *
 * What a start does with the log is none of these steps. */
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
	MOVING,     /* before a page of the log is moved into the file: the size-th byte of a move */
	MOVED,      /* all of the log is moved: before the file is synced */
	SYNCED,     /* behind that: before the log begins anew */
	BELIEVING,  /* behind the move: before the file system is asked whether that sync counts */
	ANEW,       /* it has: before its new head is synced */
	SPILLING,   /* a batch has put so many bytes into the log, and its COMMIT is not begun */
	COMMITTING, /* before the sync of a batch of so many bytes in the log */
	COMMITTED,  /* behind that: before anybody is answered */
};

struct steps {
	_Atomic uint32_t wanted; /* the step to stop at, once */
	_Atomic uint32_t at;     /* and at how many bytes of it, or more */
	_Atomic uint32_t reached;
	_Atomic uint32_t bytes; /* how many there were */
};

static struct steps *steps;
static _Thread_local bool moving, synced, committing;
static _Thread_local size_t moved;
/* The writer's. */
static _Atomic size_t unsynced;
static _Atomic bool begun_anew;

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

/* Others commit, too. */
static void reach_in_batch(enum step step, size_t bytes)
{
	char name[16] = "";
	if (steps->wanted == step && pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
	    strcmp(name, "sequencer") == 0)
		reach(step, bytes);
}

/* ---- the calls ---- */

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int sqlite3_wal_checkpoint_v2(sqlite3 *store, const char *name, int mode, int *ret_in_log,
                              int *ret_moved)
{
	moving = mode == SQLITE_CHECKPOINT_PASSIVE;
	synced = false;
	moved = 0;
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
		begun_anew = begun_anew || at == 0;
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
	if (file)
		reach(MOVED, moved);
	if (log && begun_anew)
		reach(ANEW, bytes);
	if (log)
		reach_in_batch(COMMITTING, bytes);
	int result = call(descriptor);
	if (log) {
		unsynced = 0;
		begun_anew = false;
	}
	if (file) {
		synced = true;
		reach(SYNCED, moved);
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
		reach(BELIEVING, moved);
	synced = false;
	return NEXT(fremovexattr)(descriptor, name);
}
