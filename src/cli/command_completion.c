/* `completion`: prints shell completion scripts. Each script is a file of this folder that contains
 * a table, generated from the tables that the command line is parsed by. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define SCRIPT_LIMIT ((size_t)1 << 20)
#define TABLE_MARK "@TABLE@"

/* Returns the name of a command or, after the last command, of an operation. NULL: no more. */
static const char *name_at(const struct program *program, size_t index)
{
	if (index < program->command_count)
		return program->commands[index].name;
	const struct operations *operations = program->operations;
	return operations ? operations->name(index - program->command_count) : NULL;
}

static bool is_file(const char *place)
{
	return place && (strstr(place, "FILE") || strstr(place, "DIR") || strstr(place, "PATH") ||
	                 strstr(place, "ARCHIVE"));
}

/* Returns whether an earlier command has the same first word. */
static bool is_known(const struct program *program, size_t index, const char *name, size_t size)
{
	for (size_t i = 0; i < index; i++) {
		const char *earlier = name_at(program, i);
		if (strncmp(earlier, name, size) == 0 && (earlier[size] == ' ' || !earlier[size]))
			return true;
	}
	return false;
}

/* ---- the table; the scripts document its format ---- */

static void add_words(const struct program *program, size_t index, const char *summary,
                      struct buf *out)
{
	const char *name = name_at(program, index);
	const char *second = strchr(name, ' ');
	int first = (int)strcspn(name, " ");
	if (!is_known(program, index, name, (size_t)first))
		buf_printf(out, ":%.*s::%s\n", first, name, second ? "" : summary);
	if (second)
		buf_printf(out, "%.*s:%s::%s\n", first, name, second + 1, summary);
}

void completion_add_option(const char *command, const char *label, const char *place,
                           const char *choices, const char *help, struct buf *out)
{
	const char *value = choices ? choices : !place ? "" : is_file(place) ? "FILE" : "-";
	buf_printf(out, "%s:%s:%s:%s\n", command, label, value, help);
}

static void add_options(const char *command, const struct option *options, struct buf *out)
{
	char label[ADMIN_LABEL_SIZE];
	for (const struct option *at = options; at && at->name; at++) {
		snprintf(label, sizeof label, "--%s", at->name);
		completion_add_option(command, label, at->place, NULL, at->help, out);
	}
}

void completion_add_files(const char *command, const char *place, struct buf *out)
{
	if (is_file(place))
		buf_printf(out, "%s:::\n", command);
}

static void add_table(const struct program *program, struct buf *out)
{
	const struct operations *operations = program->operations;
	add_options("", program->common_options, out);
	for (size_t i = 0; i < program->command_count; i++) {
		const struct command *command = &program->commands[i];
		const char *choice;
		add_words(program, i, command->summary, out);
		add_options(command->name, command->options, out);
		for (unsigned at = 0; command->choice && (choice = command->choice(at)); at++)
			buf_printf(out, "%s:%s::\n", command->name, choice);
		completion_add_files(command->name, command->arguments, out);
	}
	for (size_t i = 0; operations && operations->name(i); i++) {
		add_words(program, program->command_count + i, operations->summary(i), out);
		operations->complete(i, out);
	}
}

/* ---- the script ---- */

/* Appends the table, with `escaped` escaped for the single quotes of a shell. */
static void add_escaped(struct slice table, const char *escaped, struct buf *out)
{
	for (size_t i = 0; i < table.size; i++) {
		if (strchr(escaped, table.data[i]))
			buf_add_byte(out, '\\');
		buf_add_byte(out, table.data[i]);
	}
}

int command_completion(const struct command_line *line)
{
	static const struct {
		const char *shell;
		const struct slice *script;
		const char *escaped;
	} shells[] = {{"bash", &embedded_completion_bash, ""},
	              {"fish", &embedded_completion_fish, "'\\"},
	              {"zsh", &embedded_completion_zsh, ""}};
	BUF_AUTO struct buf table;
	BUF_AUTO struct buf out;
	buf_init(&table, SCRIPT_LIMIT);
	buf_init(&out, SCRIPT_LIMIT);
	add_table(line->program, &table);
	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
		if (strcmp(line->arguments[0], shells[i].shell) != 0)
			continue;
		const char *mark = strstr(shells[i].script->data, TABLE_MARK);
		buf_add(&out, shells[i].script->data, (size_t)(mark - shells[i].script->data));
		add_escaped(buf_slice(&table), shells[i].escaped, &out);
		buf_add_text(&out, mark + strlen(TABLE_MARK));
		if (buf_check(&table) || buf_check(&out))
			return 2;
		fputs(out.data, stdout);
		return 0;
	}
	return command_usage_error(line, "Unknown shell '%s'; must be bash, fish or zsh.",
	                           line->arguments[0]);
}
