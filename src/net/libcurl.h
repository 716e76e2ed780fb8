/* Internal to net: libcurl, loaded on first use. */
#ifndef NET_LIBCURL_H
#define NET_LIBCURL_H

#include <curl/curl.h>

#include "base/error.h"

/* Loads libcurl. Call it before any other libcurl function (base/library.h). */
int libcurl_load(struct error *error) MUST_CHECK;

#endif
