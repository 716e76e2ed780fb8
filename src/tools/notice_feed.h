/* The notices of the test mode, fetched with a key and forwarded to a receiver as a webhook would
 * deliver them (docs/integrate/webhooks.md). */
#ifndef TOOLS_NOTICE_FEED_H
#define TOOLS_NOTICE_FEED_H

#include "tools/api.h"

#define NOTICE_CURSOR_MAX 1024
#define NOTICE_ID_MAX 64
#define NOTICE_SECRET_MAX 200
#define NOTICE_REASON_MAX 200

struct notice {
	char id[NOTICE_ID_MAX], type[NOTICE_ID_MAX], created_at[NOTICE_ID_MAX];
	struct slice text; /* the JSON object, as received */
};

/* Position in the notices; an empty cursor is their present end. */
struct notice_feed {
	char cursor[NOTICE_CURSOR_MAX];
};
/* Waits up to 20 seconds for notices after the position, passes each and advances the position. The
 * first call only finds the present end. A result other than 0 of `take` stops and is returned. */
int notice_feed_next(struct notice_feed *feed, struct api *api, struct arena *arena,
                     int (*take)(void *context, const struct notice *notice), void *context,
                     struct error *error) MUST_CHECK;
/* Reads the members of a notice. ERR_NETWORK: it is none. */
int notice_read(struct slice text, struct notice *ret_notice, struct error *error) MUST_CHECK;

struct notice_receiver {
	const char *url;
	char prefix[16]; /* of header names, such as SVC */
	char secret[NOTICE_SECRET_MAX];
	struct http_session *session;
	struct address_guard guard;
};
/* Takes the prefix of the installation from an API key: "svc_test_…" has the prefix SVC. */
void notice_prefix(const char *key, char prefix[16]);
/* Makes a secret: "whsec_" and 64 random hexadecimal digits. */
void notice_secret(char secret[NOTICE_SECRET_MAX]);

struct notice_attempt {
	int status; /* 0: no answer */
	int64_t duration_us;
	char reason[NOTICE_REASON_MAX]; /* of a failure without an answer */
};
/* Posts the notice, signed. Returns whether the receiver acknowledged it with 2xx. */
bool notice_post(const struct notice_receiver *receiver, const struct notice *notice,
                 struct notice_attempt *ret_attempt);

#endif
