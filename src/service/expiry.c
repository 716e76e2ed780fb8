/* Certificates that come to their end while a service runs. */
#include <stdio.h>

#include "base/log.h"
#include "seal/signer.h"
#include "service/signers.h"

static void add(const struct service *service, const char *what,
                const struct certificate_facts *certificate, int64_t until_us,
                struct expiring items[EXPIRING_MAX], size_t *count)
{
	if (*count == EXPIRING_MAX)
		return;
	struct expiring *item = &items[(*count)++];
	item->what = what;
	snprintf(item->subject, sizeof item->subject, "%s", certificate->subject);
	item->until_us = until_us;
	item->near = until_us - clock_now_us() < service->settings->signer_warn_before;
}

/* A key that was replaced is not relied on any more. */
static void add_signers(const struct service *service, struct expiring items[EXPIRING_MAX],
                        size_t *count)
{
	int in_force = signer_in_force(service->signer);
	for (int i = 0; i < SIGNER_KEYS; i++) {
		const struct signer_key *key = signer_get_key(service->signer, i);
		bool waits = i == SIGNER_NEXT && in_force != SIGNER_NEXT;
		if (key && (i == in_force || waits))
			add(service, waits ? "the next signing certificate" : "the signing certificate",
			    &key->certificate, key->valid_until_us, items, count);
	}
}

size_t service_list_expiring(const struct service *service, struct expiring items[EXPIRING_MAX])
{
	size_t count = 0;
	if (service->signer)
		add_signers(service, items, &count);
	return count;
}

void service_watch_expiry(struct service *service)
{
	struct expiring items[EXPIRING_MAX];
	int64_t now_us = clock_boot_us();
	int64_t told_us = atomic_load(&service->expiry_told_us);
	size_t count = service_list_expiring(service, items);
	if (told_us && now_us - told_us < US_PER_DAY)
		return;
	for (size_t i = 0; i < count; i++) {
		char until[TIME_TEXT_SIZE];
		if (!items[i].near)
			continue;
		time_format(items[i].until_us, until);
		log_warning("certificate_ends", "which", items[i].what, "subject", items[i].subject,
		            "valid_until", until);
		atomic_store(&service->expiry_told_us, now_us);
	}
}
