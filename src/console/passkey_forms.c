#include "console/passkey_forms.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_throttle.h"
#include "console/webauthn.h"
#include "pages_made.h"
#include "service/settings.h"

#define ADD "/passkeys/add"
#define PAGE "/passkeys"

static int read_party(const struct visit *visit, struct webauthn_party *ret, struct error *error)
{
	return webauthn_party_read(visit->admin->service->settings->service_public_url, ret, error);
}

const char *passkeys_origin(const struct visit *visit)
{
	struct webauthn_party party;
	return read_party(visit, &party, NULL) ? NULL : arena_text(visit->arena, party.origin);
}

/* ---- challenges ---- */

/* Returns the cookie to which the challenge is bound. */
static struct slice holder(const struct visit *visit)
{
	return visit->signed_in ? visit->session_cookie : visit->browser_cookie;
}

static void put_bytes(struct json_writer *writer, const char *name, const void *bytes, size_t size)
{
	char text[WEBAUTHN_TEXT_SIZE(WEBAUTHN_ID_MAX)];
	webauthn_encode(bytes, size, text);
	json_text(writer, name, text);
}

/* Writes the passkeys of the session's user. A device then creates no second one, and only this
 * user's passkeys can renew the sign-in. */
static int put_known(struct visit *visit, struct json_writer *writer)
{
	struct passkey_list list = {0};
	int result = OK;
	if (visit->signed_in)
		result = store_list_passkeys(visit->admin->store, visit->session.email, visit->arena, &list,
		                             visit->error);
	json_begin_array(writer, "known");
	for (size_t i = 0; i < list.count && !result; i++)
		put_bytes(writer, NULL, list.items[i].credential_id.data, list.items[i].credential_id.size);
	json_end_array(writer);
	return result;
}

static int put_asked(struct visit *visit, const struct webauthn_party *party,
                     const uint8_t challenge[CHALLENGE_SIZE], struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	put_bytes(&writer, "challenge", challenge, CHALLENGE_SIZE);
	json_text(&writer, "party", party->id);
	json_text(&writer, "service", visit->admin->service->settings->service_name);
	if (visit->signed_in) {
		put_bytes(&writer, "user", visit->session.user_id, strlen(visit->session.user_id));
		json_text(&writer, "email", visit->session.email);
	}
	int result = put_known(visit, &writer);
	json_end_object(&writer);
	return result ? result : buf_check(out);
}

int passkey_challenge(struct visit *visit)
{
	struct webauthn_party party;
	uint8_t challenge[CHALLENGE_SIZE];
	bool makes = slice_is(fields_get(&visit->form, "ceremony"), "create");
	int result = read_party(visit, &party, visit->error);
	/* Checked first, so that no passkey is created on a device and then refused. */
	if (!result && makes &&
	    !(visit->signed_in && user_auth_is_recent(&visit->session, visit->now_us)))
		result = error_set(visit->error, ERR_SIGN_IN, MSG_NONE, NULL);
	if (!result)
		result = user_auth_create_challenge(visit->admin->service, holder(visit), challenge,
		                                    visit->error);
	if (!result)
		result = put_asked(visit, &party, challenge, visit->out);
	if (!result) {
		visit->answer->status = 200;
		visit->answer->type = "application/json";
	}
	return result;
}

/* ---- responses ---- */

static int refuse(struct visit *visit, const char *why)
{
	error_clear(visit->error);
	error_cause(visit->error, ERR_REFUSED, "passkey: %s", why);
	return error_set(visit->error, ERR_REFUSED, MSG_USER_BAD_PASSKEY, NULL);
}

/* Takes the challenge first, so that it is used once regardless of the result. */
static int take_challenge(struct visit *visit, uint8_t challenge[CHALLENGE_SIZE])
{
	int result =
		user_auth_take_challenge(visit->admin->service, holder(visit), challenge, visit->error);
	return result == ERR_NOT_FOUND ? refuse(visit, "no challenge was sent to this browser")
	                               : result;
}

static int read_bytes(struct visit *visit, const char *name, size_t size_max, struct slice *ret)
{
	size_t size = 0;
	char *bytes = arena_alloc(visit->arena, size_max);
	if (!bytes)
		return ERR_NO_MEMORY;
	if (!webauthn_decode(fields_get(&visit->form, name), bytes, size_max, &size))
		return refuse(visit, "a field is not valid base64url");
	*ret = slice_make(bytes, size);
	return OK;
}

struct handed {
	struct webauthn_party party;
	uint8_t challenge[CHALLENGE_SIZE];
	struct slice client_data, authenticator_data;
};

static int read_handed(struct visit *visit, struct handed *ret)
{
	int result = take_challenge(visit, ret->challenge);
	if (!result)
		result = read_party(visit, &ret->party, visit->error);
	if (!result)
		result = read_bytes(visit, "client_data", WEBAUTHN_CLIENT_DATA_MAX, &ret->client_data);
	if (!result)
		result = read_bytes(visit, "authenticator_data", WEBAUTHN_AUTHENTICATOR_DATA_MAX,
		                    &ret->authenticator_data);
	return result;
}

static struct slice challenge_of(const struct handed *handed)
{
	return slice_make(handed->challenge, sizeof handed->challenge);
}

/* ---- sign-in ---- */

/* Checks the user. A session can be renewed only by its own user. Without a session, only the
 * passkey identifies the user, so the response must contain the user handle. */
static int check_user(struct visit *visit, const struct passkey_record *known)
{
	struct slice user = {0};
	int result = read_bytes(visit, "user", ID_SIZE, &user);
	if (result)
		return result;
	if (visit->signed_in && strcmp(known->user_id, visit->session.user_id) != 0)
		return refuse(visit, "the passkey belongs to another user");
	bool fits = user.size ? slice_is(user, known->user_id) : visit->signed_in;
	return fits ? OK : refuse(visit, "the user handle differs from the owner of the passkey");
}

static int find_known(struct visit *visit, struct passkey_record *ret)
{
	struct slice id = {0};
	int result = read_bytes(visit, "credential", WEBAUTHN_ID_MAX, &id);
	if (!result)
		result = store_find_passkey(visit->admin->store, id, visit->arena, ret, visit->error);
	if (result == ERR_NOT_FOUND)
		return refuse(visit, "the passkey is unknown");
	return result ? result : check_user(visit, ret);
}

static int verify(struct visit *visit, struct passkey_record *ret_known, uint32_t *ret_count)
{
	struct handed handed;
	struct slice signature = {0};
	int result = read_handed(visit, &handed);
	if (!result)
		result = find_known(visit, ret_known);
	if (!result)
		result = read_bytes(visit, "signature", WEBAUTHN_SIGNATURE_MAX, &signature);
	if (result)
		return result;
	struct webauthn_credential credential = {.algorithm = ret_known->algorithm,
	                                         .public_key_size = ret_known->public_key.size,
	                                         .sign_count = (uint32_t)ret_known->sign_count};
	if (ret_known->public_key.size > sizeof credential.public_key)
		return error_cause(visit->error, ERR_CORRUPT, "passkey %s has no key",
		                   ret_known->passkey_id);
	memcpy(credential.public_key, ret_known->public_key.data, ret_known->public_key.size);
	return webauthn_verify(&handed.party, challenge_of(&handed), &credential, handed.client_data,
	                       handed.authenticator_data, signature, ret_count, visit->error);
}

static int show_refusal(struct visit *visit, int result)
{
	const struct template *page = visit->signed_in ? &page_again : &page_sign_in;
	static struct log_throttle pace = LOG_THROTTLE(10, 60);
	char omitted[LOG_THROTTLE_NUMBER_SIZE];
	if (log_throttle_take(&pace, clock_monotonic_us(), omitted))
		log_info("passkey_refused", "cause", error_reason(visit->error, result), "omitted",
		         omitted);
	visit->said = slice_of(error_words(visit));
	visit->answer->code = result;
	return draw_page(visit, 403, page, slice_of("{}"));
}

int passkey_sign_in(struct visit *visit)
{
	struct passkey_record known;
	struct entry entry;
	uint32_t count = 0;
	int result = verify(visit, &known, &count);
	if (!result) {
		new_session_prepare(visit, &entry);
		result =
			user_auth_sign_in_passkey(visit->admin->service, &known, count, visit->session_cookie,
		                              &entry.client, entry.cookie, visit->error);
	}
	if (result == ERR_REFUSED)
		return show_refusal(visit, result);
	return result ? result : new_session_finish(visit, &entry);
}

/* ---- adding ---- */

static int add(struct visit *visit, struct slice name)
{
	struct handed handed;
	struct webauthn_credential made;
	char passkey_id[ID_SIZE];
	int result = read_handed(visit, &handed);
	if (!result)
		result = webauthn_register(&handed.party, challenge_of(&handed), handed.client_data,
		                           handed.authenticator_data, &made, visit->error);
	if (result)
		return result;
	const struct passkey_record given = {
		.credential_id = slice_make(made.id, made.id_size),
		.algorithm = made.algorithm,
		.public_key = slice_make(made.public_key, made.public_key_size),
		.sign_count = made.sign_count,
		.name = name.data,
	};
	const struct user_auth_client client = {.address = visit->request->address,
	                                        .agent = visit->request->agent};
	return user_auth_add_passkey(visit->admin->service, &visit->session, visit->session_cookie,
	                             &given, &client, passkey_id, visit->error);
}

static int say_not_added(struct visit *visit, int result)
{
	visit->said = slice_of(error_words(visit));
	visit->typed = &visit->form;
	visit->typed_form = ADD;
	visit->answer->code = result;
	error_clear(visit->error);
	return show_page(visit, error_http_status(result), page_find(visit, slice_of(PAGE)));
}

int passkey_add(struct visit *visit)
{
	struct slice name = fields_get(&visit->form, "name");
	const struct fields typed = {.items = {{slice_of("name"), name}}, .count = 1};
	if (!user_auth_is_recent(&visit->session, visit->now_us))
		return sign_in_again(visit, PAGE, &typed);
	int result = name.size ? add(visit, name)
	                       : error_set(visit->error, ERR_VALIDATION, MSG_USER_PASSKEY_NAME, NULL);
	if (result == ERR_REFUSED || result == ERR_VALIDATION || result == ERR_PASSKEY)
		return say_not_added(visit, result);
	return result ? result : visit_redirect_done(visit, PAGE, "passkey_add");
}
