/* Files of receipts, also of several processes. */
#include "testing.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "scratch.h"
#include "tools/receipt_file.h"

#define PROCESSES 4
#define LINES 400

static char folder[SCRATCH_MAX];
static char path[SCRATCH_MAX + 16];

static int set_up(void **state)
{
	scratch_make(folder);
	return 0;
}

static void name_file(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", folder, name);
}

static int tear_down(void **state)
{
	scratch_remove(folder);
	return 0;
}

struct seen {
	unsigned lines, next[PROCESSES];
};

static int take(void *context, struct slice line, struct error *error)
{
	struct seen *seen = context;
	unsigned process, number;
	char text[64];
	assert_true(line.size > 64);
	snprintf(text, sizeof text, "%.*s", 40, line.data);
	assert_int_equal(sscanf(text, "{\"event_id\":\"%u-%u\"", &process, &number), 2);
	assert_int_equal(number, seen->next[process]++); /* in order, each once */
	seen->lines++;
	return 0;
}

static void append(unsigned process, unsigned number, size_t size)
{
	BUF_AUTO struct buf line;
	buf_init(&line, RECEIPT_LINE_MAX);
	buf_printf(&line, "{\"event_id\":\"%u-%u\",\"x\":\"", process, number);
	for (size_t i = 0; i < size; i++)
		buf_add_byte(&line, 'x');
	buf_add_text(&line, "\"}");
	if (receipt_file_append(path, buf_slice(&line), NULL))
		abort();
}

/* 16 MB in lines of 10 KB: the file is renamed several times meanwhile. */
TEST_CASE(processes_share_a_file_and_its_rotation)
{
	struct seen seen = {0};
	name_file("shared");
	for (unsigned process = 0; process < PROCESSES; process++)
		if (fork() == 0) {
			for (unsigned number = 0; number < LINES; number++)
				append(process, number, 10000);
			_exit(0);
		}
	for (unsigned process = 0; process < PROCESSES; process++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(receipt_file_read(path, false, take, &seen, NULL), 0);
	assert_int_equal(seen.lines, PROCESSES * LINES);
	char name[sizeof path + 8];
	struct stat facts;
	for (unsigned number = 1; number <= 3; number++) {
		snprintf(name, sizeof name, "%s.%u", path, number);
		assert_int_equal(stat(name, &facts), 0);
		assert_in_range(facts.st_size, RECEIPT_FILE_MAX - 20000, RECEIPT_FILE_MAX);
		assert_int_equal(facts.st_nlink, 1);
	}
}

static int count(void *context, struct slice line, struct error *error)
{
	*(unsigned *)context += 1;
	return line.data[0] == 's' ? 5 : 0;
}

TEST_CASE(empty_and_torn_lines_are_skipped_and_no_whole_one)
{
	unsigned lines = 0;
	name_file("torn");
	assert_int_equal(file_replace(path, slice_of("a\n\nb\ntorn"), NULL), 0);
	assert_int_equal(receipt_file_read(path, false, count, &lines, NULL), 0);
	assert_int_equal(lines, 2);
	lines = 0;
	assert_int_equal(receipt_file_read(path, true, count, &lines, NULL), 0);
	assert_int_equal(lines, 3);
	assert_int_equal(file_replace(path, slice_of("a\n{\"event_id\":\"evt_1\"}"), NULL), 0);
	lines = 0;
	assert_int_equal(receipt_file_read(path, false, count, &lines, NULL), 0);
	assert_int_equal(lines, 2);
	assert_int_equal(file_replace(path, slice_of("a\nstop\nb\n"), NULL), 0);
	lines = 0;
	assert_int_equal(receipt_file_read(path, false, count, &lines, NULL), 5);
	assert_int_equal(lines, 2);
}

TEST_CASE(a_missing_file_is_an_error)
{
	unsigned lines = 0;
	struct error error = {0};
	name_file("missing");
	assert_int_equal(receipt_file_read(path, false, count, &lines, &error), ERR_IO);
	assert_non_null(strstr(error.cause, path));
}

TEST_CASE(what_is_no_file_of_receipts_stays_as_it_is)
{
	struct error error = {0};
	name_file("other");
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf after;
	buf_init(&text, 3 * RECEIPT_LINE_MAX);
	buf_init(&after, 3 * RECEIPT_LINE_MAX);
	memset(buf_extend(&text, RECEIPT_LINE_MAX + 1), 'x', RECEIPT_LINE_MAX + 1);
	assert_int_equal(file_replace(path, buf_slice(&text), NULL), 0);
	assert_int_equal(receipt_file_append(path, slice_of("{}"), &error), ERR_IO);
	assert_int_equal(file_read_whole(path, &after, NULL), 0);
	assert_true(slice_equal(buf_slice(&text), buf_slice(&after)));
}

TEST_MAIN(set_up, tear_down)
