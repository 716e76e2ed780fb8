/* The folder's own: libfido2, loaded with the first passkey. */
#ifndef CONSOLE_LIBFIDO2_H
#define CONSOLE_LIBFIDO2_H

#include <fido.h>
#include <fido/eddsa.h>
#include <fido/es256.h>

#include "base/error.h"

/* Before any other function of libfido2 (base/library.h). */
int libfido2_load(struct error *error) MUST_CHECK;

#endif
