/* The folder's own: libmicrohttpd, loaded when a server starts. It brings GnuTLS, which
 * reads tables of its own wherever it is loaded (gnutls.h). */
#ifndef HTTP_LIBMICROHTTPD_H
#define HTTP_LIBMICROHTTPD_H

#include <microhttpd.h>
#include <stdbool.h>

#include "base/error.h"

/* Before any other function of libmicrohttpd (base/library.h). */
int libmicrohttpd_load(struct error *error) MUST_CHECK;
/* Whether it is older than 1.0, and reads heads that RFC 9112 has refused. Once it is loaded. */
bool libmicrohttpd_is_lenient(void);

#endif
