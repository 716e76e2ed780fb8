/* Reads the TLS files of a listener into a generation (tls.h). */
#ifndef HTTP_TLS_FILES_H
#define HTTP_TLS_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "libgnutls.h"
#include "http/server.h"

struct tls_generation {
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t ticket_key;
	bool requests_certificates;
	int64_t begins_us, expires_us;
	_Atomic int holders;
};

/* Reads the files of a listener. NULL in `ret`: none are configured. ERR_VALIDATION with the cause,
 * and the name of the setting in `ret_setting`; ERR_NO_MEMORY; ERR_UNAVAILABLE without GnuTLS.
 * `problem` (may be NULL) receives warnings. Any thread. */
int tls_read(const struct settings *settings, enum http_listener listener,
             http_setting_problem *problem, void *context, struct tls_generation **ret,
             const char **ret_setting, struct error *error) MUST_CHECK;
void tls_release(struct tls_generation *generation); /* NULL-safe */
/* Returns the earliest expiry of its certificate and issuers. */
int64_t tls_expires_us(const struct tls_generation *generation);
/* Returns whether all of these are valid now. */
bool tls_is_current(const struct tls_generation *generation);

#endif
