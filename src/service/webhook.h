/* Format of webhook deliveries: secrets, the envelope, its signature, and the retry rules.
 * docs/integrate/webhooks.md documents them for receivers. Pure, except for the clock and the
 * settings. */
#ifndef SERVICE_WEBHOOK_H
#define SERVICE_WEBHOOK_H

#include "base/digest.h"
#include "base/schedule.h"
#include "net/http.h"
#include "service/settings.h"

#define WEBHOOK_ANSWER_MAX 65536 /* maximum bytes of a response body that are read */
#define WEBHOOK_OVERLAP_US (24 * 3600 * INT64_C(1000000)) /* both secrets sign */
#define WEBHOOK_FAILURES_MAX 5 /* consecutive failed notices that disable an endpoint */

/* Delivery rules from the settings. */
struct webhook_rules {
	struct schedule schedule;
	struct address_guard guard;
	bool allow_http;
	const char *roots_path; /* NULL: the roots of the system */
	int timeout_ms;
	char prefix[16]; /* of header names, in upper case */
};
/* Reads the rules. ERR_VALIDATION: invalid settings. */
int webhook_rules_read(const struct settings *settings, struct webhook_rules *ret,
                       struct error *error) MUST_CHECK;

#define WEBHOOK_SECRET_NAME "webhook_secret" /* for store_get_secret */
#define WEBHOOK_ANSWER_SHOWN 256             /* stored bytes of a response body */

/* Derives the secret of an endpoint: "whsec_" and 64 hexadecimal digits of HMAC-SHA256, with the
 * installation's secret, over the endpoint's identifier and the secret's version. The whole text is
 * the key of signatures. */
#define WEBHOOK_SECRET_SIZE 71
void webhook_secret(const struct sha256 *installation, const char *endpoint_id, int64_t version,
                    char secret[WEBHOOK_SECRET_SIZE]);

/* Generates an identifier: "tst_" and 24 random hexadecimal digits. */
void webhook_test_id(char id[40]);

/* Writes the envelope. `data` is JSON. The same notice always yields the same bytes. */
void webhook_envelope(const char *notice_id, const char *type, int64_t created_at_us,
                      const char *mode, struct slice data, struct buf *out);

/* Headers of a delivery. */
struct webhook_headers {
	char id[64 + 64];
	char timestamp[64];
	char signature[256];
	const char *list[3]; /* the three above, for struct http_request */
};
/* Creates the headers. `previous` is the previous secret, or NULL once it has expired.
 * ERR_NO_MEMORY. */
int webhook_sign(const struct webhook_rules *rules, const char *notice_id, struct slice body,
                 const char *secret, const char *previous, int64_t now_us,
                 struct webhook_headers *ret) MUST_CHECK;

/* Creates the request of an attempt. `url`, `headers` and `body` must outlive it. */
struct http_request webhook_request(const struct webhook_rules *rules, const char *url,
                                    const struct webhook_headers *headers, struct slice body);
/* Returns whether the exchange acknowledged the delivery: any complete response with status 200 to
 * 299. */
bool webhook_is_acknowledged(int result, const struct http_answer *answer);

/* Returns whether the answer says that the receiver no longer exists (410). */
bool webhook_is_gone(int result, const struct http_answer *answer);
/* Returns how long the answer of a failed delivery asks to wait (Retry-After, RFC 9110 section
 * 10.2.3), at most the longest wait of the schedule; 0: it does not ask, or for a time that has
 * passed. */
int64_t webhook_retry_after_us(const struct webhook_rules *rules, int result,
                               const struct http_answer *answer, int64_t now_us);

/* Parses a comma-separated list of notice types. ERR_USAGE names an unknown one. `out` receives the
 * list without spaces and duplicates; empty for "all". */
int webhook_types_check(struct slice types, struct buf *out, struct error *error) MUST_CHECK;

#endif
