#include "console/libfido2.h"

#include "base/library.h"

#define ALL(FUNCTION)                                                                              \
	FUNCTION(void, eddsa_pk_free, (eddsa_pk_t * *key), (key))                                      \
	FUNCTION(int, eddsa_pk_from_ptr, (eddsa_pk_t * key, const void *data, size_t size),            \
	         (key, data, size))                                                                    \
	FUNCTION(eddsa_pk_t *, eddsa_pk_new, (void), ())                                               \
	FUNCTION(EVP_PKEY *, eddsa_pk_to_EVP_PKEY, (const eddsa_pk_t *key), (key))                     \
	FUNCTION(void, es256_pk_free, (es256_pk_t * *key), (key))                                      \
	FUNCTION(int, es256_pk_from_ptr, (es256_pk_t * key, const void *data, size_t size),            \
	         (key, data, size))                                                                    \
	FUNCTION(es256_pk_t *, es256_pk_new, (void), ())                                               \
	FUNCTION(EVP_PKEY *, es256_pk_to_EVP_PKEY, (const es256_pk_t *key), (key))                     \
	FUNCTION(void, fido_assert_free, (fido_assert_t * *assertion), (assertion))                    \
	FUNCTION(fido_assert_t *, fido_assert_new, (void), ())                                         \
	FUNCTION(int, fido_assert_set_authdata_raw,                                                    \
	         (fido_assert_t * assertion, size_t index, const unsigned char *data, size_t size),    \
	         (assertion, index, data, size))                                                       \
	FUNCTION(int, fido_assert_set_clientdata_hash,                                                 \
	         (fido_assert_t * assertion, const unsigned char *hash, size_t size),                  \
	         (assertion, hash, size))                                                              \
	FUNCTION(int, fido_assert_set_count, (fido_assert_t * assertion, size_t count),                \
	         (assertion, count))                                                                   \
	FUNCTION(int, fido_assert_set_rp, (fido_assert_t * assertion, const char *party),              \
	         (assertion, party))                                                                   \
	FUNCTION(int, fido_assert_set_sig,                                                             \
	         (fido_assert_t * assertion, size_t index, const unsigned char *data, size_t size),    \
	         (assertion, index, data, size))                                                       \
	FUNCTION(int, fido_assert_set_up, (fido_assert_t * assertion, fido_opt_t present),             \
	         (assertion, present))                                                                 \
	FUNCTION(int, fido_assert_set_uv, (fido_assert_t * assertion, fido_opt_t verified),            \
	         (assertion, verified))                                                                \
	FUNCTION(uint32_t, fido_assert_sigcount, (const fido_assert_t *assertion, size_t index),       \
	         (assertion, index))                                                                   \
	FUNCTION(int, fido_assert_verify,                                                              \
	         (const fido_assert_t *assertion, size_t index, int algorithm, const void *key),       \
	         (assertion, index, algorithm, key))                                                   \
	FUNCTION(uint8_t, fido_cred_flags, (const fido_cred_t *credential), (credential))              \
	FUNCTION(void, fido_cred_free, (fido_cred_t * *credential), (credential))                      \
	FUNCTION(size_t, fido_cred_id_len, (const fido_cred_t *credential), (credential))              \
	FUNCTION(const unsigned char *, fido_cred_id_ptr, (const fido_cred_t *credential),             \
	         (credential))                                                                         \
	FUNCTION(fido_cred_t *, fido_cred_new, (void), ())                                             \
	FUNCTION(size_t, fido_cred_pubkey_len, (const fido_cred_t *credential), (credential))          \
	FUNCTION(const unsigned char *, fido_cred_pubkey_ptr, (const fido_cred_t *credential),         \
	         (credential))                                                                         \
	FUNCTION(int, fido_cred_set_authdata_raw,                                                      \
	         (fido_cred_t * credential, const unsigned char *data, size_t size),                   \
	         (credential, data, size))                                                             \
	FUNCTION(int, fido_cred_set_type, (fido_cred_t * credential, int algorithm),                   \
	         (credential, algorithm))                                                              \
	FUNCTION(uint32_t, fido_cred_sigcount, (const fido_cred_t *credential), (credential))

LIBRARY_FUNCTIONS(ALL)

static const struct library_function functions[] = {ALL(LIBRARY_ROW)};
static struct library libfido2 = {LIBFIDO2, functions, sizeof functions / sizeof *functions, false};

int libfido2_load(struct error *error)
{
	return library_load(&libfido2, error);
}
