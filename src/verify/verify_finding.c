#include "verify/verify_finding.h"

#include <assert.h>
#include <stdio.h>

#include "base/utf8.h"

static const struct {
	const char *code, *sentences[2];
} findings[] = {
	[FINDING_NONE] = {"", {"", ""}},
#define VERIFY_FINDING(name, code, severities, english, spanish)                                   \
	[FINDING_##name] = {code, {english, spanish}},
#include "verify/verify_finding.def"
#undef VERIFY_FINDING
};

const char *finding_code(enum finding finding)
{
	assert(finding < FINDING_COUNT);
	return findings[finding].code;
}

const char *finding_sentence(enum finding finding, enum language language)
{
	assert(finding < FINDING_COUNT);
	return findings[finding].sentences[language == LANGUAGE_SPANISH];
}

/* Stores the finding in the error's message number. Findings are numbered after the messages of
 * message.def. */
static void name(struct error *error, enum finding finding)
{
	assert(finding > FINDING_NONE && finding < FINDING_COUNT);
	error->message = (enum message)((int)MSG_COUNT + (int)finding);
}

enum finding finding_of_error(const struct error *error)
{
	int number = (int)error->message - (int)MSG_COUNT;
	return number > 0 && number < (int)FINDING_COUNT ? (enum finding)number : FINDING_NONE;
}

int finding_set_list(struct error *error, int status, enum finding finding, const char *english,
                     const char *spanish, va_list places, va_list again)
{
	assert(status < 0);
	if (!error)
		return status;
	error_clear(error);
	error->code = status;
	name(error, finding);
	vsnprintf(error->english, sizeof error->english, english, places);
	vsnprintf(error->spanish, sizeof error->spanish, spanish, again);
	utf8_replace_invalid(error->english);
	utf8_replace_invalid(error->spanish);
	snprintf(error->cause, sizeof error->cause, "%s", error->english);
	return status;
}

int finding_set(struct error *error, int status, enum finding finding, const char *english,
                const char *spanish, ...)
{
	va_list places, again;
	va_start(places, spanish);
	va_copy(again, places);
	int result = finding_set_list(error, status, finding, english, spanish, places, again);
	va_end(again);
	va_end(places);
	return result;
}

int finding_set_step(struct error *error, enum finding finding, int status)
{
	if (error && status < 0 && !finding_of_error(error))
		name(error, finding);
	return status;
}
