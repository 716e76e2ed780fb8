#include "testing.h"
#include "base/error.h"
#include "base/utf8.h"

TEST_CASE(test_table)
{
	assert_string_equal(error_code_text(ERR_VALIDATION), "validation_error");
	assert_int_equal(error_http_status(ERR_TOO_LARGE), 413);
	assert_int_equal(error_http_status(ERR_NO_MEMORY), 503);
	assert_int_equal(error_exit_code(OK), 0);
	assert_int_equal(error_exit_code(ERR_VALIDATION), 1);
	assert_int_equal(error_exit_code(ERR_IO), 2);
	assert_string_equal(error_code_text(-9999), "internal");
	assert_int_equal(error_http_status(OK), 500);
	assert_int_equal(error_http_status(77), 500);
	assert_string_equal(error_general_message(ERR_NOT_FOUND, LANGUAGE_SPANISH),
	                    "El recurso no existe.");
}

/* An error that one program writes is read back by another one. */
TEST_CASE(test_codes_are_found)
{
	for (int code = ERR_VALIDATION; code >= ERR_CLOCK; code--) {
		const char *text = error_code_text(code);
		int found = error_find(text, strlen(text), error_exit_code(code));
		assert_true(found >= code);
		assert_string_equal(error_code_text(found), text);
		assert_int_equal(error_exit_code(found), error_exit_code(code));
	}
	assert_int_equal(error_find("not_found", 9, 1), ERR_NOT_FOUND);
	assert_int_equal(error_find("not_found", 8, 1), ERR_INTERNAL);
	assert_int_equal(error_find("not_found", 9, 2), ERR_INTERNAL);
	assert_int_equal(error_find(NULL, 0, 1), ERR_INTERNAL);
}

/* Both sentences of a message have the same placeholders, but for pairs with one per language. */
TEST_CASE(test_sentences)
{
	for (int message = MSG_NONE + 1; message < (int)MSG_COUNT; message++) {
		struct error error = {0};
		error_set(&error, ERR_VALIDATION, (enum message)message, "zero", "one", "two", "three",
		          NULL);
		assert_int_equal(error.message, message);
		assert_null(strpbrk(error.english, "{}"));
		assert_null(strpbrk(error.spanish, "{}"));
		assert_true(strlen(error.english) > 0 && strlen(error.spanish) > 0);
		assert_true(utf8_valid(slice_of(error.spanish)));
	}
}

TEST_CASE(test_places)
{
	struct error error = {0};
	assert_int_equal(error_set(&error, ERR_VALIDATION, MSG_FIELD_REQUIRED, "payload", NULL),
	                 ERR_VALIDATION);
	assert_string_equal(error_message(&error, LANGUAGE_ENGLISH),
	                    "The field 'payload' is required.");
	assert_string_equal(error_message(&error, LANGUAGE_SPANISH),
	                    "El campo 'payload' es obligatorio.");
	/* The value of a placeholder is not expanded; a missing value is empty. */
	error_set(&error, ERR_VALIDATION, MSG_FIELD_TYPE, "{1}%s", NULL);
	assert_string_equal(error.english, "The field '{1}%s' must be .");
	assert_int_equal(error_set(NULL, ERR_IO, MSG_FIELD_REQUIRED, "x", NULL), ERR_IO);
}

TEST_CASE(test_long_places_are_cut)
{
	char name[3001];
	for (size_t i = 0; i < 3000; i += 3)
		memcpy(name + i, "\xe2\x82\xac", 3);
	name[3000] = '\0';
	struct error error = {0};
	error_set(&error, ERR_VALIDATION, MSG_FIELD_REQUIRED, name, NULL);
	assert_true(utf8_valid(slice_of(error.english)));
	assert_non_null(strstr(error.english, "' is required."));
	error_set(&error, ERR_VALIDATION, MSG_JSON_SYNTAX, name, name, name, NULL);
	assert_true(strlen(error.english) < ERROR_MESSAGE_MAX);
	assert_true(utf8_valid(slice_of(error.english)));
}

TEST_CASE(test_cause)
{
	struct error error = {0};
	error_set(&error, ERR_VALIDATION, MSG_FIELD_REQUIRED, "x", NULL);
	assert_int_equal(error_cause(&error, ERR_IO, "open %s: %d", "/x", 5), ERR_IO);
	assert_string_equal(error.cause, "open /x: 5");
	assert_int_equal(error.message, MSG_NONE);
	assert_string_equal(error_message(&error, LANGUAGE_ENGLISH),
	                    "An input or output operation failed.");
	assert_int_equal(error_cause(NULL, ERR_IO, "x"), ERR_IO);
	assert_string_equal(error_message(NULL, LANGUAGE_ENGLISH),
	                    error_general_message(ERR_INTERNAL, LANGUAGE_ENGLISH));
	/* Any text from elsewhere, cut anywhere. */
	char words[2 * ERROR_CAUSE_MAX] = "x\xff";
	for (size_t i = 2; i + 2 < sizeof words; i += 2)
		memcpy(words + i, "\xc3\xb1", 3);
	error_cause(&error, ERR_NETWORK, "%s", words);
	assert_int_equal(strlen(error.cause), ERROR_CAUSE_MAX - 1);
	assert_true(utf8_valid(slice_of(error.cause)));
	error_clear(&error);
	assert_int_equal(error.code, OK);
	assert_string_equal(error.cause, "");
	error_clear(NULL);
}

TEST_CASE(test_reason)
{
	struct error error = {0};
	assert_string_equal(error_reason(NULL, ERR_NO_MEMORY), "Out of memory.");
	assert_string_equal(error_reason(&error, ERR_NO_MEMORY), "Out of memory.");
	(void)error_set(&error, ERR_REFUSED, MSG_ADMIN_PEER, NULL);
	assert_string_equal(error_reason(&error, ERR_REFUSED), error.english);
	(void)error_cause(&error, ERR_IO, "the disk");
	assert_string_equal(error_reason(&error, ERR_IO), "the disk");
}

static void name_loudly(const void *context, const char *name, enum language language,
                        char word[FIELD_WORD_SIZE])
{
	assert_string_equal(context, "context");
	snprintf(word, FIELD_WORD_SIZE, "%s%s", name, language == LANGUAGE_SPANISH ? "¡!" : "!");
}

TEST_CASE(test_fields_are_named)
{
	struct error error = {0};
	char field[FIELD_SIZE], text[2 * ERROR_MESSAGE_MAX];
	assert_string_equal(error_field("max", field), FIELD("max"));
	error_set(&error, ERR_USAGE, MSG_ADMIN_ONE_OF, FIELD("since"), field, NULL);
	error_name_fields(&error, name_loudly, "context");
	assert_string_equal(error.english, "Specify either since! or max!, not both.");
	assert_string_equal(error.spanish, "Indique since¡! o max¡!, pero no ambos.");
	/* Not longer than a sentence, and without partial characters. */
	for (size_t i = 0; i + 3 < ERROR_MESSAGE_MAX; i += 3)
		memcpy(error.spanish + i, FIELD("x"), sizeof FIELD("x"));
	error_name_fields(&error, name_loudly, "context");
	snprintf(text, sizeof text, "%s", error.spanish);
	assert_true(strlen(text) < ERROR_MESSAGE_MAX && strlen(text) > ERROR_MESSAGE_MAX - 8);
	assert_true(utf8_valid(slice_of(text)));
	/* A placeholder that is not closed, at the end of a cut sentence. */
	snprintf(error.english, sizeof error.english, "x" FIELD_OPENS "ma");
	error_name_fields(&error, name_loudly, "context");
	assert_string_equal(error.english, "xma!");
	error_name_fields(NULL, name_loudly, NULL);
}

/* ---- the words of a command line ---- */

static const char *const message_names[MSG_COUNT] = {
#define MESSAGE_ENTRY(name, english, spanish) [MSG_##name] = #name,
#include "base/message.def"
#undef MESSAGE_ENTRY
};

/* Words of HTTP, and names of its headers and members. */
static const char *const http_words[] = {
	"Retry-After",
	"Idempotency-Key",
	"Content-Type",
	"header",
	"The body",
	"query parameter",
	"client_ref",
	"_url ",
	"seq_",
	"HTTP",
	"status ",
	"The field",
	"The member",
	"is request",
	"e request ",
	"same request",
	"requests with",
	"incident",
	"Too many requests",
	"resource",
};

static void assert_no_http(const char *name, const char *text)
{
	assert_true(strlen(text) > 0);
	for (size_t i = 0; i < sizeof http_words / sizeof *http_words; i++)
		if (strstr(text, http_words[i]))
			fail_msg("%s names '%s' to a user of the command line: %s", name, http_words[i], text);
}

/* Only the HTTP servers and the console use the messages that begin with their names. */
static bool is_for_commands(const char *name)
{
	return strncmp(name, "HTTP_", 5) != 0 && strncmp(name, "CONSOLE_", 8) != 0;
}

/* The command line does not speak HTTP, in whatever a command can fail with. */
TEST_CASE(test_commands_do_not_speak_http)
{
	for (int code = -1; code > -ERROR_NUMBERS; code--) {
		struct error error = {.code = code};
		if (error_is_known(code))
			assert_no_http(error_code_text(code), error_command_message(&error));
	}
	assert_no_http("no error", error_command_message(NULL));
	assert_no_http("a reason", error_reason(NULL, ERR_UNAVAILABLE));
	for (int message = MSG_NONE + 1; message < (int)MSG_COUNT; message++) {
		struct error error = {0};
		error_set(&error, ERR_VALIDATION, (enum message)message, "0", "1", "2", "3", NULL);
		assert_null(strpbrk(error.command, "{}"));
		if (is_for_commands(message_names[message]))
			assert_no_http(message_names[message], error_command_message(&error));
	}
}

TEST_CASE(test_the_words_of_a_command_follow_the_error)
{
	struct error error = {0};
	error_set(&error, ERR_CONFLICT, MSG_STORE_IDEMPOTENCY_KEY, "cert_1", NULL);
	assert_non_null(strstr(error_command_message(&error), "by the certification 'cert_1'"));
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "Idempotency-Key"));
	error_set(&error, ERR_REFUSED, MSG_ADMIN_PEER, NULL);
	assert_string_equal(error_command_message(&error), error.english);
	error_set(&error, ERR_CONFLICT, MSG_STORE_IDEMPOTENCY_KEY, "cert_1", NULL);
	(void)error_cause(&error, ERR_UNAVAILABLE, "the server");
	assert_non_null(strstr(error_command_message(&error), "run the same command again"));
	error_set(&error, ERR_CONFLICT, MSG_STORE_IDEMPOTENCY_KEY, "cert_1", NULL);
	error_clear(&error);
	assert_string_equal(error_command_message(&error), "An internal error occurred.");
}

TEST_MAIN(NULL, NULL)
