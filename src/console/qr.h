/* A QR code as a picture. */
#ifndef CONSOLE_QR_H
#define CONSOLE_QR_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

/* Of the address that `data` has as "url"; nothing where it has none. It says nothing to who cannot
 * see it, so the address stands beside it. Dark on light whatever the page's colours, with its
 * quiet zone: as scanners want it. ERR_INTERNAL: the address is too long. */
int qr_picture(const struct json *data, struct buf *out) MUST_CHECK;

#endif
