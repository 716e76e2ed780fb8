/* Certificates that expire while the service is running. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "evidence/signers.h"
#include "seal/authority.h"
#include "seal/signer.h"

#define LISTENER_WARN_US (14 * US_PER_DAY)

_Static_assert(EXPIRING_MAX == SIGNER_KEYS + AUTHORITIES_MAX + SERVICE_LISTENERS,
               "there is room for all");

static void add(const struct service *service, const char *what,
                const struct certificate_facts *certificate, int64_t until_us,
                struct expiring items[EXPIRING_MAX], size_t *count)
{
	struct expiring *item = &items[(*count)++];
	item->what = what;
	snprintf(item->subject, sizeof item->subject, "%s", certificate->subject);
	item->until_us = until_us;
	item->near = until_us - clock_now_us() < service->settings->signer_warn_before;
}

/* A replaced key is no longer used. */
static void add_signers(const struct service *service, struct expiring items[EXPIRING_MAX],
                        size_t *count)
{
	int in_force = signer_active_key(service->signer);
	for (int i = 0; i < SIGNER_KEYS; i++) {
		const struct signer_key *key = signer_get_key(service->signer, i);
		bool waits = i == SIGNER_NEXT && in_force != SIGNER_NEXT;
		if (key && (i == in_force || waits))
			add(service, waits ? "the next signing certificate" : "the signing certificate",
			    &key->certificate, key->valid_until_us, items, count);
	}
}

static void add_authorities(const struct service *service, struct expiring items[EXPIRING_MAX],
                            size_t *count)
{
	for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
		struct authority_certificates seen;
		if (authorities_get_certificates(service->authorities, i, &seen, NULL))
			add(service, "the certificate of a timestamp authority", &seen.certificate,
			    seen.valid_until_us, items, count);
	}
}

/* Most listener certificates are renewed automatically a month before they expire. One that is
 * still in use two weeks before its expiry was not renewed. */
static void add_listeners(const struct service *service, struct expiring items[EXPIRING_MAX],
                          size_t *count)
{
	static const char *const settings[SERVICE_LISTENERS] = {"service.tls_certificate",
	                                                        "service.admin_tls_certificate"};
	for (int listener = 0; listener < SERVICE_LISTENERS; listener++) {
		int64_t until_us = atomic_load(&service->tls_expires_us[listener]);
		if (!until_us)
			continue;
		struct expiring *item = &items[(*count)++];
		item->what = "the certificate of a listener";
		snprintf(item->subject, sizeof item->subject, "%s", settings[listener]);
		item->until_us = until_us;
		item->near = until_us - clock_now_us() < LISTENER_WARN_US;
	}
}

size_t service_list_expiring(const struct service *service, struct expiring items[EXPIRING_MAX])
{
	size_t count = 0;
	if (service->signer)
		add_signers(service, items, &count);
	if (service->authorities)
		add_authorities(service, items, &count);
	add_listeners(service, items, &count);
	return count;
}

int64_t service_authorities_expire_us(const struct service *service)
{
	int64_t earliest_us = 0;
	for (size_t i = 0; service->authorities && i < AUTHORITIES_MAX; i++) {
		struct authority_certificates seen;
		if (authorities_get_certificates(service->authorities, i, &seen, NULL) &&
		    (earliest_us == 0 || seen.valid_until_us < earliest_us))
			earliest_us = seen.valid_until_us;
	}
	return earliest_us;
}

/* Identifies a certificate; a renewed one with the same subject is another certificate. */
static struct sha256 name_of(const struct expiring *item)
{
	char text[sizeof item->subject + 256];
	int size =
		snprintf(text, sizeof text, "%s %s %" PRId64, item->subject, item->what, item->until_us);
	return sha256_of(text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

/* Returns whether the certificate is due for its daily log message. */
static bool is_due(struct service *service, const struct expiring *item)
{
	int64_t now_us = clock_boot_us();
	struct sha256 which = name_of(item);
	struct expiry_logged *oldest = &service->expiry_logged[0];
	for (size_t i = 0; i < EXPIRING_MAX; i++) {
		struct expiry_logged *slot = &service->expiry_logged[i];
		bool fresh = slot->at_us && now_us - slot->at_us < US_PER_DAY;
		if (fresh && sha256_equal(&slot->which, &which))
			return false;
		if (slot->at_us < oldest->at_us)
			oldest = slot;
	}
	*oldest = (struct expiry_logged){now_us, which};
	return true;
}

void service_watch_expiry(struct service *service)
{
	struct expiring items[EXPIRING_MAX];
	size_t count = service_list_expiring(service, items);
	for (size_t i = 0; i < count; i++) {
		char until[TIME_TEXT_SIZE];
		if (!items[i].near || !is_due(service, &items[i]))
			continue;
		time_format(items[i].until_us, until);
		log_warning("certificate_expiring", "which", items[i].what, "subject", items[i].subject,
		            "valid_until", until);
	}
}
