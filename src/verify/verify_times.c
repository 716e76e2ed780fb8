/* What a time of the check (`--at`) changes: later signatures, expired certificates, stated times.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "verify/verify_check.h"

#define HOUR_US (3600 * US_PER_SECOND)

void verify_format_span(int64_t span_us, char text[VERIFY_SPAN_SIZE])
{
	int64_t unit_us = span_us >= 2 * US_PER_DAY ? US_PER_DAY
	                  : span_us >= 2 * HOUR_US  ? HOUR_US
	                                            : US_PER_SECOND;
	snprintf(text, VERIFY_SPAN_SIZE, "%" PRId64 " %c", span_us / unit_us,
	         unit_us == US_PER_DAY ? 'd'
	         : unit_us == HOUR_US  ? 'h'
	                               : 's');
}

bool verify_is_later(const struct run *run, int64_t time_us)
{
	return run->options && run->options->has_time && time_us > run->result->at_us;
}

/* Judges an expired certificate. Once the certificate of a timestamp has expired, its key may have
 * been used to forge an earlier time. The issued file stays as valid as it was, but a check as of a
 * given time depends on it. */
static void judge_end(struct run *run, const struct input *input)
{
	assert(input->issued_us != TIME_NONE);
	bool asked = run->options && run->options->has_time;
	bool known_before =
		input->covered_since_us != TIME_NONE && input->covered_since_us < input->until_us;
	char ended[TIME_TEXT_SIZE];
	/* A certificate is valid through the whole second of notAfter (RFC 5280 section 4.1.2.5). */
	if (input->until_us + US_PER_SECOND > run->result->at_us || known_before)
		return;
	time_format(input->until_us, ended);
	verify_add(run, asked ? VERIFY_UNCHECKED : VERIFY_WARNING, input->path, "",
	           FINDING_SIGNATURE_CERTIFICATE_ENDED, ended);
}

void verify_times_conclude(struct run *run)
{
	char at[TIME_TEXT_SIZE], issued[TIME_TEXT_SIZE];
	time_format(run->result->at_us, at);
	for (size_t i = 0; i < run->input_count; i++) {
		const struct input *input = &run->inputs[i];
		if (input->issued_us == TIME_NONE)
			continue;
		time_format(input->issued_us, issued);
		if (verify_is_later(run, input->issued_us))
			verify_add(run, VERIFY_UNCHECKED, input->path, "", FINDING_SIGNATURE_NOT_YET, issued,
			           at);
		else
			judge_end(run, input);
	}
	if (run->later_timestamps > 0)
		verify_add(run, VERIFY_WARNING, "", "", FINDING_TOKEN_LATER, run->later_timestamps, at);
}

void verify_compare_stated_time(struct run *run, const char *path, const char *where,
                                int64_t stated_us, int64_t gen_time_us)
{
	char stated[TIME_TEXT_SIZE], proven[TIME_TEXT_SIZE], span[VERIFY_SPAN_SIZE];
	time_format(stated_us, stated);
	time_format(gen_time_us, proven);
	if (stated_us > gen_time_us + VERIFY_CLOCK_TOLERANCE_US) {
		verify_add(run, VERIFY_WRONG, path, where, FINDING_SIGNATURE_TIME_LATE, stated, proven);
	} else if (gen_time_us - stated_us > VERIFY_DELAY_MAX_US) {
		verify_format_span(gen_time_us - stated_us, span);
		verify_add(run, VERIFY_WARNING, path, where, FINDING_SIGNATURE_TIME_STATED, stated, proven,
		           span);
	}
}
