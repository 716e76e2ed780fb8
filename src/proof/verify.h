/* The offline verifier: evidence archives, content parts and PDF reports, from the bytes up.
 *
 * It needs no service and writes nothing. Files are recognized by content. Given together, an
 * archive binds its content parts (by SHA-256) and reports (by the SHA-256 and the verification
 * code they name). Memory does not grow with the number of events. Every limit of the format is
 * enforced, so a hostile file is refused and not followed. One thread. */
#ifndef PROOF_VERIFY_H
#define PROOF_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"

#define VERIFY_FINDINGS_MAX 1000 /* kept; further ones are counted */
#define VERIFY_PATHS_MAX 10000

enum verify_severity {
	VERIFY_WARNING,   /* valid all the same */
	VERIFY_UNCHECKED, /* could not be checked: exit 2 unless something is wrong */
	VERIFY_WRONG,     /* not valid */
};

struct verify_finding {
	enum verify_severity severity;
	const char *path;  /* as given */
	const char *where; /* "events/events-000001.ndjson.gz line 17 sequence 17 (hash)", or "" */
	const char *what;  /* one English sentence */
	struct verify_finding *next;
};

struct verify_counts {
	uint64_t events, segments, timestamps, files, parts, reports;
};

struct verify_result {
	struct arena arena; /* holds the findings */
	struct verify_finding *first, *last;
	uint64_t wrong, unchecked, warnings; /* how many, also those beyond VERIFY_FINDINGS_MAX */
	uint64_t kept;
	bool trusted; /* roots were given and every signer and authority leads to one of them */
	struct verify_counts checked;
};

struct verify_options {
	/* Called now and then, at most some times a second; NULL: never. */
	void (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
	bool stop_early; /* at the first thing that is wrong: for who only needs yes or no */
};

/* Checks all paths together. `trust` is a file with PEM roots of the signer and the timestamp
 * authorities, or NULL. `options` may be NULL. 0 with the result filled, whatever it says;
 * negative only when the check itself could not run (no memory, unreadable trust file). */
int verify_paths(const char *const *paths, size_t count, const char *trust,
                 const struct verify_options *options, struct verify_result *ret_result,
                 struct error *error) __attribute__((warn_unused_result));
/* 0 valid, 1 not valid, 2 could not be checked. */
int verify_exit_code(const struct verify_result *result);
/* For people (findings in English, the summary in English and Spanish), or one JSON document:
 * {"checked":{…},"could_not_check","findings":[{"path","what","where"}],"trusted","valid",
 * "warnings":[…]}; `findings` holds what is wrong or could not be checked. */
void verify_print(const struct verify_result *result, bool json, FILE *out);
void verify_result_free(struct verify_result *result); /* NULL-safe */

#endif
