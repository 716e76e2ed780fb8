/* The offline verifier: evidence archives, content parts, PDF reports and evidence records, from
 * the bytes up.
 *
 * It needs no service and writes nothing. Files are recognized by content. Given together, an
 * archive binds its content parts (by SHA-256) and reports (by the SHA-256 and the verification
 * code they name), and an evidence record (RFC 4998) covers whichever of the other files it is of.
 * That a record covers a file of no other kind shows that this existed; whose it is shows only
 * where it is an event that an archive holds, to the byte. Memory does not grow with the number of
 * events. Every limit of the format is enforced, so a hostile file is refused and not followed. The
 * calls of `progress` come from the caller's thread. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "seal/evidence_record.h"
#include "seal/level.h"
#include "seal/trust.h"
#include "trustlist/trusted_list.h"
#include "verify/verify_finding.h"

#define VERIFY_FINDINGS_MAX 1000 /* kept; further ones are counted */
#define VERIFY_PATHS_MAX 10000
#define VERIFY_IDENTITIES_MAX 1000 /* of each kind; further ones could not be told: unchecked */
/* How much earlier a timestamp may be than what it covers, since it is of another clock. */
#define VERIFY_CLOCK_TOLERANCE_US (300 * US_PER_SECOND)

/* Beyond these a warning says so; nothing is called not valid for it. */
#define VERIFY_DELAY_MAX_US (3600 * US_PER_SECOND) /* from a stated time to the timestamp on it */
#define VERIFY_ACCURACY_MAX_US US_PER_SECOND       /* of a timestamp, as its authority states it */
#define VERIFY_DIVERGENCE_MAX_US (60 * US_PER_SECOND) /* between two timestamps of one round */

enum verify_severity {
	VERIFY_WARNING,       /* valid all the same */
	VERIFY_UNESTABLISHED, /* intact, but whose it is nothing shows: exit 2 */
	VERIFY_UNCHECKED,     /* could not be checked: exit 2 unless something is wrong */
	VERIFY_WRONG,         /* not valid */
};

/* All findings in one word. */
enum verify_verdict {
	VERIFY_VALID, /* intact, and of whom the caller trusts */
	VERIFY_NOT_VALID,
	VERIFY_SIGNER_OPEN,    /* intact, but the signer leads to no root that was given */
	VERIFY_AUTHORITY_OPEN, /* the signer does, but not who gave the times */
	VERIFY_EXISTENCE_ONLY, /* nothing is signed of a file that an evidence record covers */
	VERIFY_NOT_CHECKED,
};

struct verify_finding {
	enum verify_severity severity;
	const char *path;  /* as given */
	const char *where; /* "events/events-000001.ndjson.gz line 17 sequence 17 (hash)", or "" */
	enum finding finding;
	const char *what, *what_es; /* one sentence, English and Spanish */
	const char *detail; /* with which both end: what a step said, in English; NULL: nothing */
	struct verify_finding *next;
};

/* Each certificate that a valid signature or timestamp was made with, once. */
struct verify_identity {
	struct certificate_facts certificate;
	uint64_t timestamps;  /* of an authority: how many it gave */
	uint64_t not_revoked; /* of those of an archive's rounds: where the archive shows so */
	bool trusted; /* leads to a root that was given for its kind, or is a signer asked for */
	/* The times of the first and the last; of a signer: those of his signatures. */
	int64_t first_gen_time_us, last_gen_time_us;
	struct slice path;                /* DER: the certificate and those above it that are known */
	const struct list_answer *listed; /* what the trusted list says; NULL: none was asked */
	struct verify_identity *next;
};
struct verify_identities {
	struct verify_identity *first, *last;
	size_t count;
};

/* What a valid signature of a report or an archive has reached, by what is inside. */
struct verify_level {
	const char *path; /* as given */
	enum level level;
	int64_t until_us; /* when the newest certificate ends that vouches for it: of the last
	                     timestamp's authority, or of the signer where there is none */
	struct verify_level *next;
};

/* From an event's received_at, which the service states, to the first timestamp that proves it. */
struct verify_delay {
	int64_t sequence; /* 0: there is no timestamped event */
	int64_t received_at_us;
	int64_t between_us; /* of the timestamp before, if it was given in between; TIME_NONE: it was
	                       not, or is not known */
	int64_t gen_time_us;
	const char *path; /* of the archive, as given */
};

/* What was given, and what a container holds. */
enum verify_kind {
	VERIFY_OTHER, /* no file of this service by its looks: an evidence record may cover it */
	VERIFY_ARCHIVE,
	VERIFY_PART,
	VERIFY_REPORT,
	VERIFY_RECORD,
	VERIFY_CONTAINER,
};
struct verify_file {
	const char *path; /* as it is reported; of a file in a container, after the container's */
	enum verify_kind kind;
	struct sha256 sha256;
	bool is_listed;       /* a part: an archive that was given, too, lists it */
	bool is_signed;       /* an archive or a report with a valid signature */
	struct sha256 signer; /* the SHA-256 of the certificate that it was made with */
	int64_t signed_at_us; /* by its timestamp; TIME_NONE: it has none */
	struct verify_file *next;
};

/* A valid evidence record. */
struct verify_covered {
	const char *path; /* as given */
	struct verify_covered *next;
};
struct verify_record {
	const char *path; /* as given */
	struct verify_covered *covers;
	struct evidence_facts facts;
	struct verify_record *next;
};

/* A service's list of its signers, as it was given. */
struct verify_signer_list {
	char *path, *service; /* by its own word */
	struct sha256 signer; /* the SHA-256 of the certificate that signed it */
	int64_t issued_at_us;
	int64_t signed_at_us; /* by its timestamp */
};

struct verify_counts {
	uint64_t events, segments, timestamps, files, parts, reports;
	uint64_t records;  /* evidence records */
	uint64_t renewals; /* archive timestamps in archives */
	uint64_t receipts; /* compared with the event that they are of */
};

struct verify_result {
	struct arena arena; /* holds the findings */
	int64_t at_us;      /* what it was judged as of */
	struct verify_finding *first, *last;
	/* How many, also those beyond VERIFY_FINDINGS_MAX. */
	uint64_t wrong, unchecked, unestablished, warnings;
	uint64_t kept;
	/* Trusted certificates were given for the kind; all lead to them, or are signers asked for. */
	bool signers_given, authorities_given, signers_trusted, authorities_trusted;
	bool trusted; /* there is a signature, all lead to what was given, and nothing is wrong */
	struct verify_identities signers;     /* of archives and reports */
	struct verify_identities authorities; /* of timestamps */
	struct verify_level *first_level, *last_level;
	struct verify_file *files; /* those that could be read, in the order given */
	struct verify_delay longest_delay;
	struct verify_record *records, *last_record;
	/* Of the files that nothing but an evidence record vouches for: how many, and the first. */
	uint64_t existence_only;
	struct verify_existence {
		const char *path; /* as given */
		int64_t since_us;
		bool is_event; /* an event record, by its form */
	} existence;
	const struct list_facts *list; /* the trusted list that was asked; NULL: none */
	/* The list of signers that signatures were compared with; NULL: none. */
	const struct verify_signer_list *signer_list;
	struct verify_counts checked;
};

struct verify_options {
	/* SHA-256 of the certificates that may sign; none: any that leads to the roots. Who signed is
	 * established by them, too, without roots of signers. */
	const struct sha256 *signers;
	size_t signer_count;
	/* Files of receipts (archive/receipt.h), each to be found in an archive exactly as it says. One
	 * that an archive contradicts is unchecked, as it is not signed itself; so is one of an event
	 * that no archive holds. */
	const char *const *receipts;
	size_t receipt_count;
	/* Files of the service's signed list of its signers (archive/signer_list.h): a signature of
	 * none of them, or of one that was not in force then, is wrong. The newest counts; one that
	 * cannot be used is unchecked. */
	const char *const *signer_lists;
	size_t signer_list_count;
	/* An EU trusted list, which then says of each signer and authority whether it was qualified;
	 * who may sign it (PEM). NULL: none. One that cannot be used is unchecked. */
	const char *trusted_list;
	struct slice trusted_list_roots;
	/* The names of the paths in reports, in their order; NULL: the paths. */
	const char *const *names;
	/* With a time, as of when everything is judged: the certificate of each file's newest timestamp
	 * must not have ended by then, unless an evidence record shows that the file existed before;
	 * what was issued later could not be checked. Without: now, and a certificate that has ended is
	 * warned of. */
	bool has_time;
	int64_t at_us;
	/* Called now and then, at most some times a second; NULL: never. Negative ends the check and is
	 * given back. */
	int (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
	/* Content parts, digests and what is compressed by threads of their own, with the caller's
	 * priority. */
	bool beside;
	/* The seals are the caller's: that one names no timestamp before it, where the first round of a
	 * service may have made it so, is warned of and does not count as unchecked. */
	bool own_seals;
	bool stop_early; /* at the first thing that is wrong: for who only needs yes or no */
};

/* Checks all paths together. `roots` may be NULL: none; each certificate among them is an anchor,
 * self-signed or not. `options` may be NULL. 0 with the result filled, whatever it says (what needs
 * roots that are no certificates is unchecked); negative only when the check itself could not run:
 * ERR_NO_MEMORY, ERR_USAGE. */
int verify_paths(const char *const *paths, size_t count, const struct trust_roots *roots,
                 const struct verify_options *options, struct verify_result *ret_result,
                 struct error *error) MUST_CHECK;
/* Appends the PEM certificates of a file, to be used as roots. ERR_IO when there are none. */
int verify_read_roots(const char *path, struct buf *out, struct error *error) MUST_CHECK;
enum verify_verdict verify_verdict(const struct verify_result *result);
/* The word that the sentence begins with, in capitals: "VALID", "NOT VALID", … */
const char *verify_word(enum verify_verdict verdict, enum language language);
/* Appends the verdict as a sentence for people, with the names of who signed and who gave the time;
 * no line end. 0 or ERR_NO_MEMORY. */
int verify_sentence(const struct verify_result *result, enum language language, struct buf *out)
	MUST_CHECK;
/* "wrong", "unchecked", "unestablished" or "warning". */
const char *verify_severity_text(enum verify_severity severity);
/* 0 valid, 1 not valid, 2 intact as far as it could be checked, but not established whose it is, or
 * not checked to the end. */
int verify_exit_code(const struct verify_result *result);
/* For people (first the sentence, in English and Spanish, and last the counts; the rest in
 * English), or one JSON document:
 * {"as_of","authorities":[{"first_gen_time","issuer","issuer_name","last_gen_time","name",
 * "not_after","not_before","not_revoked","qualified","sha256","subject","timestamps","trusted"}],
 * "checked":{…},
 * "could_not_check","evidence_records":[{"covers":[path],"exists_since","path","timestamps":[{
 * "algorithm","authority","chain","gen_time","number"}],"valid_until"}],"files":[{"kind","listed",
 * "path","sha256","signed_at","signer"}],"findings":[{"code","detail","path","severity","what",
 * "what_es","where"}],"findings_version","longest_delay":{
 * "between","gen_time","microseconds","path","received_at","sequence"}|null,"signatures":[{
 * "checkable_until","level","path"}],"signer_list":{"issued_at","path","service","signed_at",
 * "signer"}|null,"signers":[…],"trusted","trusted_list":{"issued_at",
 * "next_update","operator","signer","territory"}|null,"valid","verdict":{"code","en","es"},
 * "warnings":[…]}; `findings` holds what is wrong, not established or could not be checked;
 * "qualified" is {"provider","reason","service","standing"} or null; "kind" is "archive",
 * "container", "content_part", "evidence_record", "other" or "report"; "signed_at" and "signer" are
 * null where there is no valid signature or no timestamp of it. */
void verify_print(const struct verify_result *result, bool json, FILE *out);
/* For people, the rest in `language`. */
void verify_print_in(const struct verify_result *result, enum language language, FILE *out);
void verify_result_free(struct verify_result *result); /* NULL-safe */

#endif
