/* Checks of requested ranges, and the time at which a range by time is closed. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "ledger/ledger.h"

static int times_inverted(struct error *error)
{
	return error_set(error, ERR_VALIDATION, MSG_RANGE_INVERTED, "from", "to", NULL);
}

int range_order_check(const struct certification_range *range, struct error *error)
{
	if (range->from_us != TIME_NONE && range->to_us != TIME_NONE && range->from_us > range->to_us)
		return times_inverted(error);
	if (range->seq_from && range->seq_to && range->seq_from > range->seq_to)
		return error_set(error, ERR_VALIDATION, MSG_RANGE_SEQUENCES_INVERTED, "seq_from", "seq_to",
		                 NULL);
	return OK;
}

int certification_range_check(const struct certification_range *range, int64_t last_sequence,
                              struct error *error)
{
	bool times = range->from_us != TIME_NONE || range->to_us != TIME_NONE;
	bool sequences = range->seq_from != 0 || range->seq_to != 0;
	bool whole_times = range->from_us != TIME_NONE && range->to_us != TIME_NONE;
	bool whole_sequences = range->seq_from != 0 && range->seq_to != 0;
	if (times == sequences || (times && !whole_times) || (sequences && !whole_sequences))
		return error_set(error, ERR_VALIDATION, MSG_RANGE_PAIR, NULL);
	if (times && range->from_us == range->to_us)
		return times_inverted(error);
	if (sequences && range->seq_from < 1)
		return error_set(error, ERR_VALIDATION, MSG_RANGE_SEQUENCE_MINIMUM, "seq_from", NULL);
	int result = range_order_check(range, error);
	if (result || times)
		return result;
	if (range->seq_to > last_sequence) {
		char last[24];
		snprintf(last, sizeof last, "%lld", (long long)last_sequence);
		return error_set(error, ERR_VALIDATION, MSG_RANGE_BEYOND_END, last, NULL);
	}
	return OK;
}

int64_t range_requested_us(int64_t store_now_us, int64_t node_now_us, int64_t bound_us)
{
	return store_now_us - node_now_us > bound_us ? node_now_us + bound_us : store_now_us;
}

int64_t range_cut_us(const struct certification_range *range, int64_t last_received_at_us,
                     int64_t now_us)
{
	int64_t cut_us = now_us > last_received_at_us ? now_us : last_received_at_us + 1;
	return range->to_us < cut_us ? range->to_us : cut_us;
}

bool range_close(int64_t cut_us, int64_t *last_received_at_us)
{
	bool moved = *last_received_at_us < cut_us;
	if (moved)
		*last_received_at_us = cut_us;
	assert(*last_received_at_us >= cut_us);
	return moved;
}
