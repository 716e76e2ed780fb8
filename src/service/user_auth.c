#include "service/user_auth.h"

#include <arpa/inet.h>
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/log.h"
#include "base/log_throttle.h"
#include "base/utf8.h"
#include "net/mail.h"
#include "store/audit/audit_log.h"
#include "store/notices/mails.h"

#define ADDRESS_SHOWN_MAX 64
#define AGENT_SHOWN_MAX 200
#define KEEP_US US_PER_DAY
#define VALUES_MAX ((size_t)8192)
#define NETWORK_SIZE INET6_ADDRSTRLEN

/* ---- secrets ---- */

void user_auth_new_secret(char text[USER_AUTH_SECRET_SIZE])
{
	uint8_t bytes[SHA256_SIZE];
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, text);
	explicit_bzero(bytes, sizeof bytes);
}

/* Lower case only, so that a secret has one spelling. */
bool user_auth_is_secret(struct slice text)
{
	if (text.size != USER_AUTH_SECRET_SIZE - 1)
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (!((text.data[i] >= '0' && text.data[i] <= '9') ||
		      (text.data[i] >= 'a' && text.data[i] <= 'f')))
			return false;
	return true;
}

void user_auth_form_token(struct slice cookie, char text[USER_AUTH_SECRET_SIZE])
{
	struct sha256 mac = hmac_sha256(cookie, slice_of("constancia form"));
	hex_encode(mac.bytes, sizeof mac.bytes, text);
}

bool user_auth_check_form_token(struct slice cookie, struct slice token)
{
	char right[USER_AUTH_SECRET_SIZE];
	if (!user_auth_is_secret(cookie))
		return false;
	user_auth_form_token(cookie, right);
	return constant_time_equal(slice_of(right), token);
}

static struct sha256 digest_of(struct slice secret)
{
	return sha256_of(secret.data, secret.size);
}

/* ---- asking for a link ---- */

bool user_auth_sends_mail(const struct settings *settings)
{
	return settings->mail_url && *settings->mail_url;
}

int user_auth_read_email(struct slice text, const char *field, char ret[EMAIL_SIZE],
                         struct error *error)
{
	char email[EMAIL_SIZE] = "";
	bool fits = text.size < sizeof email && !memchr(text.data ? text.data : "", '\0', text.size);
	for (size_t i = 0; fits && i < text.size; i++) {
		char c = text.data[i];
		email[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	if (!fits || !mail_address_usable(email))
		return error_set(error, ERR_VALIDATION, MSG_USER_BAD_EMAIL, field, NULL);
	memcpy(ret, email, sizeof email);
	return OK;
}

/* Normalizes an address; for IPv6, the /64, which is the smallest network of a customer. */
static void read_network(const char *address, char ret[NETWORK_SIZE])
{
	struct in6_addr six;
	struct in_addr four;
	*ret = '\0';
	if (address && inet_pton(AF_INET6, address, &six) == 1) {
		memset(six.s6_addr + 8, 0, 8);
		inet_ntop(AF_INET6, &six, ret, NETWORK_SIZE);
	} else if (address && inet_pton(AF_INET, address, &four) == 1) {
		inet_ntop(AF_INET, &four, ret, NETWORK_SIZE);
	}
}

/* Limits log messages that unknown clients, or users while the store fails, could trigger with each
 * request. */
static void log_at_pace(struct log_throttle *pace, const char *event, const struct error *error,
                        int code)
{
	char omitted[LOG_THROTTLE_NUMBER_SIZE];
	if (log_throttle_take(pace, clock_monotonic_us(), omitted))
		log_warning(event, "cause", error_reason(error, code), "omitted", omitted);
}

int user_auth_request_link(struct service *service, struct slice email, enum language language,
                           const struct link_requester *asker, struct error *error)
{
	char address[EMAIL_SIZE], network[NETWORK_SIZE];
	const struct settings *settings = service->settings;
	if (!user_auth_sends_mail(settings))
		return error_set(error, ERR_REFUSED, MSG_USER_NO_MAIL, NULL);
	int result = user_auth_read_email(email, FIELD("email"), address, error);
	if (!result && !user_auth_is_secret(asker->browser))
		result = error_cause(error, ERR_VALIDATION, "the browser has no cookie");
	if (result)
		return result;
	int64_t now_us = store_now_us(service->store);
	struct sha256 digest = digest_of(asker->browser), known = digest_of(asker->known);
	BUF_AUTO struct buf values;
	buf_init(&values, VALUES_MAX);
	struct json_writer writer = {.out = &values};
	json_begin_object(&writer, NULL);
	json_hex(&writer, "browser", digest.bytes, sizeof digest.bytes);
	if (user_auth_is_secret(asker->known))
		json_hex(&writer, "known", known.bytes, sizeof known.bytes);
	read_network(asker->address, network);
	json_text(&writer, "network", network);
	json_boolean(&writer, "in_session", asker->in_session);
	json_integer(&writer, "until", now_us + USER_AUTH_LINK_US);
	json_end_object(&writer);
	result = buf_check(&values);
	const struct link_request request = {
		.email = address,
		.language = language,
		.values = buf_slice(&values),
		.in_session = asker->in_session,
		.known = user_auth_is_secret(asker->known) ? &known : NULL,
		.network = network,
		.now_us = now_us,
	};
	if (!result)
		result = store_request_link(service->store, &request, error);
	if (result == ERR_REFUSED) {
		static struct log_throttle pace = LOG_THROTTLE(1, 60);
		log_at_pace(&pace, "sign_in_not_queued", error, result);
		error_clear(error);
		result = OK;
	}
	return result;
}

/* ---- creating a link ---- */

static int make_link(const struct settings *settings, struct store *store, struct link_grant *grant,
                     struct buf *url, struct error *error)
{
	char secret[USER_AUTH_SECRET_SIZE];
	user_auth_new_secret(secret);
	grant->link = digest_of(slice_of(secret));
	int result = store_make_link(store, grant, error);
	if (!result) {
		buf_add_text(url, settings->service_public_url);
		buf_add_text(url, USER_AUTH_LINK_PATH);
		buf_add_text(url, secret);
		result = buf_check(url);
	}
	explicit_bzero(secret, sizeof secret);
	return result;
}

int user_auth_create_operator_link(const struct settings *settings, struct store *store,
                                   const char *email, int64_t now_us, struct buf *url,
                                   int64_t *ret_expires_at_us, struct error *error)
{
	struct link_grant grant = {.email = email,
	                           .asked = "operator",
	                           .now_us = now_us,
	                           .expires_at_us = now_us + USER_AUTH_LINK_US};
	int result = make_link(settings, store, &grant, url, error);
	if (!result)
		*ret_expires_at_us = grant.expires_at_us;
	return result;
}

static int sign_in_values(struct service *service, const struct mail *mail, struct arena *arena,
                          const char **ret_values, struct error *error)
{
	struct json *json;
	struct slice browser = {0}, kept = {0}, network = {0};
	struct sha256 digest, known;
	struct link_grant grant = {.email = mail->recipient,
	                           .browser = &digest,
	                           .asked = mail->mail_id,
	                           .now_us = store_now_us(service->store),
	                           .hourly_max = USER_AUTH_LINKS_PER_HOUR,
	                           .unknown_networks_max = USER_AUTH_UNKNOWN_PER_HOUR};
	int result = json_parse(arena, slice_of(mail->values), NULL, &json, error);
	if (!result && (!json_get_text(json, "browser", &browser) ||
	                !hex_decode(browser, digest.bytes, sizeof digest.bytes) ||
	                !json_get_integer(json, "until", &grant.expires_at_us)))
		result = error_cause(error, ERR_CORRUPT, "the values of a mail are not as expected");
	if (!result) {
		const struct json *in_session = json_member(json, "in_session");
		grant.in_session = in_session && in_session->type == JSON_TRUE;
		if (json_get_text(json, "known", &kept) &&
		    hex_decode(kept, known.bytes, sizeof known.bytes))
			grant.known = &known;
		if (json_get_text(json, "network", &network))
			grant.network = arena_copy(arena, network.data, network.size);
	}
	if (!result && grant.expires_at_us <= grant.now_us)
		result = error_cause(error, ERR_NOT_FOUND, "it has expired");
	BUF_AUTO struct buf url;
	buf_init(&url, VALUES_MAX);
	if (!result)
		result = make_link(service->settings, service->store, &grant, &url, error);
	if (result)
		return result == ERR_REFUSED ? ERR_NOT_FOUND : result;
	*ret_values = arena_printf(arena, "{\"url\":\"%s\"}", url.data);
	explicit_bzero(url.data, url.size);
	return *ret_values ? OK : ERR_NO_MEMORY;
}

int user_auth_mail_values(struct service *service, const struct mail *mail, struct arena *arena,
                          const char **ret_values, struct error *error)
{
	if (strcmp(mail->template_name, MAIL_SIGN_IN) == 0)
		return sign_in_values(service, mail, arena, ret_values, error);
	*ret_values = mail->values;
	return OK;
}

/* ---- using a link ---- */

/* Copies untrusted text: invalid UTF-8 and control characters become '?'. */
static void clean_text(const char *text, size_t size_max, char *ret)
{
	struct slice left = slice_of(text);
	size_t size = 0;
	while (left.size) {
		size_t step = utf8_character(left);
		unsigned char first = (unsigned char)left.data[0];
		bool plain = step && first >= 0x20 && first != 0x7f && !(first == 0xc2 && step == 2);
		size_t room = plain ? step : 1;
		if (size + room > size_max)
			break;
		if (plain)
			memcpy(ret + size, left.data, step);
		else
			ret[size] = '?';
		size += room;
		step += !step;
		left = slice_make(left.data + step, left.size - step);
	}
	ret[size] = '\0';
}

/* Data of a new session; the texts live as long as `room`. */
struct start_room {
	char cookie[USER_AUTH_SECRET_SIZE], address[ADDRESS_SHOWN_MAX + 1], agent[AGENT_SHOWN_MAX + 1];
	char network[NETWORK_SIZE], node[HOST_NAME_MAX + 1];
	struct sha256 former, known;
	struct session_start start;
};

static void read_node(char node[HOST_NAME_MAX + 1])
{
	memset(node, 0, HOST_NAME_MAX + 1);
	(void)gethostname(node, HOST_NAME_MAX);
}

static void prepare_start(struct service *service, struct slice former,
                          const struct user_auth_client *client, struct start_room *room)
{
	clean_text(client->address, sizeof room->address - 1, room->address);
	clean_text(client->agent, sizeof room->agent - 1, room->agent);
	read_network(client->address, room->network);
	read_node(room->node);
	user_auth_new_secret(room->cookie);
	room->former = digest_of(former);
	room->known = digest_of(client->known);
	room->start = (struct session_start){
		.cookie = digest_of(slice_of(room->cookie)),
		.former = user_auth_is_secret(former) ? &room->former : NULL,
		.known = user_auth_is_secret(client->known) ? &room->known : NULL,
		.network = room->network,
		.address = room->address,
		.agent = room->agent,
		.node = room->node,
		.now_us = store_now_us(service->store),
	};
}

/* Returns the cookie, or the message for a link or passkey that does not work any more. */
static int end_start(int result, struct start_room *room, enum message message,
                     char ret[USER_AUTH_SECRET_SIZE], struct error *error)
{
	if (!result)
		memcpy(ret, room->cookie, sizeof room->cookie);
	explicit_bzero(room->cookie, sizeof room->cookie);
	return result == ERR_NOT_FOUND ? error_set(error, ERR_REFUSED, message, NULL) : result;
}

int user_auth_redeem_link(struct service *service, struct slice link, struct slice browser,
                          struct slice former, const struct user_auth_client *client,
                          char ret[USER_AUTH_SECRET_SIZE], struct error *error)
{
	struct start_room room;
	if (!user_auth_is_secret(link))
		return error_set(error, ERR_REFUSED, MSG_USER_BAD_LINK, NULL);
	struct sha256 digest = digest_of(link);
	struct sha256 browser_digest = digest_of(browser);
	prepare_start(service, former, client, &room);
	int result =
		store_take_link(service->store, &digest,
	                    user_auth_is_secret(browser) ? &browser_digest : NULL, &room.start, error);
	return end_start(result, &room, MSG_USER_BAD_LINK, ret, error);
}

/* ---- passkeys ---- */

int user_auth_create_challenge(struct service *service, struct slice cookie,
                               uint8_t ret[CHALLENGE_SIZE], struct error *error)
{
	if (!user_auth_is_secret(cookie))
		return ERR_NOT_FOUND;
	struct sha256 digest = digest_of(cookie);
	random_bytes(ret, CHALLENGE_SIZE);
	return store_set_challenge(service->store, &digest, ret, store_now_us(service->store), error);
}

int user_auth_take_challenge(struct service *service, struct slice cookie,
                             uint8_t ret[CHALLENGE_SIZE], struct error *error)
{
	if (!user_auth_is_secret(cookie))
		return ERR_NOT_FOUND;
	struct sha256 digest = digest_of(cookie);
	return store_take_challenge(service->store, &digest,
	                            store_now_us(service->store) - USER_AUTH_CHALLENGE_US, ret, error);
}

bool user_auth_requires_passkey(const struct session_view *session)
{
	bool asked = false;
	for (size_t i = 0; i < session->membership_count; i++)
		asked |= session->memberships[i].passkeys_required &&
		         (session->memberships[i].taken_up || &session->memberships[i] == session->chosen);
	/* An account that could not be read may require one. */
	asked |= session->partial && session->passkeys > 0;
	return asked && !session->by_passkey;
}

/* The audit record contains the account and the passkey's name, but no key. */
static int passkey_arguments(const struct session_view *session, const char *name,
                             struct arena *arena, struct json **ret, struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, VALUES_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "account", session->chosen->account_id);
	json_text(&writer, "name", name);
	json_end_object(&writer);
	const char *kept = arena_copy(arena, text.data, text.size);
	int result = kept ? buf_check(&text) : ERR_NO_MEMORY;
	return result ? result : json_parse(arena, slice_of(kept), NULL, ret, error);
}

int user_auth_add_passkey(struct service *service, const struct session_view *session,
                          struct slice cookie, const struct passkey_record *credential,
                          const struct user_auth_client *client, char ret_passkey_id[ID_SIZE],
                          struct error *error)
{
	ARENA_AUTO struct arena arena;
	char name[USER_AUTH_PASSKEY_NAME_MAX + 1], node[HOST_NAME_MAX + 1];
	char address[ADDRESS_SHOWN_MAX + 1];
	arena_init(&arena, AUDIT_DOCUMENT_MAX);
	read_node(node);
	clean_text(credential->name, sizeof name - 1, name);
	clean_text(client->address, sizeof address - 1, address);
	struct actor actor = {.via = "console",
	                      .node = node,
	                      .user_id = session->user_id,
	                      .email = session->email,
	                      .address = address,
	                      .signed_in_by = session->signed_in_by};
	const struct audit_authorization authorization = {.session_id = session->session_id,
	                                                  .account_id = session->chosen->account_id,
	                                                  .role = role_text(session->chosen->role),
	                                                  .passkey = PASSKEY_NOT_REQUIRED};
	struct act act = {
		.by = &actor, .authorization = &authorization, .operation = "passkey add", .arena = &arena};
	struct passkey_record given = *credential;
	struct sha256 digest = digest_of(cookie);
	memcpy(given.user_id, session->user_id, ID_SIZE);
	given.name = name;
	int result = passkey_arguments(session, name, &arena, &act.arguments, error);
	if (result)
		return result;
	struct store *acting = store_audited(service->store, &act);
	const char *tell = user_auth_sends_mail(service->settings) ? session->email : NULL;
	result = acting ? store_add_passkey(acting, &given, &digest, tell, store_now_us(service->store),
	                                    ret_passkey_id, error)
	                : ERR_NO_MEMORY;
	store_audited_end(acting);
	return result;
}

int user_auth_sign_in_passkey(struct service *service, const struct passkey_record *known,
                              int64_t sign_count, struct slice former,
                              const struct user_auth_client *client,
                              char ret[USER_AUTH_SECRET_SIZE], struct error *error)
{
	struct start_room room;
	prepare_start(service, former, client, &room);
	int result = store_use_passkey(service->store, known, sign_count, &room.start, error);
	return end_start(result, &room, MSG_USER_BAD_PASSKEY, ret, error);
}

/* ---- sessions ---- */

/* An account's requirements bind users who work in it, not users who were merely invited. */
static void take_up(struct service *service, const struct session_view *session)
{
	static struct log_throttle pace = LOG_THROTTLE(1, 60);
	struct error trouble = {0};
	const struct membership *chosen = session->chosen;
	if (chosen->taken_up || (chosen->passkeys_required && !session->by_passkey))
		return;
	int result =
		store_mark_worked_in(service->store, session->user_id, chosen->account_id, &trouble);
	if (result)
		log_at_pace(&pace, "membership_use_not_recorded", &trouble, result);
}

/* False after a sign-in, and after another account was chosen. */
static bool was_seen(const struct membership *chosen, int64_t now_us)
{
	return chosen->seen_at_us != TIME_NONE && now_us - chosen->seen_at_us < USER_AUTH_TOUCH_US;
}

int user_auth_find_session(struct service *service, struct slice cookie, struct arena *arena,
                           struct session_view *ret, struct error *error)
{
	if (!user_auth_is_secret(cookie))
		return ERR_NOT_FOUND;
	struct sha256 digest = digest_of(cookie);
	int64_t now_us = store_now_us(service->store);
	int result = store_find_session(service->store, &digest, now_us - USER_AUTH_SESSION_US,
	                                now_us - USER_AUTH_IDLE_US, arena, ret, error);
	if (!result)
		take_up(service, ret);
	if (result || (now_us - ret->seen_at_us < USER_AUTH_TOUCH_US && was_seen(ret->chosen, now_us)))
		return result;
	static struct log_throttle pace = LOG_THROTTLE(1, 60);
	struct error trouble = {0};
	int touched = store_touch_session(service->store, &digest, now_us, &trouble);
	if (touched)
		log_at_pace(&pace, "session_use_not_recorded", &trouble, touched);
	return OK;
}

bool user_auth_is_recent(const struct session_view *session, int64_t now_us)
{
	return now_us - session->signed_in_at_us < USER_AUTH_RECENT_US;
}

int user_auth_choose_account(struct service *service, struct slice cookie, struct slice account_id,
                             struct error *error)
{
	struct sha256 digest = digest_of(cookie);
	return store_choose_account(service->store, &digest, account_id, error);
}

int user_auth_set_language(struct service *service, const struct session_view *session,
                           enum language language, struct error *error)
{
	return store_set_user_language(service->store, session->user_id, language, error);
}

int user_auth_sign_out(struct service *service, struct slice cookie,
                       const struct user_auth_client *client, struct error *error)
{
	char address[ADDRESS_SHOWN_MAX + 1], node[HOST_NAME_MAX + 1];
	if (!user_auth_is_secret(cookie))
		return OK;
	clean_text(client->address, sizeof address - 1, address);
	read_node(node);
	struct sign_out_request leave = {.cookie = digest_of(cookie),
	                                 .address = address,
	                                 .node = node,
	                                 .now_us = store_now_us(service->store)};
	struct error trouble = {0};
	int result = store_sign_out(service->store, &leave, &trouble);
	if (!result)
		return OK;
	leave.unrecorded = true;
	int left = store_sign_out(service->store, &leave, error);
	if (!left)
		log_error("audit_record_not_written", "operation", "sign out", "cause",
		          error_reason(&trouble, result));
	return left;
}

int user_auth_delete_expired(struct service *service, struct error *error)
{
	int64_t now_us = store_now_us(service->store);
	return store_remove_old_sessions(service->store, now_us - KEEP_US,
	                                 now_us - USER_AUTH_CHALLENGE_US, error);
}
