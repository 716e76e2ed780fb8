/* Makes chains, content parts and archives with real signatures and timestamps for the tests. */
#ifndef TEST_ARCHIVE_FIXTURE_H
#define TEST_ARCHIVE_FIXTURE_H

#include "archive/archive.h"
#include "verify/verify.h"
#include "scratch.h"

#define FIXTURE_PATH_SIZE 256

struct fixture_seals;

struct fixture {
	char directory[SCRATCH_MAX];
	char trust[FIXTURE_PATH_SIZE]; /* PEM of all roots */
	struct trust_roots roots;      /* the same, for both purposes */
	struct signer *signer;
	int64_t base_us;         /* all archives are of one chain, which began then */
	int64_t clock_offset_us; /* of issued_at */
	char certification[40];  /* the next archive's */
	/* Of the chain last sealed, so that archives of one chain have the same seals. */
	struct fixture_seals *seals;
	/* Who signs and gives time in the place of the development keys; NULL: these. */
	const struct cms_signing *signing;
	cms_timestamp_function stamp;
	void *stamp_context;
	/* Who else gives time for each round; NULL: nobody. */
	cms_timestamp_function second_stamp;
	void *second_context;
	bool only_second; /* and nobody else does */
	/* What its tokens name, and what the archive holds of that. */
	struct sha256 certificates[8], revocations[8];
	size_t certificate_count, revocation_count;
	struct archive_object objects[8];
	size_t object_count;
	/* Fills in what renewed the first token of a round, and adds it to the stamps, which the
	 * archive holds; NULL: nothing. */
	void (*renew)(struct fixture *fixture, struct archive_token *token);
	struct archive_stamp stamps[16];
	size_t stamp_count;
};

/* What is wrong with the facts themselves, behind right digests and signatures. */
enum fixture_fault {
	FAULT_NONE,
	FAULT_PREVIOUS_CHAIN_HASH, /* of event 3: the writer refuses */
	FAULT_EVENT_FOREIGN,       /* event 3 was not the one sealed */
	FAULT_RECEIVED_BEFORE,     /* event 3 was received before event 2 */
	FAULT_CONFIG_HASH,
	FAULT_UNUSED_CONFIG,
	FAULT_PATH,
	FAULT_LEAF,
	FAULT_LEAF_MISSING,
	FAULT_PREVIOUS_TOKEN,
	FAULT_PREVIOUS_SEAL,
	FAULT_SEGMENT_MISSING,
	FAULT_ROUND_ROOT, /* another root than the token's imprint */
	FAULT_GEN_TIME,
	FAULT_ROUND_EXTRA,
	FAULT_SEAL_COUNT, /* the seal's last sequence is one more */
	FAULT_LATE_EVENT, /* received long after its timestamp */
	FAULT_GENESIS,
	FAULT_REQUESTED,  /* asked for up to event 1000 */
	FAULT_BY_TIME,    /* none: asked for by time, just so that the range fits */
	FAULT_FROM_LATE,  /* by time, from after the first event */
	FAULT_TO_EARLY,   /* by time, to the last event, which is outside then */
	FAULT_TO_FIRST,   /* by time, to before from */
	FAULT_FROM_EARLY, /* by time, and the event before the range belongs into it */
	FAULT_OLD,        /* the chain began 30 days ago, sealed now */
	FAULT_UNSYNCHRONIZED,
	FAULT_NOT_COMPARED,
	FAULT_ISSUED_EARLY,    /* by three hours */
	FAULT_ISSUED_LATE,     /* by 1,000 s */
	FAULT_FORK,            /* event 3 is another one */
	FAULT_FORK_SEAL,       /* the seals of the same events are others */
	FAULT_FORK_GENESIS,    /* it began at another time */
	FAULT_FORK_CONFIG,     /* version 2 is another one */
	FAULT_ROUND_REPLAY,    /* the token of the round before once more */
	FAULT_MODALITY,        /* the events are not of their configuration's */
	FAULT_ROUND_LEFT_OUT,  /* the one before the first segment's */
	FAULT_NO_TOKEN_BEFORE, /* nor does any seal document name one */
};

struct fixture_plan {
	enum mode mode;
	int64_t total;       /* events of the chain */
	int64_t first, last; /* the certified range */
	int64_t segment_size;
	bool content;
	uint32_t part_entries_max; /* 0: the format's */
	enum fixture_fault fault;
};

#define FIXTURE_PARTS_MAX 16

#define FIXTURE_CHANNEL "chn_0123456789abcdef"
#define FIXTURE_CERTIFICATION "CERT-2026-0000001"
#define FIXTURE_CODE "SVC-2026-7K3M-Q9XD"

struct fixture_archive {
	char path[FIXTURE_PATH_SIZE];
	struct zip_sum sum;
	struct sha256 first_chain_hash, last_chain_hash;
	char part_paths[FIXTURE_PARTS_MAX][FIXTURE_PATH_SIZE];
	size_t part_count;
};

void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);  /* removes the directory */
void fixture_forget(struct fixture *fixture); /* the seals: the next archive has its own */
/* `name` without suffix; the parts go into a directory of that name. Answers the writer's
 * status. */
int fixture_make(struct fixture *fixture, const char *name, const struct fixture_plan *plan,
                 struct fixture_archive *ret_archive);

/* What archives of that mode, and reports, are signed with; lives as long as `fixture` and
 * `signer`.
 */
struct cms_signing fixture_signing(struct fixture *fixture, enum mode mode,
                                   struct cms_signer *signer);

void fixture_read(const char *path, struct buf *out);
void fixture_write(const char *path, struct slice content);
/* Returns whether the second verifier, written from docs/verify/evidence-format.md, finds the
 * archive valid with the content parts of `parts` (NULL: none), and consistent with another archive
 * (NULL: none). CONSTANCIA_CHECK_ARCHIVE names its script; its process serves until fixture_close.
 */
bool fixture_agrees(const struct fixture *fixture, const char *path,
                    const struct fixture_archive *parts, const char *beside);
/* The same without roots: integrity alone. */
bool fixture_agrees_without_roots(const struct fixture *fixture, const char *path);
/* Does as README.txt in that archive says, with the fixture's roots. Its last line is as that
 * expression (grep) has it, which tells the exit status by its first word. */
void fixture_follow_readme(const struct fixture *fixture, const char *path, const char *verdict);
/* One of the lines that it printed then. */
void fixture_readme_said(const struct fixture *fixture, const char *line);
/* verify_paths that must run. */
void fixture_verify(const char *const *paths, size_t count, const struct trust_roots *roots,
                    struct verify_result *ret_result);
/* How many warnings there are, but for those of the time since its events: a test may be slow. */
uint64_t fixture_warnings(const struct verify_result *result);
/* Whether a finding of that severity has both texts in where and what. */
bool fixture_finds(const struct verify_result *result, enum verify_severity severity,
                   const char *where, const char *what);

#endif
