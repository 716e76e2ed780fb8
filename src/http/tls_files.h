/* The files of a listener's TLS, and the generation that is made of them (tls.h). */
#ifndef HTTP_TLS_FILES_H
#define HTTP_TLS_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "http/gnutls.h"
#include "http/server.h"

struct tls_generation {
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t ticket_key;
	bool asks_clients;
	int64_t begins_us, expires_us;
	_Atomic int holders;
};

/* Reads the files of a listener. NULL in `ret`: the settings name none. ERR_VALIDATION with the
 * cause, `ret_setting` then the name of the setting; ERR_NO_MEMORY; ERR_UNAVAILABLE without
 * GnuTLS. `problem` (may be NULL) gets what is questionable. Any thread. */
int tls_read(const struct settings *settings, enum http_listener listener, http_problem *problem,
             void *context, struct tls_generation **ret, const char **ret_setting,
             struct error *error) MUST_CHECK;
void tls_release(struct tls_generation *generation); /* NULL-safe */
/* When its certificate, or one above it, ends. */
int64_t tls_expires_us(const struct tls_generation *generation);
/* Whether all of these count by now and still do. */
bool tls_is_current(const struct tls_generation *generation);

#endif
