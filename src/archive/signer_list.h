/* The list of the certificates that signed for a service, from when to when, as a document: what
 * `signers.p7m` signs (docs/evidence-format.md, section 15). Canonical JSON:
 *   {"certificates":[{"certificate","reason"|null,"sha256","used_from","used_until"|null}],
 *    "issued_at","service":{"name","prefix","url"},"v":1}
 * the oldest certificate first. Nothing is ever taken out of the list, and a certificate that was
 * ended never comes into force again, so a newer list has all that an older one has. No I/O. */
#ifndef ARCHIVE_SIGNER_LIST_H
#define ARCHIVE_SIGNER_LIST_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"

#define SIGNER_LIST_ITEMS_MAX 1000
#define SIGNER_LIST_TEXT_MAX ((size_t)6 << 20)
#define SIGNER_LIST_CERTIFICATE_MAX 65536
/* How much earlier than the service's own clock says a timestamp may be of a key that is new. */
#define SIGNER_LIST_TOLERANCE_US (300 * US_PER_SECOND)

struct signer_list_item {
	struct slice certificate; /* DER */
	struct sha256 sha256;     /* its digest */
	int64_t used_from_us;     /* when it came into force */
	int64_t used_until_us;    /* TIME_NONE: in force */
	const char *reason;       /* why it was ended; NULL: it is in force */
};
struct signer_list {
	const char *service_name, *service_prefix, *service_url;
	int64_t issued_at_us;
	const struct signer_list_item *items;
	size_t count;
};

/* Appends the document. Its size is the buffer's affair. */
void signer_list_write(const struct signer_list *list, struct buf *out);
/* Only the canonical form of a list that can be: 1 to SIGNER_LIST_ITEMS_MAX certificates, each once
 * and with its digest, one in force at most, a reason exactly where one was ended. What is read
 * points into the arena and the text. 0, ERR_INVALID_EVIDENCE with the cause, ERR_NO_MEMORY. */
int signer_list_read(struct arena *arena, struct slice text, struct signer_list *ret_list,
                     struct error *error) MUST_CHECK;

/* NULL: it is not listed. */
const struct signer_list_item *signer_list_find(const struct signer_list *list,
                                                const struct sha256 *sha256);

enum signer_use {
	SIGNER_USE_IN_FORCE,
	SIGNER_USE_TOO_EARLY, /* it had not come into force */
	SIGNER_USE_ENDED,     /* it was in force no longer */
	SIGNER_USE_UNDATED,   /* it was ended, and nothing shows whether before the signature */
};
/* What a signature with that certificate is worth. `signed_us`: by the timestamp over it;
 * TIME_NONE: it has none. */
enum signer_use signer_list_judge(const struct signer_list_item *item, int64_t signed_us);
/* Whether `newer` has all that `older` says: else one of them is false. */
bool signer_list_extends(const struct signer_list *newer, const struct signer_list *older);

#endif
