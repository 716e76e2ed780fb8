#include "service/service.h"

#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/rate.h"
#include "seal/clock_state.h"
#include "seal/signer.h"
#include "service/clock.h"
#include "service/key_uses.h"
#include "service/keys.h"
#include "service/links.h"
#include "service/quiet.h"
#include "service/registrar.h"
#include "service/signers.h"
#include "service/watch.h"

#define TRIES_BUCKETS 4096

int service_open_payments(const struct settings *settings, struct payment_provider **ret,
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
	struct payment_provider *payments = NULL;
	struct db_options options = settings_store(settings, create);
	service->watch = watch_make();
	int result = service->watch ? store_open(&options, &service->store, error) : ERR_NO_MEMORY;
	struct content_options content = settings_content(settings, create);
	if (!result)
		result = content_open_with(&content, &service->content, error);
	if (!result)
		result = quiet_look(service, error);
	if (!result)
		result = claim_content(service, error);
	if (!result)
		result = store_get_secret(service->store, "cursor_secret", &service->cursor_secret, error);
	if (!result)
		result = links_open(service, error);
	if (!result)
		result = service_open_payments(settings, &payments, error);
	service->payments = payments;
	if (!result) {
		service->keys = key_cache_make();
		service->key_uses = key_uses_make();
		service->tries = rate_limiter_create(TRIES_BUCKETS);
		result = service->keys && service->key_uses && service->tries
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
	rate_limiter_free(service->tries);
	links_close(service);
	payment_provider_close(service->payments);
	content_close(service->content);
	store_close(service->store);
	watch_free(service->watch);
	service->watch = NULL;
	service->registrar = NULL;
	service->keys = NULL;
	service->key_uses = NULL;
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
	return atomic_exchange(&service->damage_told[which % DAMAGE_TOLD_MAX], which) != which;
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
	struct watched_authority watched;
	bool found = service->signer && signer_is_development(service->signer);
	for (size_t i = 0; !found && watch_get_authority(service, i, &watched); i++)
		found = watched.development;
	return found;
}

static int64_t time_or_zero(int64_t time_us)
{
	return time_us == TIME_NONE ? 0 : time_us;
}

/* Until the store has answered once, it is not known. */
static void read_observation(const struct service *service, struct gauges *ret)
{
	struct observation seen = watch_seen(service);
	bool known = seen.at_us != 0;
	ret->oldest_pending_us = known ? time_or_zero(seen.oldest_pending_us) : GAUGE_UNKNOWN;
	ret->last_seal_us = known ? time_or_zero(seen.last_seal_us) : GAUGE_UNKNOWN;
	ret->last_backup_us = known ? time_or_zero(seen.last_backup_us) : GAUGE_UNKNOWN;
	ret->replicas = known ? seen.replicas.synchronous : GAUGE_UNKNOWN;
	ret->replicas_required = known ? seen.replicas.required : GAUGE_UNKNOWN;
	ret->replica_lag_bytes = known ? seen.replicas.lag_bytes : GAUGE_UNKNOWN;
	ret->replica_lag_us = known ? seen.replicas.lag_us : GAUGE_UNKNOWN;
}

void service_read_gauges(struct service *service, struct gauges *ret)
{
	registrar_read_gauges(service->registrar, ret);
	ret->quiet = quiet_is(service);
	struct clock_state clock = clock_state_read();
	ret->clock_synchronized = clock.synchronized;
	ret->clock_max_error_us = clock.max_error_us;
	ret->clock_compared = atomic_load(&service->comparison.state) == CLOCK_COMPARED;
	ret->clock_ahead_us = service_clock_ahead_us(service);
	ret->development_keys = service_has_development_keys(service);
	read_observation(service, ret);
	ret->signer_can_sign = signers_check(service, NULL) == 0;
	const struct signer_key *key =
		service->signer ? signer_get_key(service->signer, signer_in_force(service->signer)) : NULL;
	ret->signer_expires_us = key ? key->valid_until_us : 0;
	ret->authority_expires_us = service_authorities_expire_us(service);
}
