/* Download links and the secrets behind them. Inside src/service only. */
#ifndef SERVICE_LINKS_H
#define SERVICE_LINKS_H

#include "service/service.h"

int links_open(struct service *service, struct error *error) MUST_CHECK;
void links_close(struct service *service);

struct document;
/* The link of an issued document as answers give it:
 * public_url/v1/downloads/<certification id>/<file name>?expires=<unix seconds>&mac=<hex>, or with
 * content.presigned_links one that leads to the content store itself. */
void document_link(const struct service *service, const char *certification_id,
                   const struct document *document, int64_t now_us, struct buf *out);

#endif
