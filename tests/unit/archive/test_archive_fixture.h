/* Makes chains, content parts and archives with real signatures and timestamps for the tests. */
#ifndef TEST_ARCHIVE_FIXTURE_H
#define TEST_ARCHIVE_FIXTURE_H

#include "archive/archive.h"
#include "verify/verify.h"
#include "scratch.h"

#define FIXTURE_PATH_SIZE 256

struct fixture_seals;

/* The seal documents before the archive's first segment. */
enum fixture_history {
	HISTORY_NONE,
	HISTORY_GOOD,
	HISTORY_LATE,    /* without the first one */
	HISTORY_GAP,     /* without the second one */
	HISTORY_SHORT,   /* without the last one */
	HISTORY_LONG,    /* with that of the archive's first segment */
	HISTORY_FOREIGN, /* the last one is of another channel */
	HISTORY_TIME,    /* the last one states another clock error */
	HISTORY_START,   /* the first one begins after another event 0 */
	HISTORY_JUNK,
};

struct fixture {
	char directory[SCRATCH_MAX];
	char trust[FIXTURE_PATH_SIZE]; /* PEM of all roots */
	struct trust_roots roots;      /* the same, for signers and timestamps */
	struct signer *signer;
	int64_t base_us;         /* all archives belong to one chain, which began at this time */
	int64_t clock_offset_us; /* of issued_at */
	char certification[40];  /* of the next archive */
	/* Of the last sealed chain, so that archives of one chain have the same seals. */
	struct fixture_seals *seals;
	/* Signer and authority in the place of the development keys; NULL: the development keys. */
	const struct cms_signing *signing;
	cms_timestamp_function stamp;
	void *stamp_context;
	/* A second authority, which timestamps each round; NULL: none. */
	cms_timestamp_function second_stamp;
	void *second_context;
	bool only_second; /* there is no first one */
	/* The certificates and revocation data that its tokens name, and what the archive contains of
	 * them. */
	struct sha256 certificates[8], revocations[8];
	size_t certificate_count, revocation_count;
	struct archive_object objects[8];
	size_t object_count;
	struct slice signer_list; /* signed, for archives; empty: none */
	/* Fills in the renewal of a round's first token and adds it to the archive's stamps; NULL: no
	 * renewals. */
	void (*renew)(struct fixture *fixture, struct archive_token *token);
	struct archive_stamp stamps[16];
	size_t stamp_count;
	enum fixture_history history; /* of the next archives */
};

/* Faults of the facts themselves, with correct digests and signatures. */
enum fixture_fault {
	FAULT_NONE,
	FAULT_PREVIOUS_CHAIN_HASH, /* of event 3: the writer refuses */
	FAULT_EVENT_FOREIGN,       /* event 3 is not the sealed one */
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
	FAULT_REQUESTED,  /* requested up to event 1000 */
	FAULT_BY_TIME,    /* no fault: requested by time, exactly the range */
	FAULT_FROM_LATE,  /* by time, from after the first event */
	FAULT_TO_EARLY,   /* by time, to the last event, which is then outside */
	FAULT_TO_FIRST,   /* by time, to before from */
	FAULT_FROM_EARLY, /* by time, and the event before the range belongs to it */
	FAULT_OLD,        /* the chain began 30 days ago and is sealed now */
	FAULT_UNSYNCHRONIZED,
	FAULT_NOT_COMPARED,
	FAULT_ISSUED_EARLY,    /* by three hours */
	FAULT_ISSUED_LATE,     /* by 1,000 s */
	FAULT_FORK,            /* another event 3 */
	FAULT_FORK_SEAL,       /* other seals of the same events */
	FAULT_FORK_GENESIS,    /* begun at another time */
	FAULT_FORK_CONFIG,     /* another version 2 */
	FAULT_ROUND_REPLAY,    /* the token of the previous round again */
	FAULT_MODALITY,        /* the events contradict the modality of their configuration */
	FAULT_ROUND_LEFT_OUT,  /* the round before that of the first segment */
	FAULT_NO_TOKEN_BEFORE, /* and no seal document names one */
};

struct fixture_plan {
	enum mode mode;
	int64_t total;       /* events of the chain */
	int64_t first, last; /* the certified range */
	int64_t segment_size;
	bool content;
	uint32_t part_entries_max; /* 0: the maximum of the format */
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
void fixture_close(struct fixture *fixture); /* removes the directory */
/* Closes the one that was opened last. A tear-down function of cmocka. */
int fixture_tear_down(void **state);
/* Forgets the seals, so that the next archive has its own. */
void fixture_forget(struct fixture *fixture);
/* Makes `name`.zip, and its parts in a directory of that name. Returns the result of the writer. */
int fixture_make(struct fixture *fixture, const char *name, const struct fixture_plan *plan,
                 struct fixture_archive *ret_archive);

/* The same, of an archive that can be written. */
void fixture_make_good(struct fixture *fixture, const char *name, const struct fixture_plan *plan,
                       struct fixture_archive *ret_archive);

/* The signing keys of archives and reports of that mode; valid as long as `fixture` and
 * `signer`. */
struct cms_signing fixture_signing(struct fixture *fixture, enum mode mode,
                                   struct cms_signer *signer);

/* Writes the seal documents of the segments `begin` to before `end`, counted from 0, of the last
 * sealed chain. */
void fixture_write_seals(const struct fixture *fixture, size_t begin, size_t end, const char *path);
void fixture_read(const char *path, struct buf *out);
void fixture_write(const char *path, struct slice content);
/* Returns whether the second verifier, written from docs/verify/evidence-format.md, finds the
 * archive valid with the content parts of `parts` (NULL: none), and consistent with another archive
 * (NULL: none). CONSTANCIA_CHECK_ARCHIVE names its script; its process serves until fixture_close.
 */
bool fixture_agrees(const struct fixture *fixture, const char *path,
                    const struct fixture_archive *parts, const char *other_path);
/* The same without roots: only integrity. */
bool fixture_agrees_without_roots(const struct fixture *fixture, const char *path);
/* Follows README.txt of the archive with the fixture's roots. Its last line, whose first word gives
 * the exit status, must match the expression (grep). */
void fixture_follow_readme(const struct fixture *fixture, const char *path, const char *verdict);
/* Checks that it printed this line. */
void fixture_readme_said(const struct fixture *fixture, const char *line);
/* Runs verify_paths, which must not fail. */
void fixture_verify(const char *const *paths, size_t count, const struct trust_roots *roots,
                    struct verify_result *ret_result);
/* Check the exit code, and that there is a finding of that severity with both texts. They print the
 * result of a test that fails. */
void fixture_expect_exit(const struct verify_result *result, int exit_code);
void fixture_expect_finding(const struct verify_result *result, enum verify_severity severity,
                            const char *where, const char *what);
/* Returns the number of warnings other than those about the time since the events, because a test
 * may be slow. */
uint64_t fixture_warnings(const struct verify_result *result);
/* Returns whether a finding of that severity has both texts in `where` and `what`. */
bool fixture_finds(const struct verify_result *result, enum verify_severity severity,
                   const char *where, const char *what);

#endif
