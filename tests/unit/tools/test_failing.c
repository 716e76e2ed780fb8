/* Receipts and the scripted and seeded parts of the tools, with each call failing in turn. */
#include "testing.h"
#include <unistd.h>

#include "failing.h"
#include "scratch.h"
#include "tools/api.h"
#include "tools/receipt_file.h"

#define KINDS (FAILING_MEMORY | FAILING_FILES)
#define LINE "{\"event_id\":\"evt_%d\"}"

static char folder[SCRATCH_MAX];
static char path[SCRATCH_MAX + 16];

static int set_up(void **state)
{
	scratch_make(folder);
	snprintf(path, sizeof path, "%s/receipts", folder);
	return 0;
}

static int tear_down(void **state)
{
	scratch_remove(folder);
	return 0;
}

/* Counts the receipts of a number, and checks that all are whole. */
struct counting {
	char wanted[64];
	unsigned found;
};

static int count(void *context, struct slice line, struct error *error)
{
	struct counting *counting = context;
	assert_memory_equal(line.data, "{\"event_id\":\"evt_", 17);
	assert_int_equal(line.data[line.size - 1], '}');
	counting->found += slice_is(line, counting->wanted);
	return 0;
}

static unsigned times_kept(int number)
{
	struct counting counting = {.found = 0};
	snprintf(counting.wanted, sizeof counting.wanted, LINE, number);
	assert_int_equal(receipt_file_read(path, false, count, &counting, NULL), 0);
	return counting.found;
}

static int append(int number)
{
	char line[64];
	snprintf(line, sizeof line, LINE, number);
	return receipt_file_append(path, slice_of(line), NULL);
}

/* Appends with the call of that number failing. Returns whether there was such a call. After a
 * failure the caller appends again, so that the receipt is there at least once, and whole. */
static bool append_failing(int at)
{
	failing_arm(KINDS, at);
	int result = append(at);
	const char *failed = failing_disarm();
	if (!failed) {
		assert_int_equal(result, 0);
		return false;
	}
	if (result) {
		assert_true(result == ERR_IO || result == ERR_NO_MEMORY || result == ERR_NO_SPACE);
		assert_int_equal(append(at), 0);
	}
	assert_in_range(times_kept(at), 1, 2);
	return true;
}

TEST_CASE(a_receipt_is_kept_or_the_failure_reported)
{
	int at = 1;
	while (append_failing(at))
		at++;
	assert_true(at > 5);
}

TEST_CASE(a_torn_line_is_repaired_or_the_failure_reported)
{
	int at = 1;
	bool more = true;
	for (; more; at++) {
		FILE *file = fopen(path, "a");
		assert_non_null(file);
		assert_true(fputs("{\"event_id\":\"evt_to", file) > 0);
		assert_int_equal(fclose(file), 0);
		more = append_failing(at);
	}
	assert_true(at > 8);
}

TEST_CASE(an_api_is_opened_or_the_failure_reported)
{
	const struct api_access access = {.url = "https://a.example", .key = "k"};
	for (int at = 1;; at++) {
		struct api api;
		failing_arm(KINDS, at);
		int result = api_open(&api, &access, NULL);
		const char *failed = failing_disarm();
		assert_int_equal(result, failed ? ERR_NO_MEMORY : 0);
		api_close(&api);
		if (!failed)
			break;
	}
}

TEST_MAIN(set_up, tear_down)
