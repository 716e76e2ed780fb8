/* completion: scripts by which a shell completes this program's command lines. They are made of the
 * tables that the command line is read by, so that they know what the program knows. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define SCRIPT_LIMIT ((size_t)1 << 20)

/* What a command is, whichever table it stands in. */
struct shape {
	const char *name;
	const char *summary;
	bool takes_files;
	const struct option *options; /* NULL: those of `operation` */
	const struct admin_operation *operation;
};

struct catalogue {
	const struct command *commands;
	size_t count;
};

static bool is_file(const char *place)
{
	return place && (strstr(place, "FILE") || strstr(place, "DIR") || strstr(place, "PATH") ||
	                 strstr(place, "ARCHIVE"));
}

static bool shape_at(const struct catalogue *catalogue, size_t index, struct shape *ret)
{
	if (index < catalogue->count) {
		const struct command *command = &catalogue->commands[index];
		*ret = (struct shape){.name = command->name,
		                      .summary = command->summary,
		                      .takes_files = is_file(command->arguments),
		                      .options = command->options};
		return true;
	}
	const struct admin_operation *operation = admin_operation_at(index - catalogue->count);
	if (!operation)
		return false;
	*ret = (struct shape){
		.name = operation->name, .summary = operation->summary, .operation = operation};
	const struct admin_parameter *at;
	for (size_t i = 0; (at = admin_parameter_at(operation, i)); i++)
		ret->takes_files |= at->positional && is_file(at->place);
	return true;
}

/* An option: its name with dashes, what its value is like (NULL: a switch), or what it may be. */
struct flag {
	char label[ADMIN_LABEL_SIZE];
	const char *place;
	const char *choices;
	const char *help;
};

static void flag_of_option(const struct option *option, struct flag *ret)
{
	*ret = (struct flag){.place = option->place, .help = option->help};
	snprintf(ret->label, sizeof ret->label, "--%s", option->name);
}

/* The options that are the command's own; false past the last. */
static bool flag_at(const struct shape *shape, size_t index, struct flag *ret)
{
	for (const struct option *at = shape->options; at && at->name; at++)
		if (index-- == 0) {
			flag_of_option(at, ret);
			return true;
		}
	if (!shape->operation)
		return false;
	const struct admin_parameter *at;
	for (size_t i = 0; (at = admin_parameter_at(shape->operation, i)); i++) {
		if (at->positional || index-- != 0)
			continue;
		*ret = (struct flag){.place = at->place, .choices = at->choices, .help = at->help};
		command_label(at, ret->label);
		return true;
	}
	return false;
}

static bool takes_value(const struct flag *flag)
{
	return flag->place || flag->choices;
}

static void add_choices(struct buf *out, const char *choices)
{
	for (; *choices; choices++)
		buf_add_byte(out, *choices == '|' ? ' ' : *choices);
}

/* ---- words that may stand next ---- */

static bool begins_with(const char *name, struct slice word)
{
	return strncmp(name, word.data, word.size) == 0 &&
	       (name[word.size] == ' ' || name[word.size] == '\0');
}

/* The command's first word; false when an earlier command has the same. */
static bool first_word(const struct catalogue *catalogue, size_t index, struct slice *ret)
{
	struct shape shape;
	if (!shape_at(catalogue, index, &shape))
		return false;
	*ret = slice_make(shape.name, strcspn(shape.name, " "));
	for (size_t i = 0; i < index && shape_at(catalogue, i, &shape); i++)
		if (begins_with(shape.name, *ret))
			return false;
	return true;
}

static void add_first_words(const struct catalogue *catalogue, struct buf *out)
{
	struct shape shape;
	struct slice word;
	for (size_t i = 0; shape_at(catalogue, i, &shape); i++)
		if (first_word(catalogue, i, &word)) {
			buf_add_slice(out, word);
			buf_add_byte(out, ' ');
		}
}

static void add_second_words(const struct catalogue *catalogue, struct slice group, struct buf *out)
{
	struct shape shape;
	for (size_t i = 0; shape_at(catalogue, i, &shape); i++)
		if (begins_with(shape.name, group) && shape.name[group.size])
			buf_printf(out, "%s ", shape.name + group.size + 1);
}

/* ---- bash ---- */

static const char bash_head[] =
	"# bash completion of constancia; made by: constancia completion bash\n"
	"_constancia() {\n"
	"\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tlocal command= words= options= values= files= i\n"
	"\tCOMPREPLY=()\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tcase ${COMP_WORDS[i]} in\n"
	"\t\t--config | --data | --set) ((i++)) ;;\n"
	"\t\t-*) [ -z \"$command\" ] || break ;;\n"
	"\t\t*)\n"
	"\t\t\tcommand+=${command:+ }${COMP_WORDS[i]}\n"
	"\t\t\t[[ $command != *' '* ]] || break\n"
	"\t\t\t;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tcase $command in\n";

static const char bash_tail[] =
	"\tcase $before in\n"
	"\t--config | --data) values=- files=yes ;;\n"
	"\t--set) values=- ;;\n"
	"\tesac\n"
	"\tif [ -n \"$values\" ]; then\n"
	"\t\t[ \"$values\" = - ] || mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
	"\telif [[ $word == -* ]]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
	"\t\treturn\n"
	"\telse\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
	"\tfi\n"
	"\tif [ -n \"$files\" ]; then\n"
	"\t\tcompopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n"
	"\tfi\n"
	"}\n"
	"complete -F _constancia constancia\n";

/* What may follow each option of a command that takes a value. */
static void add_bash_values(const struct shape *shape, struct buf *out)
{
	struct flag flag;
	bool any = false;
	for (size_t i = 0; flag_at(shape, i, &flag); i++) {
		if (!takes_value(&flag))
			continue;
		if (!any)
			buf_add_text(out, "\t\tcase $before in\n");
		any = true;
		buf_printf(out, "\t\t%s) values=", flag.label);
		if (flag.choices) {
			buf_add_byte(out, '\'');
			add_choices(out, flag.choices);
			buf_add_byte(out, '\'');
		} else {
			buf_add_text(out, is_file(flag.place) ? "- files=yes" : "-");
		}
		buf_add_text(out, " ;;\n");
	}
	if (any)
		buf_add_text(out, "\t\tesac\n");
}

static void add_bash(const struct catalogue *catalogue, struct buf *out)
{
	struct shape shape;
	struct flag flag;
	struct slice group;
	buf_add_text(out, bash_head);
	buf_add_text(out, "\t'') words='");
	add_first_words(catalogue, out);
	buf_add_text(out, "' ;;\n");
	for (size_t i = 0; shape_at(catalogue, i, &shape); i++) {
		if (first_word(catalogue, i, &group) && strchr(shape.name, ' ')) {
			buf_printf(out, "\t'%.*s') words='", (int)group.size, group.data);
			add_second_words(catalogue, group, out);
			buf_add_text(out, "' ;;\n");
		}
		/* What has one word takes its first argument for a second. */
		buf_printf(out, strchr(shape.name, ' ') ? "\t'%s')\n" : "\t'%s' | '%s '*)\n", shape.name,
		           shape.name);
		buf_add_text(out, "\t\toptions='");
		for (size_t at = 0; flag_at(&shape, at, &flag); at++)
			buf_printf(out, "%s ", flag.label);
		buf_printf(out, "'%s\n", shape.takes_files ? " files=yes" : "");
		add_bash_values(&shape, out);
		buf_add_text(out, "\t\t;;\n");
	}
	buf_add_text(out, "\tesac\n\toptions+='");
	for (const struct option *at = common_options; at->name; at++)
		buf_printf(out, "%s--%s", at == common_options ? "" : " ", at->name);
	buf_add_text(out, "'\n");
	buf_add_text(out, bash_tail);
}

/* ---- fish ---- */

static void add_quoted(struct buf *out, const char *text)
{
	buf_add_byte(out, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_add_byte(out, '\\');
		buf_add_byte(out, *text);
	}
	buf_add_byte(out, '\'');
}

static void add_fish_flag(const char *condition, const struct flag *flag, struct buf *out)
{
	buf_printf(out, "complete -c constancia %s -l %s", condition, flag->label + 2);
	if (flag->choices) {
		buf_add_text(out, " -x -a '");
		add_choices(out, flag->choices);
		buf_add_byte(out, '\'');
	} else if (flag->place) {
		buf_add_text(out, is_file(flag->place) ? " -r -F" : " -x");
	}
	buf_add_text(out, " -d ");
	add_quoted(out, flag->help);
	buf_add_byte(out, '\n');
}

static const char fish_head[] =
	"# fish completion of constancia; made by: constancia completion fish\n"
	"function __constancia_command\n"
	"\tset -l words\n"
	"\tset -l skip no\n"
	"\tfor word in (commandline -opc)[2..-1]\n"
	"\t\tif test $skip = yes\n"
	"\t\t\tset skip no\n"
	"\t\telse if contains -- $word --config --data --set\n"
	"\t\t\tset skip yes\n"
	"\t\telse if not string match -q -- '-*' $word\n"
	"\t\t\tset -a words $word\n"
	"\t\tend\n"
	"\tend\n"
	"\tstring join ' ' $words[1..2]\n"
	"end\n"
	"complete -c constancia -f\n";

static void add_fish(const struct catalogue *catalogue, struct buf *out)
{
	struct shape shape;
	struct flag flag;
	struct slice group;
	char condition[192];
	buf_add_text(out, fish_head);
	for (const struct option *at = common_options; at->name; at++) {
		flag_of_option(at, &flag);
		add_fish_flag("", &flag, out);
	}
	for (size_t i = 0; shape_at(catalogue, i, &shape); i++) {
		const char *second = strchr(shape.name, ' ');
		int first = (int)strcspn(shape.name, " ");
		if (first_word(catalogue, i, &group)) {
			buf_printf(out,
			           "complete -c constancia -n 'test -z \"$(__constancia_command)\"' -a %.*s",
			           first, shape.name);
			buf_add_text(out, second ? "" : " -d ");
			if (!second)
				add_quoted(out, shape.summary);
			buf_add_byte(out, '\n');
		}
		if (second) {
			buf_printf(
				out,
				"complete -c constancia -n 'test \"$(__constancia_command)\" = %.*s' -a %s -d ",
				first, shape.name, second + 1);
			add_quoted(out, shape.summary);
			buf_add_byte(out, '\n');
		}
		snprintf(condition, sizeof condition,
		         "-n 'string match -q -- \"%s%s\" (__constancia_command)'", shape.name,
		         second ? "" : "*");
		if (shape.takes_files)
			buf_printf(out, "complete -c constancia %s -F\n", condition);
		for (size_t at = 0; flag_at(&shape, at, &flag); at++)
			add_fish_flag(condition, &flag, out);
	}
}

/* ---- zsh ---- */

static const char zsh_head[] =
	"#compdef constancia\n"
	"# zsh completion of constancia; made by: constancia completion zsh\n"
	"_constancia() {\n"
	"\tlocal before=${words[CURRENT-1]} command= values= files= i\n"
	"\tlocal -a next options\n"
	"\tfor ((i = 2; i < CURRENT; i++)); do\n"
	"\t\tcase ${words[i]} in\n"
	"\t\t(--config|--data|--set) ((i++)) ;;\n"
	"\t\t(-*) [[ -z $command ]] || break ;;\n"
	"\t\t(*)\n"
	"\t\t\tcommand+=${command:+ }${words[i]}\n"
	"\t\t\t[[ $command != *' '* ]] || break\n"
	"\t\t\t;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tcase $command in\n";

static const char zsh_tail[] = "\tcase $before in\n"
							   "\t(--config|--data) values=- files=yes ;;\n"
							   "\t(--set) values=- ;;\n"
							   "\tesac\n"
							   "\tif [[ -n $values ]]; then\n"
							   "\t\t[[ $values == - ]] || compadd -- ${=values}\n"
							   "\telif [[ $PREFIX == -* ]]; then\n"
							   "\t\t_describe -o option options\n"
							   "\t\treturn\n"
							   "\telse\n"
							   "\t\t(( ! $#next )) || _describe command next\n"
							   "\tfi\n"
							   "\t[[ -z $files ]] || _files\n"
							   "}\n"
							   "_constancia \"$@\"\n";

/* 'name:help' of `size` bytes of a name; a quotation mark ends the quotation for itself. */
static void add_zsh_item(struct buf *out, const char *name, int size, const char *help)
{
	buf_printf(out, " '%.*s%s", size, name, help ? ":" : "");
	for (; help && *help; help++)
		if (*help == '\'')
			buf_add_text(out, "'\\''");
		else
			buf_add_byte(out, *help);
	buf_add_byte(out, '\'');
}

static void add_zsh_options(const struct shape *shape, struct buf *out)
{
	struct flag flag;
	bool values = false;
	buf_add_text(out, "\t\toptions=(");
	for (size_t i = 0; flag_at(shape, i, &flag); i++) {
		add_zsh_item(out, flag.label, (int)strlen(flag.label), flag.help);
		values |= takes_value(&flag);
	}
	buf_printf(out, ")%s\n", shape->takes_files ? " files=yes" : "");
	if (!values)
		return;
	buf_add_text(out, "\t\tcase $before in\n");
	for (size_t i = 0; flag_at(shape, i, &flag); i++) {
		if (!takes_value(&flag))
			continue;
		buf_printf(out, "\t\t(%s) values=", flag.label);
		if (flag.choices) {
			buf_add_byte(out, '\'');
			add_choices(out, flag.choices);
			buf_add_byte(out, '\'');
		} else {
			buf_add_text(out, is_file(flag.place) ? "- files=yes" : "-");
		}
		buf_add_text(out, " ;;\n");
	}
	buf_add_text(out, "\t\tesac\n");
}

/* The words that come first, or those behind the first word `group`. */
static void add_zsh_words(const struct catalogue *catalogue, struct slice group, struct buf *out)
{
	struct shape shape;
	struct slice word;
	buf_printf(out, "\t('%.*s') next=(", (int)group.size, group.data ? group.data : "");
	for (size_t i = 0; shape_at(catalogue, i, &shape); i++) {
		bool second = strchr(shape.name, ' ') != NULL;
		if (!group.size && first_word(catalogue, i, &word))
			add_zsh_item(out, word.data, (int)word.size, second ? NULL : shape.summary);
		else if (group.size && begins_with(shape.name, group) && second)
			add_zsh_item(out, shape.name + group.size + 1, 255, shape.summary);
	}
	buf_add_text(out, ") ;;\n");
}

static void add_zsh(const struct catalogue *catalogue, struct buf *out)
{
	struct shape shape;
	struct slice group;
	buf_add_text(out, zsh_head);
	add_zsh_words(catalogue, (struct slice){0}, out);
	for (size_t i = 0; shape_at(catalogue, i, &shape); i++) {
		bool second = strchr(shape.name, ' ') != NULL;
		if (second && first_word(catalogue, i, &group))
			add_zsh_words(catalogue, group, out);
		buf_printf(out, second ? "\t('%s')\n" : "\t('%s'|'%s '*)\n", shape.name, shape.name);
		add_zsh_options(&shape, out);
		buf_add_text(out, "\t\t;;\n");
	}
	buf_add_text(out, "\tesac\n\toptions+=(");
	for (const struct option *at = common_options; at->name; at++) {
		struct flag flag;
		flag_of_option(at, &flag);
		add_zsh_item(out, flag.label, (int)strlen(flag.label), flag.help);
	}
	buf_add_text(out, ")\n");
	buf_add_text(out, zsh_tail);
}

int command_completion(const struct command_line *line, const struct command *commands,
                       size_t count)
{
	const struct catalogue catalogue = {commands, count};
	BUF_AUTO struct buf out;
	buf_init(&out, SCRIPT_LIMIT);
	if (strcmp(line->arguments[0], "bash") == 0)
		add_bash(&catalogue, &out);
	else if (strcmp(line->arguments[0], "fish") == 0)
		add_fish(&catalogue, &out);
	else if (strcmp(line->arguments[0], "zsh") == 0)
		add_zsh(&catalogue, &out);
	else
		return command_misused(line, "'%s' is no shell that is known here: bash, fish or zsh.",
		                       line->arguments[0]);
	if (buf_check(&out))
		return 2;
	fputs(out.data, stdout);
	return 0;
}
