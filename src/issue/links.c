#include "issue/links.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/certifications/certifications.h"
#include "store/certifications/link_secrets.h"

#define LINK_TEXT_MAX 512
#define EXPIRES_DIGITS_MAX 12

struct link_secrets {
	pthread_mutex_t mutex;
	struct link_secret items[LINK_SECRETS_MAX];
	size_t count;
};

int links_open(struct service *service, struct error *error)
{
	service->link_secrets = calloc(1, sizeof *service->link_secrets);
	if (!service->link_secrets)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&service->link_secrets->mutex, NULL);
	return service_refresh_links(service, error);
}

void links_close(struct service *service)
{
	if (!service->link_secrets)
		return;
	pthread_mutex_destroy(&service->link_secrets->mutex);
	explicit_bzero(service->link_secrets, sizeof *service->link_secrets);
	free(service->link_secrets);
	service->link_secrets = NULL;
}

int service_refresh_links(struct service *service, struct error *error)
{
	struct link_secret items[LINK_SECRETS_MAX];
	size_t count = 0;
	int result = store_read_link_secrets(service->store, items, &count, error);
	if (!result && count == 0)
		result = error_cause(error, ERR_CORRUPT, "there is no secret of download links");
	if (result)
		return result;
	pthread_mutex_lock(&service->link_secrets->mutex);
	memcpy(service->link_secrets->items, items, count * sizeof *items);
	service->link_secrets->count = count;
	pthread_mutex_unlock(&service->link_secrets->mutex);
	return OK;
}

/* Copies the known secrets, in order of creation. */
static size_t copy_secrets(const struct service *service, struct link_secret *items)
{
	struct link_secrets *secrets = service->link_secrets;
	pthread_mutex_lock(&secrets->mutex);
	size_t count = secrets->count;
	memcpy(items, secrets->items, count * sizeof *items);
	pthread_mutex_unlock(&secrets->mutex);
	return count;
}

/* Returns the latest secret that is in use. The first one is used immediately, so there is always
 * one. */
static struct sha256 secret_in_use(const struct service *service)
{
	struct link_secret items[LINK_SECRETS_MAX];
	size_t at = copy_secrets(service, items);
	int64_t now_us = store_now_us(service->store);
	assert(at >= 1);
	while (at > 1 && items[at - 1].used_from_us > now_us)
		at--;
	return items[at - 1].secret;
}

/* The MAC covers the method, path and expiry of the link. HEAD is a GET without a body. */
static struct sha256 link_mac(const struct sha256 *secret, const char *certification_id,
                              const char *name, int64_t expires)
{
	char text[LINK_TEXT_MAX];
	int size = snprintf(text, sizeof text, "GET\n/v1/downloads/%s/%s\n%" PRId64, certification_id,
	                    name, expires);
	/* Our names are short; longer ones from outside match nothing. */
	size_t used = size > 0 && (size_t)size < sizeof text ? (size_t)size : 0;
	return hmac_sha256(slice_make(secret->bytes, SHA256_SIZE), slice_make(text, used));
}

/* public_url/v1/downloads/<certification id>/<file name>?expires=<unix seconds>&mac=<hex> */
static void link_make(const struct service *service, const char *certification_id, const char *name,
                      int64_t now_us, struct buf *out)
{
	int64_t expires = (now_us + service->settings->certification_link_lifetime) / US_PER_SECOND;
	struct sha256 secret = secret_in_use(service);
	struct sha256 mac = link_mac(&secret, certification_id, name, expires);
	buf_printf(out, "%s/v1/downloads/%s/%s?expires=%" PRId64 "&mac=",
	           service->settings->service_public_url, certification_id, name, expires);
	buf_add_hex(out, mac.bytes, SHA256_SIZE);
}

static const char *document_type(enum document_kind kind)
{
	return kind == DOCUMENT_REPORT ? "application/pdf" : "application/zip";
}

/* An archive contains explanations in both languages. */
static const char *document_languages(const struct document *document)
{
	switch (document->kind) {
	case DOCUMENT_REPORT: return document->language == LANGUAGE_SPANISH ? "es" : "en";
	case DOCUMENT_EVIDENCE: return "en, es";
	default: return NULL;
	}
}

void document_link(const struct service *service, const char *certification_id,
                   const struct document *document, int64_t now_us, struct buf *out)
{
	struct content_link link = {
		.content_type = document_type(document->kind),
		.file_name = document->name,
		.now_us = now_us,
		.lifetime_us = service->settings->certification_link_lifetime,
	};
	/* The content store can link to whole objects only. */
	if (!service->settings->content_presigned_links || document->shared[0] ||
	    content_make_link(service->content, document->object, &link, out, NULL))
		link_make(service, certification_id, document->name, now_us, out);
}

bool link_check(const struct service *service, const char *certification_id, const char *name,
                struct slice expires, struct slice mac, int64_t now_us)
{
	if (expires.size == 0 || expires.size > EXPIRES_DIGITS_MAX ||
	    strlen(certification_id) + strlen(name) > LINK_TEXT_MAX / 2)
		return false;
	int64_t seconds = 0;
	for (size_t i = 0; i < expires.size; i++) {
		if (expires.data[i] < '0' || expires.data[i] > '9' || (i == 0 && expires.data[i] == '0'))
			return false;
		seconds = seconds * 10 + (expires.data[i] - '0');
	}
	struct link_secret items[LINK_SECRETS_MAX];
	size_t count = copy_secrets(service, items);
	int64_t shared_now_us = store_now_us(service->store);
	bool known = false;
	for (size_t i = 0; i < count; i++) {
		struct sha256 expected = link_mac(&items[i].secret, certification_id, name, seconds);
		char text[2 * SHA256_SIZE + 1];
		hex_encode(expected.bytes, SHA256_SIZE, text);
		known |=
			constant_time_equal(slice_of(text), mac) && items[i].valid_until_us > shared_now_us;
	}
	return known && seconds * US_PER_SECOND > now_us;
}

int issued_file_find(struct service *service, struct slice certification_id, struct slice name,
                     struct issued_file *ret, struct error *error)
{
	struct document document;
	int result = store_find_document(service->store, certification_id, name, &document, error);
	if (result)
		return result;
	struct issued_file file = {
		.account = document.account,
		.content_type = document_type(document.kind),
		.languages = document_languages(&document),
		.size = (uint64_t)document.size_bytes,
		.sha256 = document.sha256,
	};
	if (strlen(document.object) >= sizeof file.object)
		return error_cause(error, ERR_CORRUPT, "object name of %s", document.name);
	memcpy(file.object, document.object, strlen(document.object) + 1);
	memcpy(file.shared, document.shared, sizeof file.shared);
	memcpy(file.pieces, document.pieces, sizeof file.pieces);
	*ret = file;
	return OK;
}
