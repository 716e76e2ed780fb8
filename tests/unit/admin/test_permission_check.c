/* What users of the console may do: each operation, for each role, with their own and with others'
 * identifiers. The operations are replaced by a counter of their runs. */
#include "testing.h"
#include "sample.h"
#include "admin/admin_call.h"
#include "admin/permission_check.h"
#include "service/user_auth.h"
#include "store/people/ownership.h"
#include "store/transaction.h"

#define ME "ana@example.org"
#define NOBODYS "zzz_unknown"
#define IDS_MAX 24

static const enum role roles[] = {ROLE_OWNER, ROLE_DEVELOPER, ROLE_ACCOUNTANT, ROLE_READER};
#define ROLE_COUNT (sizeof roles / sizeof *roles)

/* One object of each kind. */
struct things {
	char account_id[ID_SIZE];
	char ids[IDS_MAX][ID_SIZE]; /* as store_ownership_kind counts */
};

struct fixture {
	struct sample sample;
	struct settings settings;
	struct admin admin;
	struct arena arena;
	struct error error;
	struct things own, other;
	struct session_view session;
	struct membership membership;
};

/* ---- what there is ---- */

static size_t kind_number(const char *kind)
{
	for (size_t i = 0; store_ownership_kind(i); i++)
		if (strcmp(store_ownership_kind(i), kind) == 0)
			return i;
	fail_msg("there is no kind %s", kind);
	return 0;
}

static char *id_of(struct things *things, const char *kind)
{
	return things->ids[kind_number(kind)];
}

static struct json *operate(struct fixture *fixture, const char *name,
                            const struct admin_caller *caller, const char *arguments, int expected)
{
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	struct json *json;
	error_clear(&fixture->error);
	assert_int_equal(json_parse(&fixture->arena, slice_of(arguments), NULL, &json, NULL), OK);
	int result = admin_run(&fixture->admin, admin_find(slice_of(name)), json, caller, &answer,
	                       &fixture->error);
	if (result != expected)
		fail_msg("%s %s: %d, %s", name, arguments, result,
		         error_message(&fixture->error, LANGUAGE_ENGLISH));
	if (result)
		return NULL;
	char *kept = arena_copy(&fixture->arena, answer.data, answer.size);
	assert_int_equal(json_parse(&fixture->arena, slice_make(kept, answer.size), NULL, &json, NULL),
	                 OK);
	return json;
}

static void make(struct fixture *fixture, struct things *things, const char *kind,
                 const char *operation, const char *member, const char *arguments)
{
	struct slice id;
	struct json *made = operate(fixture, operation, NULL, arguments, OK);
	assert_true(json_get_text(made, member, &id));
	memcpy(kind ? id_of(things, kind) : things->account_id, id.data, id.size);
}

#define FORMAT(...) arena_printf(&fixture->arena, __VA_ARGS__)

static void insert(struct fixture *fixture, struct things *things, const char *kind,
                   const char *name, const char *sql)
{
	struct db_connection *connection;
	char *id = id_of(things, kind);
	store_copy_id(id, slice_of(FORMAT("%s_%s", name, things->account_id)));
	connection = begin_write(fixture->sample.store, NULL);
	assert_int_equal(db_failure(connection), OK);
	struct db_query *query = db_query(connection, sql);
	db_bind_string(query, id);
	db_bind_string(query, things->account_id);
	struct error error = {0};
	if (end_write(connection, db_execute(query, NULL, &error), &error))
		fail_msg("%s: %s", kind, error.cause);
}

static void make_things(struct fixture *fixture, struct things *things)
{
	make(fixture, things, NULL, "account create", "account_id", "{\"name\":\"A\"}");
	const char *account = things->account_id;
	make(fixture, things, "channel", "channel create", "channel_id",
	     FORMAT("{\"account\":\"%s\",\"name\":\"C\",\"declarant\":\"D\",\"modality\":\"content\"}",
	            account));
	const char *channel = id_of(things, "channel");
	make(fixture, things, "key", "key create", "key_id",
	     FORMAT("{\"channel\":\"%s\",\"mode\":\"live\"}", channel));
	make(fixture, things, "limit", "limit create", "limit_id",
	     FORMAT("{\"channel\":\"%s\",\"period\":\"day\",\"max\":5,\"action\":\"warn\"}", channel));
	make(fixture, things, "threshold", "threshold create", "threshold_id",
	     FORMAT("{\"account\":\"%s\",\"credits\":5}", account));
	make(fixture, things, "endpoint", "webhook create", "endpoint_id",
	     FORMAT("{\"account\":\"%s\",\"url\":\"https://example.org/\"}", account));
	make(fixture, things, "pack", "pack create", "pack_id",
	     FORMAT("{\"account\":\"%s\",\"name\":\"P\",\"credits\":5,\"price\":\"1.00\","
	            "\"currency\":\"EUR\"}",
	            account));
	insert(fixture, things, "notice", "ntc",
	       "INSERT INTO notices (account, notice_id, type, mode, created_at, data)"
	       " SELECT account, $1, 't', 'live', 1, '{}' FROM accounts WHERE account_id = $2");
	insert(
		fixture, things, "sale", "sal",
		"INSERT INTO purchases (account, number, sale_id, pack_id, description, credits, amount,"
		" tax, currency, state, created_at, provider, automatic)"
		" SELECT account, 1, $1, 'p', 'd', 1, 1, 0, 'EUR', 'pending', 1, 'manual', 0 FROM accounts"
		" WHERE account_id = $2");
	insert(fixture, things, "certification", "CERT",
	       "INSERT INTO certifications (account, channel, chain, certification_id, key, status,"
	       " requested_at, language, first_sequence, last_sequence, config_versions,"
	       " next_attempt_at) SELECT account, 1, 2, $1, 1, 'processing', 1, 'en', 1, 1, '[]', 1"
	       " FROM accounts WHERE account_id = $2");
	insert(fixture, things, "segment", "seg",
	       "INSERT INTO segments (account, chain, number, segment_id, first_sequence,"
	       " last_sequence, round, root, document, nodes, path)"
	       " SELECT account, 2, 1, $1, 1, 1, 1, '', '', '', '' FROM accounts"
	       " WHERE account_id = $2");
	insert(fixture, things, "act", "act",
	       "INSERT INTO acts (account, number, act_id, at, operation, document, chain_hash)"
	       " SELECT account, 999, $1, 1, 'o', '{}', '' FROM accounts WHERE account_id = $2");
	event_id_make(channel, MODE_LIVE, 1, id_of(things, "event"));
	for (size_t i = 0; store_ownership_kind(i); i++)
		assert_true(*things->ids[i]); /* a new kind needs an object here */
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	sample_open(&fixture->sample, MODALITY_CONTENT, 5);
	arena_init(&fixture->arena, (size_t)64 << 20);
	fixture->settings.service_prefix = "svc";
	fixture->settings.service_public_url = "https://example.org";
	fixture->settings.webhook_schedule = "1s";
	fixture->admin.settings = &fixture->settings;
	fixture->admin.store = fixture->sample.store;
	make_things(fixture, &fixture->own);
	make_things(fixture, &fixture->other);
	fixture->membership.account_name = "A";
	memcpy(fixture->membership.account_id, fixture->own.account_id, ID_SIZE);
	fixture->session = (struct session_view){
		.user_id = "usr_1", .email = ME, .chosen = &fixture->membership, .passkeys = 1};
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sample_close(&fixture->sample);
	arena_free(&fixture->arena);
	free(fixture);
	return 0;
}

/* ---- calls ---- */

static unsigned runs;
static char ran_account[ID_SIZE], ran_user[EMAIL_SIZE];

static int note_run(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	const struct admin_parameter *parameter;
	runs++;
	*ran_account = *ran_user = '\0';
	for (size_t i = 0; (parameter = admin_parameter_at(call->operation, i)); i++) {
		if (!admin_given(call, parameter->name))
			continue;
		if (strcmp(parameter->name, "account") == 0)
			snprintf(ran_account, sizeof ran_account, "%s", admin_text(call, "account"));
		if (strcmp(parameter->name, "user") == 0)
			snprintf(ran_user, sizeof ran_user, "%s", admin_text(call, "user"));
	}
	json_begin_object(out, NULL);
	json_end_object(out);
	return OK;
}

static const char *plain_value(const struct admin_parameter *parameter)
{
	static char text[64];
	if (strcmp(parameter->name, "user") == 0 || strcmp(parameter->name, "email") == 0)
		return "\"" ME "\"";
	if (parameter->kind == ADMIN_SWITCH)
		return "true";
	if (parameter->kind == ADMIN_INTEGER)
		snprintf(text, sizeof text, "%lld", (long long)parameter->least);
	else if (parameter->kind == ADMIN_CHOICE)
		snprintf(text, sizeof text, "\"%.*s\"", (int)strcspn(parameter->choices, "|"),
		         parameter->choices);
	else
		snprintf(text, sizeof text, "\"%.*s\"", (int)(parameter->least > 1 ? parameter->least : 1),
		         "1234567890");
	return text;
}

/* A call with all parameters that the table grants to users. */
struct call {
	const struct admin_parameter *strange; /* an identifier of another account; NULL: none */
	const char *strange_id;
	const struct admin_parameter *more; /* an additional parameter; NULL: none */
	bool with_account;
};

static int64_t signed_in_ago_us;
static bool lacks_passkey;

static int try(struct fixture *fixture, const struct permission *permission, enum role role,
               const struct call *call)
{
	BUF_AUTO struct buf arguments = {.limit = 8192};
	BUF_AUTO struct buf answer = {.limit = 8192};
	const struct admin_operation *found = admin_find(slice_of(permission->operation));
	struct admin_operation operation = *found;
	operation.run = note_run;
	operation.changes |= operation.outside || operation.behind; /* and require no session first */
	operation.outside = operation.behind = false;
	const struct admin_parameter *parameter;
	char kind[ADMIN_LABEL_SIZE];
	for (size_t i = 0; (parameter = admin_parameter_at(found, i)); i++) {
		bool account = strcmp(parameter->name, "account") == 0;
		bool given =
			permission_has_parameter(permission, parameter, kind) || parameter == call->more;
		if (!given || (account && !call->with_account && parameter != call->strange))
			continue;
		buf_printf(&arguments, "%s\"%s\":", arguments.size ? "," : "{", parameter->name);
		if (parameter == call->strange)
			buf_printf(&arguments, "\"%s\"", call->strange_id);
		else if (account)
			buf_printf(&arguments, "\"%s\"", fixture->own.account_id);
		else if (*kind)
			buf_printf(&arguments, "\"%s\"", id_of(&fixture->own, kind));
		else
			buf_add_text(&arguments, plain_value(parameter));
	}
	buf_add_text(&arguments, arguments.size ? "}" : "{}");
	struct json *json;
	assert_int_equal(json_parse(&fixture->arena, buf_slice(&arguments), NULL, &json, NULL), OK);
	fixture->membership.role = role;
	fixture->membership.passkeys_required = lacks_passkey;
	fixture->session.signed_in_at_us = store_now_us(fixture->sample.store) - signed_in_ago_us;
	struct admin_caller caller;
	admin_caller_user(&fixture->session, "192.0.2.7", "here", &caller);
	error_clear(&fixture->error);
	runs = 0;
	int result = admin_run(&fixture->admin, &operation, json, &caller, &answer, &fixture->error);
	assert_int_equal(runs, result == OK);
	assert_int_equal(answer.size > 0, result == OK);
	return result;
}

static int try_plain(struct fixture *fixture, const struct permission *permission, enum role role)
{
	return try(fixture, permission, role, &(struct call){0});
}

/* ---- the table ---- */

TEST_CASE_WITH(each_operation_is_in_the_table_once, NULL, NULL)
{
	const struct admin_operation *operation;
	const struct permission *permission;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++) {
		int times = 0;
		for (size_t at = 0; (permission = permission_at(at)); at++)
			times += strcmp(permission->operation, operation->name) == 0;
		if (times != 1)
			fail_msg("%s occurs in permissions.def %d times: say who may do it", operation->name,
			         times);
	}
	for (size_t at = 0; (permission = permission_at(at)); at++)
		assert_non_null(admin_find(slice_of(permission->operation)));
}

static bool has_parameter(const struct admin_operation *operation, const char *name, size_t size)
{
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++)
		if (strlen(parameter->name) == size && memcmp(parameter->name, name, size) == 0)
			return true;
	return false;
}

/* Lists whose `after` is the position of a row and names no object. */
static bool lists_positions(const char *operation)
{
	static const char *const names[] = {"usage", "credits history", "request list"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(operation, names[i]) == 0)
			return true;
	return false;
}

TEST_CASE_WITH(each_identifier_has_a_kind, NULL, NULL)
{
	const struct permission *permission;
	for (size_t at = 0; (permission = permission_at(at)); at++) {
		const struct admin_operation *operation = admin_find(slice_of(permission->operation));
		for (const char *word = permission->parameters; *word; word += *word == ' ') {
			if (!has_parameter(operation, word, strcspn(word, " =")))
				fail_msg("%s has no parameter %s", operation->name, word);
			word += strcspn(word, " ");
		}
		const struct admin_parameter *parameter;
		for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++) {
			char kind[ADMIN_LABEL_SIZE];
			bool given = permission_has_parameter(permission, parameter, kind);
			if (given && *kind)
				(void)kind_number(kind);
			bool names_one = parameter->kind == ADMIN_ID && strcmp(parameter->name, "account") != 0;
			bool marks_a_row =
				strcmp(parameter->name, "after") == 0 && lists_positions(operation->name);
			if (given && names_one && !*kind && !marks_a_row)
				assert_true(permission->how & (PERMISSION_SELF_ONLY | PERMISSION_OWN_USER));
			if (permission->roles && parameter->required)
				assert_true(given); /* otherwise no role could run it */
		}
	}
}

/* Returns whether the operation's name begins with one of the words. */
static bool begins(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strncmp(text, *words, strlen(*words)) == 0)
			return true;
	return false;
}

TEST_CASE_WITH(roles_are_what_they_are_called, NULL, NULL)
{
	static const char *const money[] = {"credits ",   "pack ", "purchase ",       "topup ",
	                                    "threshold ", "usage", "account billing", NULL};
	static const char *const work[] = {
		"key ",           "webhook ",        "certification ", "segment ",
		"notice ",        "event ",          "channel show",   "channel configure",
		"channel create", "channel suspend", "channel resume", NULL};
	static const char *const house[] = {"user ", "audit ", "account set", NULL};
	static const char *const operators[] = {
		"store ",          "signer ",        "credits add",  "purchase pay", "purchase refund",
		"purchase revert", "account create", "account list", "user link",    NULL};
	const struct permission *permission;
	for (size_t at = 0; (permission = permission_at(at)); at++) {
		const char *name = permission->operation;
		const struct admin_operation *operation = admin_find(slice_of(name));
		bool changes = admin_writes_audit_log(operation);
		if (permission->roles)
			assert_true(permission->roles & ROLE_OWNER);
		if (changes && !(permission->how & (PERMISSION_SELF_ONLY | PERMISSION_OWN_USER)))
			assert_false(permission->roles & ROLE_READER);
		if (begins(name, money))
			assert_false(permission->roles & ROLE_DEVELOPER);
		if (begins(name, work))
			assert_false(permission->roles & ROLE_ACCOUNTANT);
		if (begins(name, house) && !(permission->how & PERMISSION_SELF_ONLY))
			assert_int_equal(permission->roles & ~(unsigned)ROLE_OWNER, 0);
		if (begins(name, operators))
			assert_int_equal(permission->roles, 0);
	}
	static const char *const dangerous[] = {
		"key create",     "key expire",  "webhook create", "webhook update",
		"webhook rotate", "user invite", "user role",      "user remove",
		"user leave",     "account set", "topup set",      "topup on",
		"passkey remove", NULL};
	for (size_t at = 0; (permission = permission_at(at)); at++)
		if (begins(permission->operation, dangerous))
			assert_true(permission->how & PERMISSION_RECENT);
}

/* ---- each operation, each role ---- */

TEST_CASE_ON(each_role_does_what_the_table_says, struct fixture *fixture)
{
	const struct permission *permission;
	signed_in_ago_us = 0;
	size_t allowed = 0;
	for (size_t at = 0; (permission = permission_at(at)); at++)
		for (size_t i = 0; i < ROLE_COUNT; i++) {
			bool may = permission->roles & roles[i];
			allowed += may;
			int expected = may ? OK : ERR_FORBIDDEN;
			int result = try_plain(fixture, permission, roles[i]);
			if (result != expected)
				fail_msg("%s as %s: %d, %s", permission->operation, role_text(roles[i]), result,
				         error_message(&fixture->error, LANGUAGE_ENGLISH));
			assert_int_equal(permission_is_granted(roles[i], permission->operation), may);
			if (may && *ran_account)
				assert_string_equal(ran_account, fixture->own.account_id);
			assert_int_equal(
				try(fixture, permission, roles[i], &(struct call){.with_account = true}), expected);
		}
	assert_true(allowed > 100);
	struct permission none = {"account show", 0, 0, ""};
	assert_int_equal(try_plain(fixture, &none, 0), ERR_FORBIDDEN);
}

TEST_CASE_ON(what_is_dangerous_asks_for_a_fresh_sign_in, struct fixture *fixture)
{
	const struct permission *permission;
	signed_in_ago_us = USER_AUTH_RECENT_US;
	for (size_t at = 0; (permission = permission_at(at)); at++)
		if (permission->roles)
			assert_int_equal(try_plain(fixture, permission, ROLE_OWNER),
			                 permission->how & PERMISSION_RECENT ? ERR_SIGN_IN : OK);
	signed_in_ago_us = 0;
}

TEST_CASE_ON(an_account_can_ask_for_passkeys, struct fixture *fixture)
{
	const struct permission *permission;
	lacks_passkey = true;
	for (int has = 1; has >= 0; has--) {
		fixture->session.passkeys = has;
		unsigned bare = PERMISSION_NO_PASSKEY | (has ? 0 : PERMISSION_FIRST_PASSKEY);
		for (size_t at = 0; (permission = permission_at(at)); at++)
			if (permission->roles)
				assert_int_equal(try_plain(fixture, permission, ROLE_OWNER),
				                 permission->how & bare ? OK : ERR_PASSKEY);
	}
	fixture->session.by_passkey = true;
	for (size_t at = 0; (permission = permission_at(at)); at++)
		if (permission->roles)
			assert_int_equal(try_plain(fixture, permission, ROLE_OWNER), OK);
	lacks_passkey = false;
	fixture->session.by_passkey = false;
}

/* The messages are the same but for the identifier. */
static void assert_same_words(const char *said, const char *id, const char *said_of_nobodys)
{
	const char *at = strstr(said, id), *other = strstr(said_of_nobodys, NOBODYS);
	assert_non_null(at);
	assert_non_null(other);
	assert_int_equal(at - said, other - said_of_nobodys);
	assert_memory_equal(said, said_of_nobodys, (size_t)(at - said));
	assert_string_equal(at + strlen(id), other + strlen(NOBODYS));
}

TEST_CASE_ON(what_is_another_accounts_is_not_there, struct fixture *fixture)
{
	const struct permission *permission;
	size_t tried = 0;
	for (size_t at = 0; (permission = permission_at(at)); at++) {
		const struct admin_parameter *parameter;
		const struct admin_operation *operation = admin_find(slice_of(permission->operation));
		for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++) {
			char kind[ADMIN_LABEL_SIZE];
			bool account = strcmp(parameter->name, "account") == 0;
			if (!permission_has_parameter(permission, parameter, kind) || (!*kind && !account))
				continue;
			const char *id = account ? fixture->other.account_id : id_of(&fixture->other, kind);
			for (size_t role = 0; role < ROLE_COUNT; role++) {
				if (!(permission->roles & roles[role]))
					continue;
				struct call strange = {.strange = parameter, .strange_id = id};
				struct call unknown = {.strange = parameter, .strange_id = NOBODYS};
				tried++;
				if (try(fixture, permission, roles[role], &strange) != ERR_NOT_FOUND)
					fail_msg("%s --%s of another account", operation->name, parameter->name);
				struct error said = fixture->error;
				assert_int_equal(try(fixture, permission, roles[role], &unknown), ERR_NOT_FOUND);
				assert_int_equal(said.message, fixture->error.message);
				assert_same_words(said.english, id, fixture->error.english);
				assert_same_words(said.spanish, id, fixture->error.spanish);
			}
		}
	}
	assert_true(tried > 150);
}

TEST_CASE_ON(what_only_the_operator_sets_is_refused, struct fixture *fixture)
{
	const struct permission *permission;
	const char *refused[64];
	size_t count = 0;
	for (size_t at = 0; (permission = permission_at(at)); at++) {
		const struct admin_parameter *parameter;
		const struct admin_operation *operation = admin_find(slice_of(permission->operation));
		for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++) {
			char kind[ADMIN_LABEL_SIZE], field[FIELD_SIZE];
			if (!permission->roles || permission_has_parameter(permission, parameter, kind))
				continue;
			struct call call = {.more = parameter};
			assert_int_equal(try(fixture, permission, ROLE_OWNER, &call), ERR_FORBIDDEN);
			assert_non_null(strstr(fixture->error.english, error_field(parameter->name, field)));
			assert_true(count < sizeof refused / sizeof *refused);
			refused[count++] = parameter->name;
		}
	}
	static const char *const operators[] = {"rate",     "unpaid_limit",   "tax_rate",    "region",
	                                        "customer", "payment_method", "installation"};
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		bool there = false;
		for (size_t at = 0; at < count; at++)
			there |= strcmp(refused[at], operators[i]) == 0;
		if (!there)
			fail_msg("%s is not the operator's alone", operators[i]);
	}
}

static const struct permission *permission_of(const char *operation)
{
	const struct permission *permission;
	for (size_t at = 0; (permission = permission_at(at)); at++)
		if (strcmp(permission->operation, operation) == 0)
			return permission;
	return NULL;
}

TEST_CASE_ON(who_is_no_owner_sees_and_ends_his_own_sessions, struct fixture *fixture)
{
	static const char *const names[] = {"session list", "session end"};
	for (size_t i = 0; i < 2; i++) {
		const struct permission *permission = permission_of(names[i]);
		const struct admin_operation *operation = admin_find(slice_of(names[i]));
		struct permission without = *permission;
		without.parameters = i ? "session=own" : "limit";
		const struct admin_parameter *user = NULL;
		for (size_t at = 0; !user; at++)
			if (strcmp(admin_parameter_at(operation, at)->name, "user") == 0)
				user = admin_parameter_at(operation, at);
		struct call another = {.strange = user, .strange_id = "eva@example.org"};
		for (size_t role = 0; role < ROLE_COUNT; role++) {
			bool owner = roles[role] == ROLE_OWNER;
			assert_int_equal(try(fixture, &without, roles[role], &(struct call){0}), OK);
			assert_string_equal(ran_user, owner ? "" : ME);
			assert_int_equal(try(fixture, permission, roles[role], &another),
			                 owner ? OK : ERR_NOT_FOUND);
		}
	}
}

TEST_CASE_ON(the_operator_may_do_everything, struct fixture *fixture)
{
	const struct permission *permission;
	for (size_t at = 0; (permission = permission_at(at)); at++) {
		struct permission all = *permission;
		struct admin_operation operation = *admin_find(slice_of(all.operation));
		for (size_t i = 0; operation.parameters[i].name; i++)
			operation.parameters[i].required = false;
		operation.run = note_run;
		BUF_AUTO struct buf answer = {.limit = 8192};
		runs = 0;
		assert_int_equal(admin_run(&fixture->admin, &operation, NULL, NULL, &answer, NULL), OK);
		assert_int_equal(runs, 1);
	}
}

/* ---- without replaced operations ---- */

/* Begins a session of a user with that role who belongs to no other account. */
static void begin_session(struct fixture *fixture)
{
	sample_change(&fixture->sample,
	              FORMAT("INSERT INTO sessions (digest, session_id, user_id, account, made_at,"
	                     " seen_at, signed_in_at, by_passkey, address, agent) VALUES"
	                     " ('', '', 'usr_1', 1, 1, 1, 1, 0, '', '')"));
	sample_change(&fixture->sample,
	              FORMAT("INSERT INTO memberships (user_id, account, role, made_at) SELECT"
	                     " 'usr_1', account, '%s', 1 FROM accounts WHERE account_id = '%s'",
	                     role_text(fixture->membership.role), fixture->own.account_id));
}

TEST_CASE_ON(an_audit_record_names_its_user, struct fixture *fixture)
{
	struct admin_caller caller;
	struct slice text;
	fixture->membership.role = ROLE_OWNER;
	fixture->session.signed_in_at_us = store_now_us(fixture->sample.store);
	admin_caller_user(&fixture->session, "192.0.2.7", "here", &caller);
	begin_session(fixture);
	operate(fixture, "user invite", &caller, "{\"email\":\"Eva@example.org\",\"role\":\"owner\"}",
	        OK);
	operate(fixture, "user invite", &caller, "{\"email\":\"zoe@example.org\",\"role\":\"owner\"}",
	        OK);
	operate(fixture, "user role", &caller, "{\"user\":\"eva@Example.org\",\"role\":\"reader\"}",
	        OK);
	struct json *acts =
		operate(fixture, "audit list", &caller, "{\"operation\":\"user role\"}", OK);
	struct json *act = json_member(acts, "data")->first;
	static const char *const said[][2] = {
		{"actor", "user"},         {"user_id", "usr_1"}, {"email", ME},
		{"address", "192.0.2.7"},  {"via", "console"},   {"node", "here"},
		{"operation", "user role"}};
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		assert_true(json_get_text(act, said[i][0], &text));
		assert_true(slice_is(text, said[i][1]));
	}
	assert_int_equal(json_member(act, "uid")->type, JSON_NULL);
	assert_int_equal(json_member(act, "user")->type, JSON_NULL);
	assert_int_equal(json_member(act, "claimed")->type, JSON_NULL);
	assert_true(json_get_text(act, "account_id", &text));
	assert_true(slice_is(text, fixture->own.account_id));
	assert_true(
		json_get_text(json_member(json_member(act, "before"), "membership"), "role", &text));
	assert_true(slice_is(text, "owner"));
	assert_true(json_get_text(json_member(json_member(act, "after"), "membership"), "role", &text));
	assert_true(slice_is(text, "reader"));
	struct json *users = operate(fixture, "user list", &caller, "{}", OK);
	assert_int_equal(json_member(users, "data")->count, 2);
}

TEST_MAIN_EACH(set_up, tear_down)
