#include "testing.h"
#include "cli/command.h"

static const struct option options[] = {
	{"name", "TEXT", ""}, {"dry-run", NULL, ""}, {"unpaid-limit", "N", ""}, {0}};

static const struct program program = {.common_options = common_options};
static struct command_line line;

static int parse(int count, char **words)
{
	free(line.arguments);
	line = (struct command_line){.program = &program, .command = "test"};
	return command_line_parse(&line, options, count, words);
}
#define PARSE(...)                                                                                 \
	parse((int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), (char *[]){__VA_ARGS__})

TEST_CASE(test_options_and_arguments_mix)
{
	assert_int_equal(PARSE("first", "--name", "a b", "second", "--dry-run", "--unpaid-limit=3",
	                       "--data", "/d", "--json", "-5"),
	                 0);
	assert_int_equal(line.argument_count, 3);
	assert_string_equal(line.arguments[0], "first");
	assert_string_equal(line.arguments[2], "-5");
	assert_string_equal(command_option(&line, "name"), "a b");
	assert_string_equal(command_option(&line, "unpaid-limit"), "3");
	assert_non_null(command_option(&line, "dry-run"));
	assert_string_equal(line.sources.data_dir, "/d");
	assert_true(line.json);
	assert_false(line.help);
}

TEST_CASE(test_values_may_look_like_options)
{
	assert_int_equal(PARSE("--name", "--json", "--set", "a.b=c", "--set=d.e=f=g"), 0);
	assert_string_equal(command_option(&line, "name"), "--json");
	assert_false(line.json);
	assert_int_equal(line.sources.set_count, 2);
	assert_string_equal(line.sources.sets[1], "d.e=f=g");
	assert_int_equal(PARSE("--", "--name", "x"), 0);
	assert_int_equal(line.argument_count, 2);
	assert_int_equal(PARSE("--name=", "-h"), 0);
	assert_string_equal(command_option(&line, "name"), "");
	assert_true(line.help);
}

/* -o belongs to the commands that have an --output. */
TEST_CASE(test_output_has_a_short_form)
{
	static const struct option with_output[] = {{"output", "FILE", ""}, {0}};
	assert_int_equal(PARSE("-o", "file"), 2);
	free(line.arguments);
	line = (struct command_line){.program = &program, .command = "test"};
	assert_int_equal(command_line_parse(&line, with_output, 3, (char *[]){"a", "-o", "file"}), 0);
	assert_string_equal(command_option(&line, "output"), "file");
	assert_int_equal(line.argument_count, 1);
}

/* -n belongs to the commands that have --lines. */
TEST_CASE(test_lines_have_a_short_form)
{
	static const struct option with_lines[] = {{"lines", "N", ""}, {0}};
	assert_int_equal(PARSE("-n", "3"), 2);
	free(line.arguments);
	line = (struct command_line){.program = &program, .command = "test"};
	assert_int_equal(command_line_parse(&line, with_lines, 2, (char *[]){"-n", "3"}), 0);
	assert_string_equal(command_option(&line, "lines"), "3");
}

TEST_CASE(test_misuse_is_refused)
{
	assert_int_equal(PARSE("--bogus"), 2);
	assert_int_equal(PARSE("-x"), 2);
	assert_int_equal(PARSE("--name"), 2);
	assert_int_equal(PARSE("--dry-run=yes"), 2);
	assert_int_equal(PARSE("--name", "a", "--name", "b"), 2);
	assert_int_equal(PARSE("--nam", "a"), 2);
	char *many[2 * CONFIG_SETS_MAX + 2];
	for (size_t i = 0; i < sizeof many / sizeof *many; i++)
		many[i] = i % 2 ? "a.b=c" : "--set";
	assert_int_equal(parse(2 * CONFIG_SETS_MAX, many), 0);
	assert_int_equal(parse(2 * CONFIG_SETS_MAX + 2, many), 2);
}

static int tear_down(void **state)
{
	free(line.arguments);
	line.arguments = NULL;
	return 0;
}

TEST_MAIN(NULL, tear_down)
