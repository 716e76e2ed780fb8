/* Facts for the tests of reports: a rich ordinary certification, and a hostile one. */
#ifndef TEST_REPORT_FACTS_H
#define TEST_REPORT_FACTS_H

#include "report/report.h"

#define SAMPLE_CONFIGURATIONS 3
#define SAMPLE_PARTS 4
#define SAMPLE_TEXT_SIZE 2001

struct sample {
	struct report_facts facts;
	struct report_configuration configurations[SAMPLE_CONFIGURATIONS];
	struct report_event events[REPORT_EVENT_ROWS_MAX];
	uint8_t hashes[REPORT_EVENT_ROWS_MAX][SHA512_SIZE];
	char references[REPORT_EVENT_ROWS_MAX][CLIENT_REF_MAX + 1];
	struct report_seal seals[REPORT_SEAL_ROWS_MAX];
	char segments[REPORT_SEAL_ROWS_MAX][ID_SIZE];
	struct report_authority authorities[3];
	struct report_part parts[SAMPLE_PARTS];
	char description[SAMPLE_TEXT_SIZE];
	char supplementary[SAMPLE_TEXT_SIZE];
};

/* Live, qualified and non-qualified seals, `event_count` events. */
void sample_ordinary(struct sample *sample, int64_t event_count);
/* Test mode, and every text as unpleasant as it can be. */
void sample_hostile(struct sample *sample, int64_t event_count);

#endif
