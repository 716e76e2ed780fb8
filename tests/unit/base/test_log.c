#include <fcntl.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

static int pipe_ends[2];
static int real_stderr;

/* A pipe in packet mode: each read gives what one write gave. */
static void capture(void)
{
	assert_int_equal(pipe2(pipe_ends, O_DIRECT | O_NONBLOCK), 0);
	real_stderr = dup(STDERR_FILENO);
	dup2(pipe_ends[1], STDERR_FILENO);
}

static void release(void)
{
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static struct json *parse_line(struct arena *arena, char *line, ssize_t size)
{
	struct json *json = NULL;
	assert_true(size > 1 && line[size - 1] == '\n');
	assert_null(memchr(line, '\n', (size_t)size - 1));
	assert_int_equal(json_parse(arena, slice_make(line, (size_t)size), NULL, &json, NULL), 0);
	return json;
}

static void assert_member(const struct json *json, const char *name, const char *expected)
{
	struct slice text;
	assert_true(json_get_text(json, name, &text));
	assert_true(slice_is(text, expected));
}

TEST_CASE(test_line)
{
	char line[4096];
	ARENA_AUTO struct arena arena = {.limit = 100000};
	capture();
	log_warning("store.slow", "took_ms", "12", "path", "a\"\n\xc3(", "none", NULL);
	log_write(LOG_DEBUG, "hidden", NULL);
	log_set_level(LOG_ERROR);
	log_info("hidden");
	log_error("second");
	log_set_level(LOG_INFO);
	ssize_t first_size = read(pipe_ends[0], line, sizeof line);
	char second[4096];
	ssize_t second_size = read(pipe_ends[0], second, sizeof second);
	char third[1];
	ssize_t third_size = read(pipe_ends[0], third, sizeof third);
	release();

	struct json *json = parse_line(&arena, line, first_size);
	assert_member(json, "level", "warning");
	assert_member(json, "event", "store.slow");
	assert_member(json, "took_ms", "12");
	assert_member(json, "path", "a\"\n?(");
	assert_int_equal(json_member(json, "none")->type, JSON_NULL);
	struct slice time;
	int64_t time_us;
	assert_true(json_get_text(json, "time", &time));
	assert_int_equal(time_parse(time, "time", &time_us, NULL), 0);
	assert_true(clock_now_us() - time_us < 60 * US_PER_SECOND);
	assert_member(parse_line(&arena, second, second_size), "event", "second");
	assert_int_equal(third_size, -1);
}

TEST_CASE(test_long_values)
{
	static char value[20000];
	static char line[65536];
	ARENA_AUTO struct arena arena = {.limit = 1000000};
	memset(value, 'v', sizeof value - 1);
	capture();
	log_info("long", "value", value, "after", "still here");
	ssize_t size = 0;
	for (ssize_t got; (got = read(pipe_ends[0], line + size, sizeof line - (size_t)size)) > 0;)
		size += got;
	memset(value, '\x01', sizeof value - 1);
	log_info("too long", "a", value, "b", value, "c", value);
	static char cut[65536];
	ssize_t cut_size = 0;
	for (ssize_t got;
	     (got = read(pipe_ends[0], cut + cut_size, sizeof cut - (size_t)cut_size)) > 0;)
		cut_size += got;
	release();
	assert_member(parse_line(&arena, line, size), "after", "still here");
	struct json *json = parse_line(&arena, cut, cut_size);
	assert_member(json, "event", "too long");
	assert_non_null(json_member(json, "c"));
}

/* The journal does not cut the line, however long the values are and whatever they contain. */
TEST_CASE(test_longest_lines)
{
	static char line[1 << 17], value[5000];
	static const char fillings[] = {'v', '"', '\x01', '\xff'};
	ARENA_AUTO struct arena arena = {.limit = 10000000};
	capture();
	for (size_t filling = 0; filling < sizeof fillings; filling++)
		for (size_t length = 500; length < sizeof value; length += 97) {
			memset(value, fillings[filling], length);
			value[length] = '\0';
			log_info("long", "a", value, "b", value, "c", value, "d", value, "e", value, "f", value,
			         "g", value, "h", value, "i", value, "j", value, "k", value, "l", value, "last",
			         "one");
			ssize_t size = 0;
			for (ssize_t got;
			     (got = read(pipe_ends[0], line + size, sizeof line - (size_t)size)) > 0;)
				size += got;
			assert_true(size > 0 && size <= 48 * 1024);
			arena_reset(&arena);
			assert_member(parse_line(&arena, line, size), "last", "one");
		}
	release();
}

static void fill_too_much(struct json_writer *writer, const void *context)
{
	for (int i = 0; i < 5000; i++)
		json_text(writer, context, "some text");
}

TEST_CASE(test_line_lost)
{
	char line[4096];
	ARENA_AUTO struct arena arena = {.limit = 100000};
	capture();
	log_write_frequent(LOG_INFO, "much", fill_too_much, "name");
	ssize_t size = read(pipe_ends[0], line, sizeof line);
	release();
	assert_member(parse_line(&arena, line, size), "event", "log_line_lost");
}

/* Writers never block on a reader that does not read. Lost lines are counted, and waiting lines are
 * written once it reads. */
TEST_CASE(test_full_pipe)
{
	static char big[4001];
	char line[8192];
	ARENA_AUTO struct arena arena = {.limit = 100000};
	memset(big, 'x', sizeof big - 1);
	capture();
	fcntl(pipe_ends[1], F_SETFL, fcntl(pipe_ends[1], F_GETFL) & ~O_NONBLOCK);
	log_set_level(LOG_INFO);
	log_start();
	for (int i = 0; i < 1000; i++)
		log_info("much", "text", big);
	fcntl(pipe_ends[0], F_SETFL, fcntl(pipe_ends[0], F_GETFL) & ~O_NONBLOCK);
	int told = 0, counted = 0;
	while (told + counted < 1000) {
		ssize_t size = read(pipe_ends[0], line, sizeof line);
		struct slice text;
		arena_reset(&arena);
		struct json *json = parse_line(&arena, line, size);
		assert_true(json_get_text(json, "event", &text));
		if (slice_is(text, "much")) {
			told++;
			continue;
		}
		assert_true(slice_is(text, "log_lines_lost"));
		assert_true(json_get_text(json, "lines", &text));
		counted += atoi(text.data);
	}
	assert_true(counted > 0 && told > 100);
	log_info("last");
	log_stop();
	ssize_t size = read(pipe_ends[0], line, sizeof line);
	assert_member(parse_line(&arena, line, size), "event", "last");
	log_info("behind");
	size = read(pipe_ends[0], line, sizeof line);
	assert_member(parse_line(&arena, line, size), "event", "behind");
	release();
}

TEST_MAIN(NULL, NULL)
