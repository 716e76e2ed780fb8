/* The findings of the offline verifier: a stable code for each, and its sentence in both languages
 * (verify_finding.def). */
#ifndef VERIFY_VERIFY_FINDING_H
#define VERIFY_VERIFY_FINDING_H

#include <inttypes.h>
#include <stdarg.h>

#include "base/error.h"

/* Of the codes, in what verify_print writes as JSON: higher with each new code. No code changes its
 * meaning. */
#define FINDINGS_VERSION 1
#define FINDING_TEXT_SIZE 1024 /* of a sentence with its places filled */

enum finding {
	FINDING_NONE,
#define VERIFY_FINDING(name, code, severities, english, spanish) FINDING_##name,
#include "verify/verify_finding.def"
#undef VERIFY_FINDING
	FINDING_COUNT
};

/* The sentences, which the compiler compares with what fills their places. */
#define VERIFY_FINDING(name, code, severities, english, spanish)                                   \
	static const char FINDING_##name##_EN[] __attribute__((unused)) = english;                     \
	static const char FINDING_##name##_ES[] __attribute__((unused)) = spanish;
#include "verify/verify_finding.def"
#undef VERIFY_FINDING

/* "event.sequence"; "" of FINDING_NONE. */
const char *finding_code(enum finding finding);
/* The sentence as it stands in the table, with its places. */
const char *finding_sentence(enum finding finding, enum language language);

/* Of the errors that the two below made; FINDING_NONE: another one. */
enum finding finding_of(const struct error *error);
/* Records in an error which finding it is, with the sentence in both languages; `finding` is one of
 * the enumeration, by its name. Returns ERR_INVALID_EVIDENCE, or `status`. */
#define finding_fail(error, finding, ...)                                                          \
	finding_fail_as(error, ERR_INVALID_EVIDENCE, finding, ##__VA_ARGS__)
#define finding_fail_as(error, status, finding, ...)                                               \
	finding_set(error, status, finding, finding##_EN, finding##_ES, ##__VA_ARGS__)
int finding_set(struct error *error, int status, enum finding finding, const char *english,
                const char *spanish, ...)
	__attribute__((format(printf, 4, 6), format(printf, 5, 6)));
/* `places` twice, as each of the two sentences takes it up. */
int finding_set_list(struct error *error, int status, enum finding finding, const char *english,
                     const char *spanish, va_list places, va_list again)
	__attribute__((format(printf, 4, 0), format(printf, 5, 0)));
/* Records which step failed, unless the error says already which finding it is. Returns status. */
int finding_step(struct error *error, enum finding finding, int status);

#endif
