/* Users, sign-in links and sessions in the store, on a SQLite file in a new directory, or on a
 * database of a server:
 *     contract-people [postgresql://…] */
#include <pthread.h>

#include "testing.h"
#include "sample.h"
#include "store/accounts/accounts.h"
#include "store/audit/audit_log.h"
#include "store/notices/mails.h"
#include "store/people/console_users.h"
#include "store/store_internal.h"

#define NOW INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */
#define HOUR (3600 * US_PER_SECOND)
#define OWNERS_LOCKED "SELECT user_id FROM memberships WHERE account = $1 AND role = 'owner'"
#define LATER (NOW + 15 * 60 * US_PER_SECOND)

static const char *server_url; /* postgresql://…; NULL: a SQLite file */

/* Action that runs once, before a statement with this beginning; db_query is wrapped by the
 * linker. */
static struct {
	const char *before;
	void (*happens)(void *context);
	void *context;
} meanwhile;
struct db_query *__real_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql)
{
	const char *before = meanwhile.before;
	if (before && strncmp(literal_sql, before, strlen(before)) == 0) {
		meanwhile.before = NULL;
		meanwhile.happens(meanwhile.context);
	}
	return __real_db_query(connection, literal_sql);
}

struct fixture {
	struct sample sample;
	struct arena arena;
	struct error error;
	char other_id[ID_SIZE]; /* another account */
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)64 << 20);
	sample_create_store(&fixture->sample, server_url);
	fixture->sample.now_us = NOW;
	sample_fill(&fixture->sample, fixture->sample.store, MODALITY_HASH_ONLY, 5);
	struct account_record other = {.name = "Other"};
	assert_int_equal(
		store_create_account(fixture->sample.store, &other, 0, NOW, fixture->other_id, NULL), OK);
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

static struct sha256 secret(const char *text)
{
	return sha256_of(text, strlen(text));
}

static int invite_as(struct fixture *fixture, const char *account_id, const char *email,
                     enum role role, int64_t hourly)
{
	struct invitation invitation = {.account_id = slice_of(account_id),
	                                .email = email,
	                                .role = role,
	                                .language = LANGUAGE_SPANISH,
	                                .mail = slice_of("{}"),
	                                .hourly_mails = hourly};
	char user_id[ID_SIZE];
	error_clear(&fixture->error);
	return store_invite_user(fixture->sample.store, &invitation, NOW, user_id, &fixture->error);
}

static void invite(struct fixture *fixture, const char *account_id, const char *email,
                   enum role role)
{
	assert_int_equal(invite_as(fixture, account_id, email, role, 0), OK);
}

static int link_for(struct fixture *fixture, const char *email, const char *text,
                    const char *browser, int64_t hourly)
{
	struct sha256 digest = secret(browser ? browser : "");
	struct link_grant grant = {.email = email,
	                           .link = secret(text),
	                           .browser = browser ? &digest : NULL,
	                           .asked = "eml_1",
	                           .now_us = NOW,
	                           .expires_at_us = LATER,
	                           .hourly_max = hourly};
	return store_make_link(fixture->sample.store, &grant, NULL);
}

static int take(struct fixture *fixture, const char *link, const char *browser, const char *former,
                const char *cookie, int64_t now_us)
{
	struct sha256 link_digest = secret(link), browser_digest = secret(browser ? browser : ""),
				  former_digest = secret(former ? former : "");
	struct session_start start = {.cookie = secret(cookie),
	                              .former = former ? &former_digest : NULL,
	                              .address = "192.0.2.1",
	                              .agent = "a browser",
	                              .node = "here",
	                              .now_us = now_us};
	return store_take_link(fixture->sample.store, &link_digest, browser ? &browser_digest : NULL,
	                       &start, NULL);
}

static int find(struct fixture *fixture, const char *cookie, struct session_view *ret)
{
	struct sha256 digest = secret(cookie);
	return store_find_session(fixture->sample.store, &digest, NOW - 12 * HOUR, NOW - HOUR / 2,
	                          &fixture->arena, ret, NULL);
}

static void sign_in(struct fixture *fixture, const char *email, const char *cookie)
{
	char link[64];
	snprintf(link, sizeof link, "link of %s", cookie);
	assert_int_equal(link_for(fixture, email, link, NULL, 0), OK);
	assert_int_equal(take(fixture, link, NULL, NULL, cookie, NOW), OK);
}

static int leave(struct fixture *fixture, const char *cookie)
{
	const struct sign_out_request leave = {
		.cookie = secret(cookie), .address = "192.0.2.9", .node = "here", .now_us = NOW};
	return store_sign_out(fixture->sample.store, &leave, NULL);
}

TEST_CASE_ON(a_user_has_a_role_in_each_of_several_accounts, struct fixture *fixture)
{
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "ana@example.org", ROLE_READER);
	assert_int_equal(invite_as(fixture, fixture->other_id, "ana@example.org", ROLE_OWNER, 0),
	                 ERR_REFUSED);
	assert_int_equal(fixture->error.message, MSG_STORE_USER_EXISTS);
	assert_int_equal(invite_as(fixture, "acc_unknown", "ana@example.org", ROLE_OWNER, 0),
	                 ERR_NOT_FOUND);
	sign_in(fixture, "ana@example.org", "c");
	struct session_view session;
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_string_equal(session.email, "ana@example.org");
	assert_int_equal(session.language, LANGUAGE_SPANISH);
	assert_int_equal(session.signed_in_at_us, NOW);
	assert_int_equal(session.membership_count, 2);
	assert_string_equal(session.chosen->account_id, fixture->sample.account_id);
	assert_int_equal(session.chosen->role, ROLE_OWNER);
	struct sha256 cookie = secret("c");
	assert_int_equal(
		store_choose_account(fixture->sample.store, &cookie, slice_of(fixture->other_id), NULL),
		OK);
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_string_equal(session.chosen->account_id, fixture->other_id);
	assert_string_equal(session.chosen->account_name, "Other");
	assert_int_equal(session.chosen->role, ROLE_READER);
	struct user_list users;
	assert_int_equal(store_list_users(fixture->sample.store, slice_of(fixture->other_id),
	                                  &fixture->arena, &users, NULL),
	                 OK);
	assert_int_equal(users.count, 1);
	assert_int_equal(users.items[0].seen_at_us, NOW);
}

TEST_CASE_ON(another_account_is_as_if_it_were_not_there, struct fixture *fixture)
{
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	sign_in(fixture, "ana@example.org", "c");
	struct sha256 cookie = secret("c"), none = secret("none");
	struct error foreign = {0}, missing = {0};
	assert_int_equal(
		store_choose_account(fixture->sample.store, &cookie, slice_of(fixture->other_id), &foreign),
		ERR_NOT_FOUND);
	assert_int_equal(
		store_choose_account(fixture->sample.store, &cookie, slice_of("acc_x"), &missing),
		ERR_NOT_FOUND);
	assert_int_equal(foreign.message, missing.message);
	assert_int_equal(store_choose_account(fixture->sample.store, &none,
	                                      slice_of(fixture->sample.account_id), NULL),
	                 ERR_NOT_FOUND);
}

TEST_CASE_ON(a_link_works_once_in_time_in_its_browser, struct fixture *fixture)
{
	struct session_view session;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	assert_int_equal(link_for(fixture, "ana@example.org", "one", "b", 0), OK);
	assert_int_equal(link_for(fixture, "ana@example.org", "again", "b", 0), OK);
	assert_int_equal(take(fixture, "one", "another", NULL, "c", NOW), ERR_NOT_FOUND);
	assert_int_equal(take(fixture, "one", NULL, NULL, "c", NOW), ERR_NOT_FOUND);
	assert_int_equal(take(fixture, "unknown", "b", NULL, "c", NOW), ERR_NOT_FOUND);
	assert_int_equal(take(fixture, "one", "b", NULL, "c", LATER), ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "c", &session), ERR_NOT_FOUND);
	assert_int_equal(take(fixture, "one", "b", NULL, "c", LATER - 1), OK);
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_int_equal(take(fixture, "one", "b", NULL, "d", NOW), ERR_NOT_FOUND);
	assert_int_equal(take(fixture, "again", "b", NULL, "d", NOW), ERR_NOT_FOUND); /* used up */
}

TEST_CASE_ON(signing_in_again_goes_on_in_the_same_account, struct fixture *fixture)
{
	struct session_view session;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "eva@example.org", ROLE_OWNER);
	sign_in(fixture, "ana@example.org", "c");
	struct sha256 cookie = secret("c");
	assert_int_equal(
		store_choose_account(fixture->sample.store, &cookie, slice_of(fixture->other_id), NULL),
		OK);
	assert_int_equal(link_for(fixture, "ana@example.org", "two", NULL, 0), OK);
	assert_int_equal(take(fixture, "two", NULL, "c", "d", NOW + 1), OK);
	assert_int_equal(find(fixture, "c", &session), ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "d", &session), OK);
	assert_string_equal(session.chosen->account_id, fixture->other_id);
	assert_int_equal(session.signed_in_at_us, NOW + 1);
}

struct request {
	const char *asked, *link, *known;
	bool in_session;
	const char *network;
};

static int ask_as(struct fixture *fixture, const char *email, const struct request *request)
{
	struct sha256 browser = secret("b"), known = secret(request->known ? request->known : "");
	struct link_grant grant = {.email = email,
	                           .link = secret(request->link),
	                           .browser = &browser,
	                           .asked = request->asked,
	                           .in_session = request->in_session,
	                           .known = request->known ? &known : NULL,
	                           .now_us = NOW,
	                           .expires_at_us = LATER,
	                           .network = request->network,
	                           .hourly_max = 2,
	                           .unknown_networks_max = 4};
	return store_make_link(fixture->sample.store, &grant, NULL);
}

TEST_CASE_ON(links_are_given_to_users_only_and_not_too_often, struct fixture *fixture)
{
	assert_int_equal(link_for(fixture, "ana@example.org", "0", "b", 5), ERR_NOT_FOUND);
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	char text[2] = "1";
	for (; *text <= '5'; ++*text)
		assert_int_equal(
			ask_as(fixture, "ana@example.org", &(struct request){text, text, NULL, false, NULL}),
			*text <= '2' ? OK : ERR_REFUSED);
	assert_int_equal(link_for(fixture, "ana@example.org", "op", NULL, 0), OK);
}

TEST_CASE_ON(strangers_use_up_nothing_of_the_users_own, struct fixture *fixture)
{
	static const char ana[] = "ana@example.org";
	struct sha256 known = secret("kept");
	struct session_start start = {
		.cookie = secret("c"), .known = &known, .address = "", .agent = "", .now_us = NOW};
	struct sha256 link = secret("first");
	invite(fixture, fixture->sample.account_id, ana, ROLE_OWNER);
	invite(fixture, fixture->sample.account_id, "eva@example.org", ROLE_READER);
	assert_int_equal(link_for(fixture, ana, "first", NULL, 0), OK);
	assert_int_equal(store_take_link(fixture->sample.store, &link, NULL, &start, NULL), OK);
	/* A mail counts as one request, whatever its number of attempts. */
	assert_int_equal(ask_as(fixture, ana, &(struct request){"1", "1a", NULL, false, NULL}), OK);
	assert_int_equal(ask_as(fixture, ana, &(struct request){"1", "1b", NULL, false, NULL}), OK);
	assert_int_equal(ask_as(fixture, ana, &(struct request){"1", "1c", NULL, false, NULL}), OK);
	assert_int_equal(ask_as(fixture, ana, &(struct request){"2", "2a", "strange", false, NULL}),
	                 OK);
	assert_int_equal(ask_as(fixture, ana, &(struct request){"3", "3a", NULL, false, NULL}),
	                 ERR_REFUSED);
	assert_int_equal(ask_as(fixture, ana, &(struct request){"2", "2b", "strange", false, NULL}),
	                 OK);
	for (int round = 0; round < 2; round++) {
		bool in_session = round == 1;
		const char *kept = in_session ? NULL : "kept";
		struct request requests[] = {
			{in_session ? "4" : "7", in_session ? "4a" : "7a", kept, in_session, NULL},
			{in_session ? "5" : "8", in_session ? "5a" : "8a", kept, in_session, NULL},
			{in_session ? "6" : "9", in_session ? "6a" : "9a", kept, in_session, NULL}};
		assert_int_equal(ask_as(fixture, ana, &requests[0]), OK);
		assert_int_equal(ask_as(fixture, ana, &requests[1]), OK);
		assert_int_equal(ask_as(fixture, ana, &requests[2]), ERR_REFUSED);
	}
	/* What is known about one user does not apply to another. */
	assert_int_equal(
		ask_as(fixture, "eva@example.org", &(struct request){"a", "aa", NULL, false, NULL}), OK);
	assert_int_equal(
		ask_as(fixture, "eva@example.org", &(struct request){"b", "ba", NULL, false, NULL}), OK);
	assert_int_equal(
		ask_as(fixture, "eva@example.org", &(struct request){"c", "ca", "kept", false, NULL}),
		ERR_REFUSED);
}

static int ask_mail_from(struct fixture *fixture, const char *email, bool in_session,
                         const char *known, const char *network)
{
	char values[64];
	struct sha256 digest = secret(known ? known : "");
	snprintf(values, sizeof values, "{\"network\":\"%s\"}", network);
	const struct link_request request = {.email = email,
	                                     .values = slice_of(values),
	                                     .in_session = in_session,
	                                     .known = known ? &digest : NULL,
	                                     .network = network,
	                                     .now_us = NOW};
	return store_request_link(fixture->sample.store, &request, &fixture->error);
}

static int ask_mail(struct fixture *fixture, const char *email, bool in_session, const char *known)
{
	return ask_mail_from(fixture, email, in_session, known, "192.0.2.1");
}

TEST_CASE_ON(strangers_fill_no_queue, struct fixture *fixture)
{
	char email[32];
	int made = 0;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	struct sha256 kept = secret("kept"), link = secret("first");
	const struct session_start start = {.cookie = secret("c"),
	                                    .known = &kept,
	                                    .network = "198.51.100.7",
	                                    .address = "",
	                                    .agent = "",
	                                    .now_us = NOW};
	assert_int_equal(link_for(fixture, "ana@example.org", "first", NULL, 0), OK);
	assert_int_equal(store_take_link(fixture->sample.store, &link, NULL, &start, NULL), OK);
	for (; made < SIGN_IN_MAILS_OF_NETWORK_MAX; made++)
		assert_int_equal(ask_mail(fixture, "ana@example.org", false, NULL), OK);
	assert_int_equal(ask_mail(fixture, "ana@example.org", false, NULL), ERR_REFUSED);
	assert_int_equal(ask_mail(fixture, "ana@example.org", false, "other"), ERR_REFUSED);
	assert_int_equal(ask_mail(fixture, "ana@example.org", false, "kept"), OK);
	assert_int_equal(ask_mail(fixture, "ana@example.org", true, NULL), OK);
	/* Other networks still have room, and networks in which the user signed in have more. */
	for (made += 2; made < SIGN_IN_MAILS_OF_ADDRESS_MAX; made++) {
		snprintf(email, sizeof email, "192.0.3.%d", made);
		assert_int_equal(ask_mail_from(fixture, "ana@example.org", false, NULL, email), OK);
	}
	assert_int_equal(ask_mail_from(fixture, "ana@example.org", false, NULL, "192.0.3.1"),
	                 ERR_REFUSED);
	for (int i = 0; i < SIGN_IN_MAILS_OF_NETWORK_MAX; i++, made++)
		assert_int_equal(ask_mail_from(fixture, "ana@example.org", false, NULL, "198.51.100.7"),
		                 OK);
	assert_int_equal(ask_mail_from(fixture, "ana@example.org", false, NULL, "198.51.100.7"),
	                 ERR_REFUSED);
	/* Mails for other addresses are still accepted until the total limit is reached. */
	for (; made < SIGN_IN_MAILS_MAX; made++) {
		snprintf(email, sizeof email, "%d@example.org", made);
		assert_int_equal(ask_mail(fixture, email, false, "kept"), OK);
	}
	assert_int_equal(ask_mail(fixture, "eva@example.org", false, "kept"), ERR_REFUSED);
	/* Users have the same capacity again, which is also limited. */
	assert_int_equal(ask_mail(fixture, "ana@example.org", false, "kept"), OK);
	for (made++; made < 2 * SIGN_IN_MAILS_MAX; made++)
		assert_int_equal(ask_mail(fixture, "ana@example.org", true, NULL), OK);
	assert_int_equal(ask_mail(fixture, "ana@example.org", true, NULL), ERR_UNAVAILABLE);
	assert_int_equal(ask_mail(fixture, "ana@example.org", false, NULL), ERR_REFUSED);
}

/* Requests from many networks do not use up the limit of a network in which the user signed in, and
 * use from each network no more than its own limit. */
TEST_CASE_ON(strangers_use_up_nothing_of_another_network, struct fixture *fixture)
{
	static const char ana[] = "ana@example.org";
	static const char *const networks[] = {"192.0.2.1", "192.0.2.2"};
	struct sha256 known = secret("kept"), link = secret("first");
	struct session_start start = {.cookie = secret("c"),
	                              .known = &known,
	                              .network = "198.51.100.7",
	                              .address = "",
	                              .agent = "",
	                              .now_us = NOW};
	char asked[8];
	int count = 0;
	invite(fixture, fixture->sample.account_id, ana, ROLE_OWNER);
	assert_int_equal(link_for(fixture, ana, "first", NULL, 0), OK);
	assert_int_equal(store_take_link(fixture->sample.store, &link, NULL, &start, NULL), OK);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++) {
			snprintf(asked, sizeof asked, "n%d", count++);
			assert_int_equal(
				ask_as(fixture, ana, &(struct request){asked, asked, NULL, false, networks[i]}),
				j < 2 ? OK : ERR_REFUSED);
		}
	struct request strange = {"s", "s", NULL, false, "192.0.2.3"};
	assert_int_equal(ask_as(fixture, ana, &strange), ERR_REFUSED);
	struct request near = {"m", "m", NULL, false, "198.51.100.7"};
	assert_int_equal(ask_as(fixture, ana, &near), OK);
	/* The same holds with a stolen cookie of one of the user's browsers. */
	for (int i = 0; i < 6; i++) {
		snprintf(asked, sizeof asked, "k%d", i);
		struct request thief = {asked, asked, "kept", false, networks[i / 3]};
		assert_int_equal(ask_as(fixture, ana, &thief), i % 3 < 2 ? OK : ERR_REFUSED);
	}
	struct request own = {"o", "o", "kept", false, "198.51.100.7"};
	assert_int_equal(ask_as(fixture, ana, &own), OK);
}

TEST_CASE_ON(invitations_are_mailed_and_not_too_often, struct fixture *fixture)
{
	char email[32] = "a@example.org";
	for (; *email < 'd'; ++*email)
		assert_int_equal(invite_as(fixture, fixture->sample.account_id, email, ROLE_READER, 3), OK);
	assert_int_equal(invite_as(fixture, fixture->sample.account_id, email, ROLE_READER, 3),
	                 ERR_REFUSED);
	assert_int_equal(fixture->error.message, MSG_STORE_INVITED_OFTEN);
	assert_int_equal(ask_mail(fixture, "who@example.org", false, NULL), OK);
	struct mail mail;
	int mails = 0, of_nobody = 0;
	while (store_claim_mail(fixture->sample.store, NULL, "me", NOW + HOUR, HOUR, &fixture->arena,
	                        &mail, NULL) == OK) {
		mails++;
		if (mail.account == 0) {
			of_nobody++;
			assert_string_equal(mail.recipient, "who@example.org");
			assert_string_equal(mail.account_id, "");
			assert_int_equal(mail.language, LANGUAGE_ENGLISH);
		} else {
			assert_string_equal(mail.account_id, fixture->sample.account_id);
			assert_string_equal(mail.template_name, MAIL_INVITATION);
			assert_int_equal(mail.language, LANGUAGE_SPANISH);
		}
		assert_int_equal(
			store_end_mail(fixture->sample.store, &mail, "me", MAIL_SENT, NULL, NOW, NULL), OK);
	}
	assert_int_equal(mails, 4);
	assert_int_equal(of_nobody, 1);
}

TEST_CASE_ON(sessions_end, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct session_view session;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	sign_in(fixture, "ana@example.org", "left");
	struct sha256 kept = secret("kept");
	assert_int_equal(leave(fixture, "left"), OK);
	assert_int_equal(leave(fixture, "left"), OK);
	assert_int_equal(find(fixture, "left", &session), ERR_NOT_FOUND);
	sign_in(fixture, "ana@example.org", "kept");
	assert_int_equal(store_find_session(store, &kept, NOW, 0, &fixture->arena, &session, NULL),
	                 ERR_NOT_FOUND); /* too old */
	assert_int_equal(store_find_session(store, &kept, 0, NOW, &fixture->arena, &session, NULL),
	                 ERR_NOT_FOUND); /* idle */
	assert_int_equal(store_touch_session(store, &kept, NOW + 1, NULL), OK);
	assert_int_equal(store_touch_session(store, &kept, NOW - 1, NULL), OK);
	assert_int_equal(store_find_session(store, &kept, 0, NOW, &fixture->arena, &session, NULL), OK);
	assert_int_equal(session.seen_at_us, NOW + 1);
	struct session_list list;
	assert_int_equal(
		store_list_sessions(
			store, &(struct session_scope){.account_id = slice_of(fixture->sample.account_id)}, 0,
			0, 10, &fixture->arena, &list, NULL),
		OK);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.items[0].session_id, session.session_id);
	assert_string_equal(list.items[0].address, "192.0.2.1");
	assert_int_equal(store_list_sessions(
						 store, &(struct session_scope){.account_id = slice_of(fixture->other_id)},
						 0, 0, 10, &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 0);
	struct slice id = slice_of(session.session_id);
	assert_int_equal(store_end_session(
						 store, id, &(struct session_scope){.email = "eva@example.org"}, NOW, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_end_session(
						 store, id, &(struct session_scope){.email = "ana@example.org"}, NOW, NULL),
	                 OK);
	assert_int_equal(store_end_session(store, id, &(struct session_scope){0}, NOW, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "kept", &session), ERR_NOT_FOUND);
}

static size_t count_sessions(struct fixture *fixture, const struct session_scope *scope)
{
	struct session_list list;
	assert_int_equal(
		store_list_sessions(fixture->sample.store, scope, 0, 0, 10, &fixture->arena, &list, NULL),
		OK);
	return list.count;
}

TEST_CASE_ON(ones_own_sessions_are_those_in_any_account, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct session_view elsewhere;
	struct sha256 cookie = secret("elsewhere");
	struct slice account = slice_of(fixture->sample.account_id);
	struct session_scope ana = {.account_id = account, .own = "ana@example.org"};
	struct session_scope boss = {.account_id = account, .own = "boss@example.org"};
	invite(fixture, fixture->sample.account_id, "boss@example.org", ROLE_OWNER);
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_READER);
	invite(fixture, fixture->other_id, "ana@example.org", ROLE_READER);
	sign_in(fixture, "ana@example.org", "here");
	sign_in(fixture, "ana@example.org", "elsewhere");
	assert_int_equal(store_choose_account(store, &cookie, slice_of(fixture->other_id), NULL), OK);
	assert_int_equal(find(fixture, "elsewhere", &elsewhere), OK);
	assert_int_equal(count_sessions(fixture, &ana), 2);
	assert_int_equal(count_sessions(fixture, &boss), 1);
	boss.email = "ana@example.org";
	assert_int_equal(count_sessions(fixture, &boss), 1);
	struct slice id = slice_of(elsewhere.session_id);
	assert_int_equal(store_end_session(store, id, &boss, NOW, NULL), ERR_NOT_FOUND);
	ana.email = "ana@example.org";
	assert_int_equal(count_sessions(fixture, &ana), 2);
	assert_int_equal(store_end_session(store, id, &ana, NOW, NULL), OK);
	assert_int_equal(count_sessions(fixture, &ana), 1);
}

TEST_CASE_ON(another_role_ends_the_sessions_in_the_account, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct slice account = slice_of(fixture->sample.account_id);
	struct session_view session;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->sample.account_id, "eva@example.org", ROLE_READER);
	invite(fixture, fixture->other_id, "eva@example.org", ROLE_READER);
	sign_in(fixture, "ana@example.org", "ana");
	sign_in(fixture, "eva@example.org", "eva");
	assert_int_equal(
		store_change_role(store, account, "eva@example.org", ROLE_DEVELOPER, NOW, NULL), OK);
	assert_int_equal(find(fixture, "eva", &session), ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "ana", &session), OK);
	sign_in(fixture, "eva@example.org", "eva 2");
	assert_int_equal(find(fixture, "eva 2", &session), OK);
	assert_int_equal(session.chosen->role, ROLE_DEVELOPER);
	assert_int_equal(store_remove_user(store, account, "eva@example.org", NOW, NULL), OK);
	assert_int_equal(find(fixture, "eva 2", &session), ERR_NOT_FOUND);
	sign_in(fixture, "eva@example.org", "eva 3"); /* she has another account */
	assert_int_equal(find(fixture, "eva 3", &session), OK);
	assert_string_equal(session.chosen->account_id, fixture->other_id);
	assert_int_equal(store_remove_user(store, account, "eva@example.org", NOW, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_remove_user(store, slice_of(fixture->other_id), "eva@example.org", NOW,
	                                   &fixture->error),
	                 OK);
	assert_int_equal(link_for(fixture, "eva@example.org", "x", NULL, 0), ERR_NOT_FOUND);
}

static int choose(struct fixture *fixture, const char *cookie, const char *account_id)
{
	struct sha256 digest = secret(cookie);
	return store_choose_account(fixture->sample.store, &digest, slice_of(account_id), NULL);
}

TEST_CASE_ON(owners_of_one_account_end_nothing_in_another, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct slice other = slice_of(fixture->other_id);
	struct session_view session;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "mallory@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "ana@example.org", ROLE_READER);
	sign_in(fixture, "ana@example.org", "here");
	sign_in(fixture, "ana@example.org", "there");
	assert_int_equal(choose(fixture, "there", fixture->other_id), OK);
	/* The role that she already has. */
	assert_int_equal(store_change_role(store, other, "ana@example.org", ROLE_READER, NOW, NULL),
	                 OK);
	assert_int_equal(find(fixture, "there", &session), OK);
	assert_int_equal(store_change_role(store, other, "ana@example.org", ROLE_DEVELOPER, NOW, NULL),
	                 OK);
	assert_int_equal(find(fixture, "there", &session), ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "here", &session), OK);
	assert_int_equal(choose(fixture, "here", fixture->other_id), OK);
	assert_int_equal(find(fixture, "here", &session), OK);
	assert_int_equal(session.chosen->role, ROLE_DEVELOPER); /* the current role */
	assert_int_equal(choose(fixture, "here", fixture->sample.account_id), OK);
	assert_int_equal(store_remove_user(store, other, "ana@example.org", NOW, NULL), OK);
	assert_int_equal(find(fixture, "here", &session), OK);
	assert_int_equal(session.membership_count, 1);
	assert_string_equal(session.chosen->account_id, fixture->sample.account_id);
}

TEST_CASE_ON(the_last_owner_stays, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct slice account = slice_of(fixture->sample.account_id);
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->sample.account_id, "eva@example.org", ROLE_READER);
	invite(fixture, fixture->other_id, "eva@example.org", ROLE_OWNER);
	assert_int_equal(store_remove_user(store, account, "ana@example.org", NOW, &fixture->error),
	                 ERR_REFUSED);
	assert_int_equal(fixture->error.message, MSG_STORE_LAST_OWNER);
	assert_int_equal(store_change_role(store, account, "ana@example.org", ROLE_READER, NOW, NULL),
	                 ERR_REFUSED);
	assert_int_equal(store_change_role(store, account, "ana@example.org", ROLE_OWNER, NOW, NULL),
	                 OK);
	assert_int_equal(store_change_role(store, account, "eva@example.org", ROLE_OWNER, NOW, NULL),
	                 OK);
	assert_int_equal(store_remove_user(store, account, "ana@example.org", NOW, NULL), OK);
	assert_int_equal(store_remove_user(store, account, "eva@example.org", NOW, NULL), ERR_REFUSED);
}

static struct store *open_other_node(struct fixture *fixture)
{
	struct store *other = fixture->sample.store;
	if (server_url)
		assert_int_equal(store_open(&(struct db_options){.url = fixture->sample.url}, &other, NULL),
		                 OK);
	return other;
}

struct removal {
	struct fixture *fixture;
	struct store *store; /* on one of two nodes */
	pthread_barrier_t *start;
	const char *email;
	bool by_role;
	int result;
};

/* Like an urgent operation: on a connection that waits for no other writer. Role 0: none. */
static int change_urgently(struct store *store, struct act *act, const char *account_id,
                           const char *email, enum role role)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	act->operation = "user remove";
	act->arena = &arena;
	act->urgent = true;
	struct store *acting = store_audited(store, act);
	int result = role ? store_change_role(acting, slice_of(account_id), email, role, NOW, NULL)
	                  : store_remove_user(acting, slice_of(account_id), email, NOW, NULL);
	store_audited_end(acting);
	return result;
}

static void *remove_one(void *argument)
{
	struct removal *removal = argument;
	struct actor actor = {.via = "console", .node = "here"};
	struct act act = {.by = &actor};
	pthread_barrier_wait(removal->start);
	removal->result = change_urgently(removal->store, &act, removal->fixture->sample.account_id,
	                                  removal->email, removal->by_role ? ROLE_READER : 0);
	return NULL;
}

TEST_CASE_ON(of_two_last_owners_who_go_at_once_one_stays, struct fixture *fixture)
{
	struct store *other = open_other_node(fixture);
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, 2);
	for (int round = 0; round < 20; round++) {
		(void)!invite_as(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER, 0);
		(void)!invite_as(fixture, fixture->sample.account_id, "eva@example.org", ROLE_OWNER, 0);
		struct slice account = slice_of(fixture->sample.account_id);
		assert_int_equal(store_change_role(fixture->sample.store, account, "ana@example.org",
		                                   ROLE_OWNER, NOW, NULL),
		                 OK);
		assert_int_equal(store_change_role(fixture->sample.store, account, "eva@example.org",
		                                   ROLE_OWNER, NOW, NULL),
		                 OK);
		struct removal removals[] = {
			{fixture, fixture->sample.store, &start, "ana@example.org", round % 2, 0},
			{fixture, other, &start, "eva@example.org", round % 3 == 0, 0}};
		pthread_t threads[2];
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, remove_one, &removals[i]), 0);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		int first = removals[0].result, second = removals[1].result;
		assert_true((!first && second == ERR_REFUSED) || (!second && first == ERR_REFUSED));
	}
	pthread_barrier_destroy(&start);
	if (server_url)
		store_close(other);
}

/* An owner who removes another owner, as done through the console. */
struct owner {
	struct fixture *fixture;
	struct store *store; /* on one of two nodes */
	struct session_view session;
	const char *other;
	pthread_barrier_t *start; /* NULL: start immediately */
	bool by_role;
	int result;
};

static struct owner make_owner(struct fixture *fixture, struct store *store, const char *email,
                               const char *other)
{
	static int sessions;
	struct owner owner = {.fixture = fixture, .store = store, .other = other};
	struct slice account = slice_of(fixture->sample.account_id);
	char cookie[32];
	snprintf(cookie, sizeof cookie, "session %d", sessions++);
	(void)!invite_as(fixture, fixture->sample.account_id, email, ROLE_OWNER, 0);
	assert_int_equal(
		store_change_role(fixture->sample.store, account, email, ROLE_OWNER, NOW, NULL), OK);
	sign_in(fixture, email, cookie);
	assert_int_equal(find(fixture, cookie, &owner.session), OK);
	return owner;
}

static void *remove_other(void *argument)
{
	struct owner *owner = argument;
	const char *account_id = owner->fixture->sample.account_id;
	struct actor actor = {.via = "console",
	                      .node = "here",
	                      .user_id = owner->session.user_id,
	                      .email = owner->session.email,
	                      .address = "192.0.2.1"};
	struct audit_authorization authorization = {
		.session_id = owner->session.session_id, .account_id = account_id, .role = "owner"};
	struct act act = {.by = &actor, .authorization = &authorization};
	if (owner->start)
		pthread_barrier_wait(owner->start);
	owner->result = change_urgently(owner->store, &act, account_id, owner->other,
	                                owner->by_role ? ROLE_READER : 0);
	return NULL;
}

TEST_CASE_ON(of_two_owners_who_remove_each_other_one_stays, struct fixture *fixture)
{
	struct store *other = open_other_node(fixture);
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, 2);
	invite(fixture, fixture->sample.account_id, "ivo@example.org", ROLE_OWNER);
	for (int round = 0; round < 20; round++) {
		struct owner owners[] = {
			make_owner(fixture, fixture->sample.store, "ana@example.org", "eva@example.org"),
			make_owner(fixture, other, "eva@example.org", "ana@example.org")};
		pthread_t threads[2];
		owners[0].by_role = round % 2;
		owners[1].by_role = round % 3 == 0;
		for (int i = 0; i < 2; i++) {
			owners[i].start = &start;
			assert_int_equal(pthread_create(&threads[i], NULL, remove_other, &owners[i]), 0);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		int first = owners[0].result, second = owners[1].result;
		assert_true((!first && second == ERR_FORBIDDEN) || (!second && first == ERR_FORBIDDEN));
	}
	pthread_barrier_destroy(&start);
	if (server_url)
		store_close(other);
}

static void remove_meanwhile(void *context)
{
	remove_other(context);
}

/* Only on a server do two nodes write concurrently. */
TEST_CASE_ON(who_was_removed_before_the_owners_were_locked_removes_nobody, struct fixture *fixture)
{
	if (!server_url)
		skip();
	struct store *other = open_other_node(fixture);
	invite(fixture, fixture->sample.account_id, "ivo@example.org", ROLE_OWNER);
	for (int by_role = 0; by_role < 2; by_role++) {
		struct owner ana =
			make_owner(fixture, fixture->sample.store, "ana@example.org", "eva@example.org");
		struct owner eva = make_owner(fixture, other, "eva@example.org", "ana@example.org");
		eva.by_role = by_role;
		meanwhile.happens = remove_meanwhile;
		meanwhile.context = &ana;
		meanwhile.before = OWNERS_LOCKED;
		remove_other(&eva);
		assert_int_equal(ana.result, OK);
		assert_int_equal(eva.result, ERR_FORBIDDEN);
	}
	store_close(other);
}

TEST_CASE_ON(who_was_removed_meanwhile_revokes_no_key, struct fixture *fixture)
{
	if (!server_url)
		skip();
	struct store *other = open_other_node(fixture);
	char key_id[ID_SIZE];
	int64_t revoked_at_us = 0;
	sample_add_key(&fixture->sample, MODE_LIVE, "a key", key_id);
	struct owner eva = make_owner(fixture, other, "eva@example.org", "ana@example.org");
	struct owner ana = make_owner(fixture, fixture->sample.store, "ana@example.org", NULL);
	struct actor actor = {.via = "console",
	                      .node = "here",
	                      .user_id = ana.session.user_id,
	                      .email = ana.session.email,
	                      .address = "192.0.2.1"};
	struct audit_authorization authorization = {.session_id = ana.session.session_id,
	                                            .account_id = fixture->sample.account_id,
	                                            .role = "owner"};
	struct act act = {.by = &actor,
	                  .authorization = &authorization,
	                  .operation = "key revoke",
	                  .arena = &fixture->arena,
	                  .urgent = true};
	struct store *acting = store_audited(fixture->sample.store, &act);
	meanwhile.happens = remove_meanwhile;
	meanwhile.context = &eva;
	meanwhile.before = "UPDATE api_keys";
	assert_int_equal(store_revoke_key(acting, slice_of(key_id), NULL, NOW, &revoked_at_us, NULL),
	                 ERR_FORBIDDEN);
	store_audited_end(acting);
	assert_int_equal(eva.result, OK);
	store_close(other);
}

/* An operation of several transactions, such as a replay of many notices. */
TEST_CASE_ON(who_was_removed_meanwhile_goes_on_with_nothing, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	char key_ids[2][ID_SIZE];
	int64_t revoked_at_us = 0;
	for (int i = 0; i < 2; i++)
		sample_add_key(&fixture->sample, MODE_LIVE, i ? "a key" : "another", key_ids[i]);
	struct owner eva = make_owner(fixture, store, "eva@example.org", "ana@example.org");
	struct owner ana = make_owner(fixture, store, "ana@example.org", NULL);
	struct actor actor = {.via = "console",
	                      .node = "here",
	                      .user_id = ana.session.user_id,
	                      .email = ana.session.email,
	                      .address = "192.0.2.1"};
	struct audit_authorization authorization = {.session_id = ana.session.session_id,
	                                            .account_id = fixture->sample.account_id,
	                                            .role = "owner"};
	struct act act = {.by = &actor,
	                  .authorization = &authorization,
	                  .operation = "webhook replay",
	                  .arena = &fixture->arena};
	struct store *acting = store_audited(store, &act);
	assert_int_equal(store_write_audit_record(acting, AUDIT_DONE, NULL, NULL, NULL), OK);
	assert_int_equal(
		store_revoke_key(acting, slice_of(key_ids[0]), NULL, NOW, &revoked_at_us, NULL), OK);
	remove_other(&eva);
	assert_int_equal(eva.result, OK);
	assert_int_equal(
		store_revoke_key(acting, slice_of(key_ids[1]), NULL, NOW, &revoked_at_us, NULL),
		ERR_FORBIDDEN);
	store_audited_end(acting);
	assert_int_equal(
		store_revoke_key(store, slice_of(key_ids[1]), NULL, LATER, &revoked_at_us, NULL), OK);
	assert_int_equal(revoked_at_us, LATER);
}

/* ---- forms ---- */

/* Sends a form as the console does, with an operation that does nothing else. */
static int send_form(struct fixture *fixture, const char *number, bool urgent, bool behind,
                     struct submitted_form *form)
{
	struct actor actor = {.via = "console", .node = "here"};
	struct act act = {.by = &actor,
	                  .form = form,
	                  .operation = "key revoke",
	                  .arena = &fixture->arena,
	                  .urgent = urgent};
	const char *text =
		arena_printf(&fixture->arena, "{\"account\":\"%s\"}", fixture->sample.account_id);
	*form = (struct submitted_form){.digest = secret(number)};
	assert_int_equal(json_parse(&fixture->arena, slice_of(text), NULL, &act.arguments, NULL), OK);
	struct store *acting = store_audited(fixture->sample.store, &act);
	int result = behind ? store_authorize_operation(acting, NULL) : OK;
	if (!result && strcmp(number, "cut off") != 0)
		result = store_write_audit_record(acting, AUDIT_DONE, NULL, NULL, &fixture->error);
	store_audited_end(acting);
	if (!result && act.recorded)
		memcpy(form->act_id, act.act_id, ID_SIZE);
	return result;
}

static int change_as_operator(struct fixture *fixture, struct store *store, const char *email,
                              enum role role)
{
	struct actor actor = {.via = "socket", .node = "here"};
	struct act act = {.by = &actor};
	return change_urgently(store, &act, fixture->sample.account_id, email, role);
}

static void eva_follows_ana(void *context)
{
	struct owner *changes = context;
	struct store *store = changes->store;
	changes->result = change_as_operator(changes->fixture, store, "eva@example.org", ROLE_OWNER);
	if (!changes->result)
		changes->result = change_as_operator(changes->fixture, store, "ana@example.org", 0);
}

TEST_CASE_ON(who_became_the_last_owner_meanwhile_stays, struct fixture *fixture)
{
	if (!server_url)
		skip();
	struct store *other = open_other_node(fixture);
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->sample.account_id, "eva@example.org", ROLE_READER);
	struct owner changes = {.fixture = fixture, .store = other};
	meanwhile.happens = eva_follows_ana;
	meanwhile.context = &changes;
	meanwhile.before = OWNERS_LOCKED;
	assert_int_equal(change_as_operator(fixture, fixture->sample.store, "eva@example.org", 0),
	                 ERR_REFUSED);
	assert_int_equal(changes.result, OK);
	store_close(other);
}

TEST_CASE_ON(what_a_form_did_is_done_once, struct fixture *fixture)
{
	struct submitted_form first, again;
	for (int i = 0; i < 3; i++) {
		bool urgent = i == 1, behind = i == 2;
		const char *number = urgent ? "urgent" : behind ? "behind" : "plain";
		assert_int_equal(send_form(fixture, number, urgent, behind, &first), OK);
		assert_false(first.repeated);
		assert_int_equal(send_form(fixture, number, urgent, behind, &again), ERR_CONFLICT);
		assert_true(again.repeated);
		assert_string_equal(again.act_id, first.act_id);
		assert_int_equal(send_form(fixture, arena_printf(&fixture->arena, "%s 2", number), urgent,
		                           behind, &again),
		                 OK);
	}
}

TEST_CASE_ON(a_form_of_which_nothing_is_known_yet_does_nothing_again, struct fixture *fixture)
{
	struct submitted_form form;
	assert_int_equal(send_form(fixture, "cut off", false, true, &form), OK);
	assert_int_equal(send_form(fixture, "cut off", false, true, &form), ERR_CONFLICT);
	assert_true(form.repeated);
	assert_string_equal(form.act_id, "");
}

TEST_CASE_ON(forms_are_forgotten, struct fixture *fixture)
{
	struct submitted_form form;
	assert_int_equal(send_form(fixture, "old", false, false, &form), OK);
	int64_t now_us = store_now_us(fixture->sample.store);
	assert_int_equal(store_remove_old_forms(fixture->sample.store, now_us - US_PER_DAY, NULL), OK);
	assert_int_equal(send_form(fixture, "old", false, false, &form), ERR_CONFLICT);
	assert_int_equal(store_remove_old_forms(fixture->sample.store, now_us + US_PER_DAY, NULL), OK);
	assert_int_equal(send_form(fixture, "old", false, false, &form), OK);
}

/* Locked as by a commit that waits for its standby. */
TEST_CASE_ON(what_is_noted_of_a_user_waits_for_no_row, struct fixture *fixture)
{
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	sign_in(fixture, "ana@example.org", "c");
	struct store *store = fixture->sample.store, *other = open_other_node(fixture);
	struct sha256 cookie = secret("c");
	struct session_view session;
	assert_int_equal(find(fixture, "c", &session), OK);
	if (server_url) {
		struct db_connection *holder = db_take_writer(other->db);
		assert_int_equal(db_begin(holder, NULL), OK);
		int64_t held = 0; /* the query forces the lock to be taken now */
		assert_int_equal(
			db_execute(db_query(holder, "UPDATE sessions SET by_passkey = 1"), &held, NULL), OK);
		assert_int_equal(
			db_execute(db_query(holder, "UPDATE memberships SET role = 'reader'"), &held, NULL),
			OK);
		assert_int_equal(store_touch_session(store, &cookie, LATER, NULL), OK);
		assert_int_equal(
			store_mark_worked_in(store, session.user_id, fixture->sample.account_id, NULL), OK);
		db_give(holder);
		store_close(other);
		assert_int_equal(find(fixture, "c", &session), OK);
		assert_int_equal(session.seen_at_us, NOW);
		assert_int_equal(session.chosen->seen_at_us, TIME_NONE);
		assert_false(session.chosen->taken_up);
	}
	assert_int_equal(store_touch_session(store, &cookie, LATER, NULL), OK);
	assert_int_equal(store_mark_worked_in(store, session.user_id, fixture->sample.account_id, NULL),
	                 OK);
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_int_equal(session.seen_at_us, LATER);
	assert_int_equal(session.chosen->seen_at_us, LATER);
	assert_true(session.chosen->taken_up);
	assert_int_equal(store_touch_session(store, &cookie, NOW, NULL), OK);
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_int_equal(session.seen_at_us, LATER);
	assert_int_equal(session.chosen->seen_at_us, LATER);
}

TEST_CASE_ON(what_ran_out_is_forgotten, struct fixture *fixture)
{
	struct session_view session;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	sign_in(fixture, "ana@example.org", "c");
	assert_int_equal(link_for(fixture, "ana@example.org", "l", "b", 1), OK);
	assert_int_equal(store_remove_old_sessions(fixture->sample.store, NOW, NOW, NULL), OK);
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_int_equal(take(fixture, "l", "b", NULL, "d", NOW), OK);
	assert_int_equal(store_remove_old_sessions(fixture->sample.store, LATER + 1, LATER + 1, NULL),
	                 OK);
	assert_int_equal(find(fixture, "c", &session), ERR_NOT_FOUND);
	assert_int_equal(link_for(fixture, "ana@example.org", "m", "b", 1), OK);
}

static int64_t last_seen(struct fixture *fixture, const char *account_id)
{
	struct user_list list;
	assert_int_equal(
		store_list_users(fixture->sample.store, slice_of(account_id), &fixture->arena, &list, NULL),
		OK);
	assert_int_equal(list.count, 1);
	return list.items[0].seen_at_us;
}

TEST_CASE_ON(when_somebody_was_seen_outlasts_his_sessions, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	const char *here = fixture->sample.account_id;
	struct sha256 cookie = secret("c");
	struct session_view session;
	invite(fixture, here, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "ana@example.org", ROLE_READER);
	assert_int_equal(last_seen(fixture, here), TIME_NONE);
	sign_in(fixture, "ana@example.org", "c");
	assert_int_equal(store_choose_account(store, &cookie, slice_of(here), NULL), OK);
	assert_int_equal(last_seen(fixture, here), NOW);
	assert_int_equal(store_touch_session(store, &cookie, NOW + HOUR, NULL), OK);
	assert_int_equal(last_seen(fixture, here), NOW + HOUR);
	assert_int_equal(last_seen(fixture, fixture->other_id), TIME_NONE);
	assert_int_equal(store_remove_old_sessions(store, NOW + 24 * HOUR, NOW, NULL), OK);
	assert_int_equal(find(fixture, "c", &session), ERR_NOT_FOUND);
	assert_int_equal(last_seen(fixture, here), NOW + HOUR);
	assert_int_equal(last_seen(fixture, fixture->other_id), TIME_NONE);
}

/* ---- audit log ---- */

static size_t list_records(struct fixture *fixture, const char *account_id, const char *operation,
                           struct audit_record **ret)
{
	struct audit_record_list list;
	const struct audit_filter filter = {.account_id = slice_of(account_id),
	                                    .operation = slice_of(operation),
	                                    .since_us = TIME_NONE,
	                                    .until_us = TIME_NONE,
	                                    .order = ORDER_ASCENDING,
	                                    .limit = 10};
	assert_int_equal(
		store_list_audit_records(fixture->sample.store, &filter, &fixture->arena, &list, NULL), OK);
	*ret = list.items;
	return list.count;
}

static bool says(const struct audit_record *act, const char *words)
{
	return memmem(act->document.data, act->document.size, words, strlen(words)) != NULL;
}

TEST_CASE_ON(signing_in_and_out_is_audited, struct fixture *fixture)
{
	const char *here = fixture->sample.account_id, *there = fixture->other_id;
	struct audit_record *acts;
	struct session_view session;
	invite(fixture, here, "ana@example.org", ROLE_OWNER);
	invite(fixture, there, "eva@example.org", ROLE_READER);
	sign_in(fixture, "ana@example.org", "a");
	assert_int_equal(find(fixture, "a", &session), OK);
	assert_string_equal(session.signed_in_by, BY_OPERATOR_LINK);
	assert_int_equal(list_records(fixture, here, "sign in", &acts), 1);
	assert_true(says(&acts[0], "\"email\":\"ana@example.org\""));
	assert_true(says(&acts[0], "\"address\":\"192.0.2.1\""));
	assert_true(says(&acts[0], "\"signed_in_by\":\"operator_link\""));
	assert_true(says(&acts[0], session.session_id));
	assert_true(says(&acts[0], "\"urgent\":false"));
	/* Another user then signs in with the same browser, for another account. */
	assert_int_equal(link_for(fixture, "eva@example.org", "of eva", "browser", 0), OK);
	assert_int_equal(take(fixture, "of eva", "browser", "a", "e", NOW), OK);
	assert_int_equal(list_records(fixture, here, "sign out", &acts), 1);
	assert_true(says(&acts[0], "\"email\":\"ana@example.org\""));
	assert_true(says(&acts[0], session.session_id));
	assert_int_equal(list_records(fixture, there, "sign in", &acts), 1);
	assert_true(says(&acts[0], "\"signed_in_by\":\"link\""));
	for (int i = 0; i < 2; i++)
		assert_int_equal(leave(fixture, "e"), OK);
	assert_int_equal(list_records(fixture, there, "sign out", &acts), 1);
	assert_true(says(&acts[0], "\"address\":\"192.0.2.9\""));
	assert_true(says(&acts[0], "\"urgent\":true")); /* does not wait for a standby */
	assert_int_equal(list_records(fixture, here, "sign in", &acts), 1);
}

TEST_CASE_ON(the_operators_acts_on_a_user_are_on_each_of_his_accounts, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct actor actor = {.via = "socket", .node = "here"};
	struct act act = {.by = &actor, .operation = "user link", .arena = &fixture->arena};
	struct link_grant grant = {.email = "ana@example.org",
	                           .link = secret("l"),
	                           .asked = "operator",
	                           .now_us = NOW,
	                           .expires_at_us = LATER};
	struct audit_record *acts;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->other_id, "ana@example.org", ROLE_READER);
	struct store *acting = store_audited(store, &act);
	assert_int_equal(store_make_link(acting, &grant, NULL), OK);
	store_audited_end(acting);
	assert_int_equal(list_records(fixture, "", "user link", &acts), 2);
	const char *accounts[] = {fixture->sample.account_id, fixture->other_id};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(list_records(fixture, accounts[i], "user link", &acts), 1);
		assert_true(says(&acts[0], accounts[i]));
		assert_false(says(&acts[0], accounts[1 - i]));
		assert_false(says(&acts[0], "usr_"));
	}
}

/* ---- passkeys ---- */

static struct passkey_record passkey_of(const struct session_view *session, const char *id)
{
	struct passkey_record record = {.credential_id = slice_of(id),
	                                .algorithm = -7,
	                                .public_key = slice_make("\0\1key", 5),
	                                .sign_count = 3,
	                                .name = "my phone"};
	memcpy(record.user_id, session->user_id, ID_SIZE);
	return record;
}

static int use(struct fixture *fixture, const struct passkey_record *known, int64_t count,
               const char *cookie)
{
	struct session_start start = {
		.cookie = secret(cookie), .address = "", .agent = "", .node = "here", .now_us = NOW};
	return store_use_passkey(fixture->sample.store, known, count, &start, NULL);
}

TEST_CASE_ON(a_challenge_counts_once_in_time, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct sha256 one = secret("one"), other = secret("other");
	uint8_t first[CHALLENGE_SIZE] = "first", second[CHALLENGE_SIZE] = "second";
	uint8_t got[CHALLENGE_SIZE];
	assert_int_equal(store_set_challenge(store, &one, first, NOW, NULL), OK);
	assert_int_equal(store_set_challenge(store, &one, second, NOW, NULL), OK);
	assert_int_equal(store_take_challenge(store, &other, 0, got, NULL), ERR_NOT_FOUND);
	assert_int_equal(store_take_challenge(store, &one, NOW - 1, got, NULL), OK);
	assert_memory_equal(got, second, sizeof got);
	assert_int_equal(store_take_challenge(store, &one, NOW - 1, got, NULL), ERR_NOT_FOUND);
	assert_int_equal(store_set_challenge(store, &one, first, NOW, NULL), OK);
	assert_int_equal(store_take_challenge(store, &one, NOW, got, NULL), ERR_NOT_FOUND);
	assert_int_equal(store_take_challenge(store, &one, 0, got, NULL), ERR_NOT_FOUND);
}

TEST_CASE_ON(a_passkey_is_kept_and_signs_in, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct session_view session;
	struct passkey_record found;
	struct passkey_list list;
	char id[ID_SIZE];
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	invite(fixture, fixture->sample.account_id, "eva@example.org", ROLE_READER);
	sign_in(fixture, "ana@example.org", "c");
	sign_in(fixture, "eva@example.org", "eva");
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_false(session.by_passkey);
	struct passkey_record given = passkey_of(&session, "cred");
	struct sha256 cookie = secret("c"), of_eva = secret("eva");
	assert_int_equal(store_add_passkey(store, &given, &of_eva, NULL, NOW, id, NULL), ERR_NOT_FOUND);
	assert_int_equal(store_add_passkey(store, &given, &cookie, NULL, NOW, id, NULL), OK);
	assert_int_equal(store_add_passkey(store, &given, &cookie, NULL, NOW, id, NULL), ERR_REFUSED);
	assert_int_equal(find(fixture, "c", &session), OK);
	assert_true(session.by_passkey);
	assert_int_equal(session.passkeys, 1);
	assert_int_equal(store_find_passkey(store, slice_of("no"), &fixture->arena, &found, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_find_passkey(store, slice_of("cred"), &fixture->arena, &found, NULL),
	                 OK);
	assert_true(slice_equal(found.public_key, given.public_key));
	assert_string_equal(found.user_id, session.user_id);
	assert_int_equal(found.algorithm, -7);
	assert_int_equal(found.sign_count, 3);
	assert_int_equal(use(fixture, &found, 4, "d"), OK);
	assert_int_equal(use(fixture, &found, 5, "e"), ERR_NOT_FOUND); /* its count has changed */
	assert_int_equal(find(fixture, "e", &session), ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "d", &session), OK);
	assert_true(session.by_passkey);
	assert_int_equal(store_list_passkeys(store, "ana@example.org", &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].sign_count, 4);
	struct slice named = slice_of(list.items[0].passkey_id);
	assert_int_equal(store_remove_passkey(store, named, "eva@example.org", false, NOW, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_remove_passkey(store, named, "ana@example.org", false, NOW, NULL), OK);
	assert_int_equal(find(fixture, "d", &session), ERR_NOT_FOUND);
	assert_int_equal(find(fixture, "eva", &session), OK);
	assert_int_equal(store_list_passkeys(store, "ana@example.org", &fixture->arena, &list, NULL),
	                 OK);
	assert_int_equal(list.count, 0);
	for (int i = 0; i < PASSKEYS_OF_USER_MAX; i++) {
		char credential[16];
		snprintf(credential, sizeof credential, "cred %d", i);
		given = passkey_of(&session, credential);
		assert_int_equal(store_add_passkey(store, &given, &of_eva, NULL, NOW, id, NULL), OK);
	}
	given = passkey_of(&session, "one too many");
	assert_int_equal(store_add_passkey(store, &given, &of_eva, NULL, NOW, id, &fixture->error),
	                 ERR_REFUSED);
	assert_int_equal(fixture->error.message, MSG_STORE_PASSKEYS_FULL);
}

TEST_CASE_ON(an_account_says_that_it_asks_for_passkeys, struct fixture *fixture)
{
	struct session_view session;
	struct account_change change = ACCOUNT_UNCHANGED;
	invite(fixture, fixture->sample.account_id, "ana@example.org", ROLE_OWNER);
	sign_in(fixture, "ana@example.org", "c");
	for (int required = 1; required >= 0; required--) {
		change.passkeys_required = required;
		assert_int_equal(store_change_account(fixture->sample.store,
		                                      slice_of(fixture->sample.account_id), &change, NOW,
		                                      NULL),
		                 OK);
		assert_int_equal(find(fixture, "c", &session), OK);
		assert_int_equal(session.chosen->passkeys_required, required);
	}
}

int main(int argc, char **argv)
{
	server_url = argc > 1 ? argv[1] : NULL;
	return tests_run(NULL, NULL, set_up, tear_down);
}
