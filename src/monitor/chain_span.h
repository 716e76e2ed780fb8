/* The rule about the entries of a chain in the log of segments: each begins after the last event of
 * the one before it. Pure. */
#ifndef MONITOR_CHAIN_SPAN_H
#define MONITOR_CHAIN_SPAN_H

#include "tlog/entry.h"

/* The events that the entries of a chain cover. A zeroed span has none. */
struct chain_span {
	int64_t first, last;
	uint64_t entries;
};

enum span_verdict {
	SPAN_FOLLOWS,  /* it is the chain's next segment, or its first one in the log */
	SPAN_GAP,      /* it leaves out events, or comes before the first one */
	SPAN_OVERLAPS, /* it has events that an entry covers, unless there was a gap before */
};

/* Adds the chain's next entry, whatever the verdict. */
enum span_verdict chain_span_add(struct chain_span *span, const struct tlog_entry *entry);

#endif
