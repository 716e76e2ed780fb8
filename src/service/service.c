#include "service/service.h"

#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/rate.h"
#include "seal/signer.h"
#include "service/key_uses.h"
#include "service/keys.h"
#include "service/read_only.h"
#include "service/registrar.h"
#include "service/registration_clock.h"
#include "service/request_sampler.h"
#include "service/watch.h"

#define TRIES_BUCKETS 4096

int service_open_payments(const struct settings *settings, struct payment_provider **ret,
                          struct error *error)
{
	struct payment_settings given = settings_payment(settings);
	return payment_provider_open(&given, ret, error);
}

/* A remote content store may be unavailable when the node starts; the sweep then claims it. */
static int claim_content(struct service *service, struct error *error)
{
	struct content_marker marker;
	struct error local = {0};
	int result = store_get_installation(service->store, service->installation, error);
	if (result)
		return result;
	result = content_ready(service->content, &local);
	if (!result)
		result = content_claim(service->content, service->installation, &marker, &local);
	if (result == ERR_REFUSED) {
		if (error)
			*error = local;
		return result;
	}
	if (result)
		log_warning("content_not_claimed", "cause",
		            *local.cause ? local.cause : error_message(&local, LANGUAGE_ENGLISH));
	return OK;
}

int service_open(const struct settings *settings, bool create, struct service *ret_service,
                 struct error *error)
{
	struct service *service = ret_service;
	service->settings = settings;
	struct payment_provider *payments = NULL;
	struct db_options options = settings_store(settings, create);
	service->watch = watch_make();
	int result = service->watch ? store_open(&options, &service->store, error) : ERR_NO_MEMORY;
	struct content_options content = settings_content(settings, create);
	if (!result)
		result = content_open_with(&content, &service->content, error);
	if (!result)
		result = read_only_refresh(service, error);
	if (!result)
		result = claim_content(service, error);
	if (!result)
		result = store_get_secret(service->store, "cursor_secret", &service->cursor_secret, error);
	if (!result)
		result = service_open_payments(settings, &payments, error);
	service->payments = payments;
	if (!result) {
		service->keys = key_cache_make();
		service->key_uses = key_uses_make();
		service->requests = request_sampler_make();
		service->tries = rate_limiter_create(TRIES_BUCKETS);
		result = service->keys && service->key_uses && service->requests && service->tries
		             ? registrar_start(service, &service->registrar, error)
		             : ERR_NO_MEMORY;
	}
	if (result)
		service_close(service);
	return result;
}

void service_close(struct service *service)
{
	registrar_stop(service->registrar);
	key_cache_free(service->keys);
	key_uses_free(service->key_uses);
	request_sampler_free(service->requests);
	rate_limiter_free(service->tries);
	payment_provider_close(service->payments);
	content_close(service->content);
	store_close(service->store);
	watch_free(service->watch);
	service->watch = NULL;
	service->registrar = NULL;
	service->keys = NULL;
	service->key_uses = NULL;
	service->requests = NULL;
	service->tries = NULL;
	service->payments = NULL;
	service->content = NULL;
	service->store = NULL;
}

bool service_damage_is_new(struct service *service, const char *event_id, const char *state)
{
	char text[ID_SIZE + 32];
	uint64_t which;
	int size = snprintf(text, sizeof text, "%s %s", event_id, state);
	struct sha256 digest = sha256_of(text, (size_t)size);
	memcpy(&which, digest.bytes, sizeof which);
	return atomic_exchange(&service->damage_logged[which % DAMAGE_LOGGED_MAX], which) != which;
}

void service_wake(const struct service *service, enum wake which)
{
	if (service && service->wake)
		service->wake(service->wake_context, which);
}

int service_signer_ready(const struct service *service, struct error *error)
{
	return service->signer ? signer_ready(service->signer, error) : OK;
}

bool service_has_development_keys(const struct service *service)
{
	struct authority_status watched;
	bool found = service->signer && signer_is_development(service->signer);
	for (size_t i = 0; !found && watch_get_authority(service, i, &watched); i++)
		found = watched.development;
	return found;
}
