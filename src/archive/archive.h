/* The evidence archive: a ZIP file of the fixed shape of zip.h that is an ASiC-E container (ETSI EN
 * 319 162-1). docs/verify/evidence-format.md describes its files.
 *
 * It is written in one pass with constant memory. The calls are made in this order, each as often
 * as needed:
 *   archive_begin
 *   archive_add_signers  at most once
 *   archive_add_config   ascending versions
 *   archive_add_event    every event of the range, ascending
 *   archive_add_leaf     the events of the first and the last segment that are outside the range,
 *                        ascending
 *   archive_add_segment  ascending
 *   archive_add_round    each round of these segments once, preceded by its predecessor if there is
 *                        one, ascending in time; the predecessor may cover any chains
 *   archive_add_object   each object to which a token refers, once, ascending by SHA-256
 *   archive_add_renewal  each archive timestamp to which a token or another archive timestamp
 *                        refers, once, descending by number
 *   archive_add_checkpoint  each checkpoint of the log in which a path of a segment ends, and the
 *                        newest one, ascending
 *   archive_add_log_place  for each segment, in their order; if there are checkpoints
 *   archive_add_history  each segment of the chain before the first one above, ascending; or none
 *   archive_finish
 *
 * A test archive has no leaves, segments and rounds. Content parts (part.h) can be written at the
 * same time. After any failure the archive can only be freed; archive_free removes an unfinished
 * file. An archive belongs to one thread at a time. */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include "archive/part.h"
#include "ledger/record.h"
#include "seal/authority.h"
#include "seal/cms.h"
#include "seal/segment.h"
#include "seal/tree.h"
#include "tlog/merkle.h"

#define ARCHIVE_VERSION 3            /* written; older versions remain readable */
#define ARCHIVE_VERSION_OF_SIGNERS 3 /* first version with an optional list of signers */
#define ARCHIVE_VERSION_OF_LOG                                                                     \
	3 /* first version with optional places in the log, and with an optional history */
#define ARCHIVE_TOKENS_MAX 2
#define ARCHIVE_TOKEN_OBJECTS_MAX 64     /* objects of each kind to which a token may refer */
#define ARCHIVE_TOKEN_REVOCATIONS_MAX 16 /* CRLs and OCSP responses among them */
#define ARCHIVE_OBJECTS_MAX 4096         /* objects of an archive */
#define ARCHIVE_OBJECTS_BYTES_MAX ((size_t)32 << 20) /* their total size */
#define ARCHIVE_RENEWALS_MAX 65536                   /* archive timestamps */
#define ARCHIVE_RENEWAL_TOKEN_MAX 131072
#define ARCHIVE_ENTRIES_MAX 20000u
#define ARCHIVE_ROUND_ID_MAX 127      /* bytes */
#define ARCHIVE_LINES_PER_FILE 100000 /* lines of a file of a stream */
#define ARCHIVE_LINE_MAX (256 * 1024) /* bytes of one line without its line feed */
#define ARCHIVE_DOCUMENT_MAX 32768    /* bytes of a configuration or genesis document */
#define ARCHIVE_MANIFEST_MAX (16 * 1024 * 1024)

struct archive_facts {
	const char *certification_id;
	const char *verification_code;
	const char *channel_id;
	enum mode mode;
	struct genesis_facts genesis; /* of the chain */
	int64_t issued_at_us;
	/* The requested range. One pair is set, the other is TIME_NONE or 0. */
	int64_t requested_from_us, requested_to_us;
	int64_t requested_first, requested_last;
	/* The frozen range. */
	int64_t first_sequence, last_sequence;
	const char *service_name;
	const char *service_prefix;
	const char *verification_url;   /* address of the public verification page */
	const struct part_facts *parts; /* alternatively set by archive_set_parts */
	size_t part_count;
};

struct archive_segment {
	struct seal_document seal;
	const struct tree_proof
		*path; /* from the root of the segment to that of the round; its leaf is ignored */
	const char *round_id;
};

/* Reference from a token to the archive timestamp that covers it. */
struct archive_renewal {
	int64_t stamp; /* number of the archive timestamp; 0: none */
	const struct tree_proof
		*path; /* from the SHA-256 of the token to the imprint; its leaf is ignored */
};
struct archive_token {
	const char *authority;
	enum authority_kind kind;
	struct slice request; /* DER; empty: stored as null */
	struct slice token;   /* the TimeStampToken (a CMS ContentInfo), DER or BER */
	int64_t gen_time_us;
	/* Digests of the validation objects that the token does not contain, ascending. Not in version
	 * 1. */
	const struct sha256 *certificates;
	size_t certificate_count;
	const struct sha256 *revocations; /* CRLs and OCSP responses */
	size_t revocation_count;
	struct archive_renewal renewal; /* not in version 1 */
};
/* An archive timestamp that renewed tokens. It contains its validation data. */
struct archive_stamp {
	int64_t stamp; /* counted from 1 */
	const char *authority;
	enum authority_kind kind;
	int64_t gen_time_us;
	struct slice token; /* its imprint is a SHA-256 */
	struct archive_renewal renewal;
};
enum archive_object_kind { OBJECT_CERTIFICATE, OBJECT_CRL, OBJECT_OCSP };
struct archive_object {
	enum archive_object_kind kind;
	struct slice der;
};
struct archive_round {
	const char *round_id;
	struct sha256 root; /* the imprint of each token */
	/* The first token determines the time of the round, and later seals refer to it. */
	struct archive_token tokens[ARCHIVE_TOKENS_MAX];
	size_t token_count; /* 1 to ARCHIVE_TOKENS_MAX; 1 in version 1 */
};

/* A checkpoint of the log of segments (src/tlog). */
struct archive_checkpoint {
	const char *note;                      /* with the cosignatures */
	const struct merkle_path *consistency; /* to the next checkpoint of the archive; empty: last */
};
/* Where a segment is in the log. */
struct archive_log_place {
	uint64_t size; /* of the checkpoint to whose root the path leads; 0: it precedes the log */
	uint64_t index;
	const struct merkle_path *path;
};

struct archive;

/* Creates or truncates `path`. The facts and the data to which they point must stay valid until
 * archive_finish. */
int archive_begin(const char *path, const struct archive_facts *facts, struct archive **ret_archive,
                  struct error *error) MUST_CHECK;
/* Adds the service's current signed list of its signers (signer_list.h). */
int archive_add_signers(struct archive *archive, struct slice document, struct error *error)
	MUST_CHECK;
/* Adds a configuration version. `document` is its canonical form, whose digest is the config_hash.
 */
int archive_add_config(struct archive *archive, int64_t version, struct slice document,
                       struct error *error) MUST_CHECK;
/* Adds an event. Returns ERR_CORRUPT if sequence or previous_chain_hash does not continue the
 * previous event. */
int archive_add_event(struct archive *archive, const struct event_facts *event, struct error *error)
	MUST_CHECK;
int archive_add_leaf(struct archive *archive, int64_t sequence, const struct sha256 *chain_hash,
                     struct error *error) MUST_CHECK;
int archive_add_segment(struct archive *archive, const struct archive_segment *segment,
                        struct error *error) MUST_CHECK;
int archive_add_round(struct archive *archive, const struct archive_round *round,
                      struct error *error) MUST_CHECK;
/* Adds a validation object. Returns ERR_USAGE if it is out of order; ERR_TOO_LARGE. */
int archive_add_object(struct archive *archive, const struct archive_object *object,
                       struct error *error) MUST_CHECK;
/* Adds an archive timestamp. Returns ERR_USAGE if it is out of order; ERR_TOO_LARGE. */
int archive_add_renewal(struct archive *archive, const struct archive_stamp *stamp,
                        struct error *error) MUST_CHECK;
int archive_add_checkpoint(struct archive *archive, const struct archive_checkpoint *checkpoint,
                           struct error *error) MUST_CHECK;
int archive_add_log_place(struct archive *archive, const struct archive_log_place *place,
                          struct error *error) MUST_CHECK;
/* Adds the seal document of a segment before the archive's first one. */
int archive_add_history(struct archive *archive, struct slice document, struct error *error)
	MUST_CHECK;
/* Sets the content parts, before archive_finish. They must stay valid until then. */
int archive_set_parts(struct archive *archive, const struct part_facts *parts, size_t count,
                      struct error *error) MUST_CHECK;
/* Writes the manifest and its signature (with a timestamp except in test mode), syncs and closes
 * the file. Returns ERR_CORRUPT if the range is incomplete. */
int archive_finish(struct archive *archive, const struct cms_signing *signing,
                   struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* Return the chain hashes of the range for the reports, after archive_finish. */
struct sha256 archive_first_chain_hash(const struct archive *archive);
struct sha256 archive_last_chain_hash(const struct archive *archive);
void archive_free(struct archive *archive); /* NULL-safe */

#endif
