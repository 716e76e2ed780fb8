/* Extracts the evidence record of one event from an evidence archive, offline.
 *
 * It checks the data on the way from the event to the record: the event, the leaves and the seal of
 * its segment, the path, and that the token is over the root of the round. verify.h checks the rest
 * of the archive. The record is byte for byte the one that the service returns, until the service
 * renews it. */
#ifndef VERIFY_EXTRACT_H
#define VERIFY_EXTRACT_H

#include "base/arena.h"
#include "base/error.h"

struct extracted {
	int64_t sequence;
	int64_t received_at_us;
	int64_t gen_time_us; /* time of the timestamp, as stated in the archive */
	const char *authority;
	const char *segment_id;
	struct slice event;     /* the event record: the data object, whose SHA-256 is the chain hash */
	struct slice record;    /* the evidence record, DER */
	struct slice log_proof; /* archive/logged_event.h; size 0: it was not wanted */
};

struct extraction {
	const char *archive; /* path of the archive */
	const char *event_id;
	/* Called at intervals with the number of events read; NULL: never. A negative return value ends
	 * the extraction and is returned. */
	int (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
	bool wants_log_proof; /* also that the event is in the log of segments */
};

/* The result points into the arena. Returns ERR_NOT_FOUND if the archive does not contain the
 * event; ERR_REFUSED if the event is of a test chain, which has no timestamps, or if the archive
 * does not have what a wanted log_proof needs; ERR_INVALID_EVIDENCE if the archive is damaged or
 * inconsistent; ERR_IO, ERR_NO_MEMORY. The cause gives details. */
int extract_record(const struct extraction *extraction, struct arena *arena,
                   struct extracted *ret_extracted, struct error *error) MUST_CHECK;

#endif
