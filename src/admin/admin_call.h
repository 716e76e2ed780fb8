/* Declarations shared by the files that implement operations. */
#ifndef ADMIN_ADMIN_CALL_H
#define ADMIN_ADMIN_CALL_H

#include "admin/admin.h"
#include "base/members.h"
#include "service/list.h"

#define ADMIN_LINE_MAX 200
#define ADMIN_LIST_DEFAULT 100
#define ADMIN_LIST_MAX 1000
#define ADMIN_NUMBER_MAX INT64_C(9007199254740991) /* largest exact JSON integer */
#define ADMIN_CREDITS_MAX INT64_C(1000000000000)

struct admin_value {
	bool given;
	const char *text; /* NULL unless given */
	int64_t integer;
};

struct admin_call {
	struct admin *admin;
	const struct admin_operation *operation;
	const struct admin_value *values; /* in the order of the operation's parameters */
	const struct admin_caller *caller;
	struct arena *arena;
	int64_t now_us;
};

/* Returns whether a text has printable characters only; `line_feeds`: line feeds are also
 * allowed. */
bool admin_is_printable(struct slice text, bool line_feeds);
/* Reads the values from an object or NULL, in the order of the operation's parameters.
 * ERR_USAGE. */
int admin_read_arguments(const struct admin_operation *operation, const struct json *arguments,
                         struct arena *arena, struct admin_value *values, struct error *error)
	MUST_CHECK;

/* These functions look up a parameter by name; the operation must have it. */
bool admin_given(const struct admin_call *call, const char *name);
const char *admin_text(const struct admin_call *call, const char *name);   /* NULL: not given */
struct slice admin_slice(const struct admin_call *call, const char *name); /* empty: not given */
int64_t admin_integer(const struct admin_call *call, const char *name, int64_t otherwise);

/* Reads an RFC 3339 time (ADMIN_FLAG_MOMENT); *ret_us is `otherwise` if it is not given.
 * ERR_USAGE. */
int admin_time(const struct admin_call *call, const char *name, int64_t otherwise, int64_t *ret_us,
               struct error *error) MUST_CHECK;
/* Reads an RFC 3339 time, or a duration ("90d") that is added to the current time (`sign` 1) or
 * subtracted from it (`sign` -1). *ret_us is `otherwise` if the argument is not given.
 * ERR_USAGE. */
int admin_moment(const struct admin_call *call, const char *name, int sign, int64_t otherwise,
                 int64_t *ret_us, struct error *error) MUST_CHECK;

/* Reads the range of days of ADMIN_FLAG_DAYS, as days since 1970-01-01; INT64_MIN to INT64_MAX if
 * none is given. ERR_USAGE. */
int admin_days(const struct admin_call *call, int64_t *ret_first, int64_t *ret_last,
               struct error *error) MUST_CHECK;

/* Appends the failing timestamp authorities, as far as the service knows, to a text. */
void admin_describe_authorities(const struct admin_call *call, char *text, size_t size);

/* Writes a member "YYYY-MM-DD" for a day, counted from 1970-01-01. */
void admin_day(struct json_writer *out, const char *name, int64_t day);
/* Writes an amount of money in minor units, such as "10.50". */
void admin_amount(struct json_writer *out, const char *name, int64_t minor);

/* Writes members of a record as JSON members with their names; times lose the suffix "_us".
 * `members` ends with a NULL name. ADMIN_PUT takes a pointer and the names: ADMIN_PUT(out, account,
 * name, email). */
void admin_put(struct json_writer *out, const void *record, const struct member *members);
#define ADMIN_PUT(out, record, ...)                                                                \
	admin_put(                                                                                     \
		out, record,                                                                               \
		(const struct member[]){FOR_EACH(PLAIN_MEMBER, __typeof__(*(record)), __VA_ARGS__){0}})
/* Begins a list and writes the members of each of its items with the expression `put`, in which
 * `item` points to the item. */
#define ADMIN_PUT_LIST(out, list, item, put)                                                       \
	do {                                                                                           \
		list_begin(out);                                                                           \
		for (size_t i = 0; i < (list)->count; i++) {                                               \
			const __typeof__(*(list)->items) *item = &(list)->items[i];                            \
			json_begin_object(out, NULL);                                                          \
			put;                                                                                   \
			json_end_object(out);                                                                  \
		}                                                                                          \
	} while (false)

/* Writes the audit record of an operation that does not run in a transaction of the store.
 * `name` and `id` ("event_id" and its identifier) are the created object; NULL: none. Failures are
 * only logged, except those that refuse the operation: ERR_FORBIDDEN and ERR_PASSKEY (the user has
 * lost the permission, struct audit_authorization), ERR_FULL, and a repeated form. */
int admin_write_audit_outcome(const struct admin_call *call, enum audit_outcome outcome,
                              const char *name, const char *id, struct error *error) MUST_CHECK;

/* Parameters that several operations have. */
#define ADMIN_POSITIONAL_ID(member, shown, text)                                                   \
	{                                                                                              \
		.name = member, .kind = ADMIN_ID, .required = true, .positional = true, .place = shown,    \
		.help = text                                                                               \
	}
#define ADMIN_FLAG_ID(member, shown, needed, text)                                                 \
	{                                                                                              \
		.name = member, .kind = ADMIN_ID, .required = needed, .place = shown, .help = text         \
	}
#define ADMIN_FLAG_LINE(member, needed, shortest, longest, text)                                   \
	{                                                                                              \
		.name = member, .kind = ADMIN_LINE, .required = needed, .place = "TEXT",                   \
		.least = shortest, .most = longest, .help = text                                           \
	}
#define ADMIN_FLAG_INTEGER(member, needed, from, to, text)                                         \
	{                                                                                              \
		.name = member, .kind = ADMIN_INTEGER, .required = needed, .place = "N", .least = from,    \
		.most = to, .help = text                                                                   \
	}
#define ADMIN_FLAG_CHOICE(member, needed, values, text)                                            \
	{                                                                                              \
		.name = member, .kind = ADMIN_CHOICE, .required = needed, .choices = values, .help = text  \
	}
#define ADMIN_FLAG_SWITCH(member, text)                                                            \
	{                                                                                              \
		.name = member, .kind = ADMIN_SWITCH, .help = text                                         \
	}
#define ADMIN_FLAG_MOMENT(member, needed, text)                                                    \
	{                                                                                              \
		.name = member, .kind = ADMIN_LINE, .required = needed, .place = "TIME", .least = 1,       \
		.most = 40, .help = text                                                                   \
	}
#define ADMIN_MONTH_SIZE 7 /* "2026-01" */
#define ADMIN_DATE_SIZE 10 /* "2026-01-31" */
#define ADMIN_FLAG_DAYS                                                                            \
	ADMIN_FLAG_LINE("month", false, ADMIN_MONTH_SIZE, ADMIN_MONTH_SIZE,                            \
	                "only this month, YYYY-MM (UTC)"),                                             \
		ADMIN_FLAG_LINE("from", false, ADMIN_DATE_SIZE, ADMIN_DATE_SIZE,                           \
	                    "first day, YYYY-MM-DD (UTC)"),                                            \
		ADMIN_FLAG_LINE("to", false, ADMIN_DATE_SIZE, ADMIN_DATE_SIZE,                             \
	                    "last day, YYYY-MM-DD (UTC)")
#define ADMIN_FLAG_CSV                                                                             \
	ADMIN_FLAG_SWITCH("csv", "print all rows as comma-separated values with a header line")
#define ADMIN_LIST_LIMIT                                                                           \
	ADMIN_FLAG_INTEGER("limit", false, 1, ADMIN_LIST_MAX, "maximum number of rows (100 by default)")
#define ADMIN_LIST_AFTER                                                                           \
	ADMIN_FLAG_ID("after", "ID", false, "start after this one, the last of the previous page")
#define ADMIN_LIST_BEFORE                                                                          \
	ADMIN_FLAG_INTEGER("before", false, 1, ADMIN_NUMBER_MAX,                                       \
	                   "start below this number, the last of the previous page")

extern const struct admin_operation admin_account_operations[];
extern const struct admin_operation admin_channel_operations[];
extern const struct admin_operation admin_limit_operations[];
extern const struct admin_operation admin_webhook_operations[];
extern const struct admin_operation admin_notice_operations[];
extern const struct admin_operation admin_pack_operations[];
extern const struct admin_operation admin_purchase_operations[];
extern const struct admin_operation admin_topup_operations[];
extern const struct admin_operation admin_event_operations[];
extern const struct admin_operation admin_certify_operations[];
extern const struct admin_operation admin_evidence_operations[];
extern const struct admin_operation admin_signer_operations[];
extern const struct admin_operation admin_request_operations[];
extern const struct admin_operation admin_usage_operations[];
extern const struct admin_operation admin_totals_operations[];
extern const struct admin_operation admin_overview_operations[];
extern const struct admin_operation admin_store_operations[];
extern const struct admin_operation admin_read_only_operations[];
extern const struct admin_operation admin_audit_operations[];
extern const struct admin_operation admin_log_operations[];
extern const struct admin_operation admin_user_operations[];

#endif
