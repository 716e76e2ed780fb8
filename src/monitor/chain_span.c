#include "monitor/chain_span.h"

enum span_verdict chain_span_add(struct chain_span *span, const struct tlog_entry *entry)
{
	enum span_verdict verdict = SPAN_GAP;
	if (span->entries == 0 || entry->first_sequence == span->last + 1)
		verdict = SPAN_FOLLOWS;
	else if (entry->first_sequence <= span->last && entry->last_sequence >= span->first)
		verdict = SPAN_OVERLAPS;
	if (span->entries == 0 || entry->first_sequence < span->first)
		span->first = entry->first_sequence;
	if (span->entries == 0 || entry->last_sequence > span->last)
		span->last = entry->last_sequence;
	span->entries++;
	return verdict;
}
