/* Common parts of API responses. Pure. */
#ifndef SERVICE_INTERFACE_H
#define SERVICE_INTERFACE_H

#include "base/buf.h"
#include "base/error.h"
#include "ledger/record.h"

#define INCIDENT_ID_SIZE 24
void incident_id_make(char ret[INCIDENT_ID_SIZE]);

struct error_answer {
	int code;
	const struct error *error; /* with that code */
	enum language language;
	const char *public_url;
	const char *incident_id; /* "": none */
	const char *event_id;    /* NULL: none */
};
/* Writes the Error record, an object. */
void error_json(const struct error_answer *answer, struct buf *out);
/* Returns the value of Retry-After in seconds; 0: no header. */
int64_t error_retry_after(int code, const struct error *error);

/* Operations that a test scenario affects differently. */
enum scenario_effect { SCENARIO_NONE, SCENARIO_EVENT, SCENARIO_CERTIFICATION };
/* What a test scenario forces on an operation. */
struct scenario {
	int refusal; /* ERR_* of a valid request; 0: none */
	bool slow;   /* of an accepted certification: it is issued later */
	bool fails;  /* of an accepted certification */
};
/* Parses the header. ERR_VALIDATION. */
int scenario_read(struct slice value, enum scenario_effect effect, const char *header,
                  struct scenario *ret, struct error *error) MUST_CHECK;
/* Sets and returns the error of a refusal. For ERR_CONFLICT, writes the identifier of the first
 * event of the test chain to `ret_event_id`; otherwise an empty string. */
int scenario_refuse(const struct scenario *scenario, const char *channel_id,
                    char ret_event_id[ID_SIZE], struct error *error);
/* Writes the name of the header, which depends on service.prefix. */
#define SCENARIO_HEADER_SIZE 40
void scenario_header(const char *prefix, char ret[SCENARIO_HEADER_SIZE]);

#endif
