/* `completion`: prints shell completion scripts. Each script is a file of this folder that contains
 * a table, generated from the tables that the command line is parsed by. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define SCRIPT_LIMIT ((size_t)1 << 20)
#define TABLE_MARK "@TABLE@"

struct catalogue {
	const struct command *commands;
	size_t count;
};

/* Returns the name of a command or, after the last command, of an operation. NULL: no more. */
static const char *name_at(const struct catalogue *catalogue, size_t index)
{
	if (index < catalogue->count)
		return catalogue->commands[index].name;
	const struct admin_operation *operation = admin_operation_at(index - catalogue->count);
	return operation ? operation->name : NULL;
}

static bool is_file(const char *place)
{
	return place && (strstr(place, "FILE") || strstr(place, "DIR") || strstr(place, "PATH") ||
	                 strstr(place, "ARCHIVE"));
}

/* Returns whether an earlier command has the same first word. */
static bool is_known(const struct catalogue *catalogue, size_t index, const char *name, size_t size)
{
	for (size_t i = 0; i < index; i++) {
		const char *earlier = name_at(catalogue, i);
		if (strncmp(earlier, name, size) == 0 && (earlier[size] == ' ' || !earlier[size]))
			return true;
	}
	return false;
}

/* ---- the table; the scripts document its format ---- */

static void add_words(const struct catalogue *catalogue, size_t index, const char *summary,
                      struct buf *out)
{
	const char *name = name_at(catalogue, index);
	const char *second = strchr(name, ' ');
	int first = (int)strcspn(name, " ");
	if (!is_known(catalogue, index, name, (size_t)first))
		buf_printf(out, ":%.*s::%s\n", first, name, second ? "" : summary);
	if (second)
		buf_printf(out, "%.*s:%s::%s\n", first, name, second + 1, summary);
}

static void add_option(const char *command, const char *label, const char *place,
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
		add_option(command, label, at->place, NULL, at->help, out);
	}
}

static void add_operation(const struct admin_operation *operation, struct buf *out)
{
	const struct admin_parameter *at;
	char label[ADMIN_LABEL_SIZE];
	for (size_t i = 0; (at = admin_parameter_at(operation, i)); i++) {
		command_label(at, label);
		if (!at->positional)
			add_option(operation->name, label, at->place, at->choices, at->help, out);
		else if (is_file(at->place))
			buf_printf(out, "%s:::\n", operation->name);
	}
}

static void add_table(const struct catalogue *catalogue, struct buf *out)
{
	const struct admin_operation *operation;
	add_options("", common_options, out);
	for (size_t i = 0; i < catalogue->count; i++) {
		const struct command *command = &catalogue->commands[i];
		add_words(catalogue, i, command->summary, out);
		add_options(command->name, command->options, out);
		const char *choice;
		for (unsigned at = 0; command->choice && (choice = command->choice(at)); at++)
			buf_printf(out, "%s:%s::\n", command->name, choice);
		if (is_file(command->arguments))
			buf_printf(out, "%s:::\n", command->name);
	}
	for (size_t i = 0; (operation = admin_operation_at(i)); i++) {
		add_words(catalogue, catalogue->count + i, operation->summary, out);
		add_operation(operation, out);
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

int command_completion(const struct command_line *line, const struct command *commands,
                       size_t count)
{
	static const struct {
		const char *shell;
		const struct slice *script;
		const char *escaped;
	} shells[] = {{"bash", &embedded_completion_bash, ""},
	              {"fish", &embedded_completion_fish, "'\\"},
	              {"zsh", &embedded_completion_zsh, ""}};
	const struct catalogue catalogue = {commands, count};
	BUF_AUTO struct buf table;
	BUF_AUTO struct buf out;
	buf_init(&table, SCRIPT_LIMIT);
	buf_init(&out, SCRIPT_LIMIT);
	add_table(&catalogue, &table);
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
