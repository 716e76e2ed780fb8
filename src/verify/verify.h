/* The offline verifier. It checks evidence archives, content parts, PDF reports and evidence
 * records (RFC 4998) from their bytes alone.
 *
 * It needs no service and writes nothing. It recognizes files by their content. Files that are
 * given together are checked together: an archive binds its content parts by their SHA-256, and
 * reports by the SHA-256 and the verification code that they state. An evidence record covers any
 * of the other files. For a file of no known kind, a record proves only that the file existed. It
 * proves the origin of an event record only if a given archive contains the same bytes.
 *
 * Memory use does not grow with the number of events. The verifier enforces every limit of the
 * format, so it rejects a hostile file before it uses more memory. The callback `progress` is
 * called on the caller's thread. */
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

struct policy;

#define VERIFY_FINDINGS_MAX 1000 /* stored; further ones are only counted */
#define VERIFY_PATHS_MAX 10000
#define VERIFY_IDENTITIES_MAX 1000 /* of each kind; further ones make the result unchecked */
/* A timestamp may be earlier by this than the data that it covers, because it comes from another
 * clock. */
#define VERIFY_CLOCK_TOLERANCE_US (300 * US_PER_SECOND)

/* Values above these cause a warning. They do not make the evidence invalid. */
#define VERIFY_DELAY_MAX_US (3600 * US_PER_SECOND) /* from a stated time to its timestamp */
#define VERIFY_ACCURACY_MAX_US US_PER_SECOND       /* of a timestamp, as stated by its authority */
#define VERIFY_DIVERGENCE_MAX_US (60 * US_PER_SECOND) /* between two timestamps of one round */

enum verify_severity {
	VERIFY_WARNING,       /* the evidence is still valid */
	VERIFY_UNESTABLISHED, /* intact, but its origin is not proven: exit 2 */
	VERIFY_UNCHECKED,     /* could not be checked: exit 2 unless a finding is VERIFY_WRONG */
	VERIFY_WRONG,         /* not valid */
};

/* The overall result. */
enum verify_verdict {
	VERIFY_VALID, /* intact, and from a trusted signer */
	VERIFY_NOT_VALID,
	VERIFY_SIGNER_OPEN,    /* intact, but the signer does not chain to a given root */
	VERIFY_AUTHORITY_OPEN, /* the signer chains to a given root, a timestamp authority does not */
	VERIFY_EXISTENCE_ONLY, /* a file is covered by an evidence record, but not signed */
	VERIFY_NOT_CHECKED,
};

struct verify_finding {
	enum verify_severity severity;
	const char *path;  /* as given */
	const char *where; /* "events/events-000001.ndjson.gz line 17 sequence 17 (hash)", or "" */
	enum finding finding;
	const char *what, *what_es; /* one sentence, English and Spanish */
	const char *detail;         /* the cause appended to both, in English; NULL: none */
	struct verify_finding *next;
};

/* A certificate that made a valid signature or timestamp. Each is listed once. */
struct verify_identity {
	struct certificate_facts certificate;
	uint64_t timestamps;  /* of an authority: the number that it issued */
	uint64_t not_revoked; /* timestamps of rounds for which the archive proves that no certificate
	                         was revoked */
	bool trusted;         /* chains to a root given for its kind, or is a required signer */
	/* The times of the first and the last timestamp; for a signer: of the signatures. */
	int64_t first_gen_time_us, last_gen_time_us;
	struct slice path;                /* DER: the certificate and its known issuers */
	const struct list_answer *listed; /* the answer of the trusted list; NULL: none was given */
	struct verify_identity *next;
};
struct verify_identities {
	struct verify_identity *first, *last;
	size_t count;
};

/* The level of a valid signature of a report or an archive, by its embedded data. */
struct verify_level {
	const char *path; /* as given */
	enum level level;
	int64_t until_us; /* expiry of the certificate of the last timestamp, or of the signer if there
	                     is none */
	struct verify_level *next;
};

/* The delay from the received_at of an event, stated by the service, to the first timestamp that
 * proves it. */
struct verify_delay {
	int64_t sequence; /* 0: there is no timestamped event */
	int64_t received_at_us;
	int64_t between_us; /* of the previous timestamp if it falls in between; TIME_NONE: it does not,
	                       or is unknown */
	int64_t gen_time_us;
	const char *path; /* of the archive, as given */
};

/* A file that was given, or that a given container contains. */
enum verify_kind {
	VERIFY_UNKNOWN_FILE, /* not recognized as a file of this service; an evidence record may cover
	                        it */
	VERIFY_ARCHIVE,
	VERIFY_PART,
	VERIFY_REPORT,
	VERIFY_RECORD,
	VERIFY_CONTAINER,
};
/* What the manifest of an archive states, and whether it has the seal documents of the chain from
 * its first segment to those of the archive. */
struct verify_contents {
	const char *certification_id, *channel_id;
	bool is_test;
	bool has_seals; /* false: it has no segment, or none was read */
	bool has_history;
	int64_t first_sequence, last_sequence;
	int64_t requested_from_us, requested_to_us; /* TIME_NONE: requested by sequence numbers */
};
struct verify_file {
	const char *path; /* as reported; for a file in a container, preceded by the container's path */
	enum verify_kind kind;
	struct sha256 sha256;
	bool is_listed;                         /* for a part: a given archive lists it */
	bool is_signed;                         /* an archive or a report with a valid signature */
	struct sha256 signer;                   /* SHA-256 of the signing certificate */
	int64_t signed_at_us;                   /* time of its timestamp; TIME_NONE: it has none */
	const struct verify_contents *contents; /* of an archive with a readable manifest; else NULL */
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

/* A list of signers of a service that was given. */
struct verify_signer_list {
	char *path, *service; /* as stated in the list */
	struct sha256 signer; /* SHA-256 of the certificate that signed the list */
	int64_t issued_at_us;
	int64_t signed_at_us; /* time of its timestamp */
};

struct verify_counts {
	uint64_t events, segments, timestamps, files, parts, reports;
	uint64_t records;         /* evidence records */
	uint64_t renewals;        /* archive timestamps in archives */
	uint64_t receipts;        /* compared with their events */
	uint64_t bridge_segments; /* seal documents of segments that are in no archive */
};

/* A chain of which several files were given. */
struct verify_history {
	const char *channel_id;
	bool is_test;
	int64_t first_sequence, last_sequence; /* from the first to the last event of the files */
	size_t archives, bridges;
	bool is_one; /* the files are of one history */
	struct verify_history *next;
};

/* What the log of segments says of an archive (verify_options.log_policy has the known keys). */
struct verify_log {
	struct verify_log *next;
	const char *path;
	const char *origin;        /* name of the log */
	uint64_t entries;          /* of the newest tree in the archive */
	uint64_t segments, logged; /* of the archive, and those with an entry */
	bool is_signed;            /* the newest tree, by a known or certified key of the log */
	struct verify_witness {
		const char *name;
		int64_t time_us;
	} * witnesses; /* known ones that cosigned the newest tree */
	size_t witness_count;
};

struct verify_result {
	struct arena arena; /* holds the findings */
	int64_t at_us;      /* the time of the check */
	struct verify_finding *first, *last;
	/* Numbers of findings, including those beyond VERIFY_FINDINGS_MAX. */
	uint64_t wrong, unchecked, unestablished, warnings;
	uint64_t kept;
	/* Whether trusted certificates were given for the kind, and whether all signers or authorities
	 * chain to them or are required signers. */
	bool signers_given, authorities_given, signers_trusted, authorities_trusted;
	bool trusted; /* there is a signature, all certificates are trusted, and no finding is
	                 VERIFY_WRONG */
	struct verify_identities signers;     /* of archives and reports */
	struct verify_identities authorities; /* of timestamps */
	struct verify_level *first_level, *last_level;
	struct verify_file *files; /* the readable files, in the order given */
	struct verify_delay longest_delay;
	struct verify_log *logs, *last_log;
	struct verify_record *records, *last_record;
	struct verify_history *histories, *last_history;
	/* The files that only an evidence record covers: their number, and the first one. */
	uint64_t existence_only;
	struct verify_existence {
		const char *path; /* as given */
		int64_t since_us;
		bool is_event; /* it has the form of an event record */
	} existence;
	const struct list_facts *list; /* the trusted list that was used; NULL: none */
	/* The list of signers with which signatures were compared; NULL: none. */
	const struct verify_signer_list *signer_list;
	struct verify_counts checked;
};

struct verify_options {
	/* SHA-256 of the required signing certificates; none: any certificate that chains to the roots.
	 * They also establish the signer without roots for signers. */
	const struct sha256 *signers;
	size_t signer_count;
	/* Files of receipts (archive/receipt.h). Each receipt must match an event of an archive
	 * exactly. An archive of a trusted signer, in which nothing is wrong, that contradicts a
	 * receipt signed with a key that its service certifies is proof against the service; other
	 * contradicted receipts are unchecked, because nothing shows which one is genuine. A receipt of
	 * an event that no archive contains is unchecked, too. */
	const char *const *receipts;
	size_t receipt_count;
	/* Files of seal documents, one per line in ascending order (GET /v1/channel/seals), each an
	 * unbroken run of one chain. If there is a bridge of a chain, it is wrong if the bridges do not
	 * connect all archives of the chain. */
	const char *const *bridges;
	size_t bridge_count;
	/* Files with the service's signed list of its signers (archive/signer_list.h). A signature by a
	 * certificate that is not listed, or was not in force at that time, is wrong. The newest list
	 * is used. A list that cannot be used is unchecked. */
	const char *const *signer_lists;
	size_t signer_list_count;
	/* The path of an EU trusted list, which states whether each signer and authority was qualified,
	 * and the certificates that may sign it (PEM). NULL: none. A list that cannot be used is
	 * unchecked. */
	const char *trusted_list;
	struct slice trusted_list_roots;
	/* The logs and witnesses of segments that are trusted, and the quorum of the newest checkpoint
	 * of each archive (tlog/policy.h). What does not satisfy it is not established. NULL: none. */
	const struct policy *log_policy;
	bool log_policy_informs; /* what does not satisfy it is no finding */
	/* The names reported instead of the paths, in the same order; NULL: the paths. */
	const char *const *names;
	/* The time as of which everything is judged. The certificate of the newest timestamp of each
	 * file must not have expired by then, unless an evidence record shows that the file existed
	 * before its expiry. A file issued later is unchecked. Without a time: now, and an expired
	 * certificate is only a warning. */
	bool has_time;
	int64_t at_us;
	/* Called a few times per second at most; NULL: never. A negative return value ends the check
	 * and is returned. */
	int (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
	/* Use additional threads, of the caller's priority, for content parts, digests and
	 * decompression. */
	bool use_threads;
	/* The seals are the caller's own. A seal without an earlier timestamp is then a warning instead
	 * of unchecked, if the first round of a service may have made it. */
	bool own_seals;
	bool stop_early; /* stop at the first finding of VERIFY_WRONG */
};

/* Checks all paths together. Each certificate in `roots` is an anchor, self-signed or not; NULL:
 * none. `options` may be NULL. Returns 0 and fills the result, whatever it is; roots that are not
 * certificates make the checks that need them unchecked. Returns ERR_NO_MEMORY or ERR_USAGE if the
 * check could not run. */
int verify_paths(const char *const *paths, size_t count, const struct trust_roots *roots,
                 const struct verify_options *options, struct verify_result *ret_result,
                 struct error *error) MUST_CHECK;
/* Appends the PEM certificates of a file, for use as roots. Returns ERR_IO if there are none. */
int verify_read_roots(const char *path, struct buf *out, struct error *error) MUST_CHECK;
enum verify_verdict verify_verdict(const struct verify_result *result);
/* Returns the first words of the sentence, in capitals: "VALID", "NOT VALID", … */
const char *verify_verdict_text(enum verify_verdict verdict, enum language language);
/* Appends the verdict as a sentence for users, with the names of signers and timestamp authorities,
 * without a line end. Returns 0 or ERR_NO_MEMORY. */
int verify_write_sentence(const struct verify_result *result, enum language language,
                          struct buf *out) MUST_CHECK;
/* Returns "wrong", "unchecked", "unestablished" or "warning". */
const char *verify_severity_text(enum verify_severity severity);
/* Returns the exit status. 0: valid; 1: not valid; 2: intact, but the origin is not established or
 * the check is incomplete. */
int verify_exit_code(const struct verify_result *result);
/* Prints the result as text for users or as one JSON document. The text begins with the sentence in
 * English and Spanish and ends with the counts; the rest is in English. The JSON document:
 * {"as_of","authorities":[{"first_gen_time","issuer","issuer_name","last_gen_time","name",
 * "not_after","not_before","not_revoked","qualified","sha256","subject","timestamps","trusted"}],
 * "checked":{…},
 * "could_not_check","evidence_records":[{"covers":[path],"exists_since","path","timestamps":[{
 * "algorithm","authority","chain","gen_time","number"}],"valid_until"}],"files":[{"kind","listed",
 * "path","seal_history","sha256","signed_at","signer"}],"findings":[{"code","detail","path","severity","what",
 * "what_es","where"}],"findings_version","histories":[{"archives","bridges","channel_id",
 * "first_sequence","last_sequence","mode","one_history"}],"longest_delay":{
 * "between","gen_time","microseconds","path","received_at","sequence"}|null,"logs":[{"cosigned_by":[{
 * "name","time"}],"entries","origin","path","segments","segments_logged","signed"}],"signatures":[{
 * "checkable_until","level","path"}],"signer_list":{"issued_at","path","service","signed_at",
 * "signer"}|null,"signers":[…],"trusted","trusted_list":{"issued_at",
 * "next_update","operator","signer","territory"}|null,"valid","verdict":{"code","en","es"},
 * "warnings":[…]}; `findings` contains those that are wrong, not established or unchecked;
 * "qualified" is {"provider","reason","service","standing"} or null; "kind" is "archive",
 * "container", "content_part", "evidence_record", "other" or "report"; "signed_at" and "signer" are
 * null if there is no valid signature or if it has no timestamp; "seal_history" is null if the file
 * has no segments. */
void verify_print(const struct verify_result *result, bool json, FILE *out);
/* Prints the text form for users, with the details in `language`. */
void verify_print_in(const struct verify_result *result, enum language language, FILE *out);
void verify_result_free(struct verify_result *result); /* NULL-safe */

#endif
