#include "service/service.h"

#include "base/log.h"
#include "seal/clock_state.h"
#include "seal/signer.h"
#include "service/clock.h"
#include "service/keys.h"
#include "service/links.h"
#include "service/registrar.h"
#include "service/signers.h"

static int open_payments(const struct settings *settings, struct payment_provider **ret,
                         struct error *error)
{
	struct payment_settings given = {
		.provider = settings->payment_provider,
		.stripe_url = settings->payment_stripe_url,
		.stripe_key = settings->payment_stripe_key,
		.stripe_webhook_secret = settings->payment_stripe_webhook_secret,
		.allow_networks = settings->payment_allow_networks,
		.return_url = settings->payment_return_url,
	};
	return payment_provider_open(&given, ret, error);
}

/* A store across a network may be away when a node starts: then whoever sweeps claims the place. */
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
	struct db_options options = settings_store(settings, create);
	int result = store_open(&options, &service->store, error);
	struct content_options content = settings_content(settings, create);
	if (!result)
		result = content_open_with(&content, &service->content, error);
	if (!result)
		result = claim_content(service, error);
	if (!result)
		result = store_get_secret(service->store, "cursor_secret", &service->cursor_secret, error);
	if (!result)
		result = links_open(service, error);
	if (!result)
		result = open_payments(settings, &service->payments, error);
	if (!result) {
		service->keys = key_cache_make();
		result =
			service->keys ? registrar_start(service, &service->registrar, error) : ERR_NO_MEMORY;
	}
	if (result)
		service_close(service);
	return result;
}

void service_close(struct service *service)
{
	registrar_stop(service->registrar);
	key_cache_free(service->keys);
	links_close(service);
	payment_provider_close(service->payments);
	content_close(service->content);
	store_close(service->store);
	service->registrar = NULL;
	service->keys = NULL;
	service->payments = NULL;
	service->content = NULL;
	service->store = NULL;
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

void service_read_gauges(struct service *service, struct gauges *ret)
{
	registrar_read_gauges(service->registrar, ret);
	struct clock_state clock = clock_state_read();
	ret->clock_synchronized = clock.synchronized;
	ret->clock_max_error_us = clock.max_error_us;
	ret->clock_ahead_us = service_clock_ahead_us(service);
	ret->signer_can_sign = signers_check(service, NULL) == 0;
	const struct signer_key *key =
		service->signer ? signer_get_key(service->signer, signer_in_force(service->signer)) : NULL;
	ret->signer_expires_us = key ? key->valid_until_us : 0;
	ret->authority_expires_us = service_authorities_expire_us(service);
}
