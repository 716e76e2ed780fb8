/* The evidence archive: a ZIP (zip.h's shape) that is an ASiC-E container (ETSI EN 319 162-1).
 *
 * Written in one pass with constant memory, in this order, each call as often as needed:
 *   archive_begin, archive_add_signers (at most once), archive_add_config (ascending versions),
 * archive_add_event (every event of the range, ascending), archive_add_leaf (ascending: the events
 * that the first and the last segment hold outside the range), archive_add_segment (ascending),
 * archive_add_round (ascending in time: for each round of those segments once, and before it the
 * round that preceded it, whatever chains that one covered, as far as there was one),
 * archive_add_object (ascending by SHA-256: each that a token names, once), archive_add_renewal
 * (descending by number: each that a token or another one names, once), archive_finish. A test
 * archive has no leaves, segments and rounds. Content parts (part.h) may be made meanwhile. After
 * any failure the archive can only be freed; archive_free removes an unfinished file.
 * docs/evidence-format.md describes the files. One thread at a time. */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include "archive/part.h"
#include "ledger/record.h"
#include "seal/authority.h"
#include "seal/cms.h"
#include "seal/segment.h"
#include "seal/tree.h"

#define ARCHIVE_VERSION 3            /* of what is written; those before are read for ever */
#define ARCHIVE_VERSION_OF_SIGNERS 3 /* from it on there may be a list of signers */
#define ARCHIVE_TOKENS_MAX 2
#define ARCHIVE_TOKEN_OBJECTS_MAX 64     /* of each kind that a token may name */
#define ARCHIVE_TOKEN_REVOCATIONS_MAX 16 /* of them CRLs and OCSP answers: each is needed */
#define ARCHIVE_OBJECTS_MAX 4096         /* of an archive, and of at most as many bytes in all: */
#define ARCHIVE_OBJECTS_BYTES_MAX ((size_t)32 << 20)
#define ARCHIVE_RENEWALS_MAX 65536 /* archive timestamps */
#define ARCHIVE_RENEWAL_TOKEN_MAX 131072
#define ARCHIVE_ENTRIES_MAX 20000u
#define ARCHIVE_ROUND_ID_MAX 127      /* bytes */
#define ARCHIVE_LINES_PER_FILE 100000 /* of events, leaves, seals or rounds */
#define ARCHIVE_LINE_MAX (256 * 1024) /* bytes of one line, its end not counted */
#define ARCHIVE_DOCUMENT_MAX 32768    /* bytes of a configuration or genesis document */
#define ARCHIVE_MANIFEST_MAX (16 * 1024 * 1024)

struct archive_facts {
	const char *certification_id;
	const char *verification_code;
	const char *channel_id;
	enum mode mode;
	int64_t channel_created_at_us; /* of the chain's genesis document */
	int64_t issued_at_us;
	/* The range as requested: one pair is set, the other TIME_NONE or 0. */
	int64_t requested_from_us, requested_to_us;
	int64_t requested_first, requested_last;
	/* The range as frozen. */
	int64_t first_sequence, last_sequence;
	const char *service_name;
	const char *service_prefix;
	const char *verification_url;   /* of the public verification page */
	const struct part_facts *parts; /* or archive_set_parts */
	size_t part_count;
};

struct archive_segment {
	struct seal_document seal;
	const struct tree_proof *path; /* from the segment's root to the round's; its leaf is ignored */
	const char *round_id;
};

/* That an archive timestamp covers a token. */
struct archive_renewal {
	int64_t stamp; /* its number; 0: none does */
	const struct tree_proof
		*path; /* from the token's SHA-256 to its imprint; its leaf is ignored */
};
struct archive_token {
	const char *authority;
	enum authority_kind kind;
	struct slice request; /* DER; empty: null */
	struct slice token;   /* the TimeStampToken (a CMS ContentInfo), DER or BER */
	int64_t gen_time_us;
	/* What validates it and is not inside it; ascending. Version 1 has none. */
	const struct sha256 *certificates;
	size_t certificate_count;
	const struct sha256 *revocations; /* CRLs and OCSP answers */
	size_t revocation_count;
	struct archive_renewal renewal; /* nor that */
};
/* An archive timestamp that renewed tokens; what validates it is inside. */
struct archive_stamp {
	int64_t stamp; /* from 1 */
	const char *authority;
	enum authority_kind kind;
	int64_t gen_time_us;
	struct slice token; /* over a SHA-256 */
	struct archive_renewal renewal;
};
enum archive_object_kind { OBJECT_CERTIFICATE, OBJECT_CRL, OBJECT_OCSP };
struct archive_object {
	enum archive_object_kind kind;
	struct slice der;
};
struct archive_round {
	const char *round_id;
	struct sha256 root; /* which each token is over */
	/* The first is the round's: its time counts, and later seals name it. */
	struct archive_token tokens[ARCHIVE_TOKENS_MAX];
	size_t token_count; /* 1 to ARCHIVE_TOKENS_MAX; of version 1: 1 */
};

struct archive;

/* The facts, and what they point to, must live until archive_finish. Creates or empties `path`. */
int archive_begin(const char *path, const struct archive_facts *facts, struct archive **ret_archive,
                  struct error *error) MUST_CHECK;
/* The service's signed list of its signers (signer_list.h), as it was current. */
int archive_add_signers(struct archive *archive, struct slice document, struct error *error)
	MUST_CHECK;
/* `document`: canonical bytes whose digest is the config_hash of that version. */
int archive_add_config(struct archive *archive, int64_t version, struct slice document,
                       struct error *error) MUST_CHECK;
/* ERR_CORRUPT when sequence or previous_chain_hash does not continue the event before. */
int archive_add_event(struct archive *archive, const struct event_facts *event, struct error *error)
	MUST_CHECK;
int archive_add_leaf(struct archive *archive, int64_t sequence, const struct sha256 *chain_hash,
                     struct error *error) MUST_CHECK;
int archive_add_segment(struct archive *archive, const struct archive_segment *segment,
                        struct error *error) MUST_CHECK;
int archive_add_round(struct archive *archive, const struct archive_round *round,
                      struct error *error) MUST_CHECK;
/* ERR_USAGE when it is out of order; ERR_TOO_LARGE. */
int archive_add_object(struct archive *archive, const struct archive_object *object,
                       struct error *error) MUST_CHECK;
/* ERR_USAGE when it is out of order; ERR_TOO_LARGE. */
int archive_add_renewal(struct archive *archive, const struct archive_stamp *stamp,
                        struct error *error) MUST_CHECK;
/* The content parts, before archive_finish; they must live until then. */
int archive_set_parts(struct archive *archive, const struct part_facts *parts, size_t count,
                      struct error *error) MUST_CHECK;
/* Writes the manifest, has it signed (with a timestamp, unless in test mode), syncs and closes.
 * ERR_CORRUPT when the range was not given whole. */
int archive_finish(struct archive *archive, const struct cms_signing *signing,
                   struct zip_sum *ret_sum, struct error *error) MUST_CHECK;
/* Of the range, after archive_finish: for the reports. */
struct sha256 archive_first_chain_hash(const struct archive *archive);
struct sha256 archive_last_chain_hash(const struct archive *archive);
void archive_free(struct archive *archive); /* NULL-safe */

#endif
