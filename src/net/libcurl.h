/* The folder's own: libcurl, loaded at its first use. */
#ifndef NET_LIBCURL_H
#define NET_LIBCURL_H

#include <curl/curl.h>

#include "base/error.h"

/* Before any other function of libcurl (base/library.h). */
int libcurl_load(struct error *error) MUST_CHECK;

#endif
