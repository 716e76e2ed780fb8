/* Download links of issued files, and the secrets of their MACs. Thread safe. */
#ifndef ISSUE_LINKS_H
#define ISSUE_LINKS_H

#include "service/service.h"

struct document;

/* Reads the secrets. ERR_NO_MEMORY, or what the store returns; then links_close ends it all the
 * same. */
int links_open(struct service *service, struct error *error) MUST_CHECK;
void links_close(struct service *service); /* ignores a service whose links are not open */
/* Reads the valid link secrets from the store; to be called every LINKS_INTERVAL_US, so that every
 * node knows a new secret before it is used. ERR_* of the store: the known secrets are kept. */
#define LINKS_INTERVAL_US (2 * US_PER_SECOND)
#define LINKS_SPREAD_US (10 * US_PER_SECOND)
int service_refresh_links(struct service *service, struct error *error) MUST_CHECK;
/* Writes the link of an issued document:
 *  public_url/v1/downloads/<certification id>/<file name>?expires=<unix seconds>&mac=<hex>
 * or, with content.presigned_links, a link to the content store itself. */
void document_link(const struct service *service, const char *certification_id,
                   const struct document *document, int64_t now_us, struct buf *out);
/* Returns false if the link was altered or has expired. */
bool link_check(const struct service *service, const char *certification_id, const char *name,
                struct slice expires, struct slice mac, int64_t now_us) MUST_CHECK;
/* The objects in the content store that make up an issued file (content/composite.h), and its
 * metadata; ERR_NOT_FOUND. */
struct issued_file {
	int64_t account;
	char object[CONTENT_NAME_MAX];
	char shared[CONTENT_NAME_MAX + 1]; /* empty: the object is the whole file */
	char pieces[CONTENT_PIECES_SIZE];
	const char *content_type;
	const char *languages; /* value of Content-Language; NULL: declared content, language unknown */
	uint64_t size;
	struct sha256 sha256;
};
int issued_file_find(struct service *service, struct slice certification_id, struct slice name,
                     struct issued_file *ret, struct error *error) MUST_CHECK;

#endif
