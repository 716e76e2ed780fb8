/* The options by which a user says which logs and witnesses are trusted. */
#ifndef CLI_LOG_POLICY_H
#define CLI_LOG_POLICY_H

#include "cli/command.h"
#include "tlog/policy.h"

#define LOG_POLICY_OPTIONS                                                                         \
	{"log-key", "VKEY...", "verifier key of the log of segments (NAME+ID+KEY); may be repeated"},  \
		{"witness", "VKEY...",                                                                     \
	     "verifier key of a witness of the log; may be repeated, with --quorum"},                  \
		{"quorum", "N",                                                                            \
	     "number of these witnesses that must have cosigned the log (all of them)"},               \
	{                                                                                              \
		"log-policy", "FILE", "trust policy with logs, witnesses and quorum (C2SP tlog-policy)"    \
	}

/* The same for commands that are about a log and nothing else. */
#define LOG_OPTIONS                                                                                \
	{"key", "VKEY...", "verifier key of the log (NAME+ID+KEY); may be repeated"},                  \
		{"witness", "VKEY...",                                                                     \
	     "verifier key of a witness of the log; may be repeated, with --quorum"},                  \
		{"quorum", "N",                                                                            \
	     "number of these witnesses that must have cosigned the log (all of them)"},               \
	{                                                                                              \
		"policy", "FILE", "trust policy with logs, witnesses and quorum (C2SP tlog-policy)"        \
	}

/* Names of the options for the keys of logs and for the file. */
struct log_policy_names {
	const char *key, *policy;
};

/* Reads the options into the arena. *ret_given is false if there are none. ERR_USAGE, ERR_IO. */
int log_policy_read(const struct command_line *line, const struct log_policy_names *names,
                    struct arena *arena, struct policy *ret, bool *ret_given, struct error *error)
	MUST_CHECK;

#endif
