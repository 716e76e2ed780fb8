/* A test event for somebody who holds no key: registered as POST /v1/events with a test key of the
 * channel would, and answered in the same words. It costs nothing and proves nothing. */
#ifndef ADMIN_EVENT_TRY_H
#define ADMIN_EVENT_TRY_H

#include "service/service.h"

#define TRY_CONTENT_MAX INT64_C(16384)

struct event_try {
	struct slice channel_id, client_ref;
	/* The payload, as JSON; on a channel that keeps no content any text, whose SHA-256 is what is
	 * declared. */
	struct slice content;
	struct slice scenario;  /* that is forced; empty: none */
	enum language language; /* of an error's message */
};

struct event_tried {
	int status; /* of HTTP */
	bool replayed;
	bool unknown;                /* whether it was registered: its commit failed, or takes long */
	int64_t retry_after_seconds; /* 0: none */
	char event_id[ID_SIZE];      /* empty: it was refused, or is unknown */
	char channel_id[ID_SIZE];
	enum modality modality; /* the channel's */
};

/* Appends the body of the answer, an Event or an Error; whether there was room for it the caller
 * asks of `answer`, when he has seen to what is registered. All tries of an account share the rate
 * of one test key. Waits for the commit, ten seconds at most: then the answer is a 503, and the
 * same try again finds out. ERR_NOT_FOUND: there is no such channel; ERR_* of the store: nothing
 * was tried. */
int event_try(struct service *service, const struct event_try *tried, struct event_tried *ret,
              struct buf *answer, struct error *error) MUST_CHECK;

#endif
