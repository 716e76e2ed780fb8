/* Administration, with each call failing in turn: memory, files, statements of the store. A fault
 * is reported as a fault, never as a wrong statement about the data, and the operation succeeds
 * when it is repeated. */
#include "testing.h"
#include "failing.h"
#include "office.h"
#include "admin/admin.h"
#include "store/audit/audit_log.h"
#include "stride.h"

#define NAMES_MAX 24
#define ARGUMENTS_MAX 600
#define EVERYTHING                                                                                 \
	(FAILING_MEMORY | FAILING_FILES | FAILING_OPENSSL | FAILING_SQLITE | FAILING_PARTS |           \
	 FAILING_ARENAS)

/* ---- administration ---- */

/* An operation, its arguments with $NAME for a value saved from an earlier answer, and the member
 * of its own answer to save, as NAME=member. */
struct step {
	const char *operation;
	const char *arguments;
	const char *keep;
};

static const struct step steps[] = {
	{"account create", "{\"name\":\"One\",\"credits\":5000,\"email\":\"a@example.org\"}",
     "A=account_id"},
	{"webhook create", "{\"account\":\"$A\",\"url\":\"https://example.org/\"}", "W=endpoint_id"},
	{"webhook update", "{\"endpoint\":\"$W\",\"types\":\"balance.low\"}", NULL},
	{"webhook rotate", "{\"endpoint\":\"$W\",\"end_previous\":true}", NULL},
	{"webhook disable", "{\"endpoint\":\"$W\"}", NULL},
	{"webhook enable", "{\"endpoint\":\"$W\"}", NULL},
	{"threshold create", "{\"account\":\"$A\",\"credits\":4000}", NULL},
	{"credits add", "{\"account\":\"$A\",\"credits\":-1001}", NULL}, /* falls below the threshold */
	{"threshold list", "{\"account\":\"$A\"}", "T=threshold_id"},
	{"webhook show", "{\"endpoint\":\"$W\"}", NULL},
	{"webhook list", "{\"account\":\"$A\"}", NULL},
	{"webhook deliveries", "{\"endpoint\":\"$W\"}", "N=notice_id"},
	{"webhook attempts", "{\"notice\":\"$N\",\"endpoint\":\"$W\"}", NULL},
	{"webhook replay", "{\"notice\":\"$N\",\"endpoint\":\"$W\"}", NULL},
	{"notice list", "{\"account\":\"$A\",\"status\":\"waiting\"}", NULL},
	{"notice show", "{\"notice\":\"$N\"}", NULL},
	{"request list", "{\"account\":\"$A\",\"status\":\"4xx\"}", NULL},
	{"webhook replay", "{\"endpoint\":\"$W\",\"missed\":true}", NULL},
	{"webhook delete", "{\"endpoint\":\"$W\"}", NULL},
	{"threshold delete", "{\"threshold\":\"$T\"}", NULL},
	{"account set", "{\"account\":\"$A\",\"name\":\"Two\",\"rate\":7,\"unpaid_limit\":3}", NULL},
	{"account show", "{\"account\":\"$A\"}", NULL},
	{"audit list", "{\"account\":\"$A\",\"limit\":1}", "ACT=act_id"},
	{"audit show", "{\"act\":\"$ACT\"}", NULL},
	{"account list", "{}", NULL},
	{"account suspend", "{\"account\":\"$A\"}", NULL},
	{"account resume", "{\"account\":\"$A\"}", NULL},
	{"account disable", "{\"account\":\"$A\"}", NULL},
	{"account enable", "{\"account\":\"$A\"}", NULL},
	{"credits add", "{\"account\":\"$A\",\"credits\":50,\"reason\":\"a gift\"}", NULL},
	{"credits add", "{\"account\":\"$A\",\"credits\":-7000,\"revert\":true}", NULL},
	{"credits add", "{\"account\":\"$A\",\"credits\":100000}", NULL},
	{"credits list", "{\"account\":\"$A\"}", NULL},
	{"credits history", "{\"account\":\"$A\"}", NULL},
	{"account overview", "{\"account\":\"$A\"}", NULL},
	{"channel create",
     "{\"account\":\"$A\",\"name\":\"C\",\"declarant\":\"D\",\"modality\":\"content\"}",
     "C=channel_id"},
	{"channel configure", "{\"channel\":\"$C\",\"name\":\"C2\",\"modality\":\"hash_only\"}", NULL},
	{"channel show", "{\"channel\":\"$C\"}", NULL},
	{"channel list", "{\"account\":\"$A\"}", NULL},
	{"channel log", "{\"account\":\"$A\"}", NULL},
	{"channel suspend", "{\"channel\":\"$C\"}", NULL},
	{"channel resume", "{\"channel\":\"$C\"}", NULL},
	{"key create", "{\"channel\":\"$C\",\"mode\":\"live\",\"name\":\"k\"}", "K=key_id"},
	{"key list", "{\"channel\":\"$C\"}", NULL},
	{"key list", "{\"account\":\"$A\"}", NULL},
	{"limit create", "{\"key\":\"$K\",\"period\":\"day\",\"max\":5,\"action\":\"block\"}", NULL},
	{"limit create", "{\"channel\":\"$C\",\"period\":\"month\",\"max\":5,\"action\":\"warn\"}",
     NULL},
	{"limit list", "{\"channel\":\"$C\"}", "L=limit_id"},
	{"limit list", "{\"account\":\"$A\"}", NULL},
	{"limit delete", "{\"limit\":\"$L\"}", NULL},
	{"key expire", "{\"key\":\"$K\",\"at\":\"90d\"}", NULL},
	{"key revoke", "{\"key\":\"$K\",\"reason\":\"lost\"}", NULL},
	{"account billing", "{\"account\":\"$A\",\"country\":\"ES\",\"tax_rate\":\"21\"}", NULL},
	{"pack create", "{\"name\":\"P\",\"credits\":100,\"price\":\"10.00\",\"currency\":\"EUR\"}",
     "P=pack_id"},
	{"pack show", "{\"pack\":\"$P\"}", NULL},
	{"pack list", "{}", NULL},
	{"topup set", "{\"account\":\"$A\",\"threshold\":10,\"pack\":\"$P\"}", NULL},
	{"topup off", "{\"account\":\"$A\"}", NULL},
	{"topup on", "{\"account\":\"$A\"}", NULL},
	{"topup show", "{\"account\":\"$A\"}", NULL},
	{"topup off", "{\"account\":\"$A\"}", NULL},
	{"pack withdraw", "{\"pack\":\"$P\"}", NULL},
	{"pack offer", "{\"pack\":\"$P\"}", NULL},
	{"topup set", "{\"account\":\"$A\",\"threshold\":10,\"pack\":\"$P\"}", NULL},
	{"purchase create", "{\"account\":\"$A\",\"pack\":\"$P\"}", "B=sale_id"},
	{"purchase show", "{\"sale\":\"$B\"}", NULL},
	{"purchase pay", "{\"sale\":\"$B\"}", NULL},
	{"purchase list", "{\"account\":\"$A\",\"state\":\"paid\"}", NULL},
	{"purchase refund", "{\"sale\":\"$B\"}", NULL},
	{"purchase create", "{\"account\":\"$A\",\"pack\":\"$P\"}", "B=sale_id"},
	{"purchase cancel", "{\"sale\":\"$B\"}", NULL},
	{"purchase create", "{\"account\":\"$A\",\"pack\":\"$P\"}", "B=sale_id"},
	{"purchase pay", "{\"sale\":\"$B\"}", NULL},
	{"purchase revert", "{\"sale\":\"$B\"}", NULL},
	{"purchase list", "{}", NULL},
	{"pack create",
     "{\"name\":\"Own\",\"credits\":9,\"price\":\"1.50\",\"currency\":\"EUR\",\"account\":\"$A\"}",
     "O=pack_id"},
	{"topup set", "{\"account\":\"$A\",\"threshold\":9,\"pack\":\"$O\"}", NULL},
	{"pack withdraw", "{\"pack\":\"$O\"}", NULL},
	{"pack list", "{\"account\":\"$A\"}", NULL},
	{"user invite", "{\"account\":\"$A\",\"email\":\"ana@example.org\",\"role\":\"owner\"}", NULL},
	{"user invite", "{\"account\":\"$A\",\"email\":\"eva@example.org\",\"role\":\"reader\"}", NULL},
	{"user list", "{\"account\":\"$A\"}", NULL},
	{"user role", "{\"account\":\"$A\",\"user\":\"eva@example.org\",\"role\":\"developer\"}", NULL},
	{"user link", "{\"user\":\"ana@example.org\"}", NULL},
	{"session list", "{\"account\":\"$A\"}", NULL},
	{"passkey list", "{\"user\":\"ana@example.org\"}", NULL},
	{"user remove", "{\"account\":\"$A\",\"user\":\"eva@example.org\"}", NULL},
	{"user invite", "{\"account\":\"$A\",\"email\":\"eva@example.org\",\"role\":\"reader\"}", NULL},
	{"user leave", "{\"account\":\"$A\",\"user\":\"eva@example.org\"}", NULL},
	{"store rotate-link-secret", "{}", NULL},
	{"store backup-done", "{}", NULL},
	{"certification estimate", "{\"channel\":\"$CHANNEL\",\"seq_from\":1,\"seq_to\":2}", NULL},
	{"certification request", "{\"channel\":\"$CHANNEL\",\"seq_from\":1,\"seq_to\":2}", NULL},
	{"certification retry", "{\"certification\":\"$WAITING\"}", NULL},
	{"certification show", "{\"certification\":\"$WAITING\"}", NULL},
	{"segment list", "{\"channel\":\"$CHANNEL\"}", "S=segment_id"},
	{"segment show", "{\"segment\":\"$S\"}", NULL},
	{"event list", "{\"channel\":\"$CHANNEL\",\"since\":\"1h\",\"limit\":2}", NULL},
	{"event list", "{\"channel\":\"$CHANNEL\",\"ascending\":true}", "E=event_id"},
	{"event show", "{\"event\":\"$E\"}", NULL},
	{"event try", "{\"channel\":\"$CHANNEL\",\"client_ref\":\"try\",\"content\":\"{}\"}", NULL},
	{"certification list", "{\"channel\":\"$CHANNEL\",\"status\":\"completed\"}", NULL},
	{"certification show", "{\"certification\":\"$CERTIFICATION\"}", NULL},
	{"store check", "{}", NULL},
};

static int woken[WAKE_CLOCK + 1];

static void note_wake(void *context, enum wake which)
{
	woken[which]++;
}

/* An operation that creates work for a job wakes the job after the commit. */
static void assert_woken(const char *operation)
{
	assert_int_equal(woken[WAKE_SEALER], 0);
	assert_int_equal(woken[WAKE_ISSUER], strcmp(operation, "certification retry") == 0 ||
	                                         strcmp(operation, "certification request") == 0);
	assert_int_equal(woken[WAKE_TOPUP],
	                 strncmp(operation, "topup ", 6) == 0 && strcmp(operation, "topup show") != 0);
}

struct names {
	struct {
		char name[16];
		char value[ID_SIZE];
	} items[NAMES_MAX];
	size_t count;
};

static void keep(struct names *names, const char *name, size_t size, struct slice value)
{
	assert_true(names->count < NAMES_MAX);
	snprintf(names->items[names->count].name, sizeof names->items->name, "%.*s", (int)size, name);
	snprintf(names->items[names->count++].value, sizeof names->items->value, "%.*s",
	         (int)value.size, value.data);
}

static void fill_in(const struct names *names, const char *pattern, char *text)
{
	for (char *end = text + ARGUMENTS_MAX; *pattern; pattern++) {
		assert_true(text + ID_SIZE < end);
		if (*pattern != '$') {
			*text++ = *pattern;
			continue;
		}
		size_t size = strspn(++pattern, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		bool found = false;
		for (size_t i = names->count; i-- > 0 && !found;) {
			found = strlen(names->items[i].name) == size &&
			        memcmp(names->items[i].name, pattern, size) == 0;
			if (found)
				text = stpcpy(text, names->items[i].value);
		}
		if (!found)
			fail_msg("nothing is named %.*s", (int)size, pattern);
		pattern += size - 1;
	}
	*text = 0;
}

/* A fault is reported as a fault, not as a missing object or a wrong argument. */
/* Returns the member of the answer, or of the first item of a list. */
static struct slice member_of(struct arena *arena, struct slice text, const char *member)
{
	struct json *document;
	if (json_parse(arena, text, NULL, &document, NULL))
		fail_msg("no JSON: %.*s", (int)text.size, text.data);
	const struct json *list = json_member(document, "data");
	const struct json *first = list ? list->first : document;
	struct slice value = {0};
	if (!first || !json_get_text(first, member, &value))
		fail_msg("no %s: %.*s", member, (int)text.size, text.data);
	return value;
}

/* VERBS: each followed by a space. */
static bool is_among(const char *verbs, const char *operation)
{
	char verb[40];
	snprintf(verb, sizeof verb, "%s ", strchr(operation, ' ') + 1);
	return strstr(verbs, verb) != NULL;
}

/* Finds the newest audit record of that operation; empty if there is none. */
static void newest_record(struct store *store, const char *operation, char act_id[ID_SIZE])
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct audit_filter filter = {.operation = slice_of(operation),
	                              .since_us = TIME_NONE,
	                              .until_us = TIME_NONE,
	                              .order = ORDER_DESCENDING,
	                              .limit = 1};
	struct audit_record_list list;
	assert_int_equal(store_list_audit_records(store, &filter, &arena, &list, NULL), OK);
	snprintf(act_id, ID_SIZE, "%s", list.count ? list.items[0].act_id : "");
}

/* Returns the fault that an answer of the interface contains. */
static int fault_within(const struct buf *answer)
{
	return strstr(answer->data, "\"status\":5") ? ERR_UNAVAILABLE : OK;
}

/* Makes each call of the operation fail in turn and counts the failures. */
static void take_turns(struct admin *admin, const struct step *step, struct names *names)
{
	char arguments[ARGUMENTS_MAX];
	fill_in(names, step->arguments, arguments);
	const struct admin_operation *operation = admin_find(slice_of(step->operation));
	assert_non_null(operation);
	bool changes =
		!is_among("list show history overview deliveries attempts check estimate receipt log ",
	              step->operation);
	/* Refused because the attempt took effect but failed before its answer. */
	bool once = is_among("delete rotate-link-secret invite remove leave ", step->operation) ||
	            strcmp(step->operation, "threshold create") == 0;
	assert_int_equal(admin_writes_audit_log(operation), changes);
	char before[ID_SIZE], after[ID_SIZE];
	newest_record(admin->store, step->operation, before);
	for (int at = 1;; STRIDE(at)) {
		struct arena arena = {.limit = (size_t)16 << 20};
		BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
		struct error error = {0};
		struct json *json = NULL;
		assert_int_equal(json_parse(&arena, slice_of(arguments), NULL, &json, NULL), OK);
		memset(woken, 0, sizeof woken);
		failing_arm(EVERYTHING, at);
		int result = admin_run(admin, operation, json, NULL, &answer, &error);
		const char *failed = failing_disarm();
		if (!result && operation->behind)
			result = fault_within(&answer);
		if (result && !failing_is_fault(result) && !(once && at > 1))
			fail_msg("%s, call %d, %s: %d %s", step->operation, at, failed, result, error.cause);
		if (!result) {
			assert_true(answer.size > 0);
			assert_woken(step->operation);
		}
		if (!result && step->keep && (!failed || changes)) {
			const char *member = strchr(step->keep, '=');
			keep(names, step->keep, (size_t)(member - step->keep),
			     member_of(&arena, buf_slice(&answer), member + 1));
		}
		/* A failure to write an audit record after the change is only logged. */
		if (!failed || (!result && changes && !operation->behind)) {
			arena_free(&arena);
			newest_record(admin->store, step->operation, after);
			if ((strcmp(before, after) != 0) != changes)
				fail_msg("%s: the last act is %s, was %s", step->operation, after, before);
			return;
		}
		arena_free(&arena);
	}
}

TEST_CASE(administration_tells_its_faults)
{
	struct office office;
	office_open(&office, MODALITY_CONTENT, 1000000);
	sample_register(&office.sample, MODE_LIVE, 20);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_LIVE, 5, 20, id);
	office_await_certification(&office, MODE_LIVE, id);
	office_stop_jobs(&office);
	office.service.wake = note_wake;
	char waiting[ID_SIZE];
	sample_register(&office.sample, MODE_LIVE, 1);
	office_request(&office, MODE_LIVE, 5, 21, waiting);
	struct names names = {0};
	keep(&names, "WAITING", 7, slice_of(waiting));
	keep(&names, "CHANNEL", 7, slice_of(office.sample.channel_id));
	keep(&names, "CERTIFICATION", 13, slice_of(id));
	struct admin admin = {.settings = &office.settings,
	                      .store = office.service.store,
	                      .content = office.service.content,
	                      .service = &office.service};
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		take_turns(&admin, &steps[i], &names);
	/* Signers, a read-only copy, sessions, passkeys, and requests to receivers and payment
	 * providers have their own tests, on a service that has them. */
	const struct admin_operation *operation;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++) {
		bool elsewhere = strncmp(operation->name, "signer ", 7) == 0 || operation->outside ||
		                 strcmp(operation->name, "store quiet") == 0 ||
		                 strcmp(operation->name, "store wake") == 0 ||
		                 strcmp(operation->name, "session end") == 0 ||
		                 strcmp(operation->name, "purchase page") == 0 ||
		                 strcmp(operation->name, "passkey remove") == 0;
		char act_id[ID_SIZE];
		newest_record(admin.store, operation->name, act_id);
		if (!elsewhere && (*act_id != 0) != (operation->changes || operation->behind))
			fail_msg("%s %s an audit record", operation->name, *act_id ? "left" : "left no");
	}
	office_close(&office);
}

/* ---- missing objects ---- */

static void add_value(struct json_writer *out, const struct admin_parameter *parameter)
{
	char choice[40];
	switch (parameter->kind) {
	case ADMIN_ID: json_text(out, parameter->name, "unknown_1"); break;
	case ADMIN_INTEGER: json_integer(out, parameter->name, parameter->least); break;
	case ADMIN_CHOICE:
		snprintf(choice, sizeof choice, "%.*s", (int)strcspn(parameter->choices, "|"),
		         parameter->choices);
		json_text(out, parameter->name, choice);
		break;
	default:
		json_text(out, parameter->name,
		          strcmp(parameter->name, "price") == 0 ? "10.00"
		          : strcmp(parameter->name, "email") == 0 || strcmp(parameter->name, "user") == 0
		              ? "ana@example.org"
		          : strcmp(parameter->name, "at") == 0 || strcmp(parameter->name, "expires") == 0 ||
		                  strcmp(parameter->name, "since") == 0 ||
		                  strcmp(parameter->name, "until") == 0
		              ? "90d"
		              : "https://example.org/");
	}
}

/* Fills the required arguments, words, the given one, and a name or address, because an operation
 * needs something to change. Returns whether an identifier is among them. */
static bool make_arguments(const struct admin_operation *operation,
                           const struct admin_parameter *given, struct buf *out)
{
	struct json_writer writer = {.out = out};
	bool named = false;
	json_begin_object(&writer, NULL);
	for (const struct admin_parameter *at = operation->parameters; at->name; at++) {
		bool change = strcmp(at->name, "name") == 0 || strcmp(at->name, "url") == 0;
		if (!at->required && !at->positional && at != given && !change)
			continue;
		add_value(&writer, at);
		named |= at->kind == ADMIN_ID;
	}
	json_end_object(&writer);
	return named;
}

static void expect_not_found(struct admin *admin, const struct admin_operation *operation,
                             struct slice arguments)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	struct json *json = NULL;
	assert_int_equal(json_parse(&arena, arguments, NULL, &json, NULL), OK);
	struct error error = {0};
	int result = admin_run(admin, operation, json, NULL, &answer, &error);
	if (result != ERR_NOT_FOUND || strlen(error_message(&error, LANGUAGE_SPANISH)) < 10)
		fail_msg("%s %.*s: %d", operation->name, (int)arguments.size, arguments.data, result);
	assert_int_equal(answer.size, 0);
}

TEST_CASE(what_is_not_there_is_not_found)
{
	struct office office;
	office_open(&office, MODALITY_CONTENT, 10);
	struct admin admin = {.settings = &office.settings,
	                      .store = office.service.store,
	                      .content = office.service.content,
	                      .service = &office.service};
	const struct admin_operation *operation;
	int asked = 0;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++)
		for (const struct admin_parameter *at = operation->parameters; at->name; at++) {
			BUF_AUTO struct buf arguments = {.limit = ARGUMENTS_MAX};
			/* Some lists continue after any text, because its row may have been removed. */
			bool place = strcmp(at->name, "after") == 0;
			if (at->kind != ADMIN_ID || place || !make_arguments(operation, at, &arguments))
				continue;
			expect_not_found(&admin, operation, buf_slice(&arguments));
			asked++;
		}
	assert_true(asked > 40);
	office_close(&office);
}

TEST_MAIN(office_start_signer, office_stop_signer)
