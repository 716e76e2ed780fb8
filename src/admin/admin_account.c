/* Accounts, their credits and their alert thresholds. */
#include "admin/admin_call.h"
#include "admin/webauthn_party.h"
#include "ledger/bounds.h"
#include "net/mail.h"
#include "store/accounts/accounts.h"

#define RATE_MAX 1000000000
#define UNPAID_LIMIT_MAX 1000000000
#define BOUND_MAX 1000000000
#define STORED_MAX LEDGER_BALANCE_MAX /* exact in JSON readers */

static void account_members(struct json_writer *out, const struct account_record *account)
{
	ADMIN_PUT(out, account, account_id, name, email);
	json_text(out, "language", account->language == LANGUAGE_SPANISH ? "es" : "en");
	ADMIN_PUT(out, account, suspended, disabled, balance);
	json_boolean(out, "operational", account->balance >= 0 && account->unpaid_events == 0);
	ADMIN_PUT(out, account, unpaid_events, unpaid_limit);
	if (account->rate_live)
		json_integer(out, "rate_live", account->rate_live);
	else
		json_null(out, "rate_live");
	ADMIN_PUT(out, account, passkeys_required, test_events_today, test_bytes_today,
	          test_certifications_today, created_at_us, active_at_us);
}

/* ---- bounds ---- */

static void bound_number(struct json_writer *out, const char *name, int64_t bound)
{
	if (bound > 0)
		json_integer(out, name, bound);
	else
		json_null(out, name);
}

/* Writes the effective limit, the account's own limit and the usage; `used` below 0: not
 * counted. */
static void bound_member(struct json_writer *out, const char *name, int64_t most, int64_t own,
                         int64_t used)
{
	json_begin_object(out, name);
	bound_number(out, "most", most);
	bound_number(out, "own", own);
	if (used >= 0)
		json_integer(out, "used", used);
	json_end_object(out);
}

static void bound_members(const struct settings *settings, const struct account_record *account,
                          const struct account_uses *uses, struct json_writer *out)
{
	const struct account_bounds *own = &account->bounds;
	json_begin_object(out, "bounds");
	bound_member(
		out, "account_rate",
		account_rate(own->rate, account->rate_live, settings->rate_account, settings->rate_live),
		own->rate, -1);
	bound_member(out, "channels", account_bound(own->channels, settings->account_channels),
	             own->channels, uses->channels);
	bound_member(out, "keys", account_bound(own->keys, settings->account_keys), own->keys,
	             uses->keys);
	bound_member(out, "certifications_per_day",
	             account_bound(own->certifications, settings->certification_per_day),
	             own->certifications, uses->certifications);
	bound_member(out, "stored_bytes",
	             account_bound(own->stored_bytes, settings->account_stored_bytes),
	             own->stored_bytes, uses->stored_bytes);
	json_end_object(out);
}

static void read_bounds(const struct admin_call *call, int64_t unset, struct account_bounds *ret)
{
	*ret = (struct account_bounds){
		.rate = admin_integer(call, "account_rate", unset),
		.channels = admin_integer(call, "channels", unset),
		.keys = admin_integer(call, "keys", unset),
		.certifications = admin_integer(call, "certifications_per_day", unset),
		.stored_bytes = admin_integer(call, "stored_bytes", unset),
	};
}

static bool bounds_given(const struct admin_call *call)
{
	return admin_given(call, "account_rate") || admin_given(call, "channels") ||
	       admin_given(call, "keys") || admin_given(call, "certifications_per_day") ||
	       admin_given(call, "stored_bytes");
}

static int show_account(const struct admin_call *call, struct slice account_id,
                        struct json_writer *out, struct error *error)
{
	struct account_record account;
	struct account_uses uses;
	int result = store_find_account(call->admin->store, account_id, call->now_us, call->arena,
	                                &account, error);
	if (!result)
		result =
			store_count_account_uses(call->admin->store, account_id, call->now_us, &uses, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	account_members(out, &account);
	bound_members(call->admin->settings, &account, &uses, out);
	json_end_object(out);
	return OK;
}

static enum language language_of(const char *text)
{
	return text && strcmp(text, "es") == 0 ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
}

static int check_email(const char *email, struct error *error)
{
	if (!email || !*email)
		return OK;
	if (!mail_address_usable(email))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_EMAIL, NULL);
	return OK;
}

static int run_create(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	const char *email = admin_text(call, "email");
	int result = check_email(email, error);
	if (result)
		return result;
	struct account_record given = {
		.name = admin_text(call, "name"),
		.email = email && *email ? email : NULL,
		.language = language_of(admin_text(call, "language")),
		.rate_live = admin_integer(call, "rate", 0),
		.unpaid_limit =
			admin_integer(call, "unpaid_limit", call->admin->settings->account_unpaid_limit),
	};
	read_bounds(call, 0, &given.bounds);
	char account_id[ID_SIZE];
	result = store_create_account(call->admin->store, &given, admin_integer(call, "credits", 0),
	                              call->now_us, account_id, error);
	return result ? result : show_account(call, slice_of(account_id), out, error);
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct account_list list;
	int result = store_list_accounts(call->admin->store, admin_slice(call, "after"),
	                                 admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->now_us,
	                                 call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, account_members(out, item));
	list_end_partial(out, list.more, list.partial);
	return OK;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return show_account(call, admin_slice(call, "account"), out, error);
}

static int change(const struct admin_call *call, const struct account_change *change,
                  struct json_writer *out, struct error *error)
{
	struct slice account_id = admin_slice(call, "account");
	int result = store_change_account(call->admin->store, account_id, change, call->now_us, error);
	return result ? result : show_account(call, account_id, out, error);
}

static int run_set(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int result = check_email(admin_text(call, "email"), error);
	if (result)
		return result;
	if (!admin_given(call, "name") && !admin_given(call, "email") &&
	    !admin_given(call, "language") && !admin_given(call, "rate") &&
	    !admin_given(call, "unpaid_limit") && !admin_given(call, "passkeys") && !bounds_given(call))
		return error_set(error, ERR_USAGE, MSG_ADMIN_NOTHING_TO_CHANGE, NULL);
	bool required = slice_is(admin_slice(call, "passkeys"), "required");
	struct webauthn_party party;
	if (required)
		result = webauthn_party_read(call->admin->settings->service_public_url, &party, error);
	if (result)
		return result;
	/* A user without a passkey session would lock themselves out with the next request. */
	if (required && call->caller->is_user && !call->caller->by_passkey)
		return error_set(error, ERR_PASSKEY, MSG_NONE, NULL);
	struct account_change wanted = ACCOUNT_UNCHANGED;
	wanted.name = admin_text(call, "name");
	wanted.email = admin_text(call, "email");
	if (admin_given(call, "language"))
		wanted.language = language_of(admin_text(call, "language"));
	wanted.rate_live = admin_integer(call, "rate", -1);
	wanted.unpaid_limit = admin_integer(call, "unpaid_limit", -1);
	read_bounds(call, -1, &wanted.bounds);
	if (admin_given(call, "passkeys"))
		wanted.passkeys_required = required;
	return change(call, &wanted, out, error);
}

static int run_suspend(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct account_change wanted = ACCOUNT_UNCHANGED;
	wanted.suspended = 1;
	return change(call, &wanted, out, error);
}

static int run_resume(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct account_change wanted = ACCOUNT_UNCHANGED;
	wanted.suspended = 0;
	return change(call, &wanted, out, error);
}

static int run_disable(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct account_change wanted = ACCOUNT_UNCHANGED;
	wanted.disabled = 1;
	return change(call, &wanted, out, error);
}

static int run_enable(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct account_change wanted = ACCOUNT_UNCHANGED;
	wanted.disabled = 0;
	return change(call, &wanted, out, error);
}

/* ---- credits ---- */

static int run_credits_add(const struct admin_call *call, struct json_writer *out,
                           struct error *error)
{
	bool revert = admin_given(call, "revert");
	struct credit_movement movement = {
		.credits = admin_integer(call, "credits", 0),
		.kind = revert ? "revert" : "adjustment",
		.reference = admin_text(call, "reason"),
	};
	if (movement.credits == 0)
		return error_set(error, ERR_USAGE, MSG_ADMIN_ZERO_CREDITS, NULL);
	if (revert && movement.credits > 0)
		return error_set(error, ERR_USAGE, MSG_ADMIN_REVERT_SIGN, NULL);
	struct credit_outcome outcome;
	int result = store_move_credits(call->admin->store, admin_slice(call, "account"), &movement,
	                                call->now_us, &outcome, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "account_id", admin_text(call, "account"));
	json_integer(out, "credits", movement.credits);
	json_integer(out, "balance", outcome.balance);
	json_boolean(out, "operational", outcome.balance >= 0 && outcome.unpaid_events == 0);
	ADMIN_PUT(out, &outcome, unpaid_events, settled_events);
	json_end_object(out);
	return OK;
}

static int run_credits_list(const struct admin_call *call, struct json_writer *out,
                            struct error *error)
{
	struct credit_list list;
	struct credit_filter filter = {
		.account_id = admin_slice(call, "account"),
		.kind = admin_slice(call, "kind"),
		.before = admin_integer(call, "before", 0),
		.limit = admin_integer(call, "limit", ADMIN_LIST_DEFAULT),
	};
	int result = admin_moment(call, "since", -1, TIME_NONE, &filter.since_us, error)
		?: admin_moment(call, "until", -1, TIME_NONE, &filter.until_us, error)
		?: store_list_credits(call->admin->store, &filter, call->arena, &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		const struct credit_record *item = &list.items[i];
		json_begin_object(out, NULL);
		ADMIN_PUT(out, item, number, at_us, kind, credits, balance, channel_id);
		if (item->channel_id) {
			ADMIN_PUT(out, item, first_sequence, last_sequence);
		} else {
			json_null(out, "first_sequence");
			json_null(out, "last_sequence");
		}
		json_text(out, "reference", item->reference);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

/* ---- thresholds ---- */

static int run_threshold_create(const struct admin_call *call, struct json_writer *out,
                                struct error *error)
{
	char threshold_id[ID_SIZE];
	int64_t credits = admin_integer(call, "credits", 0);
	int result = store_create_threshold(call->admin->store, admin_slice(call, "account"), credits,
	                                    threshold_id, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "threshold_id", threshold_id);
	json_text(out, "account_id", admin_text(call, "account"));
	json_integer(out, "credits", credits);
	json_end_object(out);
	return OK;
}

static int run_threshold_list(const struct admin_call *call, struct json_writer *out,
                              struct error *error)
{
	struct threshold_list list;
	int result = store_list_thresholds(
		call->admin->store, admin_slice(call, "account"), admin_slice(call, "after"),
		admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item,
	               ADMIN_PUT(out, item, threshold_id, account_id, credits, armed));
	list_end_partial(out, list.more, list.partial);
	return OK;
}

static int run_threshold_delete(const struct admin_call *call, struct json_writer *out,
                                struct error *error)
{
	int result = store_delete_threshold(call->admin->store, admin_slice(call, "threshold"), error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "threshold_id", admin_text(call, "threshold"));
	json_boolean(out, "deleted", true);
	json_end_object(out);
	return OK;
}

#define CREDIT_KINDS "events|settlement|purchase|refund|revert|adjustment|fee|fee_refund"
#define ACCOUNT ADMIN_POSITIONAL_ID("account", "ACCOUNT", "the account")
#define ACCOUNT_DETAILS                                                                            \
	ADMIN_FLAG_LINE("email", false, 0, ADMIN_LINE_MAX, "e-mail address for notices; \"\": none"),  \
		ADMIN_FLAG_CHOICE("language", false, "en|es", "language of e-mails to the owner"),         \
		ADMIN_FLAG_INTEGER("rate", false, 0, RATE_MAX,                                             \
	                       "requests per second of each live key; 0: the general setting"),        \
		ADMIN_FLAG_INTEGER("unpaid_limit", false, 0, UNPAID_LIMIT_MAX,                             \
	                       "unpaid events allowed; 0: none"),                                      \
		ADMIN_FLAG_INTEGER(                                                                        \
			"account_rate", false, 0, RATE_MAX,                                                    \
			"requests per second of all live keys together; 0: the general setting"),              \
		ADMIN_FLAG_INTEGER("channels", false, 0, BOUND_MAX,                                        \
	                       "maximum number of channels; 0: the general setting"),                  \
		ADMIN_FLAG_INTEGER("keys", false, 0, BOUND_MAX,                                            \
	                       "maximum number of unrevoked keys; 0: the general setting"),            \
		ADMIN_FLAG_INTEGER(                                                                        \
			"certifications_per_day", false, 0, BOUND_MAX,                                         \
			"maximum number of live certifications per UTC day; 0: the general setting"),          \
		ADMIN_FLAG_INTEGER(                                                                        \
			"stored_bytes", false, 0, STORED_MAX,                                                  \
			"maximum bytes of stored content and documents; 0: the general setting")

const struct admin_operation admin_account_operations[] = {
	{.name = "account create",
     .summary = "open an account",
     .changes = true,
     .parameters = {ADMIN_FLAG_LINE("name", true, 1, ADMIN_LINE_MAX, "name of the owner"),
                    ADMIN_FLAG_INTEGER("credits", false, 0, ADMIN_CREDITS_MAX, "initial credits"),
                    ACCOUNT_DETAILS},
     .run = run_create},
	{.name = "account list",
     .summary = "list accounts",
     .columns = "account_id name balance unpaid_events suspended disabled created_at",
     .parameters = {ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_list},
	{.name = "account show",
     .summary = "show an account",
     .parameters = {ACCOUNT},
     .run = run_show},
	{.name = "account set",
     .summary = "change an account's details",
     .changes = true,
     .parameters = {ACCOUNT, ADMIN_FLAG_LINE("name", false, 1, ADMIN_LINE_MAX, "name of the owner"),
                    ACCOUNT_DETAILS,
                    ADMIN_FLAG_CHOICE("passkeys", false, "required|optional",
                                      "whether all users of its console need a passkey")},
     .run = run_set},
	{.name = "account suspend",
     .summary = "refuse registrations and certifications; reading remains possible",
     .urgent = true,
     .changes = true,
     .parameters = {ACCOUNT},
     .run = run_suspend},
	{.name = "account resume",
     .summary = "end a suspension",
     .changes = true,
     .parameters = {ACCOUNT},
     .run = run_resume},
	{.name = "account disable",
     .summary = "refuse all requests of the account",
     .urgent = true,
     .changes = true,
     .parameters = {ACCOUNT},
     .run = run_disable},
	{.name = "account enable",
     .summary = "enable a disabled account again",
     .changes = true,
     .parameters = {ACCOUNT},
     .run = run_enable},
	{.name = "credits add",
     .summary = "add credits, or remove credits with a negative number",
     .changes = true,
     .parameters = {ACCOUNT,
                    {.name = "credits",
                     .kind = ADMIN_INTEGER,
                     .required = true,
                     .positional = true,
                     .place = "CREDITS",
                     .least = -ADMIN_CREDITS_MAX,
                     .most = ADMIN_CREDITS_MAX,
                     .help = "number of credits; unpaid events are settled first"},
                    ADMIN_FLAG_LINE("reason", false, 1, ADMIN_LINE_MAX, "kept with the entry"),
                    ADMIN_FLAG_SWITCH("revert",
                                      "take back a purchase; the balance may become negative")},
     .run = run_credits_add},
	{.name = "credits list",
     .summary = "list movements of credits, newest first",
     .columns = "number at kind credits balance channel_id first_sequence last_sequence reference",
     .parameters = {ACCOUNT, ADMIN_FLAG_CHOICE("kind", false, CREDIT_KINDS, "only this kind"),
                    ADMIN_FLAG_MOMENT("since", false,
                                      "from this time on, or this duration before now"),
                    ADMIN_FLAG_MOMENT("until", false,
                                      "before this time, or this duration before now"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_BEFORE},
     .run = run_credits_list},
	{.name = "threshold create",
     .summary = "send a notice when the balance falls to a number of credits",
     .changes = true,
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account"),
                    ADMIN_FLAG_INTEGER("credits", true, 0, ADMIN_CREDITS_MAX,
                                       "the number of credits")},
     .run = run_threshold_create},
	{.name = "threshold list",
     .summary = "list alert thresholds",
     .columns = "threshold_id account_id credits armed",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_threshold_list},
	{.name = "threshold delete",
     .summary = "delete an alert threshold",
     .changes = true,
     .parameters = {ADMIN_POSITIONAL_ID("threshold", "THRESHOLD", "the threshold")},
     .run = run_threshold_delete},
	{0},
};
