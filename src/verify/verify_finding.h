/* The findings of the offline verifier: a stable code for each, and its sentence in both languages
 * (verify_finding.def). */
#ifndef VERIFY_VERIFY_FINDING_H
#define VERIFY_VERIFY_FINDING_H

#include <inttypes.h>
#include <stdarg.h>

#include "base/error.h"

/* Version of the set of codes in the JSON document of verify_print. It rises with each new code. No
 * code changes its meaning. */
#define FINDINGS_VERSION 2
#define FINDING_TEXT_SIZE 1024 /* bytes of a sentence with its placeholders replaced */

enum finding {
	FINDING_NONE,
#define VERIFY_FINDING(name, code, severities, english, spanish) FINDING_##name,
#include "verify/verify_finding.def"
#undef VERIFY_FINDING
	FINDING_COUNT
};

/* The sentences, as format strings whose arguments the compiler checks. */
#define VERIFY_FINDING(name, code, severities, english, spanish)                                   \
	static const char FINDING_##name##_EN[] __attribute__((unused)) = english;                     \
	static const char FINDING_##name##_ES[] __attribute__((unused)) = spanish;
#include "verify/verify_finding.def"
#undef VERIFY_FINDING

/* Returns the code, such as "event.sequence"; "" for FINDING_NONE. */
const char *finding_code(enum finding finding);
/* Returns the sentence with its placeholders. */
const char *finding_sentence(enum finding finding, enum language language);

/* Returns the finding of an error made by the functions below; FINDING_NONE: another error. */
enum finding finding_of_error(const struct error *error);
/* Sets an error to a finding, with the sentence in both languages. `finding` is the name of an
 * enumerator. Returns ERR_INVALID_EVIDENCE, or `status`. */
#define finding_fail(error, finding, ...)                                                          \
	finding_fail_as(error, ERR_INVALID_EVIDENCE, finding, ##__VA_ARGS__)
#define finding_fail_as(error, status, finding, ...)                                               \
	finding_set(error, status, finding, finding##_EN, finding##_ES, ##__VA_ARGS__)
int finding_set(struct error *error, int status, enum finding finding, const char *english,
                const char *spanish, ...)
	__attribute__((format(printf, 4, 6), format(printf, 5, 6)));
/* Does the same. `places` and `again` are the same arguments, because each sentence consumes one
 * list. */
int finding_set_list(struct error *error, int status, enum finding finding, const char *english,
                     const char *spanish, va_list places, va_list again)
	__attribute__((format(printf, 4, 0), format(printf, 5, 0)));
/* Sets the finding of an error to the failed step, unless the error already has a finding. Returns
 * `status`. */
int finding_set_step(struct error *error, enum finding finding, int status);

#endif
