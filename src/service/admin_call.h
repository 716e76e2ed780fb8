/* What the files of operations share. */
#ifndef SERVICE_ADMIN_CALL_H
#define SERVICE_ADMIN_CALL_H

#include "service/admin.h"
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
	struct arena *arena;
	int64_t now_us;
};

/* By the parameter's name, which the operation must have. */
bool admin_given(const struct admin_call *call, const char *name);
const char *admin_text(const struct admin_call *call, const char *name);   /* NULL: not given */
struct slice admin_slice(const struct admin_call *call, const char *name); /* empty: not given */
int64_t admin_integer(const struct admin_call *call, const char *name, int64_t otherwise);

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
extern const struct admin_operation admin_purchase_operations[];
extern const struct admin_operation admin_evidence_operations[];
extern const struct admin_operation admin_signer_operations[];
extern const struct admin_operation admin_store_operations[];

#endif
