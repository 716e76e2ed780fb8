/* Describes files that should contain certificates in PEM form and do not. */
#ifndef BASE_PEM_H
#define BASE_PEM_H

#include "base/buf.h"

/* Returns NULL if the text has a certificate in PEM form, otherwise what it is instead, as a clause
 * that follows the file's name: "is empty". */
const char *pem_certificates_fault(struct slice text);

#endif
