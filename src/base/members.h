/* Descriptions of the members of a record, so that one function can read or write any record: the
 * store fills members from the columns of a row, and the administration writes them as JSON. */
#ifndef BASE_MEMBERS_H
#define BASE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/digest.h"
#include "base/for_each.h"

/* The type of the member determines its kind. */
enum member_kind {
	MEMBER_OTHER, /* handled by its user */
	MEMBER_BYTES,
	MEMBER_SHA256,
	MEMBER_CHARACTERS,
	MEMBER_STRING,
	MEMBER_INT,
	MEMBER_INT64, /* see member_is_time */
	MEMBER_BOOL,
};
struct member {
	const char *name;
	enum member_kind kind;
	size_t offset, size;
};

/* clang-format off */
/* The record type may be const. */
#define MEMBER_KIND(member)                                                                        \
	_Generic(&(member), const char **: MEMBER_STRING, const char *const *: MEMBER_STRING,          \
		struct slice *: MEMBER_BYTES, struct sha256 *: MEMBER_SHA256,                              \
		int *: MEMBER_INT, const int *: MEMBER_INT,                                                \
		int64_t *: MEMBER_INT64, const int64_t *: MEMBER_INT64,                                    \
		bool *: MEMBER_BOOL, const bool *: MEMBER_BOOL,                                            \
		default: _Generic((member), char *: MEMBER_CHARACTERS, const char *: MEMBER_CHARACTERS,    \
			default: MEMBER_OTHER))
/* Initializes a struct member, followed by a comma. */
#define MEMBER(record, member)                                                                     \
	{#member, MEMBER_KIND(((record *)0)->member), offsetof(record, member),                        \
	 sizeof(((record *)0)->member)},
/* Does the same; a member of one of the first three kinds does not compile. */
#define PLAIN_MEMBER(record, member)                                                               \
	{#member, MEMBER_KIND(((record *)0)->member), offsetof(record, member),                        \
	 sizeof(((record *)0)->member) +                                                               \
	 0 * sizeof(char[MEMBER_KIND(((record *)0)->member) <= MEMBER_SHA256 ? -1 : 1])},
/* clang-format on */

/* Returns whether the member is a time in microseconds: an int64_t whose name ends with "_us". */
static inline bool member_is_time(const struct member *member)
{
	size_t size = strlen(member->name);
	return member->kind == MEMBER_INT64 && size > 3 && !strcmp(member->name + size - 3, "_us");
}

#endif
