/* The folder's own: GnuTLS, which libmicrohttpd brings along, loaded by name only where TLS is set.
 */
#ifndef HTTP_GNUTLS_H
#define HTTP_GNUTLS_H

#include <gnutls/gnutls.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#include "base/error.h"

/* Before any other function of GnuTLS (base/library.h). */
int gnutls_load(struct error *error) MUST_CHECK;

/* Wipes and frees what GnuTLS allocated. */
void gnutls_wipe(gnutls_datum_t *datum);

#endif
