/* GnuTLS, loaded at run time only if TLS is configured. For use in this folder only. */
#ifndef HTTP_GNUTLS_H
#define HTTP_GNUTLS_H

#include <gnutls/gnutls.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#include "base/error.h"

/* Loads GnuTLS. Call before any of its functions (base/library.h). */
int gnutls_load(struct error *error) MUST_CHECK;

/* Wipes and frees memory that GnuTLS allocated. */
void gnutls_wipe(gnutls_datum_t *datum);

#endif
