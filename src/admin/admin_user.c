/* Operations on users of the console, their sessions and passkeys. */
#include <assert.h>

#include "admin/admin_call.h"
#include "admin/permission_check.h"
#include "service/user_auth.h"
#include "store/accounts/accounts.h"

#define LINK_TEXT_MAX 4096

static int read_email(const struct admin_call *call, const char *name, char ret[EMAIL_SIZE],
                      struct error *error)
{
	char label[FIELD_SIZE];
	int result =
		user_auth_read_email(admin_slice(call, name), error_field(name, label), ret, error);
	if (result && error)
		error->code = ERR_USAGE;
	return result ? ERR_USAGE : OK;
}

/* ---- inviting ---- */

static int invitation_values(const struct admin_call *call, struct buf *values, struct error *error)
{
	const struct settings *settings = call->admin->settings;
	struct account_record account;
	if (!user_auth_sends_mail(settings))
		return OK;
	int result = store_find_account(call->admin->store, admin_slice(call, "account"), call->now_us,
	                                call->arena, &account, error);
	if (result)
		return result;
	const char *url =
		arena_printf(call->arena, "%s" USER_AUTH_CONSOLE_PATH, settings->service_public_url);
	struct json_writer writer = {.out = values};
	json_begin_object(&writer, NULL);
	json_text(&writer, "account_name", account.name);
	json_text(&writer, "role", admin_text(call, "role"));
	json_text(&writer, "url", url);
	json_end_object(&writer);
	return url ? buf_check(values) : ERR_NO_MEMORY;
}

/* The user ID is the same in all accounts of a user. Owners could learn from it whether an invited
 * user has other accounts. They identify users by e-mail address. */
static void put_user_id(const struct admin_call *call, const char *user_id, struct json_writer *out)
{
	if (!call->caller->is_user)
		json_text(out, "user_id", user_id);
}

/* For the same reason, owners do not see the passkeys of a user that has not used this account
 * yet. */
static void put_passkeys(const struct admin_call *call, const struct user_record *user,
                         struct json_writer *out)
{
	if (!call->caller->is_user || user->seen_at_us != TIME_NONE)
		json_integer(out, "passkeys", user->passkeys);
	else
		json_text(out, "passkeys", NULL);
}

static int run_invite(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	char email[EMAIL_SIZE], user_id[ID_SIZE];
	BUF_AUTO struct buf values;
	buf_init(&values, LINK_TEXT_MAX);
	int result = read_email(call, "email", email, error);
	if (!result)
		result = invitation_values(call, &values, error);
	if (result)
		return result;
	struct invitation invitation = {
		.account_id = admin_slice(call, "account"),
		.email = email,
		.language =
			slice_is(admin_slice(call, "language"), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH,
		.mail = buf_slice(&values),
		.invited_by = call->caller->actor.user_id,
		.hourly_mails = call->caller->is_user ? USER_AUTH_INVITATIONS_PER_HOUR : 0,
	};
	bool known = role_parse(admin_slice(call, "role"), &invitation.role);
	assert(known); /* one of the operation's choices */
	result = store_invite_user(call->admin->store, &invitation, call->now_us, user_id, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	put_user_id(call, user_id, out);
	json_text(out, "email", email);
	json_text(out, "account_id", admin_text(call, "account"));
	json_text(out, "role", role_text(invitation.role));
	json_boolean(out, "mailed", values.size > 0);
	json_end_object(out);
	return OK;
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct user_list list;
	int result = store_list_users(call->admin->store, admin_slice(call, "account"), call->arena,
	                              &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		const struct user_record *item = &list.items[i];
		json_begin_object(out, NULL);
		put_user_id(call, item->user_id, out);
		json_text(out, "email", item->email);
		json_text(out, "role", role_text(item->role));
		json_time(out, "since", item->made_at_us);
		json_text(out, "invited_by", item->made_by);
		json_time(out, "last_seen_at", item->seen_at_us);
		put_passkeys(call, item, out);
		json_end_object(out);
	}
	list_end(out, false);
	return OK;
}

static int run_link(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	char email[EMAIL_SIZE];
	int64_t expires_at_us = 0;
	BUF_AUTO struct buf url;
	buf_init(&url, LINK_TEXT_MAX);
	int result = read_email(call, "user", email, error);
	if (!result)
		result = user_auth_create_operator_link(call->admin->settings, call->admin->store, email,
		                                        call->now_us, &url, &expires_at_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "email", email);
	json_slice(out, "url", buf_slice(&url));
	json_time(out, "expires_at", expires_at_us);
	json_end_object(out);
	explicit_bzero(url.data, url.size);
	return OK;
}

/* ---- roles ---- */

static int member_answer(const struct admin_call *call, const char *email, const char *role,
                         struct json_writer *out)
{
	json_begin_object(out, NULL);
	json_text(out, "email", email);
	json_text(out, "account_id", admin_text(call, "account"));
	json_text(out, "role", role);
	json_end_object(out);
	return OK;
}

static int run_role(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	char email[EMAIL_SIZE];
	enum role role;
	int result = read_email(call, "user", email, error);
	bool known = role_parse(admin_slice(call, "role"), &role);
	assert(known); /* one of the operation's choices */
	if (!result)
		result = store_change_role(call->admin->store, admin_slice(call, "account"), email, role,
		                           call->now_us, error);
	return result ? result : member_answer(call, email, role_text(role), out);
}

/* A concurrent change of the role affects only whether a standby is waited for. */
static bool takes_rights(const struct admin_call *call)
{
	struct user_list list;
	struct error error = {0};
	char email[EMAIL_SIZE];
	enum role role;
	if (read_email(call, "user", email, &error) ||
	    store_list_users(call->admin->store, admin_slice(call, "account"), call->arena, &list,
	                     &error) ||
	    !role_parse(admin_slice(call, "role"), &role))
		return true;
	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.items[i].email, email) == 0)
			return permission_is_lost(list.items[i].role, role);
	return true;
}

static int run_remove(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	char email[EMAIL_SIZE];
	int result = read_email(call, "user", email, error);
	if (!result)
		result = store_remove_user(call->admin->store, admin_slice(call, "account"), email,
		                           call->now_us, error);
	return result ? result : member_answer(call, email, NULL, out);
}

/* ---- sessions ---- */

/* A user sees their own sessions in all accounts. An owner also sees the sessions of other users in
 * the owner's account, but not in other accounts. */
static int session_scope(const struct admin_call *call, char email[EMAIL_SIZE],
                         struct session_scope *ret, struct error *error)
{
	bool of_one = admin_given(call, "user");
	int result = of_one ? read_email(call, "user", email, error) : OK;
	*ret = (struct session_scope){.email = of_one ? email : NULL};
	if (call->caller->is_user) {
		ret->account_id = slice_of(call->caller->account_id);
		ret->own = call->caller->actor.email;
	}
	return result;
}

static int run_session_list(const struct admin_call *call, struct json_writer *out,
                            struct error *error)
{
	char email[EMAIL_SIZE];
	struct session_list list;
	struct session_scope scope;
	int result = session_scope(call, email, &scope, error);
	if (admin_given(call, "account"))
		scope.account_id = admin_slice(call, "account");
	if (!result)
		result = store_list_sessions(
			call->admin->store, &scope, call->now_us - USER_AUTH_SESSION_US,
			call->now_us - USER_AUTH_IDLE_US, admin_integer(call, "limit", ADMIN_LIST_DEFAULT),
			call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item,
	               ADMIN_PUT(out, item, session_id, account_id, account_name, email,
	                         signed_in_at_us, signed_in_by, by_passkey, seen_at_us, address,
	                         agent));
	list_end_partial(out, list.more, list.partial);
	return OK;
}

static int run_session_end(const struct admin_call *call, struct json_writer *out,
                           struct error *error)
{
	char email[EMAIL_SIZE];
	struct session_scope scope;
	int result = session_scope(call, email, &scope, error);
	if (!result)
		result = store_end_session(call->admin->store, admin_slice(call, "session"), &scope,
		                           call->now_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "session_id", admin_text(call, "session"));
	json_boolean(out, "ended", true);
	json_end_object(out);
	return OK;
}

/* ---- passkeys ---- */

static int run_passkey_list(const struct admin_call *call, struct json_writer *out,
                            struct error *error)
{
	char email[EMAIL_SIZE];
	struct passkey_list list;
	int result = read_email(call, "user", email, error);
	if (!result)
		result = store_list_passkeys(call->admin->store, email, call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item,
	               ADMIN_PUT(out, item, passkey_id, name, made_at_us, used_at_us));
	list_end(out, false);
	return OK;
}

static int run_passkey_remove(const struct admin_call *call, struct json_writer *out,
                              struct error *error)
{
	char email[EMAIL_SIZE];
	if (call->caller->must_use_passkey)
		return error_set(error, ERR_PASSKEY, MSG_USER_PASSKEY_REQUIRED, NULL);
	int result = read_email(call, "user", email, error);
	if (!result)
		result =
			store_remove_passkey(call->admin->store, admin_slice(call, "passkey"), email,
		                         user_auth_sends_mail(call->admin->settings), call->now_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "passkey_id", admin_text(call, "passkey"));
	json_boolean(out, "removed", true);
	json_end_object(out);
	return OK;
}

#define OF_ACCOUNT ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account")
#define USER                                                                                       \
	{                                                                                              \
		.name = "user", .kind = ADMIN_LINE, .required = true, .positional = true,                  \
		.place = "EMAIL", .least = 1, .most = EMAIL_SIZE - 1, .help = "the user's e-mail address"  \
	}
#define OF_USER                                                                                    \
	{                                                                                              \
		.name = "user", .kind = ADMIN_LINE, .place = "EMAIL", .least = 1, .most = EMAIL_SIZE - 1,  \
		.help = "only if it belongs to this user"                                                  \
	}
#define ROLE ADMIN_FLAG_CHOICE("role", true, ROLES, "role of the user in the account")

const struct admin_operation admin_user_operations[] = {
	{.name = "user invite",
     .summary = "add a user to an account's console and notify them by e-mail",
     .changes = true,
     .parameters = {OF_ACCOUNT,
                    ADMIN_FLAG_LINE("email", true, 1, EMAIL_SIZE - 1, "e-mail address of the user"),
                    ROLE,
                    ADMIN_FLAG_CHOICE("language", false, "en|es",
                                      "language of a new user (en by default)")},
     .run = run_invite},
	{.name = "user list",
     .summary = "list an account's users",
     .columns = "email role since invited_by last_seen_at passkeys",
     .parameters = {OF_ACCOUNT},
     .run = run_list},
	{.name = "user role",
     .summary = "change a user's role in an account; their sessions in it end",
     .urgent = true,
     .takes = takes_rights,
     .changes = true,
     .parameters = {USER, OF_ACCOUNT, ROLE},
     .run = run_role},
	{.name = "user remove",
     .summary = "remove a user from an account; their sessions in it end",
     .urgent = true,
     .changes = true,
     .parameters = {USER, OF_ACCOUNT},
     .run = run_remove},
	{.name = "user leave",
     .summary = "remove the user from an account at their own request; their sessions in it end",
     .urgent = true,
     .changes = true,
     .parameters = {USER, OF_ACCOUNT},
     .run = run_remove},
	{.name = "user link",
     .summary = "create a sign-in link for a user; it works once, within 15 minutes",
     .changes = true,
     .parameters = {USER},
     .run = run_link},
	{.name = "session list",
     .summary = "list the open sessions of the console, newest first",
     .columns = "session_id account_id email signed_in_by signed_in_at seen_at address agent",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    OF_USER, ADMIN_LIST_LIMIT},
     .run = run_session_list},
	{.name = "session end",
     .summary = "end a session of the console",
     .urgent = true,
     .changes = true,
     .parameters = {ADMIN_POSITIONAL_ID("session", "SESSION", "the session (ses_…)"), OF_USER},
     .run = run_session_end},
	{.name = "passkey list",
     .summary = "list a user's passkeys",
     .columns = "passkey_id name made_at used_at",
     .parameters = {USER},
     .run = run_passkey_list},
	{.name = "passkey remove",
     .summary = "remove a user's passkey; sessions started with a passkey end",
     .urgent = true,
     .changes = true,
     .parameters = {ADMIN_POSITIONAL_ID("passkey", "PASSKEY", "the passkey (psk_…)"),
                    {.name = "user",
                     .kind = ADMIN_LINE,
                     .required = true,
                     .place = "EMAIL",
                     .least = 1,
                     .most = EMAIL_SIZE - 1,
                     .help = "the user's e-mail address"}},
     .run = run_passkey_remove},
	{0},
};
