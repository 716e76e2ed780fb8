/* What answers of the interface are made of, wherever they are given. Pure. */
#ifndef SERVICE_INTERFACE_H
#define SERVICE_INTERFACE_H

#include "base/buf.h"
#include "base/error.h"

#define INCIDENT_ID_SIZE 24
void incident_id_make(char ret[INCIDENT_ID_SIZE]);

struct error_answer {
	int code;
	const struct error *error; /* of that code */
	enum language language;
	const char *public_url;
	const char *incident_id; /* "": none */
	const char *event_id;    /* NULL: none */
};
/* The Error record, an object. */
void error_json(const struct error_answer *answer, struct buf *out);
/* The seconds of Retry-After; 0: there is none. */
int64_t error_retry_after(int code, const struct error *error);

/* What a forced scenario does to an operation (beside rate_limited, which stops any). */
enum scenario_effect { SCENARIO_NONE, SCENARIO_EVENT, SCENARIO_CERTIFICATION };
/* *ret_forced: the ERR_* that this value of the header asks for, 0: none. ERR_VALIDATION. */
int scenario_read(struct slice value, enum scenario_effect effect, const char *header,
                  int *ret_forced, struct error *error) MUST_CHECK;
/* The header's name, by the settings' service.prefix. */
#define SCENARIO_HEADER_SIZE 40
void scenario_header(const char *prefix, char ret[SCENARIO_HEADER_SIZE]);

#endif
