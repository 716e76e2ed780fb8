#include "monitor/log_head.h"

#include <stdio.h>

static void add_name(char names[LOG_NAMES_SIZE], const char *name)
{
	size_t size = strlen(names);
	snprintf(names + size, LOG_NAMES_SIZE - size, "%s%s", size > 0 ? ", " : "", name);
}

static int judge_witnesses(const struct note *note, const struct policy *policy,
                           struct log_head *head)
{
	bool cosigned[POLICY_WITNESSES_MAX] = {false};
	const int64_t latest_us = clock_now_us() + LOG_CLOCK_TOLERANCE_US;
	for (size_t i = 0; i < policy->witness_count; i++) {
		enum note_verdict verdict =
			note_verify(note, &policy->witnesses[i].key, &head->cosigned_us[i]);
		if (verdict == NOTE_NOT_CHECKED)
			return ERR_NO_MEMORY;
		if (head->cosigned_us[i] > latest_us)
			head->cosigned_us[i] = TIME_NONE;
		cosigned[i] = head->cosigned_us[i] != TIME_NONE;
		if (!cosigned[i])
			add_name(head->missing, policy->witnesses[i].name);
		else if (head->witnessed_us == TIME_NONE || head->cosigned_us[i] > head->witnessed_us)
			head->witnessed_us = head->cosigned_us[i];
	}
	head->has_quorum = policy_is_satisfied(policy, cosigned);
	return OK;
}

bool log_head_is_witnessed_after(const struct log_head *head, const struct policy *policy,
                                 int64_t time_us)
{
	bool cosigned[POLICY_WITNESSES_MAX] = {false};
	for (size_t i = 0; policy && i < policy->witness_count; i++)
		cosigned[i] = head->cosigned_us[i] != TIME_NONE && head->cosigned_us[i] > time_us;
	return policy && policy->has_quorum && policy_is_satisfied(policy, cosigned);
}

static int judge_logs(const struct note *note, const struct policy *policy, struct log_head *head,
                      struct error *error)
{
	for (size_t i = 0; i < policy->log_count; i++) {
		const struct note_key *key = &policy->logs[i].key;
		enum note_verdict verdict = note_verify(note, key, NULL);
		if (verdict == NOTE_NOT_CHECKED)
			return ERR_NO_MEMORY;
		if (verdict == NOTE_FALSE)
			return error_cause(error, ERR_INVALID_EVIDENCE,
			                   "the signature of %s under the checkpoint is false", key->name);
		if (verdict == NOTE_SIGNED && strcmp(key->name, head->checkpoint.origin) == 0)
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
		result = judge_witnesses(&parsed, policy, &head);
	if (!result)
		*ret = head;
	return result;
}

const char *log_head_name(const struct log_head *head, char name[LOG_HEAD_NAME_SIZE])
{
	if (head->is_signed)
		return strcpy(name, head->checkpoint.origin);
	size_t size = (size_t)snprintf(name, LOG_HEAD_NAME_SIZE, "\"%s\"", head->checkpoint.origin);
	for (size_t i = 1; i < size - 1; i++)
		if (name[i] < ' ' || name[i] > '~' || name[i] == '"')
			name[i] = '?';
	return name;
}

int log_head_read(struct arena *arena, struct log_source *source, const struct policy *policy,
                  struct log_head *ret, struct error *error)
{
	struct slice body;
	int result = log_source_read(source, "checkpoint", NOTE_SIZE_MAX, &body, error);
	return result ? result : log_head_judge(arena, body, policy, ret, error);
}
