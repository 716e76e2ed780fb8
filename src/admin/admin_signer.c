/* Operations on signing certificates. */
#include "admin/admin_call.h"
#include "evidence/signers.h"
#include "service/read_only.h"
#include "store/evidence/public_keys.h"
#include "store/evidence/signer_records.h"
#include "tlog/note.h"

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return signers_write_json(call->admin->store, call->arena, out, error);
}

static int run_rotate(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct slice reason = admin_slice(call, "reason");
	if (!call->admin->service || !call->admin->service->signer)
		return error_set(error, ERR_REFUSED, MSG_SIGNER_NO_SERVICE, NULL);
	/* A read-only copy must not change the key in force, not even in its own history. */
	int result = read_only_refuse(call->admin->service, error);
	if (!result)
		result = signers_rotate(call->admin->service, call->admin->store,
		                        reason.size ? reason : slice_of("replaced by the operator"), error);
	return result ? result : run_list(call, out, error);
}

static int run_end(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int result = store_end_signer(call->admin->store, admin_slice(call, "reason"), error);
	if (!result && call->admin->service)
		result = signers_follow(call->admin->service, error);
	return result ? result : run_list(call, out, error);
}

static int run_end_key(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	int result = store_end_public_key(call->admin->store, admin_slice(call, "key"), error);
	return result ? result : run_list(call, out, error);
}

#define COLUMNS "sha256 subject used_from used_until reason not_after"
#define REASON(needed)                                                                             \
	ADMIN_FLAG_LINE("reason", needed, 1, ADMIN_LINE_MAX, "one line, published with the history")

const struct admin_operation admin_signer_operations[] = {
	{.name = "signer list",
     .summary = "list the signing certificates with the periods in which they were in force",
     .columns = COLUMNS,
     .run = run_list},
	{.name = "signer rotate",
     .summary = "bring the key of signer.next_key into force on all nodes",
     .changes = true,
     .columns = COLUMNS,
     .parameters = {REASON(false)},
     .run = run_rotate},
	{.name = "signer end",
     .summary = "end the use of the certificate in force; certifications wait for another one",
     .changes = true,
     .columns = COLUMNS,
     .parameters = {REASON(true)},
     .run = run_end},
	{.name = "signer end-key",
     .summary = "end the use of a key of receipts or of the log, as signer list --json shows it",
     .changes = true,
     .columns = COLUMNS,
     .parameters = {{.name = "key",
                     .kind = ADMIN_LINE,
                     .required = true,
                     .positional = true,
                     .place = "KEY",
                     .least = 1,
                     .most = NOTE_VKEY_SIZE,
                     .help = "the key, in base64, or the log's verifier key"},
                    REASON(false)},
     .run = run_end_key},
	{0},
};
