#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define PLACE_COUNT 4
/* A placeholder value may come from a client and must not displace the rest of the message. */
#define PLACE_SIZE_MAX 256

static const struct {
	const char *code;
	int status;
	int exit_code;
	const char *text[2];
} errors[] = {
#define ERROR_ENTRY(name, number, code, status, exit_code, english, spanish)                       \
	[number] = {code, status, exit_code, {english, spanish}},
#include "base/error.def"
#undef ERROR_ENTRY
};

_Static_assert(sizeof errors / sizeof *errors <= ERROR_NUMBERS, "ERROR_NUMBERS is to be raised");

static const char *const sentences[MSG_COUNT][2] = {
#define MESSAGE_ENTRY(name, english, spanish) [MSG_##name] = {english, spanish},
#include "base/message.def"
#undef MESSAGE_ENTRY
};

static const char *const command_errors[] = {
	[ERROR_NUMBERS] = NULL,
#define COMMAND_MESSAGE(name, text)
#define COMMAND_ERROR(name, text) [-ERR_##name] = (text),
#include "base/command_message.def"
#undef COMMAND_ERROR
};

static const char *const command_sentences[MSG_COUNT] = {
#undef COMMAND_MESSAGE
#define COMMAND_ERROR(name, text)
#define COMMAND_MESSAGE(name, text) [MSG_##name] = (text),
#include "base/command_message.def"
#undef COMMAND_ERROR
#undef COMMAND_MESSAGE
};

static size_t error_index(int code)
{
	size_t index = code < 0 ? -(size_t)code : 0;
	if (index >= sizeof errors / sizeof *errors || !errors[index].code)
		return -ERR_INTERNAL;
	return index;
}

bool error_is_known(int code)
{
	return code == ERR_INTERNAL || error_index(code) != -ERR_INTERNAL;
}

const char *error_code_text(int code)
{
	return errors[error_index(code)].code;
}

int error_http_status(int code)
{
	return errors[error_index(code)].status;
}

int error_exit_code(int code)
{
	return code == OK ? 0 : errors[error_index(code)].exit_code;
}

int error_find(const char *code_text, size_t size, int exit_code)
{
	for (int number = 1; number < (int)(sizeof errors / sizeof *errors); number++)
		if (errors[number].code && errors[number].exit_code == exit_code &&
		    slice_is(slice_make(code_text, size), errors[number].code))
			return -number;
	return ERR_INTERNAL;
}

const char *error_general_message(int code, enum language language)
{
	return errors[error_index(code)].text[language == LANGUAGE_SPANISH];
}

void error_clear(struct error *error)
{
	if (!error)
		return;
	error->code = OK;
	error->message = MSG_NONE;
	error->english[0] = error->spanish[0] = error->command[0] = error->cause[0] = '\0';
	error->retry_after_seconds = 0;
	error->fault = BLAME_NONE;
}

void error_keep(struct error *error, int code)
{
	if (error->code == code)
		return;
	error_clear(error);
	error->code = code;
}

static void fill(char text[ERROR_MESSAGE_MAX], const char *sentence,
                 const struct slice places[PLACE_COUNT])
{
	size_t size = 0;
	while (*sentence) {
		struct slice part;
		if (sentence[0] == '{' && sentence[1] >= '0' && sentence[1] < '0' + PLACE_COUNT &&
		    sentence[2] == '}') {
			part = places[sentence[1] - '0'];
			sentence += 3;
		} else {
			part = slice_make(sentence, 1 + strcspn(sentence + 1, "{"));
			sentence += part.size;
		}
		part = utf8_cut(part, ERROR_MESSAGE_MAX - 1 - size);
		memcpy(text + size, part.data, part.size);
		size += part.size;
	}
	text[size] = '\0';
}

int error_set(struct error *error, int code, enum message message, ...)
{
	if (!error)
		return code;
	struct slice places[PLACE_COUNT] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
	va_list list;
	va_start(list, message);
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		const char *place = va_arg(list, const char *);
		if (!place)
			break;
		places[i] = utf8_cut(slice_of(place), PLACE_SIZE_MAX);
	}
	va_end(list);
	error->code = code;
	error->message = message;
	error->fault = BLAME_NONE;
	error->english[0] = error->spanish[0] = error->command[0] = '\0';
	if (message > MSG_NONE && message < MSG_COUNT) {
		fill(error->english, sentences[message][LANGUAGE_ENGLISH], places);
		fill(error->spanish, sentences[message][LANGUAGE_SPANISH], places);
		if (command_sentences[message])
			fill(error->command, command_sentences[message], places);
	}
	return code;
}

int error_cause(struct error *error, int code, const char *format, ...)
{
	if (!error)
		return code;
	error->code = code;
	error->message = MSG_NONE;
	error->fault = BLAME_NONE;
	error->english[0] = error->spanish[0] = error->command[0] = '\0';
	va_list list;
	va_start(list, format);
	vsnprintf(error->cause, sizeof error->cause, format, list);
	va_end(list);
	/* The text may come from another program and be truncated; PostgreSQL accepts only valid
	 * UTF-8. */
	utf8_replace_invalid(error->cause);
	return code;
}

void error_blame(struct error *error, enum error_blame fault)
{
	if (error)
		error->fault = fault;
}

static void name_fields(char text[ERROR_MESSAGE_MAX], field_namer *namer, const void *context,
                        enum language language)
{
	char named[ERROR_MESSAGE_MAX];
	size_t size = 0;
	for (const char *at = text; *at;) {
		char name[FIELD_SIZE], word[FIELD_WORD_SIZE];
		struct slice part = slice_make(at, strcspn(at, FIELD_OPENS));
		at += part.size;
		if (!part.size) {
			size_t length = strcspn(++at, FIELD_CLOSES);
			snprintf(name, sizeof name, "%.*s", (int)length, at);
			namer(context, name, language, word);
			part = slice_of(word);
			at += length + (at[length] != '\0');
		}
		part = utf8_cut(part, sizeof named - 1 - size);
		memcpy(named + size, part.data, part.size);
		size += part.size;
	}
	memcpy(text, named, size);
	text[size] = '\0';
}

void error_name_fields(struct error *error, field_namer *namer, const void *context)
{
	if (!error)
		return;
	name_fields(error->english, namer, context, LANGUAGE_ENGLISH);
	name_fields(error->spanish, namer, context, LANGUAGE_SPANISH);
	name_fields(error->command, namer, context, LANGUAGE_ENGLISH);
}

const char *error_field(const char *name, char marked[FIELD_SIZE])
{
	snprintf(marked, FIELD_SIZE, FIELD("%s"), name);
	return marked;
}

const char *error_message(const struct error *error, enum language language)
{
	if (!error)
		return error_general_message(ERR_INTERNAL, language);
	const char *text = language == LANGUAGE_SPANISH ? error->spanish : error->english;
	return *text ? text : error_general_message(error->code, language);
}

static const char *general_command_message(int code)
{
	size_t index = error_index(code);
	return command_errors[index] ?: errors[index].text[LANGUAGE_ENGLISH];
}

const char *error_command_message(const struct error *error)
{
	if (error && *error->command)
		return error->command;
	if (error && *error->english)
		return error->english;
	return general_command_message(error ? error->code : ERR_INTERNAL);
}

const char *error_reason(const struct error *error, int code)
{
	if (error && *error->cause)
		return error->cause;
	if (error && *error->command)
		return error->command;
	return error && *error->english ? error->english : general_command_message(code);
}
