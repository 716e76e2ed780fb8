/* Registers a test event without a key. The event is registered, and errors are reported, as for
 * POST /v1/events with a test key of the channel. Test events are free and have no probative
 * value. */
#ifndef ADMIN_EVENT_TRY_H
#define ADMIN_EVENT_TRY_H

#include "service/service.h"

#define TRY_CONTENT_MAX INT64_C(16384)

struct event_try {
	struct slice channel_id, client_ref;
	/* The payload, as JSON. On a hash_only channel any text, whose SHA-256 is declared. */
	struct slice content;
	struct slice scenario;  /* test scenario to force; empty: none */
	enum language language; /* of error messages */
};

struct event_tried {
	int status; /* HTTP status */
	bool replayed;
	bool unknown; /* it is unknown whether the event was registered: the commit failed or is slow */
	int64_t retry_after_seconds; /* 0: none */
	char event_id[ID_SIZE];      /* empty: refused, or unknown */
	char channel_id[ID_SIZE];
	enum modality modality; /* the channel's */
};

/* Registers the event and appends the response body, an Event or an Error. The caller must check
 * `answer` for overflow, after it has handled the registration. All test events of an account share
 * the rate of one test key. Blocks until the commit, ten seconds at most; after that the response
 * is a 503, and a repetition returns the outcome. ERR_NOT_FOUND: there is no such channel; ERR_* of
 * the store: nothing was attempted. */
int event_try(struct service *service, const struct event_try *tried, struct event_tried *ret,
              struct buf *answer, struct error *error) MUST_CHECK;

#endif
