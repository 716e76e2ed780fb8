#include "monitor/log_head.h"

#include <stdio.h>

/* A false signature is not that of a key which is unknown: somebody made it in the key's name. */
static int verify_key(const struct note *note, const struct note_key *key, bool *ret_signed,
                      int64_t *ret_time_us, struct error *error)
{
	enum note_verdict verdict = note_verify(note, key, ret_time_us);
	*ret_signed = verdict == NOTE_SIGNED;
	if (verdict == NOTE_NOT_CHECKED)
		return ERR_NO_MEMORY;
	return verdict == NOTE_FALSE
	           ? error_cause(error, ERR_INVALID_EVIDENCE,
	                         "the signature of %s under the checkpoint is false", key->name)
	           : OK;
}

static void add_name(char names[LOG_NAMES_SIZE], const char *name)
{
	size_t size = strlen(names);
	snprintf(names + size, LOG_NAMES_SIZE - size, "%s%s", size > 0 ? ", " : "", name);
}

static int judge_witnesses(const struct note *note, const struct policy *policy,
                           struct log_head *head, struct error *error)
{
	bool cosigned[POLICY_WITNESSES_MAX] = {false};
	for (size_t i = 0; i < policy->witness_count; i++) {
		int64_t time_us = TIME_NONE;
		int result = verify_key(note, &policy->witnesses[i].key, &cosigned[i], &time_us, error);
		if (result)
			return result;
		if (!cosigned[i])
			add_name(head->missing, policy->witnesses[i].name);
		else if (head->witnessed_us == TIME_NONE || time_us > head->witnessed_us)
			head->witnessed_us = time_us;
	}
	head->has_quorum = policy_is_satisfied(policy, cosigned);
	return OK;
}

static int judge_logs(const struct note *note, const struct policy *policy, struct log_head *head,
                      struct error *error)
{
	for (size_t i = 0; i < policy->log_count; i++) {
		const struct note_key *key = &policy->logs[i].key;
		bool is_signed;
		int result = verify_key(note, key, &is_signed, NULL, error);
		if (result)
			return result;
		if (is_signed && strcmp(key->name, head->checkpoint.origin) == 0)
			head->is_signed = true;
	}
	return OK;
}

int log_head_judge(struct arena *arena, struct slice note, const struct policy *policy,
                   struct log_head *ret, struct error *error)
{
	struct log_head head = {.witnessed_us = TIME_NONE};
	struct note parsed;
	char *copy = arena_copy(arena, note.data, note.size);
	if (!copy)
		return ERR_NO_MEMORY;
	head.note = slice_make(copy, note.size);
	int result = note_parse(arena, head.note, &parsed, error);
	if (!result)
		result = checkpoint_parse(parsed.text, &head.checkpoint, error);
	if (!result && policy)
		result = judge_logs(&parsed, policy, &head, error);
	if (!result && policy)
		result = judge_witnesses(&parsed, policy, &head, error);
	if (!result)
		*ret = head;
	return result;
}

int log_head_read(struct arena *arena, struct log_source *source, const struct policy *policy,
                  struct log_head *ret, struct error *error)
{
	struct slice body;
	int result = log_source_read(source, "checkpoint", NOTE_SIZE_MAX, &body, error);
	return result ? result : log_head_judge(arena, body, policy, ret, error);
}
