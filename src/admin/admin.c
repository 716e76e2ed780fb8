#include "admin/admin.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "admin/admin_call.h"
#include "admin/permission_check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/url_mask.h"
#include "service/user_auth.h"

#define CALL_MEMORY_MAX ((size_t)32 << 20)
#define NAMES_MEMORY 16384 /* buffer for an entry of the user database */
#define CLAIMED_MAX 64

static const struct admin_operation *const groups[] = {
	admin_account_operations,  admin_channel_operations,   admin_limit_operations,
	admin_usage_operations,    admin_totals_operations,    admin_overview_operations,
	admin_webhook_operations,  admin_notice_operations,    admin_pack_operations,
	admin_purchase_operations, admin_topup_operations,     admin_event_operations,
	admin_certify_operations,  admin_evidence_operations,  admin_signer_operations,
	admin_store_operations,    admin_read_only_operations, admin_audit_operations,
	admin_user_operations,     admin_request_operations,   admin_log_operations,
};

const struct admin_operation *admin_operation_at(size_t index)
{
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
		for (const struct admin_operation *at = groups[i]; at->name; at++)
			if (index-- == 0)
				return at;
	return NULL;
}

const struct admin_operation *admin_find(struct slice name)
{
	const struct admin_operation *operation;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++)
		if (slice_is(name, operation->name))
			return operation;
	return NULL;
}

/* ---- parameters ---- */

const struct admin_parameter admin_reason =
	ADMIN_FLAG_LINE("reason", false, 1, ADMIN_LINE_MAX, "reason, kept in the audit log");

const struct admin_parameter *admin_parameter_at(const struct admin_operation *operation,
                                                 size_t index)
{
	bool own_reason = false;
	for (size_t i = 0; operation->parameters[i].name; i++) {
		if (i == index)
			return &operation->parameters[i];
		own_reason |= strcmp(operation->parameters[i].name, "reason") == 0;
	}
	bool adds = admin_writes_audit_log(operation) && !own_reason;
	bool is_next =
		index == 0 || (index < ADMIN_PARAMETERS_MAX && operation->parameters[index - 1].name);
	return adds && is_next ? &admin_reason : NULL;
}

/* ---- running ---- */

int admin_actor(uid_t uid, const char *via, const char *claimed, struct arena *arena,
                struct actor *ret)
{
	char node[HOST_NAME_MAX + 1] = "";
	char memory[NAMES_MEMORY];
	struct passwd entry, *found = NULL;
	(void)gethostname(node, sizeof node - 1);
	*ret = (struct actor){.uid = (int64_t)uid, .via = via, .node = arena_text(arena, node)};
	if (getpwuid_r(uid, &entry, memory, sizeof memory, &found) == 0 && found)
		ret->user = arena_text(arena, entry.pw_name);
	struct slice said = slice_of(claimed);
	if (said.size && said.size <= CLAIMED_MAX && admin_is_printable(said, false))
		ret->claimed = arena_text(arena, claimed);
	bool whole = ret->node && (!found || ret->user);
	return whole ? OK : ERR_NO_MEMORY;
}

static void log_operation(const struct act *act, const struct actor *actor, int result)
{
	char uid[24] = "";
	if (!actor->user_id)
		snprintf(uid, sizeof uid, "%lld", (long long)actor->uid);
	log_info("administration", "operation", act->operation, "uid", uid, "user",
	         actor->user_id ? actor->user_id
	         : actor->user  ? actor->user
	                        : "",
	         "claimed", actor->claimed ? actor->claimed : "", "account", act->account_id, "act",
	         act->recorded ? act->act_id : "", "outcome",
	         result ? error_code_text(result) : "done");
}

/* An action outside of the store cannot be undone if its audit record fails. A backup of a full
 * store may be what saves it. Therefore the action is performed anyway, and the log is the only
 * record. */
int admin_write_audit_outcome(const struct admin_call *call, enum audit_outcome outcome,
                              const char *name, const char *id, struct error *error)
{
	int result = store_write_audit_record(call->admin->store, outcome, name, id, error);
	const struct submitted_form *form = call->caller->form;
	bool refused = result == ERR_FORBIDDEN || result == ERR_PASSKEY || result == ERR_FULL ||
	               (result && form && form->repeated);
	if (result && !refused)
		log_error("audit_record_not_written", "operation", call->operation->name, "made",
		          id ? id : "", "cause", error_reason(error, result));
	if (result && !refused)
		error_clear(error);
	return refused ? result : OK;
}

static int run(struct admin_call *call, struct act *act, struct buf *answer, struct error *error)
{
	struct json_writer writer = {.out = answer};
	const struct admin_operation *operation = call->operation;
	if (!admin_writes_audit_log(operation))
		return operation->run(call, &writer, error);
	struct admin *const admin = call->admin;
	struct admin acting = *admin;
	acting.store = store_audited(admin->store, act);
	if (!acting.store)
		return ERR_NO_MEMORY;
	call->admin = &acting;
	int result = OK;
	if (operation->outside)
		result = admin_write_audit_outcome(call, AUDIT_DONE, NULL, NULL, error);
	/* A failure after this point is retried with a new form: the audit record already contains
	 * this one. */
	if (!result && operation->outside && act->form)
		act->form->claimed = act->recorded;
	if (!operation->outside && operation->behind)
		result = store_authorize_operation(acting.store, error);
	if (!result)
		result = operation->run(call, &writer, error);
	call->admin = admin;
	store_audited_end(acting.store);
	return result;
}

/* A grant of rights waits for a standby before it locks what it changes. Otherwise a revocation
 * would block while the grant waits. */
static int confirm_first(struct store *store, struct error *error)
{
	int result = store_confirm(store, error);
	return result == ERR_UNKNOWN_OUTCOME
	           ? error_cause(error, ERR_UNAVAILABLE, "no standby has confirmed a commit")
	           : result;
}

/* A commit that only the primary has reaches the standbys together with any later write. */
static void report_replication(struct store *store, const struct act *act, struct buf *answer)
{
	struct error error = {0};
	struct error note = {0};
	if (strcmp(store_promise(store), "replicated") != 0 || !answer->size)
		return;
	int result = store_confirm_account(store, act->account, &error);
	answer->size--; /* its last brace */
	buf_printf(answer, ",\"replicated\":%s", result ? "false" : "true");
	if (result) {
		error_set(&note, OK, MSG_ADMIN_NOT_REPLICATED, NULL);
		buf_printf(answer, ",\"note\":\"%s\"", error_message(&note, LANGUAGE_ENGLISH));
		log_warning("audit_record_not_replicated", "operation", act->operation, "account",
		            act->account_id, "act", act->act_id, "cause", error_reason(&error, result));
	}
	buf_add_byte(answer, '}');
}

/* Copies the arguments, because the audit record sorts them into canonical order. */
static int copy_arguments(const struct json *arguments, struct arena *arena, struct json **ret)
{
	*ret = NULL;
	if (!arguments)
		return OK;
	*ret = arena_alloc(arena, sizeof **ret);
	if (!*ret)
		return ERR_NO_MEMORY;
	**ret = *arguments;
	(*ret)->name = slice_of("");
	struct json **at = &(*ret)->first;
	for (const struct json *from = arguments->first; from; from = from->next) {
		*at = arena_alloc(arena, sizeof **at);
		if (!*at)
			return ERR_NO_MEMORY;
		**at = *from;
		at = &(*at)->next;
	}
	return OK;
}

/* The audit log does not store content, only its digest. */
static int digest_argument(const struct admin_operation *operation, const struct json *arguments,
                           struct arena *arena)
{
	struct json *member = operation->digested ? json_member(arguments, operation->digested) : NULL;
	if (!member)
		return OK;
	char hex[2 * SHA256_SIZE + 1];
	struct sha256 digest = sha256_of(member->text.data, member->text.size);
	hex_encode(digest.bytes, SHA256_SIZE, hex);
	const char *text = arena_printf(arena, "sha-256:%s", hex);
	if (!text)
		return ERR_NO_MEMORY;
	member->text = slice_of(text);
	return OK;
}

/* A repeated form is identified by user, page number, operation and arguments. The session is not
 * part of the identity, because the user may have signed in again. */
static int identify_form(const struct admin_caller *caller, struct act *act)
{
	BUF_AUTO struct buf text;
	char number[2 * SHA256_SIZE + 1];
	struct sha256 of_number = sha256_of(caller->form->number.data, caller->form->number.size);
	hex_encode(of_number.bytes, SHA256_SIZE, number);
	buf_init(&text, CALL_MEMORY_MAX);
	buf_printf(&text, "%s\n%s\n%s\n", caller->actor.user_id, number, act->operation);
	if (act->arguments)
		json_canonical(act->arguments, &text);
	act->form = caller->form;
	act->form->digest = sha256_of(text.data, text.size);
	return buf_check(&text);
}

/* The first record may not be on a standby yet. Urgent operations do not wait for one. */
static int confirm_repeated(struct store *store, const struct act *act, int result,
                            struct error *error)
{
	if (act->urgent)
		return result;
	int confirmed = store_confirm_account(store, act->account, error);
	act->form->repeated = !confirmed;
	return confirmed ? confirmed : result;
}

/* Receivers have tokens in their URLs, and the audit log is permanent. */
static int mask_address(const struct admin_operation *operation, const struct json *arguments,
                        struct arena *arena)
{
	struct json *member = operation->address ? json_member(arguments, operation->address) : NULL;
	if (!member)
		return OK;
	BUF_AUTO struct buf masked;
	buf_init(&masked, AUDIT_DOCUMENT_MAX);
	url_mask(member->text, &masked);
	const char *text =
		buf_check(&masked) ? NULL : arena_copy(arena, masked.data ? masked.data : "", masked.size);
	if (!text)
		return ERR_NO_MEMORY;
	member->text = slice_of(text);
	return OK;
}

static const char *reason_of(const struct admin_operation *operation,
                             const struct admin_value *values)
{
	const struct admin_parameter *parameter;
	for (size_t i = 0; (parameter = admin_parameter_at(operation, i)); i++)
		if (strcmp(parameter->name, "reason") == 0)
			return values[i].text;
	return NULL;
}

int admin_write_audit_record(struct store *store, const char *operation, struct slice arguments,
                             const char *reason, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CALL_MEMORY_MAX);
	struct actor actor;
	struct act act = {.by = &actor, .operation = operation, .reason = reason, .arena = &arena};
	int result = admin_actor(getuid(), "command", getenv("SUDO_USER"), &arena, &actor);
	if (!result)
		result = json_parse(&arena, arguments, NULL, &act.arguments, error);
	if (result)
		return result;
	struct store *acting = store_audited(store, &act);
	result =
		acting ? store_write_audit_record(acting, AUDIT_DONE, NULL, NULL, error) : ERR_NO_MEMORY;
	store_audited_end(acting);
	return result;
}

void admin_caller_user(const struct session_view *session, const char *address, const char *node,
                       struct admin_caller *ret)
{
	*ret = (struct admin_caller){
		.actor = {.via = "console",
	              .node = node,
	              .user_id = session->user_id,
	              .email = session->email,
	              .address = address,
	              .signed_in_by = session->signed_in_by},
		.is_user = true,
		.role = session->chosen->role,
		.session_id = session->session_id,
		.has_passkey = session->passkeys > 0,
		.signed_in_at_us = session->signed_in_at_us,
		.by_passkey = session->by_passkey,
		.lacks_passkey = session->chosen->passkeys_required && !session->by_passkey,
		.must_use_passkey = user_auth_requires_passkey(session),
	};
	memcpy(ret->account_id, session->chosen->account_id, ID_SIZE);
}

/* Prepares the arguments that are executed and logged. Checks their values, and that all objects in
 * them belong to the caller. */
static int prepare(struct admin *admin, const struct admin_operation *operation,
                   const struct json *given, const struct admin_caller *caller, struct act *act,
                   struct admin_value *values, struct error *error)
{
	int result = OK;
	if (caller->is_user)
		result = permission_check_operation(caller, operation, store_now_us(admin->store), error);
	if (!result)
		result = copy_arguments(given, act->arena, &act->arguments);
	if (!result && caller->is_user)
		result = permission_bind_arguments(caller, operation, &act->arguments, act->arena, error);
	if (!result)
		result = admin_read_arguments(operation, act->arguments, act->arena, values, error);
	if (!result && caller->is_user)
		result = permission_check_objects(caller, operation, act->arguments, admin->store, error);
	if (!result)
		result = digest_argument(operation, act->arguments, act->arena);
	if (!result && caller->form && admin_writes_audit_log(operation))
		result = identify_form(caller, act);
	if (!result)
		result = mask_address(operation, act->arguments, act->arena);
	if (!result)
		act->reason = reason_of(operation, values);
	return result;
}

int admin_run(struct admin *admin, const struct admin_operation *operation,
              const struct json *arguments, const struct admin_caller *caller, struct buf *out,
              struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf answer;
	arena_init(&arena, CALL_MEMORY_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	struct admin_value values[ADMIN_PARAMETERS_MAX] = {0};
	struct admin_caller here = {0};
	int result = OK;
	if (!caller)
		result = admin_actor(getuid(), "command", NULL, &arena, &here.actor);
	if (!caller)
		caller = &here;
	struct audit_authorization authorization;
	struct act act = {.by = &caller->actor, .operation = operation->name, .arena = &arena};
	if (caller->is_user)
		act.authorization = permission_fill_authorization(caller, operation, &authorization);
	if (!result)
		result = prepare(admin, operation, arguments, caller, &act, values, error);
	if (result)
		return result;
	struct admin_call call = {admin, operation, values, caller, &arena, store_now_us(admin->store)};
	act.urgent = operation->urgent;
	act.most_of_day = caller->is_user ? admin->settings->account_acts_per_day : 0;
	if (operation->takes && !operation->takes(&call))
		result = confirm_first(admin->store, error);
	if (!result)
		result = run(&call, &act, &answer, error);
	if (result && act.form && act.form->repeated)
		result = confirm_repeated(admin->store, &act, result, error);
	/* The general message asks for a retry, which would add credits twice. A form may be
	 * retried. */
	if (result == ERR_UNKNOWN_OUTCOME)
		error_set(error, result, act.form ? MSG_ADMIN_FORM_UNKNOWN : MSG_ADMIN_UNKNOWN_OUTCOME,
		          NULL);
	/* An operation that succeeded without an audit record changed nothing. */
	bool may_have_changed = operation->changes && (act.recorded || result);
	if (may_have_changed && admin->service)
		service_clear_key_cache(admin->service);
	if (admin->service)
		log_operation(&act, act.by, result);
	if (!result && act.urgent)
		report_replication(admin->store, &act, &answer);
	if (!result)
		result = buf_check(&answer);
	if (result)
		return result;
	buf_add_slice(out, buf_slice(&answer));
	if (answer.data)
		explicit_bzero(answer.data, answer.size); /* it may contain a new key */
	return buf_check(out);
}
