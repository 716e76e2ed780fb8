#include "store/audit/audit_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/url_mask.h"
#include "ledger/bounds.h"
#include "store/audit/form_dedup.h"
#include "store/events/segments.h"
#include "store/people/authorization.h"
#include "store/people/console_users.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define MEMBERS_MAX 16
#define NUMBER_TRIES 20
#define VALUE_MAX ((size_t)64 * 1024)

#define MEMBERSHIP_TEXT                                                                            \
	"SELECT m.account, m.role FROM memberships m JOIN users u ON u.user_id = m.user_id"            \
	" JOIN accounts a ON a.account = m.account"                                                    \
	" WHERE u.email = LOWER(CAST($1 AS TEXT)) AND a.account_id = $2"
#define ON_NO_SHARD                                                                                \
	{                                                                                              \
		NULL, NULL, NULL                                                                           \
	}
#define MEMBERSHIP                                                                                 \
	{                                                                                              \
		MEMBERSHIP_TEXT, MEMBERSHIP_TEXT " AND a.account = $3"                                     \
	}

/* The objects that an operation names, by the argument that names them. The statement returns the
 * account and then the members. The letter after a member's name is its type: t text, i integer, b
 * boolean, m time, u URL. */
static const struct subject {
	const char *kind;
	const char *argument;
	struct routing_texts sql;
	const char *members[MEMBERS_MAX];
	struct routing_place place;
} subjects[] = {
	{"account",
     "account",
     ROUTING_BOTH("SELECT account, name, email, language, rate_live, unpaid_limit, suspended,"
                  " disabled, passkeys_required, bound_rate, bound_channels, bound_keys,"
                  " bound_certifications, bound_stored_bytes FROM accounts WHERE account_id = $1",
                  ""),
     {"name:t", "email:t", "language:t", "rate:i", "unpaid_limit:i", "suspended:b", "disabled:b",
      "passkeys_required:b", "account_rate:i", "channels:i", "keys:i", "certifications_per_day:i",
      "stored_bytes:i"},
     ROUTING_AT("accounts", "account_id")},
	{"billing",
     "account",
     ROUTING_BOTH("SELECT b.account, b.country, b.region, b.tax_rate, b.customer, b.payment_method"
                  " FROM accounts a JOIN account_billing b ON b.account = a.account"
                  " WHERE a.account_id = $1",
                  "a."),
     {"country:t", "region:t", "tax_rate_hundredths:i", "customer:t", "payment_method:t"},
     ROUTING_AT("accounts", "account_id")},
	{"topup",
     "account",
     ROUTING_BOTH("SELECT t.account, t.enabled, t.threshold, t.pack_id, t.daily_max"
                  " FROM accounts a JOIN topups t ON t.account = a.account WHERE a.account_id = $1",
                  "a."),
     {"enabled:b", "threshold:i", "pack_id:t", "daily_max:i"},
     ROUTING_AT("accounts", "account_id")},
	{"membership", "user", MEMBERSHIP, {"role:t"}, ROUTING_AT("accounts", "account_id")},
	{"membership", "email", MEMBERSHIP, {"role:t"}, ROUTING_AT("accounts", "account_id")},
	{"session",
     "session",
     {"SELECT account, ended_at FROM sessions WHERE session_id = $1", NULL},
     {"ended_at:m"},
     ON_NO_SHARD},
	{"channel",
     "channel",
     ROUTING_BOTH("SELECT account, suspended, config_version FROM channels WHERE channel_id = $1",
                  ""),
     {"suspended:b", "config_version:i"},
     ROUTING_AT("channels", "channel_id")},
	{"key",
     "key",
     {"SELECT account, revoked_at, expires_at FROM api_keys WHERE key_id = $1", NULL},
     {"revoked_at:m", "expires_at:m"},
     ON_NO_SHARD},
	{"limit",
     "limit",
     ROUTING_BOTH("SELECT account, period, max_events, action FROM consumption_limits"
                  " WHERE limit_id = $1",
                  ""),
     {"period:t", "max_events:i", "action:t"},
     ROUTING_AT("consumption_limits", "limit_id")},
	{"threshold",
     "threshold",
     ROUTING_BOTH("SELECT account, credits FROM balance_thresholds WHERE threshold_id = $1", ""),
     {"credits:i"},
     ROUTING_AT("balance_thresholds", "threshold_id")},
	{"endpoint",
     "endpoint",
     ROUTING_BOTH("SELECT account, url, types, secret_version, disabled_at, deleted_at"
                  " FROM webhook_endpoints WHERE endpoint_id = $1",
                  ""),
     {"url:u", "types:t", "secret_version:i", "disabled_at:m", "deleted_at:m"},
     ROUTING_AT("webhook_endpoints", "endpoint_id")},
	{"pack",
     "pack",
     ROUTING_BOTH("SELECT account, withdrawn_at FROM packs WHERE pack_id = $1", ""),
     {"withdrawn_at:m"},
     ROUTING_AT("packs", "pack_id")},
	{"purchase",
     "sale",
     ROUTING_BOTH("SELECT account, state FROM purchases WHERE sale_id = $1", ""),
     {"state:t"},
     ROUTING_AT("purchases", "sale_id")},
	{"certification",
     "certification",
     ROUTING_BOTH("SELECT account, status FROM certifications WHERE certification_id = $1", ""),
     {"status:t"},
     ROUTING_AT("certifications", "certification_id")},
};
#define SUBJECTS (sizeof subjects / sizeof *subjects)

/* Their values at one time, as JSON. A URL is also kept unmasked for the comparison, so that a
 * change of its secret part is recorded but the secret is not. */
struct audit_values {
	int64_t account; /* of the first object that has one */
	struct {
		bool there;
		const char *values[MEMBERS_MAX];
		const char *shown[MEMBERS_MAX];
	} of[SUBJECTS];
};

struct store *store_audited(struct store *store, struct act *act)
{
	struct store *acting = malloc(sizeof *acting);
	if (!acting)
		return NULL;
	*acting = *store;
	acting->act = act;
	act->before = arena_alloc(act->arena, sizeof *act->before);
	if (act->before)
		return acting;
	free(acting);
	return NULL;
}

void store_audited_end(struct store *acting)
{
	free(acting);
}

int store_write_audit_record(struct store *acting, enum audit_outcome outcome, const char *name,
                             const char *id, struct error *error)
{
	acting->act->outcome = outcome;
	struct db_connection *connection = begin_write(acting, &error);
	if (id)
		audit_add_created(connection, name, id);
	return end_write(connection, OK, error);
}

static int read_subjects(struct db_connection *connection, struct act *act,
                         struct audit_values *ret, struct error *error);

/* Numbers have no gaps, so that one row shows how many records were written since then. */
static int check_day(struct db_connection *connection, const struct act *act, struct error *error)
{
	if (!act->most_of_day || act->urgent || act->failed || !act->account)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT at FROM acts WHERE account = $1 AND number > 0 AND number ="
	                         " (SELECT MAX(number) FROM acts WHERE account = $1) + 1 - $2");
	db_bind(query, act->account, act->most_of_day);
	int64_t former_us = db_step(query) ? db_integer(query, 0) : TIME_NONE;
	int result = db_end(query, error);
	if (result || day_has_room(db_now_us(db_of(connection)), former_us))
		return result;
	char most[24];
	snprintf(most, sizeof most, "%" PRId64, act->most_of_day);
	return error_set(error, ERR_FULL, MSG_STORE_DAILY_CHANGES, most, NULL);
}

/* On the primary only: the audit record, which is written afterwards, waits for a standby. */
static int claim_form(struct store *acting, struct act *act, struct error *error)
{
	struct db_connection *connection = begin_local(acting, &error);
	int result = read_subjects(connection, act, act->before, error);
	act->account = act->before->account;
	if (!result)
		db_bind_to_shard(connection, act->account);
	if (!result)
		result = check_day(connection, act, error);
	if (!result)
		result = form_claim(connection, act->account, act->form, error);
	result = end_write(connection, result, error);
	act->form->claimed = !result;
	return result;
}

int store_authorize_operation(struct store *acting, struct error *error)
{
	struct act *act = acting->act;
	int result = OK;
	if (act->authorization) {
		struct db_connection *connection = begin_read(acting, &error);
		result = end_read(connection, authorization_check(connection, act->authorization, error));
	}
	act->authorization = NULL;
	if (!result && act->form)
		result = claim_form(acting, act, error);
	act->most_of_day = 0;
	return result;
}

int audit_write_alone(struct db_connection *connection, struct act *act, struct error *error)
{
	act->before = arena_alloc(act->arena, sizeof *act->before);
	if (!act->before)
		return ERR_NO_MEMORY;
	int result = audit_begin(connection, act, error);
	return result ? result : audit_write(connection, act, error);
}

/* ---- results ---- */

static void add_made(struct db_connection *connection, const char *name, const char *id,
                     int64_t number)
{
	struct act *act = db_attached(connection);
	if (!act || act->made_count == AUDIT_CREATED_MAX)
		return;
	act->made[act->made_count].name = name;
	store_copy_id(act->made[act->made_count].id, slice_of(id));
	act->made[act->made_count++].number = number;
}

void audit_add_created(struct db_connection *connection, const char *name, const char *id)
{
	add_made(connection, name, id, 0);
}

void audit_add_created_account(struct db_connection *connection, const char *account_id,
                               int64_t account)
{
	add_made(connection, "account_id", account_id, account);
}

void audit_add_number(struct db_connection *connection, const char *name, int64_t number)
{
	add_made(connection, name, "", number);
}

/* ---- before and after ---- */

static const char *shown_of(struct db_query *query, int column, const char *value,
                            struct arena *arena)
{
	BUF_AUTO struct buf address, text;
	buf_init(&address, VALUE_MAX);
	buf_init(&text, VALUE_MAX);
	if (db_is_null(query, column))
		return value;
	url_mask(db_text(query, column), &address);
	struct json_writer writer = {.out = &text};
	json_slice(&writer, NULL, buf_slice(&address));
	bool failed = buf_check(&address) || buf_check(&text);
	return failed ? NULL : arena_copy(arena, text.data, text.size);
}

static const char *value_of(struct db_query *query, int column, char type, struct arena *arena)
{
	BUF_AUTO struct buf text;
	buf_init(&text, VALUE_MAX);
	struct json_writer writer = {.out = &text};
	if (db_is_null(query, column))
		json_null(&writer, NULL);
	else if (type == 'i')
		json_integer(&writer, NULL, db_integer(query, column));
	else if (type == 'b')
		json_boolean(&writer, NULL, db_integer(query, column) != 0);
	else if (type == 'm')
		json_time(&writer, NULL, db_integer(query, column));
	else
		json_slice(&writer, NULL, db_text(query, column));
	return buf_check(&text) ? NULL : arena_copy(arena, text.data, text.size);
}

/* `known`: the account of an object that this transaction created and that is not visible to others
 * yet. */
static int read_subject(struct db_connection *connection, size_t index, struct slice id,
                        const int64_t *known, const struct act *act, struct audit_values *ret,
                        struct error *error)
{
	const struct subject *subject = &subjects[index];
	struct slice account_id = slice_of("");
	bool of_account = strstr(subject->sql.all, "$2"); /* searched within the named account */
	int64_t account = known ? *known : 0;
	if (of_account)
		(void)json_get_text(act->arguments, "account", &account_id);
	if (of_account && !account_id.size)
		return OK;
	bool located = subject->place.table && db_has_unreachable(db_of(connection)) &&
	               (known || routing_is_located(connection, &subject->place,
	                                            of_account ? account_id : id, &account));
	struct db_query *query =
		db_query(connection, located ? subject->sql.located : subject->sql.all);
	bool failed = false;
	db_bind_text(query, id);
	if (of_account)
		db_bind_text(query, account_id);
	if (located)
		db_bind_integer(query, account);
	if (db_step(query)) {
		ret->of[index].there = true;
		if (!ret->account)
			ret->account = db_integer(query, 0);
		for (int i = 0; i < MEMBERS_MAX && subject->members[i]; i++) {
			char type = strchr(subject->members[i], ':')[1];
			const char *value = value_of(query, i + 1, type, act->arena);
			ret->of[index].values[i] = value;
			ret->of[index].shown[i] =
				type == 'u' && value ? shown_of(query, i + 1, value, act->arena) : value;
			failed |= !ret->of[index].shown[i];
		}
	}
	int result = db_end(query, error);
	return !result && failed ? ERR_NO_MEMORY : result;
}

static int read_subjects(struct db_connection *connection, struct act *act,
                         struct audit_values *ret, struct error *error)
{
	*ret = (struct audit_values){0};
	int result = OK;
	for (size_t i = 0; i < SUBJECTS && !result; i++) {
		struct slice id;
		char made_name[32];
		const int64_t *known = NULL;
		snprintf(made_name, sizeof made_name, "%s_id", subjects[i].kind);
		bool named = json_get_text(act->arguments, subjects[i].argument, &id) && id.size;
		for (size_t at = 0; at < act->made_count && !named; at++)
			if (strcmp(act->made[at].name, made_name) == 0) {
				named = true;
				id = slice_of(act->made[at].id);
				known = act->made[at].number ? &act->made[at].number : &ret->account;
			}
		bool of_first = strcmp(subjects[i].argument, subjects[0].argument) == 0;
		if (named && of_first && ret->of[0].there)
			known = &ret->account;
		if (named)
			result = read_subject(connection, i, id, known, act, ret, error);
	}
	return result;
}

int audit_begin(struct db_connection *connection, struct act *act, struct error *error)
{
	int result =
		act->authorization ? authorization_check(connection, act->authorization, error) : OK;
	act->made_count = act->account_count = 0;
	act->settled = false;
	if (!result)
		act->failed = read_subjects(connection, act, act->before, NULL);
	/* For a repeated form: the caller confirms the record of the first submission on this
	 * account. */
	act->account = act->before->account;
	/* Fails early while the account's server is unavailable, because the record could not be
	 * written there. */
	if (!result && act->account && !act->is_secondary)
		result = db_check_reachable(connection, act->account, error);
	if (!result && act->form && !act->failed)
		result = form_check(connection, act->account, act->form, error);
	return result ? result : check_day(connection, act, error);
}

int audit_settle_authorization(struct db_connection *connection, struct error *error)
{
	struct act *act = db_attached(connection);
	if (!act || !act->authorization)
		return OK;
	act->settled = true;
	return authorization_check(connection, act->authorization, error);
}

int audit_on_user_accounts(struct db_connection *connection, const char *user_id, bool worked_in,
                           struct error *error)
{
	struct act *act = db_attached(connection);
	if (!act || act->by->user_id)
		return OK;
	act->accounts = arena_alloc(act->arena, ACCOUNTS_OF_USER_MAX * sizeof *act->accounts);
	if (!act->accounts)
		return ERR_NO_MEMORY;
	struct db_query *query = db_query(connection, "SELECT account FROM memberships"
	                                              " WHERE user_id = $1 AND taken_up >= $2"
	                                              " ORDER BY account LIMIT $3");
	db_bind(query, user_id, worked_in, ACCOUNTS_OF_USER_MAX);
	for (act->account_count = 0; db_step(query); act->account_count++)
		act->accounts[act->account_count] = db_integer(query, 0);
	return db_end(query, error);
}

static bool differs(const struct audit_values *a, const struct audit_values *b, size_t subject,
                    int member)
{
	const char *one = a->of[subject].values[member];
	const char *other = b->of[subject].values[member];
	return !one || !other ? one != other : strcmp(one, other) != 0;
}

static bool any_differs(const struct audit_values *a, const struct audit_values *b, size_t subject)
{
	bool any = false;
	for (int i = 0; i < MEMBERS_MAX && subjects[subject].members[i]; i++)
		any |= differs(a, b, subject, i);
	return any;
}

/* Writes the members of `shown` that differ from those of `other`. */
static void write_difference(struct json_writer *out, const char *name,
                             const struct audit_values *shown, const struct audit_values *other)
{
	bool begun = false;
	for (size_t i = 0; i < SUBJECTS; i++) {
		if (!shown->of[i].there || !any_differs(shown, other, i))
			continue;
		if (!begun)
			json_begin_object(out, name);
		begun = true;
		json_begin_object(out, subjects[i].kind);
		for (int at = 0; at < MEMBERS_MAX && subjects[i].members[at]; at++) {
			char member[32];
			snprintf(member, sizeof member, "%.*s", (int)strcspn(subjects[i].members[at], ":"),
			         subjects[i].members[at]);
			if (differs(shown, other, i, at))
				json_raw(out, member, slice_of(shown->of[i].shown[at]));
		}
		json_end_object(out);
	}
	if (begun)
		json_end_object(out);
	else
		json_null(out, name);
}

/* ---- writing the record ---- */

struct sha256 audit_chain_hash(const struct sha256 *before, struct slice document)
{
	struct sha256 both[2] = {*before, sha256_of(document.data, document.size)};
	return sha256_of(both, sizeof both);
}

static void write_created(struct json_writer *out, const char *name, const struct act *act)
{
	json_begin_object(out, name);
	for (size_t i = 0; i < act->made_count; i++)
		if (*act->made[i].id)
			json_text(out, act->made[i].name, act->made[i].id);
		else
			json_integer(out, act->made[i].name, act->made[i].number);
	json_end_object(out);
}

/* The members are sorted later (canonical JSON). */
static void write_document(const struct act *act, const struct audit_values *after, int64_t at_us,
                           struct slice arguments, struct json_writer *out)
{
	json_begin_object(out, NULL);
	json_text(out, "account_id", *act->account_id ? act->account_id : NULL);
	json_text(out, "act_id", act->act_id);
	json_text(out, "actor",
	          act->by->user_id      ? "user"
	          : act->by->is_service ? "service"
	                                : "operator");
	if (act->by->user_id)
		json_text(out, "address", act->by->address);
	write_difference(out, "after", after, act->before);
	json_raw(out, "arguments", arguments);
	json_time(out, "at", at_us);
	write_difference(out, "before", act->before, after);
	json_text(out, "claimed", act->by->claimed);
	if (act->outcome == AUDIT_FOUND) {
		write_created(out, "found", act);
		json_begin_object(out, "made");
		json_end_object(out);
	} else {
		write_created(out, "made", act);
	}
	json_text(out, "node", act->by->node);
	json_integer(out, "number", act->number);
	json_text(out, "operation", act->operation);
	if (act->outcome == AUDIT_UNKNOWN)
		json_text(out, "outcome", "unknown");
	json_text(out, "reason", act->reason);
	if (act->by->user_id) {
		json_text(out, "email", act->by->email);
		json_text(out, "signed_in_by", act->by->signed_in_by);
		json_text(out, "user_id", act->by->user_id);
		json_null(out, "uid");
	} else if (act->by->uid < 0) {
		json_null(out, "uid");
	} else {
		json_integer(out, "uid", act->by->uid);
	}
	json_boolean(out, "urgent", act->urgent);
	json_text(out, "user", act->by->user);
	json_text(out, "via", act->by->via);
	json_end_object(out);
}

static int make_document(struct act *act, const struct audit_values *after, int64_t at_us,
                         struct buf *out, struct error *error)
{
	BUF_AUTO struct buf arguments;
	BUF_AUTO struct buf text;
	buf_init(&arguments, AUDIT_DOCUMENT_MAX);
	buf_init(&text, AUDIT_DOCUMENT_MAX);
	if (act->arguments)
		json_canonical(act->arguments, &arguments);
	else
		buf_add_text(&arguments, "{}");
	struct json_writer writer = {.out = &text};
	write_document(act, after, at_us, buf_slice(&arguments), &writer);
	struct json *json;
	int result = buf_check(&arguments)
		?: buf_check(&text)
		?: json_parse(act->arena, buf_slice(&text), NULL, &json, error);
	if (!result)
		json_canonical(json, out);
	return result ? result : buf_check(out);
}

struct chain_end {
	int64_t number, at_us;
	struct sha256 hash;
};

/* Returns the number in the record's row: urgent records count down from -1. */
static int64_t row_number(const struct act *act, int64_t number)
{
	return act->urgent ? -number : number;
}

/* Reads the end of the operation's chain on its account, and the account's public identifier. */
static int read_end(struct db_connection *connection, struct act *act, struct chain_end *ret,
                    struct error *error)
{
	struct db_query *query =
		act->urgent
			? db_query(connection, "SELECT number, chain_hash, at FROM acts WHERE account = $1"
	                               " AND number < 0 ORDER BY number LIMIT 1")
			: db_query(connection, "SELECT number, chain_hash, at FROM acts WHERE account = $1"
	                               " AND number > 0 ORDER BY number DESC LIMIT 1");
	db_bind_integer(query, act->account);
	*ret = (struct chain_end){0};
	if (db_step(query))
		*ret = (struct chain_end){row_number(act, db_integer(query, 0)), db_integer(query, 2),
		                          store_sha256(db_blob(query, 1))};
	int result = db_end(query, error);
	*act->account_id = '\0';
	if (result || !act->account)
		return result;
	query = db_query(connection, "SELECT account_id FROM accounts WHERE account = $1");
	db_bind_integer(query, act->account);
	if (db_step(query))
		store_copy_id(act->account_id, db_text(query, 0));
	return db_end(query, error);
}

static int insert_record(struct db_connection *connection, const struct act *act, int64_t at_us,
                         struct slice document, const struct sha256 *end, int64_t *ret_inserted,
                         struct error *error)
{
	assert(act->number >= 1 && *act->act_id && document.size > 0);
	assert(act->urgent == (row_number(act, act->number) < 0));
	struct sha256 chain_hash = audit_chain_hash(end, document);
	struct db_query *query =
		db_query(connection, "INSERT INTO acts (account, number, act_id, at, operation, document,"
	                         " chain_hash) VALUES ($1, $2, $3, $4, $5, $6, $7)"
	                         " ON CONFLICT (account, number) DO NOTHING");
	db_bind(query, act->account, row_number(act, act->number), act->act_id, at_us, act->operation,
	        document, &chain_hash);
	int result = db_execute(query, ret_inserted, error);
	if (result || !*ret_inserted)
		return result;
	query = db_query(connection, "INSERT INTO unsealed_acts (account, chain, number)"
	                             " VALUES ($1, $2, $3)");
	db_bind(query, act->account, act->urgent ? URGENT_AUDIT_CHAIN : AUDIT_CHAIN, act->number);
	return db_execute(query, NULL, error);
}

static int append(struct db_connection *connection, struct act *act,
                  const struct audit_values *after, int64_t *ret_inserted, struct error *error)
{
	BUF_AUTO struct buf document;
	buf_init(&document, AUDIT_DOCUMENT_MAX);
	struct chain_end end;
	int result = read_end(connection, act, &end, error);
	if (result)
		return result;
	/* `at` increases even when the clock is set back. */
	int64_t at_us = db_now_us(db_of(connection));
	if (at_us <= end.at_us)
		at_us = end.at_us + 1;
	act->number = end.number + 1;
	result = make_document(act, after, at_us, &document, error);
	return result ? result
	              : insert_record(connection, act, at_us, buf_slice(&document), &end.hash,
	                              ret_inserted, error);
}

/* A transaction on the primary only does not exclude others, so a number that is taken is retried
 * with the next one. */
static int append_to_account(struct db_connection *connection, struct act *act, int64_t account,
                             const struct audit_values *after, struct error *error)
{
	int64_t inserted = 0;
	int result = OK;
	act->account = account;
	store_fresh_id("act_", act->act_id);
	for (int tries = 0; !result && !inserted && tries < NUMBER_TRIES; tries++)
		result = append(connection, act, after, &inserted, error);
	if (!result && !inserted)
		result = error_cause(
			error, ERR_UNAVAILABLE,
			"no number could be assigned to the audit record: too many concurrent operations on the account");
	return result;
}

/* Several accounts are always written in the same order, so that two transactions never wait for
 * each other's numbers. The commit is confirmed on the server of the first account. */
int audit_write(struct db_connection *connection, struct act *act, struct error *error)
{
	struct audit_values after = {0};
	int result = act->failed;
	if (!result && act->authorization && !act->settled)
		result = authorization_check(connection, act->authorization, error);
	if (!result)
		result = read_subjects(connection, act, &after, error);
	act->account = act->before->account ? act->before->account : after.account;
	const int64_t named = act->account;
	const int64_t *accounts = act->account_count ? act->accounts : &named;
	size_t left = act->account_count ? act->account_count : 1;
	if (!result && !act->is_secondary)
		db_bind_to_shard(connection, accounts[0]);
	while (!result && left > 0)
		result = append_to_account(connection, act, accounts[--left], &after, error);
	if (!result && act->form)
		result = form_keep(connection, act->before->account, act->form, act->act_id, error);
	return result;
}
