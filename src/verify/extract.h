/* The evidence record of one event out of an evidence archive, offline.
 *
 * What leads to the record is checked (the event, the leaves and the seal of its segment, the path,
 * and that the round's token is over where it leads), the rest of the archive is not: verify.h does
 * that. The record is the one that the service hands out, byte for byte, until it renews it. */
#ifndef VERIFY_EXTRACT_H
#define VERIFY_EXTRACT_H

#include "base/arena.h"
#include "base/error.h"

struct extracted {
	int64_t sequence;
	int64_t received_at_us;
	int64_t gen_time_us; /* of the timestamp, as the archive says */
	const char *authority;
	const char *segment_id;
	struct slice event;  /* the event's record: the data object, whose SHA-256 is its chain hash */
	struct slice record; /* the evidence record, DER */
};

struct extraction {
	const char *archive; /* path */
	const char *event_id;
	/* Called now and then with how many events were passed; NULL: never. Negative ends it, and is
	 * given back. */
	int (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
};

/* What it answers lives in the arena. ERR_NOT_FOUND: the archive holds no such event;
 * ERR_REFUSED: it is of a test chain, which has no timestamps; ERR_INVALID_EVIDENCE: the archive is
 * damaged, or its parts do not belong together; ERR_IO, ERR_NO_MEMORY. The cause says more. */
int extract_record(const struct extraction *extraction, struct arena *arena,
                   struct extracted *ret_extracted, struct error *error) MUST_CHECK;

#endif
