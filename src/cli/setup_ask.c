/* The answers of `setup`: from the options, and on a terminal from the operator. */
#include <ctype.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/setup.h"

#define TOPICS 10
#define PROBLEMS_MAX ((size_t)64 * 1024)

/* ---- the options ---- */

/* Reads the first line of a secret file. Returns NULL, or what is wrong. */
static const char *read_secret(struct setup *setup, const char *path, const char **ret)
{
	BUF_AUTO struct buf text;
	struct error error = {0};
	buf_init(&text, SETUP_SECRET_MAX);
	if (file_read_whole(path, &text, &error))
		return arena_printf(&setup->arena, "cannot be read: %s", error_reason(&error, ERR_IO));
	size_t size = text.data ? strcspn(text.data, "\r\n") : 0;
	bool cut = text.size > size && text.data[size] == '\0';
	*ret = size && !cut ? arena_copy(&setup->arena, text.data, size) : NULL;
	if (text.data)
		explicit_bzero(text.data, text.size);
	return *ret  ? NULL
	       : cut ? "the first line of the file contains a NUL byte"
	             : "the first line of the file is empty";
}

/* Takes the answer of an option. Returns NULL, or what is wrong; the answer is then absent. */
static const char *take_option(struct setup *setup, enum setup_number number)
{
	const char *value = command_option(setup->line, setup_questions[number].flag);
	const char *what = NULL;
	if (!value)
		return NULL;
	setup->answers[number] = value;
	if (setup_questions[number].credential && *value)
		what = read_secret(setup, value, &setup->answers[number]);
	if (!what)
		what = setup_check(setup, number);
	if (what)
		setup->answers[number] = NULL;
	return what;
}

static int take_options(struct setup *setup)
{
	BUF_AUTO struct buf missing;
	BUF_AUTO struct buf problems;
	buf_init(&missing, PROBLEMS_MAX);
	unsigned topic = 0; /* of the last problem; what depends on its answer is unknown */
	buf_init(&problems, PROBLEMS_MAX);
	for (int i = 0; i < SETUP_QUESTIONS; i++) {
		const struct setup_question *question = &setup_questions[i];
		bool given = command_option(setup->line, question->flag) != NULL;
		bool applies = setup_applies(setup, (enum setup_number)i);
		const char *what = applies ? take_option(setup, (enum setup_number)i) : NULL;
		if (what)
			buf_printf(&problems, "%s--%s: %s", problems.size ? "\n" : "", question->flag, what);
		else if (applies && !given && question->need == SETUP_REQUIRED)
			buf_printf(&missing, "%s--%s", missing.size ? ", " : "", question->flag);
		else if (!applies && given && question->topic != topic)
			buf_printf(&problems, "%s--%s: does not apply with the other answers",
			           problems.size ? "\n" : "", question->flag);
		topic = what ? question->topic : topic;
	}
	if (problems.size)
		return command_usage_error(setup->line, "%s", problems.data);
	if (missing.size && !setup->interactive)
		return command_usage_error(setup->line,
		                           "Options are missing: %s. Without a terminal each question "
		                           "needs its option; see --help.",
		                           missing.data);
	return 0;
}

/* ---- the terminal ---- */

static void set_echo(bool on)
{
	struct termios terminal;
	if (tcgetattr(STDIN_FILENO, &terminal) != 0)
		return;
	if (on)
		terminal.c_lflag |= ECHO;
	else
		terminal.c_lflag &= ~(tcflag_t)ECHO;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
}

static void interrupt(int number)
{
	(void)number; /* the interrupted wait ends the command, after the echo is on again */
}

static void print_prompt(const struct setup_question *question)
{
	printf("%s", question->prompt);
	if (question->suggestion)
		printf(" [%s]", question->suggestion);
	printf(":\n> ");
	fflush(stdout);
}

static const char *read_shown(const struct setup_question *question, char *text, int size)
{
	print_prompt(question);
	return fgets(text, size, stdin);
}

static const int interrupts[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
#define INTERRUPTS (sizeof interrupts / sizeof *interrupts)

/* Reads a line that the terminal does not show. A signal that comes before the wait for the line
 * ends that wait. */
static const char *read_hidden(const struct setup_question *question, char *text, int size)
{
	const struct sigaction handler = {.sa_handler = interrupt};
	struct sigaction before[INTERRUPTS];
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	sigset_t blocked, usual;
	sigemptyset(&blocked);
	for (size_t i = 0; i < INTERRUPTS; i++)
		sigaddset(&blocked, interrupts[i]);
	(void)sigprocmask(SIG_BLOCK, &blocked, &usual);
	for (size_t i = 0; i < INTERRUPTS; i++)
		(void)sigaction(interrupts[i], &handler, &before[i]);
	set_echo(false); /* before the prompt, since a pasted answer may follow it at once */
	print_prompt(question);
	const char *line = ppoll(&input, 1, NULL, &usual) == 1 ? fgets(text, size, stdin) : NULL;
	set_echo(true);
	(void)sigprocmask(SIG_SETMASK, &usual, NULL);
	for (size_t i = 0; i < INTERRUPTS; i++)
		(void)sigaction(interrupts[i], &before[i], NULL);
	putchar('\n');
	return line;
}

/* Reads a line without white space at its ends; a secret is not echoed. Returns NULL at the end of
 * the input. */
static const char *read_answer(struct setup *setup, const struct setup_question *question)
{
	char text[SETUP_SECRET_MAX + 2]; /* the longest line of a terminal, with its line feed */
	const char *line = question->credential ? read_hidden(question, text, sizeof text)
	                                        : read_shown(question, text, sizeof text);
	if (!line)
		return NULL;
	size_t begin = 0, end = strcspn(text, "\r\n");
	while (begin < end && isspace((unsigned char)text[begin]))
		begin++;
	while (end > begin && isspace((unsigned char)text[end - 1]))
		end--;
	const char *answer = arena_copy(&setup->arena, text + begin, end - begin);
	explicit_bzero(text, sizeof text);
	return answer;
}

/* Asks until the answer is valid; after an invalid pair, *ret_again is set to ask for both again.
 * Returns 0 or the exit code. */
static int ask(struct setup *setup, enum setup_number number, bool *ret_again)
{
	const struct setup_question *question = &setup_questions[number];
	*ret_again = false;
	while (!*ret_again) {
		const char *answer = read_answer(setup, question);
		if (!answer)
			return command_usage_error(setup->line, "The input ended. Nothing was written.");
		if (!*answer && question->suggestion)
			answer = question->suggestion;
		setup->answers[number] = answer;
		const char *what = setup_check(setup, number);
		if (!what)
			return 0;
		setup->answers[number] = NULL;
		printf("  This is not valid: %s%s\n", what, what[strlen(what) - 1] == '.' ? "" : ".");
		*ret_again = setup_is_second(number);
	}
	setup->answers[number - 1] = NULL;
	return 0;
}

static int ask_all(struct setup *setup)
{
	unsigned topic = 0;
	printf("Ten questions about this deployment. Each answer is checked at once; nothing is\n"
	       "written before the last one. The end of the input (Ctrl-D) ends the command.\n");
	for (int i = 0; i < SETUP_QUESTIONS; i++) {
		const struct setup_question *question = &setup_questions[i];
		if (setup->answers[i] || question->need == SETUP_FLAG_ONLY ||
		    !setup_applies(setup, (enum setup_number)i))
			continue;
		if (question->topic != topic)
			printf("\n%u of %u. ", question->topic, TOPICS);
		topic = question->topic;
		bool again;
		int exit_code = ask(setup, (enum setup_number)i, &again);
		if (exit_code)
			return exit_code;
		i -= again ? 2 : 0;
	}
	putchar('\n');
	return 0;
}

int setup_ask(struct setup *setup)
{
	BUF_AUTO struct buf problems;
	buf_init(&problems, PROBLEMS_MAX);
	int exit_code = take_options(setup);
	if (!exit_code && setup->interactive)
		exit_code = ask_all(setup);
	if (exit_code)
		return exit_code;
	setup_check_all(setup, &problems);
	if (!problems.size)
		return 0;
	problems.data[problems.size - 1] = '\0'; /* replaces the last line feed */
	return command_usage_error(setup->line, "%s", problems.data);
}
