#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/durable.h"

/* Directories of proc cannot be synced: /proc/self/cwd leads to another file system, as a mount on a
 * read-only one does; /proc/self/status stays. */
static void what_it_is_mounted_on_need_not_be_synced(void **state)
{
	(void)state;
	struct error error = {0};
	assert_int_equal(durable_sync_above("/proc/self/cwd", &error), OK);
	assert_int_equal(durable_sync_above("/proc/self/status", &error), ERR_IO);
	assert_non_null(strstr(error.cause, "syncing above /proc/self/status"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_it_is_mounted_on_need_not_be_synced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
