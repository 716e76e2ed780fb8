#include "http/tls_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "service/settings.h"

#define PEM_SIZE_MAX ((size_t)1 << 20)
#define ISSUED_MAX 16

/* ---- files ---- */

static const struct names {
	const char *certificate, *key, *clients;
} names[HTTP_LISTENERS] = {
	[HTTP_PUBLIC] = {"service.tls_certificate", "service.tls_key", NULL},
	[HTTP_OPERATORS] = {"service.admin_tls_certificate", "service.admin_tls_key",
                        "service.admin_tls_clients"},
};

struct files {
	const char *certificate, *key, *clients;
};

static struct files files_of(const struct settings *settings, enum http_listener listener)
{
	if (listener == HTTP_PUBLIC)
		return (struct files){settings->service_tls_certificate, settings->service_tls_key, ""};
	return (struct files){settings->service_admin_tls_certificate, settings->service_admin_tls_key,
	                      settings->service_admin_tls_clients};
}

static bool is_set(const char *path)
{
	return path && *path;
}

struct input {
	const struct names *names;
	http_setting_problem *problem;
	void *context;
	const char **ret_setting;
	struct error *error;
};

static int refuse(const struct input *input, const char *setting, const char *what)
{
	*input->ret_setting = setting;
	return error_cause(input->error, ERR_VALIDATION, "%s", what);
}

__attribute__((format(printf, 3, 4))) static void warn(const struct input *input,
                                                       const char *setting, const char *format, ...)
{
	char what[256];
	va_list list;
	if (!input->problem)
		return;
	va_start(list, format);
	vsnprintf(what, sizeof what, format, list);
	va_end(list);
	input->problem(input->context, setting, what);
}

/* Refuses a key file that others can access. Group access is allowed, for example for a renewal
 * tool of root. */
static int check_key_file(const struct input *input, const char *path)
{
	struct stat facts;
	if (stat(path, &facts) == 0 && facts.st_mode & (S_IWGRP | S_IRWXO))
		return refuse(
			input, input->names->key,
			"must not be accessible to others: use mode 0600, 0400, or 0640 with a dedicated "
			"group");
	return OK;
}

static int read_file(const struct input *input, const char *setting, const char *path,
                     struct buf *out)
{
	struct error error = {0};
	buf_init(out, PEM_SIZE_MAX);
	int result = file_read_whole(path, out, &error);
	if (!result)
		result = buf_check(out);
	if (!result)
		return out->size ? OK : refuse(input, setting, "is empty");
	*input->ret_setting = setting;
	return error_cause(input->error, result == ERR_NO_MEMORY ? result : ERR_VALIDATION,
	                   "cannot be read: %s", error_reason(&error, result));
}

static gnutls_datum_t datum_of(const struct buf *buf)
{
	return (gnutls_datum_t){(unsigned char *)buf->data, (unsigned)buf->size};
}

/* ---- certificates ---- */

static void warn_of_expiry(const struct input *input, int64_t from_us, int64_t until_us)
{
	char text[TIME_TEXT_SIZE];
	int64_t now_us = clock_now_us();
	if (now_us < from_us) {
		time_format(from_us, text);
		warn(input, input->names->certificate, "is not valid before %s", text);
	} else if (now_us > until_us) {
		time_format(until_us, text);
		warn(input, input->names->certificate, "expired on %s, and clients refuse it", text);
	} else if (until_us - now_us < HTTP_TLS_WARN_US) {
		time_format(until_us, text);
		warn(input, input->names->certificate, "expires on %s", text);
	}
}

static int check_chain(const struct input *input, gnutls_x509_crt_t *chain, unsigned count,
                       struct tls_generation *generation)
{
	int64_t from_us = INT64_MIN, until_us = INT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		int64_t begins_us = gnutls_x509_crt_get_activation_time(chain[i]) * US_PER_SECOND;
		int64_t ends_us = gnutls_x509_crt_get_expiration_time(chain[i]) * US_PER_SECOND;
		from_us = begins_us > from_us ? begins_us : from_us;
		until_us = ends_us < until_us ? ends_us : until_us;
		if (i && !gnutls_x509_crt_check_issuer(chain[i - 1], chain[i]))
			return refuse(input, input->names->certificate,
			              "must contain the server certificate first, and each certificate must be "
			              "followed by that of its issuer");
	}
	generation->begins_us = from_us;
	generation->expires_us = until_us;
	warn_of_expiry(input, from_us, until_us);
	if (count == 1 && !gnutls_x509_crt_check_issuer(chain[0], chain[0]))
		warn(input, input->names->certificate,
		     "has no issuer certificate after the server certificate: clients that have only the "
		     "root accept it only if the root issued it");
	return OK;
}

static int read_chain(const struct input *input, const gnutls_datum_t *pem,
                      struct tls_generation *generation)
{
	gnutls_x509_crt_t chain[ISSUED_MAX];
	unsigned count = ISSUED_MAX;
	int known = gnutls_x509_crt_list_import(chain, &count, pem, GNUTLS_X509_FMT_PEM,
	                                        GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
	if (known <= 0)
		return refuse(input, input->names->certificate,
		              "must be a PEM file with the server certificate and its issuers, at most 16 "
		              "certificates");
	int result = check_chain(input, chain, (unsigned)known, generation);
	for (int i = 0; i < known; i++)
		gnutls_x509_crt_deinit(chain[i]);
	return result;
}

/* ---- generations ---- */

static void generation_free(struct tls_generation *generation)
{
	if (generation->credentials)
		gnutls_certificate_free_credentials(generation->credentials);
	if (generation->ticket_key.data) {
		explicit_bzero(generation->ticket_key.data, generation->ticket_key.size);
		gnutls_free(generation->ticket_key.data);
	}
	free(generation);
}

void tls_release(struct tls_generation *generation)
{
	if (generation && atomic_fetch_sub(&generation->holders, 1) == 1)
		generation_free(generation);
}

int64_t tls_expires_us(const struct tls_generation *generation)
{
	return generation->expires_us;
}

bool tls_is_current(const struct tls_generation *generation)
{
	int64_t now_us = clock_now_us();
	return generation->begins_us <= now_us && now_us <= generation->expires_us;
}

static int read_pair(const struct input *input, const struct files *files,
                     struct tls_generation *generation)
{
	BUF_AUTO struct buf certificate = {0}, key = {0};
	const struct names *name = input->names;
	int result = read_file(input, name->certificate, files->certificate, &certificate);
	if (!result)
		result = check_key_file(input, files->key);
	if (!result)
		result = read_file(input, name->key, files->key, &key);
	gnutls_datum_t certificate_pem = datum_of(&certificate), key_pem = datum_of(&key);
	if (!result)
		result = read_chain(input, &certificate_pem, generation);
	int taken = result
	                ? 0
	                : gnutls_certificate_set_x509_key_mem(generation->credentials, &certificate_pem,
	                                                      &key_pem, GNUTLS_X509_FMT_PEM);
	if (key.data)
		explicit_bzero(key.data, key.capacity);
	if (taken == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return refuse(input, name->key, "is not the key of the certificate");
	if (taken < 0)
		return refuse(input, name->key,
		              "must be a PEM file with the unencrypted private key of the certificate");
	return result;
}

static int read_clients(const struct input *input, const char *path,
                        struct tls_generation *generation)
{
	BUF_AUTO struct buf roots = {0};
	if (!is_set(path))
		return OK;
	int result = read_file(input, input->names->clients, path, &roots);
	gnutls_datum_t pem = datum_of(&roots);
	if (!result && gnutls_certificate_set_x509_trust_mem(generation->credentials, &pem,
	                                                     GNUTLS_X509_FMT_PEM) <= 0)
		result = refuse(input, input->names->clients,
		                "must be a PEM file with the root certificates of clients");
	generation->requests_certificates = true;
	return result;
}

static int make(const struct input *input, const struct files *files,
                struct tls_generation *generation)
{
	generation->holders = 1;
	if (gnutls_certificate_allocate_credentials(&generation->credentials) < 0 ||
	    gnutls_session_ticket_key_generate(&generation->ticket_key) < 0)
		return ERR_NO_MEMORY;
	int result = read_pair(input, files, generation);
	return result ? result : read_clients(input, files->clients, generation);
}

int tls_read(const struct settings *settings, enum http_listener listener,
             http_setting_problem *problem, void *context, struct tls_generation **ret,
             const char **ret_setting, struct error *error)
{
	struct files files = files_of(settings, listener);
	struct input input = {&names[listener], problem, context, ret_setting, error};
	bool certificate = is_set(files.certificate), key = is_set(files.key);
	*ret = NULL;
	if (certificate != key)
		return refuse(&input, key ? input.names->certificate : input.names->key,
		              "must also be set: a certificate and its key require each other");
	if (!key && is_set(files.clients))
		return refuse(&input, input.names->clients,
		              "requires TLS: set service.admin_tls_certificate and service.admin_tls_key");
	if (!key)
		return OK;
	*ret_setting = input.names->certificate;
	int result = libgnutls_load(error);
	struct tls_generation *generation = result ? NULL : calloc(1, sizeof *generation);
	if (!generation)
		return result ? result : ERR_NO_MEMORY;
	result = make(&input, &files, generation);
	if (result)
		generation_free(generation);
	else
		*ret = generation;
	return result;
}
