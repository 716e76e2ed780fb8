/* Where the index of digests (digest_index.h) reads events, and how their positions relate to the
 * sequences of chains. Private to src/store. */
#ifndef STORE_DIGEST_SOURCE_H
#define STORE_DIGEST_SOURCE_H

#include "store/store_internal.h"

enum digest_source {
	DIGEST_ARRIVALS, /* embedded engine: all events in insertion order; position: arrival */
	DIGEST_BEFORE,   /* embedded engine: a chain's events created by 0.1.0; position: sequence */
	DIGEST_EVENTS,   /* server: a chain's events; position: sequence */
};
struct digest_place {
	enum digest_source source;
	int64_t account, chain; /* DIGEST_ARRIVALS: 0 */
};

/* An event that was read. */
struct digest_event {
	int64_t position;
	int64_t event;       /* chain and sequence */
	struct slice digest; /* valid during the call */
};
/* Reads events with a position of the range in ascending order, at most `limit`. */
int digest_source_read(struct db_connection *connection, const struct digest_place *place,
                       int64_t first, int64_t last, int64_t limit,
                       void (*each)(void *context, const struct digest_event *event), void *context,
                       struct error *error) MUST_CHECK;
/* Gets the position of the last event; 0: none. */
int digest_source_last(struct db_connection *connection, const struct digest_place *place,
                       int64_t *ret_position, struct error *error) MUST_CHECK;

/* The events of a chain in a source, and the runs of the append log that have them. */
struct digest_chain {
	struct db_connection *connection;
	struct digest_place place;
	int64_t account, chain;
	int64_t first, last; /* sequences of the chain in this source; none when last < first */
};
/* Lists the sources of a chain, in the order of its sequences: at most 2. */
int digest_chain_find(struct db_connection *connection, bool embedded, int64_t account,
                      int64_t chain, struct digest_chain ret[2], size_t *ret_count,
                      struct error *error) MUST_CHECK;
/* Gets the position of a sequence between `first` and `last`. */
int digest_chain_position(const struct digest_chain *of, int64_t sequence, int64_t *ret_position,
                          struct error *error) MUST_CHECK;
/* Gets the first sequence whose position is after `position`; last + 1: none. */
int digest_chain_after(const struct digest_chain *of, int64_t position, int64_t *ret_sequence,
                       struct error *error) MUST_CHECK;

#endif
