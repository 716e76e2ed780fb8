/* Preloaded into a service with the embedded store (shaking.py): statements that write the index of
 * client_refs fail now and then, so that batches are rolled back at any point of it; and a lookup
 * in it pauses now and then just before it reads, so that it is changed meanwhile.
 *
 * SHAKE_FAIL, SHAKE_REST: one call in this number; 0: none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REST_MAX_US 8000

static unsigned long fail, rest;
static int (*step)(sqlite3_stmt *);

__attribute__((constructor)) static void prepare(void)
{
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

int sqlite3_step(sqlite3_stmt *statement)
{
	const char *text = sqlite3_sql(statement);
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
