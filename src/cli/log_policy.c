#include "cli/log_policy.h"

#include <stdlib.h>

#include "base/file.h"

static int read_keys(const struct command_line *line, const char *option, enum note_key_type type,
                     struct note_key keys[COMMAND_OPTIONS_MAX], size_t *ret_count,
                     struct error *error)
{
	const char *values[COMMAND_OPTIONS_MAX];
	*ret_count = command_options(line, option, values);
	for (size_t i = 0; i < *ret_count; i++) {
		struct error detail = {0};
		if (note_key_parse(slice_of(values[i]), &keys[i], &detail))
			return error_cause(error, ERR_USAGE, "--%s must be a verifier key: %s", option,
			                   detail.cause);
		if (keys[i].type != type)
			return error_cause(error, ERR_USAGE, "--%s must be the key of a %s: of type %d", option,
			                   type == NOTE_COSIGNATURE ? "witness" : "log", type);
	}
	return OK;
}

static int read_quorum(const struct command_line *line, size_t witnesses, size_t *ret,
                       struct error *error)
{
	const char *text = command_option(line, "quorum");
	char *end = NULL;
	*ret = witnesses;
	if (!text)
		return OK;
	unsigned long number = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || number > witnesses)
		return error_cause(error, ERR_USAGE,
		                   "--quorum must be a number up to that of the witnesses, %zu", witnesses);
	*ret = number;
	return OK;
}

static int read_file(const char *path, const char *option, struct arena *arena, struct policy *ret,
                     struct error *error)
{
	BUF_AUTO struct buf text;
	struct error detail = {0};
	buf_init(&text, POLICY_SIZE_MAX + 1);
	int result = file_read_whole(path, &text, error);
	if (result)
		return result;
	result = policy_parse(arena, buf_slice(&text), ret, &detail);
	return result == ERR_INVALID_EVIDENCE
	           ? error_cause(error, ERR_USAGE, "--%s: %s: %s", option, path, detail.cause)
	           : result;
}

int log_policy_read(const struct command_line *line, const struct log_policy_names *names,
                    struct arena *arena, struct policy *ret, bool *ret_given, struct error *error)
{
	struct note_key logs[COMMAND_OPTIONS_MAX], witnesses[COMMAND_OPTIONS_MAX];
	const char *path = command_option(line, names->policy);
	size_t log_count, witness_count, quorum;
	int result = read_keys(line, names->key, NOTE_ED25519, logs, &log_count, error);
	if (!result)
		result = read_keys(line, "witness", NOTE_COSIGNATURE, witnesses, &witness_count, error);
	if (!result)
		result = read_quorum(line, witness_count, &quorum, error);
	if (result)
		return result;
	bool named = log_count > 0 || witness_count > 0 || command_option(line, "quorum");
	*ret_given = named || path;
	if (named && path)
		return error_cause(error, ERR_USAGE, "--%s replaces --%s, --witness and --quorum",
		                   names->policy, names->key);
	if (named && log_count == 0)
		return error_cause(error, ERR_USAGE, "--witness and --quorum need the key of the log: --%s",
		                   names->key);
	if (path)
		return read_file(path, names->policy, arena, ret, error);
	struct error detail = {0};
	result =
		named ? policy_make(arena, logs, log_count, witnesses, witness_count, quorum, ret, &detail)
			  : OK;
	return result == ERR_INVALID_EVIDENCE ? error_cause(error, ERR_USAGE, "%s", detail.cause)
	                                      : result;
}
