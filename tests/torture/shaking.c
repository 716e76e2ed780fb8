/* Preloaded into a service with the embedded store (shaking.py): statements that write the index of
 * client_refs fail now and then, so that batches are rolled back at any point of it; and a lookup
 * in it pauses now and then just before it reads, so that it is changed meanwhile.
 *
 * SHAKE_FAIL, SHAKE_REST: one call in this number; 0: none.
 * SHAKE_FILE: a file of three native 64-bit numbers that may change at any time (struct control).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define REST_MAX_US 8000

struct control {
	uint64_t fail_any;  /* one statement in this number that writes, or a COMMIT, fails; 0: none */
	uint64_t sync_us;   /* duration that is added to each sync */
	uint64_t fail_sync; /* one sync in this number fails; 0: none */
};

static unsigned long fail, rest;
static const struct control nothing;
static const volatile struct control *control = &nothing;
static int (*step)(sqlite3_stmt *);

static void map_control(const char *path)
{
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped =
		file < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, file, 0);
	if (mapped != MAP_FAILED)
		control = mapped;
	if (file >= 0)
		close(file);
}

__attribute__((constructor)) static void prepare(void)
{
	map_control(getenv("SHAKE_FILE"));
	const char *given = getenv("SHAKE_FAIL");
	fail = given ? strtoul(given, NULL, 10) : 0;
	given = getenv("SHAKE_REST");
	rest = given ? strtoul(given, NULL, 10) : 0;
	step = (int (*)(sqlite3_stmt *))dlsym(RTLD_NEXT, "sqlite3_step");
}

static bool happens(unsigned long one_in)
{
	static _Thread_local unsigned state;
	if (!state)
		state = (unsigned)time(NULL) ^ (unsigned)gettid() << 12;
	return one_in && (unsigned long)rand_r(&state) % one_in == 0;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool writes_any(const char *text)
{
	return text && (begins(text, "INSERT ") || begins(text, "UPDATE ") || begins(text, "DELETE ") ||
	                strcmp(text, "COMMIT") == 0);
}

int sqlite3_step(sqlite3_stmt *statement)
{
	const char *text = sqlite3_sql(statement);
	if (control->fail_any && writes_any(text) && happens(control->fail_any))
		return SQLITE_FULL;
	if (!text || !strstr(text, "client_ref"))
		return step(statement);
	bool writes = begins(text, "INSERT INTO client_ref_") ||
	              begins(text, "INSERT INTO fresh_client_refs_") ||
	              begins(text, "UPDATE client_ref_") || begins(text, "DELETE FROM client_ref_") ||
	              begins(text, "DELETE FROM fresh_client_refs_");
	if (writes && happens(fail))
		return SQLITE_FULL;
	if (begins(text, "SELECT entries, checksum FROM client_ref_buckets WHERE place = ") &&
	    happens(rest))
		usleep((useconds_t)(rand() % REST_MAX_US));
	return step(statement);
}

/* ---- syncs ---- */

static int sync_by(const char *name, int descriptor)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	int result = next(descriptor);
	if (control->sync_us)
		usleep((useconds_t)control->sync_us);
	if (control->fail_sync && happens(control->fail_sync)) {
		errno = EIO;
		return -1;
	}
	return result;
}

int fsync(int descriptor)
{
	return sync_by("fsync", descriptor);
}

int fdatasync(int descriptor)
{
	return sync_by("fdatasync", descriptor);
}

int syncfs(int descriptor)
{
	return sync_by("syncfs", descriptor);
}
