/* What the files of operations share. */
#ifndef ADMIN_ADMIN_CALL_H
#define ADMIN_ADMIN_CALL_H

#include "admin/admin.h"
#include "service/list.h"

#define ADMIN_LINE_MAX 200
#define ADMIN_LIST_DEFAULT 100
#define ADMIN_LIST_MAX 1000
#define ADMIN_NUMBER_MAX INT64_C(9007199254740991) /* what JSON carries exactly */
#define ADMIN_CREDITS_MAX INT64_C(1000000000000)

struct admin_value {
	bool given;
	const char *text; /* NULL unless given */
	int64_t integer;
};

struct admin_call {
	struct admin *admin;
	const struct admin_operation *operation;
	const struct admin_value *values; /* as the operation's parameters stand */
	const struct admin_caller *caller;
	struct arena *arena;
	int64_t now_us;
};

/* Whether a text has nothing but what is shown; `line_feeds`: and these. */
bool admin_is_printable(struct slice text, bool line_feeds);
/* Fills the values, as the operation's parameters stand, from an object or NULL. ERR_USAGE. */
int admin_read_arguments(const struct admin_operation *operation, const struct json *arguments,
                         struct arena *arena, struct admin_value *values, struct error *error)
	MUST_CHECK;

/* By the parameter's name, which the operation must have. */
bool admin_given(const struct admin_call *call, const char *name);
const char *admin_text(const struct admin_call *call, const char *name);   /* NULL: not given */
struct slice admin_slice(const struct admin_call *call, const char *name); /* empty: not given */
int64_t admin_integer(const struct admin_call *call, const char *name, int64_t otherwise);

/* A moment in RFC 3339, of ADMIN_FLAG_MOMENT; *ret_us is `otherwise` when it is not given.
 * ERR_USAGE.
 */
int admin_time(const struct admin_call *call, const char *name, int64_t otherwise, int64_t *ret_us,
               struct error *error) MUST_CHECK;
/* A time as an argument gives it: RFC 3339, or a duration ("90d") that is counted from now, `sign`
 * 1: towards the future, -1: towards the past. `otherwise` when it is not given. ERR_USAGE. */
int admin_moment(const struct admin_call *call, const char *name, int sign, int64_t otherwise,
                 int64_t *ret_us, struct error *error) MUST_CHECK;

/* The days of ADMIN_FLAG_DAYS, from 1970-01-01; without them INT64_MIN to INT64_MAX. ERR_USAGE. */
int admin_days(const struct admin_call *call, int64_t *ret_first, int64_t *ret_last,
               struct error *error) MUST_CHECK;

/* Appends to a text which timestamp authorities fail, as far as the service knows. */
void admin_describe_authorities(const struct admin_call *call, char *text, size_t size);

/* A member "YYYY-MM-DD" for a day from 1970-01-01. */
void admin_day(struct json_writer *out, const char *name, int64_t day);
/* An amount of money in minor units, as "10.50". */
void admin_amount(struct json_writer *out, const char *name, int64_t minor);

/* Records the act of an operation that is none of the store's own transactions, with what came of
 * it: "event_id", its identifier; NULL: nothing. A record that fails is told in the log alone, but
 * not ERR_FORBIDDEN, ERR_PASSKEY of one that is yet to be done: he may not do it any more (struct
 * act_standing). */
int admin_record_outcome(const struct admin_call *call, enum act_outcome outcome, const char *name,
                         const char *id, struct error *error) MUST_CHECK;

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
	                "of this month, YYYY-MM (UTC)"),                                               \
		ADMIN_FLAG_LINE("from", false, ADMIN_DATE_SIZE, ADMIN_DATE_SIZE,                           \
	                    "from this day on, YYYY-MM-DD (UTC)"),                                     \
		ADMIN_FLAG_LINE("to", false, ADMIN_DATE_SIZE, ADMIN_DATE_SIZE,                             \
	                    "up to this day, YYYY-MM-DD (UTC)")
#define ADMIN_FLAG_CSV                                                                             \
	ADMIN_FLAG_SWITCH("csv", "all rows as comma-separated values with a line of names")
#define ADMIN_FLAG_OUTPUT                                                                          \
	{                                                                                              \
		.name = "output", .kind = ADMIN_LINE, .place = "FILE", .least = 1, .most = 4096,           \
		.help = "where the file goes, or - for standard output; nothing is written over"           \
	}
#define ADMIN_LIST_LIMIT                                                                           \
	ADMIN_FLAG_INTEGER("limit", false, 1, ADMIN_LIST_MAX, "at most so many (100 unless told)")
#define ADMIN_LIST_AFTER                                                                           \
	ADMIN_FLAG_ID("after", "ID", false, "go on behind this one, the last of the page before")
#define ADMIN_LIST_BEFORE                                                                          \
	ADMIN_FLAG_INTEGER("before", false, 1, ADMIN_NUMBER_MAX,                                       \
	                   "go on below this number, the last of the page before")

extern const struct admin_operation admin_account_operations[];
extern const struct admin_operation admin_channel_operations[];
extern const struct admin_operation admin_limit_operations[];
extern const struct admin_operation admin_webhook_operations[];
extern const struct admin_operation admin_notice_operations[];
extern const struct admin_operation admin_pack_operations[];
extern const struct admin_operation admin_purchase_operations[];
extern const struct admin_operation admin_receipt_operations[];
extern const struct admin_operation admin_topup_operations[];
extern const struct admin_operation admin_event_operations[];
extern const struct admin_operation admin_certify_operations[];
extern const struct admin_operation admin_evidence_operations[];
extern const struct admin_operation admin_signer_operations[];
extern const struct admin_operation admin_usage_operations[];
extern const struct admin_operation admin_totals_operations[];
extern const struct admin_operation admin_overview_operations[];
extern const struct admin_operation admin_store_operations[];
extern const struct admin_operation admin_quiet_operations[];
extern const struct admin_operation admin_audit_operations[];
extern const struct admin_operation admin_user_operations[];

#endif
