/* Makes chains, content parts and archives with real signatures and timestamps for the tests. */
#ifndef TEST_ARCHIVE_FIXTURE_H
#define TEST_ARCHIVE_FIXTURE_H

#include "proof/archive.h"
#include "proof/verify.h"

#define FIXTURE_PATH_SIZE 256

struct fixture {
	char directory[64];
	char trust[FIXTURE_PATH_SIZE]; /* PEM of all roots */
	struct trust_roots roots;      /* the same, for both purposes */
	struct signer *signer;
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
};

struct fixture_plan {
	enum mode mode;
	int64_t total; /* events of the chain */
	int64_t first, last; /* the certified range */
	int64_t segment_size;
	bool content; /* every third event is hash_only even then */
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
void fixture_close(struct fixture *fixture); /* removes the directory */
/* `name` without suffix; the parts go into a directory of that name. Answers the writer's status. */
int fixture_make(struct fixture *fixture, const char *name, const struct fixture_plan *plan,
                 struct fixture_archive *ret_archive);

/* What archives of that mode, and reports, are signed with; lives as long as `fixture` and `signer`.
 */
struct cms_signing fixture_signing(struct fixture *fixture, enum mode mode,
                                   struct cms_signer *signer);

void fixture_read(const char *path, struct buf *out);
void fixture_write(const char *path, struct slice content);
/* verify_paths that must run. */
void fixture_verify(const char *const *paths, size_t count, const struct trust_roots *roots,
                    struct verify_result *ret_result);
/* Whether a finding of that severity has both texts in where and what. */
bool fixture_finds(const struct verify_result *result, enum verify_severity severity,
                   const char *where, const char *what);

#endif
