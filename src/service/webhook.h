/* Notices as they travel: secrets, the envelope, its signature, the rules of retries.
 * docs/webhooks.md is for those who receive them. Pure, but for the clock and the settings
 * given. */
#ifndef SERVICE_WEBHOOK_H
#define SERVICE_WEBHOOK_H

#include "base/digest.h"
#include "base/schedule.h"
#include "net/http.h"
#include "service/settings.h"

#define WEBHOOK_ANSWER_MAX 65536 /* bytes of an answer's body that are read */
#define WEBHOOK_OVERLAP_US (24 * 3600 * INT64_C(1000000)) /* both secrets sign after a rotation */
#define WEBHOOK_FAILURES_MAX 5 /* notices in a row that disable an endpoint */

/* What the settings say of deliveries. */
struct webhook_rules {
	struct schedule schedule;
	struct address_guard guard;
	bool allow_http;
	const char *roots_path; /* NULL: the system's */
	int timeout_ms;
	char prefix[16]; /* of header names, in capitals */
};
/* ERR_VALIDATION when settings cannot be used. */
int webhook_rules_read(const struct settings *settings, struct webhook_rules *ret,
                       struct error *error) MUST_CHECK;

#define WEBHOOK_SECRET_NAME "webhook_secret" /* of the installation's, for store_get_secret */
#define WEBHOOK_ANSWER_SHOWN 256             /* bytes of an answer's body that are kept */

/* "whsec_" and 64 hexadecimal digits: HMAC-SHA256 with the installation's own secret over the
 * endpoint's identifier and the secret's version. The whole text is the key of signatures. */
#define WEBHOOK_SECRET_SIZE 71
void webhook_secret(const struct sha256 *installation, const char *endpoint_id, int64_t version,
                    char secret[WEBHOOK_SECRET_SIZE]);

/* "tst_" and 24 random hexadecimal digits. */
void webhook_test_id(char id[40]);

/* The envelope. `data` is JSON. The same notice always gives the same bytes. */
void webhook_envelope(const char *notice_id, const char *type, int64_t created_at_us,
                      const char *mode, struct slice data, struct buf *out);

/* A delivery's headers. */
struct webhook_headers {
	char id[64 + 64];
	char timestamp[64];
	char signature[256];
	const char *list[3]; /* the three above, for struct http_request */
};
/* `previous` is the secret before, or NULL once it is not valid any more. ERR_NO_MEMORY. */
int webhook_sign(const struct webhook_rules *rules, const char *notice_id, struct slice body,
                 const char *secret, const char *previous, int64_t now_us,
                 struct webhook_headers *ret) MUST_CHECK;

/* The request of an attempt. `url`, `headers` and `body` must live as long as it. */
struct http_request webhook_request(const struct webhook_rules *rules, const char *url,
                                    const struct webhook_headers *headers, struct slice body);
/* Whether an exchange acknowledged the delivery: any complete answer of 200 to 299. */
bool webhook_is_acknowledged(int result, const struct http_answer *answer);

/* A list of types of notices, separated by commas: 0, or ERR_USAGE naming the one that is none.
 * `out` receives it without spaces and repetitions, and empty for "all". */
int webhook_types_check(struct slice types, struct buf *out, struct error *error) MUST_CHECK;

#endif
