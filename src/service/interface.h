/* Common parts of API responses. Pure. */
#ifndef SERVICE_INTERFACE_H
#define SERVICE_INTERFACE_H

#include "base/buf.h"
#include "base/error.h"

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

/* Which operation a forced test scenario affects; rate_limited affects any. */
enum scenario_effect { SCENARIO_NONE, SCENARIO_EVENT, SCENARIO_CERTIFICATION };
/* Parses the header. *ret_forced: the ERR_* to force; 0: none. ERR_VALIDATION. */
int scenario_read(struct slice value, enum scenario_effect effect, const char *header,
                  int *ret_forced, struct error *error) MUST_CHECK;
/* Writes the name of the header, which depends on service.prefix. */
#define SCENARIO_HEADER_SIZE 40
void scenario_header(const char *prefix, char ret[SCENARIO_HEADER_SIZE]);

#endif
