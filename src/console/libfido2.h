/* The functions of libfido2, which is loaded when the first passkey is used. For use in this folder
 * only. */
#ifndef CONSOLE_LIBFIDO2_H
#define CONSOLE_LIBFIDO2_H

#include <fido.h>
#include <fido/eddsa.h>
#include <fido/es256.h>

#include "base/error.h"

/* Loads libfido2. Call before any of its functions (base/library.h). */
int libfido2_load(struct error *error) MUST_CHECK;

#endif
