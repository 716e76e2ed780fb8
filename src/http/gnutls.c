#include "http/gnutls.h"

#include <string.h>

#include "base/library.h"

#define ALL_FIXED(FUNCTION)                                                                        \
	FUNCTION(int, gnutls_bye, (gnutls_session_t session, gnutls_close_request_t how),              \
	         (session, how))                                                                       \
	FUNCTION(int, gnutls_certificate_allocate_credentials,                                         \
	         (gnutls_certificate_credentials_t * ret), (ret))                                      \
	FUNCTION(void, gnutls_certificate_free_credentials,                                            \
	         (gnutls_certificate_credentials_t credentials), (credentials))                        \
	FUNCTION(void, gnutls_certificate_server_set_request,                                          \
	         (gnutls_session_t session, gnutls_certificate_request_t request), (session, request)) \
	FUNCTION(int, gnutls_certificate_set_x509_key_mem,                                             \
	         (gnutls_certificate_credentials_t credentials, const gnutls_datum_t *certificate,     \
	          const gnutls_datum_t *key, gnutls_x509_crt_fmt_t format),                            \
	         (credentials, certificate, key, format))                                              \
	FUNCTION(int, gnutls_certificate_set_x509_trust_mem,                                           \
	         (gnutls_certificate_credentials_t credentials, const gnutls_datum_t *roots,           \
	          gnutls_x509_crt_fmt_t format),                                                       \
	         (credentials, roots, format))                                                         \
	FUNCTION(int, gnutls_credentials_set,                                                          \
	         (gnutls_session_t session, gnutls_credentials_type_t type, void *credentials),        \
	         (session, type, credentials))                                                         \
	FUNCTION(void, gnutls_handshake_set_hook_function,                                             \
	         (gnutls_session_t session, unsigned type, int when, gnutls_handshake_hook_func hook), \
	         (session, type, when, hook))                                                          \
	FUNCTION(size_t, gnutls_record_check_pending, (gnutls_session_t session), (session))           \
	FUNCTION(ssize_t, gnutls_record_recv, (gnutls_session_t session, void *data, size_t size),     \
	         (session, data, size))                                                                \
	FUNCTION(ssize_t, gnutls_record_send,                                                          \
	         (gnutls_session_t session, const void *data, size_t size), (session, data, size))     \
	FUNCTION(int, gnutls_session_ticket_enable_server,                                             \
	         (gnutls_session_t session, const gnutls_datum_t *key), (session, key))                \
	FUNCTION(int, gnutls_session_ticket_key_generate, (gnutls_datum_t * key), (key))               \
	FUNCTION(void, gnutls_session_set_verify_cert2,                                                \
	         (gnutls_session_t session, gnutls_typed_vdata_st * data, unsigned elements,           \
	          unsigned flags),                                                                     \
	         (session, data, elements, flags))                                                     \
	FUNCTION(const char *, gnutls_strerror, (int number), (number))                                \
	FUNCTION(gnutls_transport_ptr_t, gnutls_transport_get_ptr, (gnutls_session_t session),         \
	         (session))                                                                            \
	FUNCTION(void, gnutls_transport_set_ptr,                                                       \
	         (gnutls_session_t session, gnutls_transport_ptr_t context), (session, context))       \
	FUNCTION(void, gnutls_transport_set_pull_function,                                             \
	         (gnutls_session_t session, gnutls_pull_func pull), (session, pull))                   \
	FUNCTION(void, gnutls_transport_set_pull_timeout_function,                                     \
	         (gnutls_session_t session, gnutls_pull_timeout_func wait), (session, wait))           \
	FUNCTION(void, gnutls_transport_set_vec_push_function,                                         \
	         (gnutls_session_t session, gnutls_vec_push_func push), (session, push))               \
	FUNCTION(unsigned, gnutls_x509_crt_check_issuer,                                               \
	         (gnutls_x509_crt_t certificate, gnutls_x509_crt_t issuer), (certificate, issuer))     \
	FUNCTION(void, gnutls_x509_crt_deinit, (gnutls_x509_crt_t certificate), (certificate))         \
	FUNCTION(time_t, gnutls_x509_crt_get_activation_time, (gnutls_x509_crt_t certificate),         \
	         (certificate))                                                                        \
	FUNCTION(time_t, gnutls_x509_crt_get_expiration_time, (gnutls_x509_crt_t certificate),         \
	         (certificate))                                                                        \
	FUNCTION(int, gnutls_x509_crt_list_import,                                                     \
	         (gnutls_x509_crt_t * certificates, unsigned *count, const gnutls_datum_t *data,       \
	          gnutls_x509_crt_fmt_t format, unsigned flags),                                       \
	         (certificates, count, data, format, flags))

LIBRARY_FUNCTIONS(ALL_FIXED)

/* A variable of the library. */
static gnutls_free_function *gnutls_free_loaded;

static const struct library_function functions[] = {ALL_FIXED(LIBRARY_ROW)
                                                        LIBRARY_ROW(, gnutls_free, , )};
static struct library gnutls = {LIBGNUTLS, functions, sizeof functions / sizeof *functions, false};

int gnutls_load(struct error *error)
{
	return library_load(&gnutls, error);
}

void gnutls_wipe(gnutls_datum_t *datum)
{
	if (!datum->data)
		return;
	explicit_bzero(datum->data, datum->size);
	(*gnutls_free_loaded)(datum->data);
	datum->data = NULL;
}
