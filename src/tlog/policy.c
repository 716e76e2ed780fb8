#include "tlog/policy.h"

#include <assert.h>

#define WORDS_MAX (POLICY_WITNESSES_MAX + POLICY_GROUPS_MAX + 4)

struct parser {
	struct arena *arena;
	struct policy policy;
	bool has_quorum_line;
	bool used_witnesses[POLICY_WITNESSES_MAX], used_groups[POLICY_GROUPS_MAX];
	size_t line;
	struct slice words[WORDS_MAX];
	size_t count;
	struct error *error;
};

static int refuse(struct parser *parser, const char *why)
{
	return error_cause(parser->error, ERR_INVALID_EVIDENCE, "line %zu: %s", parser->line, why);
}

static const char *copy(struct parser *parser, struct slice text)
{
	return arena_copy(parser->arena, text.data, text.size);
}

/* ---- names ---- */

/* Finds what the name stands for; false: it is unknown. */
static bool find_member(const struct policy *policy, struct slice name, struct policy_member *ret)
{
	for (size_t i = 0; i < policy->witness_count; i++)
		if (slice_is(name, policy->witnesses[i].name)) {
			*ret = (struct policy_member){false, i};
			return true;
		}
	for (size_t i = 0; i < policy->group_count; i++)
		if (slice_is(name, policy->groups[i].name)) {
			*ret = (struct policy_member){true, i};
			return true;
		}
	return false;
}

static int check_new_name(struct parser *parser, struct slice name)
{
	struct policy_member known;
	if (slice_is(name, "none"))
		return refuse(parser, "the name none has a meaning of its own");
	if (name.size > POLICY_NAME_MAX)
		return refuse(parser, "a name may have 255 bytes at most");
	return find_member(&parser->policy, name, &known) ? refuse(parser, "the name is defined twice")
	                                                  : OK;
}

static bool same_key(const struct note_key *a, const struct note_key *b)
{
	return memcmp(a->key, b->key, NOTE_KEY_SIZE) == 0;
}

/* ---- the lines ---- */

static int parse_key(struct parser *parser, struct slice text, enum note_key_type type,
                     struct note_key *ret)
{
	struct error detail = {0};
	int result = note_key_parse(text, ret, &detail);
	if (result)
		return error_cause(parser->error, result, "line %zu: key: %s", parser->line, detail.cause);
	if (ret->type != type)
		return refuse(parser, type == NOTE_COSIGNATURE
		                          ? "the key of a witness must be of type 4 (cosignatures)"
		                          : "the key of a log must be of type 1 (Ed25519)");
	return OK;
}

static int parse_url(struct parser *parser, size_t word, const char **ret)
{
	*ret = NULL;
	if (word >= parser->count)
		return OK;
	*ret = copy(parser, parser->words[word]);
	return *ret ? OK : ERR_NO_MEMORY;
}

static int parse_log(struct parser *parser)
{
	struct policy *policy = &parser->policy;
	if (parser->count < 2 || parser->count > 3)
		return refuse(parser, "must be: log KEY [URL]");
	if (policy->log_count == POLICY_LOGS_MAX)
		return refuse(parser, "a policy may have 32 logs at most");
	struct policy_log *log = &policy->logs[policy->log_count];
	int result = parse_key(parser, parser->words[1], NOTE_ED25519, &log->key);
	for (size_t i = 0; !result && i < policy->log_count; i++)
		if (same_key(&policy->logs[i].key, &log->key))
			return refuse(parser, "two logs have this key");
	if (!result)
		result = parse_url(parser, 2, &log->url);
	policy->log_count += !result;
	return result;
}

static int parse_witness(struct parser *parser)
{
	struct policy *policy = &parser->policy;
	if (parser->count < 3 || parser->count > 4)
		return refuse(parser, "must be: witness NAME KEY [URL]");
	if (policy->witness_count == POLICY_WITNESSES_MAX)
		return refuse(parser, "a policy may have 64 witnesses at most");
	struct policy_witness *witness = &policy->witnesses[policy->witness_count];
	int result = check_new_name(parser, parser->words[1]);
	if (!result)
		result = parse_key(parser, parser->words[2], NOTE_COSIGNATURE, &witness->key);
	for (size_t i = 0; !result && i < policy->log_count; i++)
		if (memcmp(policy->logs[i].key.key, witness->key.key, NOTE_KEY_SIZE) == 0)
			return refuse(parser, "a log must not be its own witness");
	for (size_t i = 0; !result && i < policy->witness_count; i++)
		if (same_key(&policy->witnesses[i].key, &witness->key))
			return refuse(parser, "two witnesses have this key");
	if (!result)
		result = parse_url(parser, 3, &witness->url);
	witness->name = copy(parser, parser->words[1]);
	if (!result && !witness->name)
		result = ERR_NO_MEMORY;
	policy->witness_count += !result;
	return result;
}

/* Reads "all", "any" or a number from 1 to `count`; 0: none of these. */
static size_t parse_threshold(struct slice word, size_t count)
{
	size_t number = 0;
	if (slice_is(word, "all"))
		return count;
	if (slice_is(word, "any"))
		return 1;
	if (word.size > 3 || word.data[0] == '0')
		return 0;
	for (size_t i = 0; i < word.size; i++) {
		if (word.data[i] < '0' || word.data[i] > '9')
			return 0;
		number = number * 10 + (size_t)(word.data[i] - '0');
	}
	return number <= count ? number : 0;
}

static int parse_member(struct parser *parser, struct slice name, struct policy_member *ret)
{
	if (!find_member(&parser->policy, name, ret))
		return refuse(parser, "a member must be defined on a line before");
	bool *used =
		ret->is_group ? &parser->used_groups[ret->index] : &parser->used_witnesses[ret->index];
	if (*used)
		return refuse(parser, "a name may be a member once");
	*used = true;
	return OK;
}

static int parse_group(struct parser *parser)
{
	struct policy *policy = &parser->policy;
	if (parser->count < 4)
		return refuse(parser, "must be: group NAME all|any|NUMBER MEMBER...");
	if (policy->group_count == POLICY_GROUPS_MAX)
		return refuse(parser, "a policy may have 64 groups at most");
	size_t count = parser->count - 3;
	struct policy_member *members = arena_alloc(parser->arena, count * sizeof *members);
	struct policy_group *group = &policy->groups[policy->group_count];
	*group = (struct policy_group){copy(parser, parser->words[1]),
	                               parse_threshold(parser->words[2], count), members, count};
	if (!members || !group->name)
		return ERR_NO_MEMORY;
	if (group->threshold == 0)
		return refuse(parser, "the threshold must be all, any or a number up to that of members");
	int result = check_new_name(parser, parser->words[1]);
	for (size_t i = 0; i < count && !result; i++)
		result = parse_member(parser, parser->words[3 + i], &members[i]);
	policy->group_count += !result;
	return result;
}

static int parse_quorum(struct parser *parser)
{
	struct policy *policy = &parser->policy;
	if (parser->count != 2)
		return refuse(parser, "must be: quorum NAME");
	if (parser->has_quorum_line)
		return refuse(parser, "a policy must have one quorum line");
	parser->has_quorum_line = true;
	policy->has_quorum = !slice_is(parser->words[1], "none");
	if (policy->has_quorum && !find_member(policy, parser->words[1], &policy->quorum))
		return refuse(parser, "the quorum must be defined on a line before");
	return OK;
}

/* ---- the text ---- */

static int split_line(struct parser *parser, struct slice line)
{
	parser->count = 0;
	for (size_t at = 0; at < line.size;) {
		unsigned char byte = (unsigned char)line.data[at];
		if (byte == ' ' || byte == '\t') {
			at++;
			continue;
		}
		if (parser->count == 0 && byte == '#')
			return OK;
		if (parser->count == WORDS_MAX)
			return refuse(parser, "too many words");
		size_t end = at;
		for (; end < line.size && line.data[end] != ' ' && line.data[end] != '\t'; end++)
			if ((unsigned char)line.data[end] < 0x20 || line.data[end] == 0x7f)
				return refuse(parser, "control characters are not allowed");
		parser->words[parser->count++] = slice_make(line.data + at, end - at);
		at = end;
	}
	return OK;
}

static int parse_line(struct parser *parser, struct slice line)
{
	static const struct {
		const char *word;
		int (*parse)(struct parser *parser);
	} kinds[] = {{"log", parse_log},
	             {"witness", parse_witness},
	             {"group", parse_group},
	             {"quorum", parse_quorum}};
	int result = split_line(parser, line);
	if (result || parser->count == 0)
		return result;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (slice_is(parser->words[0], kinds[i].word))
			return kinds[i].parse(parser);
	return refuse(parser, "must begin with log, witness, group or quorum");
}

static int make_room(struct arena *arena, struct policy *policy)
{
	policy->logs = arena_alloc(arena, POLICY_LOGS_MAX * sizeof *policy->logs);
	policy->witnesses = arena_alloc(arena, POLICY_WITNESSES_MAX * sizeof *policy->witnesses);
	policy->groups = arena_alloc(arena, POLICY_GROUPS_MAX * sizeof *policy->groups);
	return policy->logs && policy->witnesses && policy->groups ? OK : ERR_NO_MEMORY;
}

int policy_parse(struct arena *arena, struct slice text, struct policy *ret, struct error *error)
{
	struct parser parser = {.arena = arena, .error = error};
	if (text.size > POLICY_SIZE_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "a policy may have 65,536 bytes at most");
	int result = make_room(arena, &parser.policy);
	for (struct slice rest = text; !result && rest.size > 0;) {
		const char *end = memchr(rest.data, '\n', rest.size);
		size_t size = end ? (size_t)(end - rest.data) : rest.size;
		parser.line++;
		result = parse_line(&parser, slice_make(rest.data, size));
		rest = slice_make(rest.data + size + (end != NULL), rest.size - size - (end != NULL));
	}
	if (!result && !parser.has_quorum_line)
		result = error_cause(error, ERR_INVALID_EVIDENCE, "a policy must have a quorum line");
	if (!result)
		*ret = parser.policy;
	return result;
}

/* ---- a policy of options ---- */

static bool has_twice(const struct note_key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (same_key(&keys[i], &keys[j]))
				return true;
	return false;
}

int policy_make(struct arena *arena, const struct note_key *logs, size_t log_count,
                const struct note_key *witnesses, size_t witness_count, size_t threshold,
                struct policy *ret, struct error *error)
{
	struct policy policy = {.log_count = log_count, .witness_count = witness_count};
	if (log_count > POLICY_LOGS_MAX || witness_count > POLICY_WITNESSES_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "at most 32 logs and 64 witnesses");
	if (has_twice(logs, log_count) || has_twice(witnesses, witness_count))
		return error_cause(error, ERR_INVALID_EVIDENCE, "two keys are the same");
	for (size_t i = 0; i < log_count; i++)
		for (size_t j = 0; j < witness_count; j++)
			if (memcmp(logs[i].key, witnesses[j].key, NOTE_KEY_SIZE) == 0)
				return error_cause(error, ERR_INVALID_EVIDENCE,
				                   "a log must not be its own witness");
	if (threshold > witness_count)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the quorum is %zu, and %zu witnesses are given", threshold,
		                   witness_count);
	struct policy_member *members = arena_alloc(arena, (witness_count + 1) * sizeof *members);
	int result = members ? make_room(arena, &policy) : ERR_NO_MEMORY;
	if (result)
		return result;
	for (size_t i = 0; i < log_count; i++)
		policy.logs[i] = (struct policy_log){.key = logs[i]};
	for (size_t i = 0; i < witness_count; i++) {
		policy.witnesses[i].key = witnesses[i];
		policy.witnesses[i].name = policy.witnesses[i].key.name;
		members[i] = (struct policy_member){false, i};
	}
	policy.has_quorum = threshold > 0;
	if (policy.has_quorum) {
		policy.groups[0] = (struct policy_group){"quorum", threshold, members, witness_count};
		policy.group_count = 1;
		policy.quorum = (struct policy_member){true, 0};
	}
	*ret = policy;
	return OK;
}

/* ---- the quorum ---- */

bool policy_is_satisfied(const struct policy *policy, const bool *cosigned)
{
	bool groups[POLICY_GROUPS_MAX];
	if (!policy->has_quorum)
		return true;
	/* Members are of a lower index, so each group is decided once. */
	for (size_t i = 0; i < policy->group_count; i++) {
		const struct policy_group *group = &policy->groups[i];
		size_t count = 0;
		for (size_t j = 0; j < group->count; j++) {
			const struct policy_member *member = &group->members[j];
			assert(!member->is_group || member->index < i);
			count += member->is_group ? groups[member->index] : cosigned[member->index];
		}
		groups[i] = count >= group->threshold;
	}
	return policy->quorum.is_group ? groups[policy->quorum.index] : cosigned[policy->quorum.index];
}

int64_t policy_time(const struct policy *policy, const int64_t *cosigned_us)
{
	int64_t earliest_us = TIME_NONE;
	for (size_t i = 0; i < policy->witness_count; i++) {
		bool cosigned[POLICY_WITNESSES_MAX] = {false};
		const int64_t time_us = cosigned_us[i];
		if (time_us == TIME_NONE || (earliest_us != TIME_NONE && time_us >= earliest_us))
			continue;
		for (size_t j = 0; j < policy->witness_count; j++)
			cosigned[j] = cosigned_us[j] != TIME_NONE && cosigned_us[j] <= time_us;
		if (policy_is_satisfied(policy, cosigned))
			earliest_us = time_us;
	}
	return earliest_us;
}
