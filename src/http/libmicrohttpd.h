/* The functions of libmicrohttpd, which is loaded when a server starts, because it loads GnuTLS,
 * which reads its own tables on loading (gnutls.h). For use in this folder only. */
#ifndef HTTP_LIBMICROHTTPD_H
#define HTTP_LIBMICROHTTPD_H

#include <microhttpd.h>
#include <stdbool.h>

#include "base/error.h"

/* Loads libmicrohttpd. Call before any of its functions (base/library.h). */
int libmicrohttpd_load(struct error *error) MUST_CHECK;
/* Returns whether the library is older than 1.0 and accepts heads that RFC 9112 forbids. Call after
 * libmicrohttpd_load. */
bool libmicrohttpd_is_lenient(void);

#endif
