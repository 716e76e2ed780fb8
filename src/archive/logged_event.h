/* Proofs that one event is in the log of segments, which are verified offline: a C2SP tlog-proof
 * (tlog/entry_proof.h) of the entry of its segment. The extra data has a line for each of:
 *   the seal document of the segment, from which the entry is computed;
 *   the event record;
 *   the records of all later events of the segment, ascending.
 * Each record has the chain hash of the one before it, and the entry has that of the last one. So
 * the entry stands for the event, and no other record has its place. No I/O. */
#ifndef ARCHIVE_LOGGED_EVENT_H
#define ARCHIVE_LOGGED_EVENT_H

#include "base/base64.h"
#include "ledger/record.h"
#include "seal/segment.h"
#include "tlog/checkpoint.h"
#include "tlog/entry_proof.h"

/* Bytes of the lines, and of a proof. */
#define LOGGED_EVENT_LINES_MAX ((size_t)16 << 20)
#define LOGGED_EVENT_MAX (ENTRY_PROOF_MAX + BASE64_SIZE(LOGGED_EVENT_LINES_MAX))

struct logged_event {
	struct slice record;
	struct event_facts event;
	struct seal_document seal;
	uint64_t index;               /* of the entry */
	struct checkpoint checkpoint; /* whose tree has the entry */
	struct slice note;            /* of the checkpoint, with the signatures */
};

/* Returns whether a text is meant as such a proof. */
bool logged_event_is(struct slice text);
/* Appends the proof that the lines belong to the entry with that index and path, in the tree of the
 * note. Verifies nothing. A buf for it needs LOGGED_EVENT_MAX. ERR_NO_MEMORY. */
int logged_event_write(struct slice lines, uint64_t index, const struct merkle_path *path,
                       struct slice note, struct buf *out) MUST_CHECK;
/* Reads a proof and verifies all of it but the signatures, for which the caller knows the keys. The
 * results point into the arena and the text. ERR_INVALID_EVIDENCE with the cause; ERR_NO_MEMORY. */
int logged_event_read(struct arena *arena, struct slice text, struct logged_event *ret,
                      struct error *error) MUST_CHECK;

#endif
