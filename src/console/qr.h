/* QR codes as SVG. */
#ifndef CONSOLE_QR_H
#define CONSOLE_QR_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

/* Draws the QR code of the member "url" of `data`; nothing if it is absent. The page also shows the
 * address as text for users who cannot see the picture. Drawn dark on light with a quiet zone
 * regardless of the colours of the page, as scanners require. ERR_INTERNAL: the address is too
 * long. */
int qr_picture(const struct json *data, struct buf *out) MUST_CHECK;

#endif
