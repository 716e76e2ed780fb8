/* Signing in and sessions of users, with a clock that the test sets. */
#include "testing.h"
#include "base/clock.h"
#include "sample.h"
#include "admin/admin.h"
#include "service/user_auth.h"
#include "store/audit/audit_log.h"
#include "store/notices/mails.h"
#include "store/transaction.h"

#define ANA "ana@example.org"

struct office {
	struct sample sample;
	struct settings settings;
	struct service service;
	struct arena arena;
	struct error error;
	char browser[USER_AUTH_SECRET_SIZE];
};

static int64_t ahead_us; /* of the machine's clock */

int64_t __real_store_now_us(const struct store *store);
int64_t __wrap_store_now_us(const struct store *store);
int64_t __wrap_store_now_us(const struct store *store)
{
	return __real_store_now_us(store) + ahead_us;
}

static int set_up(void **state)
{
	struct office *office = calloc(1, sizeof *office);
	ahead_us = 0;
	sample_open(&office->sample, MODALITY_CONTENT, 5);
	arena_init(&office->arena, (size_t)8 << 20);
	office->settings.service_public_url = "https://example.org";
	office->settings.mail_url = "smtp://localhost";
	office->service.settings = &office->settings;
	office->service.store = office->sample.store;
	user_auth_new_secret(office->browser);
	char user_id[ID_SIZE];
	struct invitation invitation = {
		.account_id = slice_of(office->sample.account_id), .email = ANA, .role = ROLE_OWNER};
	assert_int_equal(store_invite_user(office->sample.store, &invitation, 1, user_id, NULL), OK);
	*state = office;
	return 0;
}

static int tear_down(void **state)
{
	struct office *office = *state;
	sample_close(&office->sample);
	arena_free(&office->arena);
	free(office);
	return 0;
}

/* The text of the next mail; NULL: it is not to be sent. */
static const char *next_mail(struct office *office)
{
	struct mail mail;
	const char *values = NULL;
	struct store *store = office->sample.store;
	assert_int_equal(store_claim_mail(store, MAIL_SIGN_IN, "me", store_now_us(store), US_PER_SECOND,
	                                  &office->arena, &mail, NULL),
	                 OK);
	assert_null(strstr(mail.values, "enter"));
	int result = user_auth_mail_values(&office->service, &mail, &office->arena, &values, NULL);
	assert_int_equal(store_end_mail(store, &mail, "me", MAIL_SENT, NULL, 1, NULL), OK);
	assert_true(result == OK || result == ERR_NOT_FOUND);
	return result ? NULL : values;
}

static struct slice secret_in(const char *values)
{
	const char *at = strstr(values, "https://example.org" USER_AUTH_LINK_PATH);
	assert_non_null(at);
	return slice_make(at + strlen("https://example.org" USER_AUTH_LINK_PATH),
	                  USER_AUTH_SECRET_SIZE - 1);
}

static struct slice ask(struct office *office)
{
	assert_int_equal(user_auth_request_link(
						 &office->service, slice_of("Ana@Example.org"), LANGUAGE_ENGLISH,
						 &(struct link_requester){.browser = slice_of(office->browser)}, NULL),
	                 OK);
	const char *values = next_mail(office);
	assert_non_null(values);
	return secret_in(values);
}

static int take(struct office *office, struct slice link, const char *browser, const char *former,
                char cookie[USER_AUTH_SECRET_SIZE])
{
	struct user_auth_client client = {.address = "192.0.2.7", .agent = "Mozilla\x1b[31m \xff ok"};
	error_clear(&office->error);
	return user_auth_redeem_link(&office->service, link, slice_of(browser), slice_of(former),
	                             &client, cookie, &office->error);
}

static int find(struct office *office, const char *cookie, struct session_view *ret)
{
	return user_auth_find_session(&office->service, slice_of(cookie), &office->arena, ret, NULL);
}

TEST_CASE_ON(a_mailed_link_signs_in, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE], again[USER_AUTH_SECRET_SIZE], other[USER_AUTH_SECRET_SIZE];
	struct session_view session;
	struct slice link = ask(office);
	user_auth_new_secret(other);
	assert_int_equal(take(office, link, other, NULL, cookie), ERR_REFUSED);
	assert_int_equal(office->error.message, MSG_USER_BAD_LINK);
	assert_int_equal(take(office, link, NULL, NULL, cookie), ERR_REFUSED);
	assert_int_equal(take(office, link, office->browser, NULL, cookie), OK);
	assert_true(user_auth_is_secret(slice_of(cookie)));
	assert_int_equal(take(office, link, office->browser, NULL, again), ERR_REFUSED);
	assert_int_equal(office->error.message, MSG_USER_BAD_LINK);
	assert_int_equal(find(office, cookie, &session), OK);
	assert_string_equal(session.email, ANA);
	assert_string_equal(session.chosen->account_id, office->sample.account_id);
	struct session_list list;
	assert_int_equal(store_list_sessions(office->sample.store, &(struct session_scope){0}, 0, 0, 9,
	                                     &office->arena, &list, NULL),
	                 OK);
	assert_string_equal(list.items[0].agent, "Mozilla?[31m ? ok");
	assert_int_equal(user_auth_sign_out(&office->service, slice_of(cookie),
	                                    &(struct user_auth_client){.address = "192.0.2.7"}, NULL),
	                 OK);
	assert_int_equal(find(office, cookie, &session), ERR_NOT_FOUND);
}

TEST_CASE_ON(without_a_record_one_goes_out_and_nobody_comes_in, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE], again[USER_AUTH_SECRET_SIZE];
	struct session_view session;
	struct slice link = ask(office);
	assert_int_equal(take(office, link, office->browser, NULL, cookie), OK);
	link = ask(office);
	sample_change(&office->sample, "ALTER TABLE unsealed_acts RENAME TO taken_away");
	assert_int_not_equal(take(office, link, office->browser, NULL, again), OK);
	assert_int_equal(user_auth_sign_out(&office->service, slice_of(cookie),
	                                    &(struct user_auth_client){.address = "192.0.2.7"}, NULL),
	                 OK);
	assert_int_equal(find(office, cookie, &session), ERR_NOT_FOUND);
	sample_change(&office->sample, "ALTER TABLE taken_away RENAME TO unsealed_acts");
	assert_int_equal(take(office, link, office->browser, NULL, again), OK);
}

TEST_CASE_ON(a_link_lives_a_quarter_of_an_hour, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE];
	struct slice link = ask(office);
	ahead_us = USER_AUTH_LINK_US;
	assert_int_equal(take(office, link, office->browser, NULL, cookie), ERR_REFUSED);
	ahead_us = USER_AUTH_LINK_US - 10 * US_PER_SECOND;
	assert_int_equal(take(office, link, office->browser, NULL, cookie), OK);
	ahead_us = 0;
	assert_int_equal(user_auth_request_link(
						 &office->service, slice_of(ANA), LANGUAGE_ENGLISH,
						 &(struct link_requester){.browser = slice_of(office->browser)}, NULL),
	                 OK);
	ahead_us = USER_AUTH_LINK_US + US_PER_SECOND; /* an expired mail is not sent */
	assert_null(next_mail(office));
}

/* The same row is written and the same answer is given for any address. */
TEST_CASE_ON(who_is_known_is_not_told, struct office *office)
{
	struct error known = {0}, unknown = {0};
	int result = user_auth_request_link(
		&office->service, slice_of(ANA), LANGUAGE_ENGLISH,
		&(struct link_requester){.browser = slice_of(office->browser)}, &known);
	assert_int_equal(user_auth_request_link(
						 &office->service, slice_of("eva@example.org"), LANGUAGE_ENGLISH,
						 &(struct link_requester){.browser = slice_of(office->browser)}, &unknown),
	                 result);
	assert_memory_equal(&known, &unknown, sizeof known);
	assert_non_null(next_mail(office));
	assert_null(next_mail(office));
	for (int i = 1; i < USER_AUTH_LINKS_PER_HOUR; i++)
		ask(office);
	assert_int_equal(user_auth_request_link(
						 &office->service, slice_of(ANA), LANGUAGE_ENGLISH,
						 &(struct link_requester){.browser = slice_of(office->browser)}, NULL),
	                 OK); /* too often: the answer does not reveal that */
	assert_null(next_mail(office));
	ahead_us = 3601 * US_PER_SECOND;
	ask(office);
}

TEST_CASE_ON(what_is_no_address_is_refused, struct office *office)
{
	char longest[400];
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	const char *const bad[] = {
		"",     "ana", "ana@", "a b@example.org", "ana@example.org\nBcc: x", "\"a\"@example.org",
		longest};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(user_auth_request_link(
							 &office->service, slice_of(bad[i]), LANGUAGE_ENGLISH,
							 &(struct link_requester){.browser = slice_of(office->browser)}, NULL),
		                 ERR_VALIDATION);
	assert_int_equal(
		user_auth_request_link(&office->service, slice_of(ANA), LANGUAGE_ENGLISH,
	                           &(struct link_requester){.browser = slice_of("no cookie")}, NULL),
		ERR_VALIDATION);
	office->settings.mail_url = "";
	struct error error = {0};
	assert_int_equal(user_auth_request_link(
						 &office->service, slice_of(ANA), LANGUAGE_ENGLISH,
						 &(struct link_requester){.browser = slice_of(office->browser)}, &error),
	                 ERR_REFUSED);
	assert_int_equal(error.message, MSG_USER_NO_MAIL);
}

TEST_CASE_ON(sessions_run_out, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE];
	struct session_view session;
	assert_int_equal(take(office, ask(office), office->browser, NULL, cookie), OK);
	assert_int_equal(find(office, cookie, &session), OK);
	assert_true(user_auth_is_recent(&session, store_now_us(office->sample.store)));
	ahead_us = USER_AUTH_RECENT_US;
	assert_false(user_auth_is_recent(&session, store_now_us(office->sample.store)));
	for (int i = 0; i < 35; i++) { /* used every 20 minutes, it lasts 12 hours */
		ahead_us = (i + 1) * 20 * 60 * US_PER_SECOND;
		assert_int_equal(find(office, cookie, &session), OK);
	}
	ahead_us = USER_AUTH_SESSION_US;
	assert_int_equal(find(office, cookie, &session), ERR_NOT_FOUND);
	ahead_us = 0;
	assert_int_equal(take(office, ask(office), office->browser, NULL, cookie), OK);
	ahead_us = USER_AUTH_IDLE_US;
	assert_int_equal(find(office, cookie, &session), ERR_NOT_FOUND);
}

TEST_CASE_ON(the_operators_link_is_bound_to_no_browser, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE];
	int64_t expires_at_us;
	BUF_AUTO struct buf url = {.limit = 1000};
	assert_int_equal(user_auth_create_operator_link(&office->settings, office->sample.store, ANA,
	                                                store_now_us(office->sample.store), &url,
	                                                &expires_at_us, NULL),
	                 OK);
	assert_int_equal(take(office, secret_in(url.data), NULL, NULL, cookie), OK);
	assert_int_equal(take(office, secret_in(url.data), NULL, NULL, cookie), ERR_REFUSED);
}

static int take_operators_link(struct office *office, char cookie[USER_AUTH_SECRET_SIZE])
{
	int64_t expires_at_us;
	BUF_AUTO struct buf url;
	buf_init(&url, 1000);
	assert_int_equal(user_auth_create_operator_link(&office->settings, office->sample.store, ANA,
	                                                store_now_us(office->sample.store), &url,
	                                                &expires_at_us, NULL),
	                 OK);
	return take(office, secret_in(url.data), NULL, NULL, cookie);
}

/* The sign-ins of one user cannot exhaust the daily limit of the account. */
TEST_CASE(sign_ins_of_a_day_are_bounded)
{
	struct office *office = *state;
	char cookie[USER_AUTH_SECRET_SIZE];
	ahead_us = US_PER_DAY / 2 - store_now_us(office->sample.store) % US_PER_DAY;
	struct slice link = ask(office);
	assert_int_equal(take(office, link, office->browser, NULL, cookie), OK);
	sample_change(
		&office->sample,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 199)"
		" INSERT INTO sessions (digest, session_id, user_id, account, made_at, seen_at,"
		" signed_in_at, by_passkey, address, agent) SELECT randomblob(32), 'ses_' || i, user_id,"
		" account, made_at, seen_at, signed_in_at, by_passkey, address, agent"
		" FROM sessions, n");
	link = ask(office);
	assert_int_equal(take(office, link, office->browser, NULL, cookie), ERR_FULL);
	assert_int_equal(office->error.message, MSG_STORE_SIGN_INS_DAY);
	assert_int_equal(take_operators_link(office, cookie), OK);
	ahead_us += US_PER_DAY;
	link = ask(office);
	assert_int_equal(take(office, link, office->browser, NULL, cookie), OK);
}

TEST_CASE(a_form_is_its_browsers)
{
	char one[USER_AUTH_SECRET_SIZE], other[USER_AUTH_SECRET_SIZE], token[USER_AUTH_SECRET_SIZE];
	user_auth_new_secret(one);
	user_auth_new_secret(other);
	assert_string_not_equal(one, other);
	user_auth_form_token(slice_of(one), token);
	assert_string_not_equal(one, token);
	assert_true(user_auth_check_form_token(slice_of(one), slice_of(token)));
	assert_false(user_auth_check_form_token(slice_of(other), slice_of(token)));
	assert_false(user_auth_check_form_token(slice_of(one), slice_of("")));
	user_auth_form_token(slice_of(""), token);
	assert_false(user_auth_check_form_token(slice_of(""), slice_of(token)));
	one[3] = 'A';
	assert_false(user_auth_is_secret(slice_of(one)));
}

TEST_CASE_ON(a_passkey_is_added_and_enters, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE], other[USER_AUTH_SECRET_SIZE], id[ID_SIZE];
	uint8_t challenge[CHALLENGE_SIZE], got[CHALLENGE_SIZE];
	struct session_view session;
	struct user_auth_client client = {.address = "192.0.2.7", .agent = "a browser"};
	struct service *service = &office->service;
	assert_int_equal(take(office, ask(office), office->browser, NULL, cookie), OK);
	assert_int_equal(find(office, cookie, &session), OK);
	assert_int_equal(user_auth_create_challenge(service, slice_of("x"), challenge, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(user_auth_create_challenge(service, slice_of(cookie), challenge, NULL), OK);
	assert_int_equal(user_auth_take_challenge(service, slice_of(office->browser), got, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(user_auth_take_challenge(service, slice_of(cookie), got, NULL), OK);
	assert_memory_equal(got, challenge, sizeof got);
	assert_int_equal(user_auth_take_challenge(service, slice_of(cookie), got, NULL), ERR_NOT_FOUND);
	assert_int_equal(user_auth_create_challenge(service, slice_of(cookie), challenge, NULL), OK);
	ahead_us = USER_AUTH_CHALLENGE_US;
	assert_int_equal(user_auth_take_challenge(service, slice_of(cookie), got, NULL), ERR_NOT_FOUND);
	ahead_us = 0;
	struct passkey_record credential = {.credential_id = slice_of("cred"),
	                                    .algorithm = -8,
	                                    .public_key = slice_of("key"),
	                                    .name = "<b>\x01phone</b>"};
	assert_int_equal(
		user_auth_add_passkey(service, &session, slice_of(cookie), &credential, &client, id, NULL),
		OK);
	struct audit_filter filter = {
		.since_us = TIME_NONE, .until_us = TIME_NONE, .limit = 1, .order = ORDER_DESCENDING};
	struct audit_record_list acts;
	assert_int_equal(
		store_list_audit_records(office->sample.store, &filter, &office->arena, &acts, NULL), OK);
	const char *document = acts.items[0].document.data;
	assert_non_null(strstr(document, "\"operation\":\"passkey add\""));
	assert_non_null(strstr(document, "\"name\":\"<b>?phone</b>\""));
	assert_non_null(strstr(document, office->sample.account_id));
	assert_non_null(strstr(document, ANA));
	struct passkey_record known;
	assert_int_equal(
		store_find_passkey(office->sample.store, slice_of("cred"), &office->arena, &known, NULL),
		OK);
	assert_int_equal(
		user_auth_sign_in_passkey(service, &known, 1, slice_of(cookie), &client, other, NULL), OK);
	assert_int_equal(find(office, cookie, &session), ERR_NOT_FOUND);
	assert_int_equal(find(office, other, &session), OK);
	assert_true(session.by_passkey);
	struct error error = {0};
	assert_int_equal(
		user_auth_sign_in_passkey(service, &known, 2, slice_of(""), &client, other, &error),
		ERR_REFUSED);
	assert_int_equal(error.message, MSG_USER_BAD_PASSKEY);
}

/* ---- rights removed in the meantime ---- */

static struct admin_caller caller_of(struct office *office, char cookie[USER_AUTH_SECRET_SIZE],
                                     struct session_view *session)
{
	struct admin_caller caller;
	assert_int_equal(take(office, ask(office), office->browser, NULL, cookie), OK);
	assert_int_equal(find(office, cookie, session), OK);
	admin_caller_user(session, "192.0.2.7", "here", &caller);
	return caller;
}

static int operate(struct office *office, const char *operation, const struct admin_caller *caller,
                   const char *arguments)
{
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	struct json *json;
	struct admin admin = {.settings = &office->settings, .store = office->sample.store};
	error_clear(&office->error);
	assert_int_equal(json_parse(&office->arena, slice_of(arguments), NULL, &json, NULL), OK);
	return admin_run(&admin, admin_find(slice_of(operation)), json, caller, &answer,
	                 &office->error);
}

static void add_owner(struct office *office)
{
	char user_id[ID_SIZE];
	struct invitation invitation = {.account_id = slice_of(office->sample.account_id),
	                                .email = "eva@example.org",
	                                .role = ROLE_OWNER};
	assert_int_equal(store_invite_user(office->sample.store, &invitation, 1, user_id, NULL), OK);
}

#define RENAME "account set", &caller, "{\"name\":\"Mine\"}"

/* Permitted when the session was read, refused when it is executed: the stored rights count. */
TEST_CASE_ON(a_demoted_user_is_refused, struct office *office)
{
	struct session_view session;
	char cookie[USER_AUTH_SECRET_SIZE];
	struct admin_caller caller = caller_of(office, cookie, &session);
	struct store *store = office->sample.store;
	struct slice account_id = slice_of(office->sample.account_id);
	assert_int_equal(operate(office, RENAME), OK);
	add_owner(office);
	assert_int_equal(store_change_role(store, account_id, ANA, ROLE_READER, 2, NULL), OK);
	assert_int_equal(operate(office, RENAME), ERR_FORBIDDEN);
	assert_int_equal(operate(office, "user remove", &caller, "{\"user\":\"eva@example.org\"}"),
	                 ERR_FORBIDDEN);
	assert_int_equal(store_change_role(store, account_id, ANA, ROLE_OWNER, 2, NULL), OK);
	assert_int_equal(operate(office, RENAME), ERR_FORBIDDEN); /* the session has ended */
	caller = caller_of(office, cookie, &session);
	assert_int_equal(operate(office, RENAME), OK);
	assert_int_equal(store_remove_user(store, account_id, ANA, 2, NULL), OK);
	assert_int_equal(operate(office, RENAME), ERR_FORBIDDEN);
	struct passkey_record credential = {.credential_id = slice_of("cred"),
	                                    .algorithm = -8,
	                                    .public_key = slice_of("key"),
	                                    .name = "phone"};
	assert_int_equal(user_auth_add_passkey(&office->service, &session, slice_of(cookie),
	                                       &credential,
	                                       &(struct user_auth_client){.address = "", .agent = ""},
	                                       caller.account_id, NULL),
	                 ERR_FORBIDDEN);
}

TEST_CASE_ON(an_ended_session_is_refused, struct office *office)
{
	struct session_view session;
	char cookie[USER_AUTH_SECRET_SIZE];
	struct admin_caller caller = caller_of(office, cookie, &session);
	assert_int_equal(user_auth_sign_out(&office->service, slice_of(cookie),
	                                    &(struct user_auth_client){.address = "192.0.2.7"}, NULL),
	                 OK);
	assert_int_equal(operate(office, RENAME), ERR_FORBIDDEN);
}

static void demand_passkeys(struct office *office)
{
	assert_int_equal(
		operate(office, "account set", NULL,
	            arena_printf(&office->arena, "{\"account\":\"%s\",\"passkeys\":\"required\"}",
	                         office->sample.account_id)),
		OK);
}

TEST_CASE_ON(a_demand_for_passkeys_holds_at_once, struct office *office)
{
	struct session_view session;
	char cookie[USER_AUTH_SECRET_SIZE];
	struct admin_caller caller = caller_of(office, cookie, &session);
	demand_passkeys(office);
	assert_int_equal(operate(office, RENAME), ERR_PASSKEY);
}

/* Between the beginning of an operation and its commit, except by the operation itself. */
TEST_CASE_ON(what_is_revoked_during_an_act_undoes_it, struct office *office)
{
	struct session_view session;
	char cookie[USER_AUTH_SECRET_SIZE];
	(void)caller_of(office, cookie, &session);
	struct actor actor = {.via = "console", .node = "here", .user_id = "usr_1", .email = ANA};
	struct audit_authorization authorization = {
		.session_id = session.session_id, .account_id = office->sample.account_id, .role = "owner"};
	for (int settled = 0; settled < 2; settled++) {
		struct db_connection *connection;
		struct act act = {.by = &actor,
		                  .authorization = &authorization,
		                  .operation = "user leave",
		                  .urgent = true,
		                  .arena = &office->arena};
		struct store *acting = store_audited(office->sample.store, &act);
		connection = begin_write(acting, NULL);
		assert_int_equal(db_failure(connection), OK);
		if (settled)
			assert_int_equal(audit_settle_authorization(connection, NULL), OK);
		struct db_query *query = db_query(connection, "UPDATE sessions SET ended_at = 1");
		int result = db_execute(query, NULL, NULL);
		assert_int_equal(end_write(connection, result, NULL), settled ? OK : ERR_FORBIDDEN);
		store_audited_end(acting);
		assert_int_equal(find(office, cookie, &session), settled ? ERR_NOT_FOUND : OK);
	}
}

static int add_passkey(struct office *office, const struct session_view *session,
                       const char *cookie, const char *credential_id)
{
	char id[ID_SIZE];
	struct passkey_record credential = {.credential_id = slice_of(credential_id),
	                                    .algorithm = -8,
	                                    .public_key = slice_of("key"),
	                                    .name = "phone"};
	return user_auth_add_passkey(&office->service, session, slice_of(cookie), &credential,
	                             &(struct user_auth_client){.address = "", .agent = ""}, id,
	                             &office->error);
}

/* Each of two browsers saw that the user has none. */
TEST_CASE_ON(of_two_first_passkeys_one_is_added, struct office *office)
{
	struct session_view one, other;
	char cookie[USER_AUTH_SECRET_SIZE], second[USER_AUTH_SECRET_SIZE];
	demand_passkeys(office);
	(void)caller_of(office, cookie, &one);
	(void)caller_of(office, second, &other);
	assert_int_equal(add_passkey(office, &one, cookie, "a"), OK);
	assert_int_equal(add_passkey(office, &other, second, "b"), ERR_PASSKEY);
	assert_int_equal(office->error.message, MSG_USER_PASSKEY_REQUIRED);
	assert_int_equal(find(office, second, &other), OK);
	assert_false(other.by_passkey);
	assert_int_equal(add_passkey(office, &one, cookie, "c"), OK);
}

/* A sign-in by link cannot leave an account that requires a passkey, except for a user without
 * one. */
TEST_CASE_ON(who_has_a_passkey_does_not_leave_without_it, struct office *office)
{
	struct session_view session, other;
	char cookie[USER_AUTH_SECRET_SIZE], with[USER_AUTH_SECRET_SIZE];
	add_owner(office);
	demand_passkeys(office);
	struct admin_caller by_passkey = caller_of(office, with, &other);
	struct admin_caller caller = caller_of(office, cookie, &session);
	assert_int_equal(add_passkey(office, &other, with, "a"), OK);
	assert_int_equal(operate(office, "user leave", &caller, "{}"),
	                 ERR_PASSKEY); /* had no passkey */
	assert_int_equal(find(office, cookie, &session), OK);
	admin_caller_user(&session, "192.0.2.7", "here", &caller);
	assert_int_equal(operate(office, "user leave", &caller, "{}"), ERR_PASSKEY);
	assert_int_equal(find(office, with, &other), OK);
	admin_caller_user(&other, "192.0.2.7", "here", &by_passkey);
	assert_int_equal(operate(office, "user leave", &by_passkey, "{}"), OK);
}

/* ---- users that cannot be frozen or locked out ---- */

static int ask_from(struct office *office, const char *address, const char *browser)
{
	const struct link_requester asker = {.browser = slice_of(browser), .address = address};
	assert_int_equal(
		user_auth_request_link(&office->service, slice_of(ANA), LANGUAGE_ENGLISH, &asker, NULL),
		OK);
	return next_mail(office) != NULL;
}

TEST_CASE_ON(a_stranger_uses_up_the_links_of_his_network_alone, struct office *office)
{
	char stranger[USER_AUTH_SECRET_SIZE], address[32];
	user_auth_new_secret(stranger);
	for (int i = 0; i <= USER_AUTH_LINKS_PER_HOUR; i++) {
		snprintf(address, sizeof address, "2001:db8::%d", i); /* all in one /64 */
		assert_int_equal(ask_from(office, address, stranger), i < USER_AUTH_LINKS_PER_HOUR);
	}
	assert_true(ask_from(office, "2001:db8:0:1::1", office->browser));
	assert_true(ask_from(office, "192.0.2.1", office->browser));
	for (int i = USER_AUTH_LINKS_PER_HOUR + 2; i <= USER_AUTH_UNKNOWN_PER_HOUR; i++) {
		snprintf(address, sizeof address, "192.0.3.%d", i);
		assert_int_equal(ask_from(office, address, stranger), i < USER_AUTH_UNKNOWN_PER_HOUR);
	}
	assert_false(
		ask_from(office, "192.0.4.1", stranger)); /* the number of mails to her is limited */
}

TEST_CASE_ON(where_the_user_has_been_nobody_else_locks_him_out, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE], stranger[USER_AUTH_SECRET_SIZE],
		kept[USER_AUTH_SECRET_SIZE];
	char address[32];
	user_auth_new_secret(stranger);
	user_auth_new_secret(kept);
	const struct user_auth_client client = {
		.address = "198.51.100.7", .agent = "", .known = slice_of(kept)};
	assert_int_equal(user_auth_redeem_link(&office->service, ask(office), slice_of(office->browser),
	                                       slice_of(""), &client, cookie, NULL),
	                 OK);
	for (int i = 0; i < 2 * USER_AUTH_UNKNOWN_PER_HOUR; i++) {
		snprintf(address, sizeof address, "192.0.2.%d", i);
		(void)ask_from(office, address, stranger);
	}
	assert_false(ask_from(office, "203.0.113.9", stranger));
	assert_true(ask_from(office, "198.51.100.7", office->browser));
}

/* An account of a stranger that requires passkeys, to which the user was added without consent. */
static void be_invited(struct office *office, char account_id[ID_SIZE])
{
	char user_id[ID_SIZE];
	struct account_record given = {.name = "A trap"};
	assert_int_equal(store_create_account(office->sample.store, &given, 0, 1, account_id, NULL),
	                 OK);
	struct account_change change = ACCOUNT_UNCHANGED;
	change.passkeys_required = true;
	assert_int_equal(
		store_change_account(office->sample.store, slice_of(account_id), &change, 1, NULL), OK);
	struct invitation invitation = {
		.account_id = slice_of(account_id), .email = ANA, .role = ROLE_READER};
	assert_int_equal(store_invite_user(office->sample.store, &invitation, 2, user_id, NULL), OK);
}

TEST_CASE_ON(an_invitation_freezes_no_passkeys, struct office *office)
{
	char with[USER_AUTH_SECRET_SIZE], cookie[USER_AUTH_SECRET_SIZE], account_id[ID_SIZE];
	struct session_view session, other;
	(void)caller_of(office, with, &session);
	assert_int_equal(add_passkey(office, &session, with, "a"), OK);
	be_invited(office, account_id);
	(void)caller_of(office, cookie, &other);
	assert_false(user_auth_requires_passkey(&other));
	/* Opening the account without a passkey does not accept the invitation. */
	assert_int_equal(
		user_auth_choose_account(&office->service, slice_of(cookie), slice_of(account_id), NULL),
		OK);
	assert_int_equal(find(office, cookie, &other), OK);
	assert_true(user_auth_requires_passkey(&other));
	assert_int_equal(add_passkey(office, &other, cookie, "b"), ERR_PASSKEY);
	struct slice own = slice_of(office->sample.account_id);
	assert_int_equal(user_auth_choose_account(&office->service, slice_of(cookie), own, NULL), OK);
	assert_int_equal(find(office, cookie, &other), OK);
	assert_false(user_auth_requires_passkey(&other));
	assert_int_equal(add_passkey(office, &other, cookie, "b"), OK);
	/* A user who works in it with a passkey accepts its requirement. */
	assert_int_equal(
		user_auth_choose_account(&office->service, slice_of(cookie), slice_of(account_id), NULL),
		OK);
	assert_int_equal(find(office, cookie, &other), OK);
	user_auth_new_secret(office->browser);
	(void)caller_of(office, cookie, &other);
	assert_true(user_auth_requires_passkey(&other));
	assert_string_equal(other.chosen->account_id, office->sample.account_id);
	assert_int_equal(add_passkey(office, &other, cookie, "c"), ERR_PASSKEY);
}

/* Returns the mails that wait for a user, in the order in which they were queued. */
static const char *next_of(struct office *office, const char *template_name)
{
	struct mail mail;
	struct store *store = office->sample.store;
	assert_int_equal(store_claim_mail(store, template_name, "me", store_now_us(store),
	                                  US_PER_SECOND, &office->arena, &mail, NULL),
	                 OK);
	assert_string_equal(mail.recipient, ANA);
	assert_int_equal(mail.language, LANGUAGE_ENGLISH);
	assert_int_equal(store_end_mail(store, &mail, "me", MAIL_SENT, NULL, 1, NULL), OK);
	return mail.values;
}

TEST_CASE_ON(the_user_is_told_of_his_passkeys, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE];
	struct session_view session;
	struct passkey_list list;
	struct admin_caller caller = caller_of(office, cookie, &session);
	assert_int_equal(add_passkey(office, &session, cookie, "a"), OK);
	assert_non_null(strstr(next_of(office, MAIL_PASSKEY_ADDED), "\"name\":\"phone\""));
	assert_int_equal(add_passkey(office, &session, cookie, "a"), ERR_REFUSED);
	struct mail mail;
	assert_int_equal(store_claim_mail(office->sample.store, NULL, "me", INT64_MAX / 2, 1,
	                                  &office->arena, &mail, NULL),
	                 ERR_NOT_FOUND); /* nothing was added */
	assert_int_equal(add_passkey(office, &session, cookie, "b"), OK);
	(void)next_of(office, MAIL_PASSKEY_ADDED);
	assert_int_equal(store_list_passkeys(office->sample.store, ANA, &office->arena, &list, NULL),
	                 OK);
	const char *said[] = {"\"address\":\"192.0.2.7\"", "\"reason\":\"operator\""};
	for (size_t i = 0; i < 2; i++) {
		const char *arguments = arena_printf(
			&office->arena, "{\"passkey\":\"%s\",\"user\":\"" ANA "\"}", list.items[i].passkey_id);
		assert_int_equal(operate(office, "passkey remove", i ? NULL : &caller, arguments), OK);
		const char *values = next_of(office, MAIL_PASSKEY_REMOVED);
		assert_non_null(strstr(values, "\"name\":\"phone\""));
		assert_non_null(strstr(values, said[i]));
		assert_null(strstr(values, said[!i]));
	}
}

TEST_CASE_ON(who_gets_no_mail_is_told_nothing, struct office *office)
{
	char cookie[USER_AUTH_SECRET_SIZE];
	struct session_view session;
	struct mail mail;
	(void)caller_of(office, cookie, &session);
	office->settings.mail_url = "";
	assert_int_equal(add_passkey(office, &session, cookie, "a"), OK);
	assert_int_equal(store_claim_mail(office->sample.store, NULL, "me", INT64_MAX / 2, 1,
	                                  &office->arena, &mail, NULL),
	                 ERR_NOT_FOUND);
}

TEST_MAIN_EACH(set_up, tear_down)
