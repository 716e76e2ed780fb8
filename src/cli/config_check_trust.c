/* Checks of the settings of timestamp authorities, signing keys and the log of segments. */
#include <stdio.h>
#include <string.h>

#include "cli/config_check.h"
#include "evidence/log_publisher.h"

void check_authorities(const struct check *check)
{
	const struct settings *settings = check->settings;
	struct authority_settings authorities = settings_authorities(settings);
	authority_check_settings(&authorities, &check->report);
	if (authority_has_embedded(&authorities) && *settings->signer_key)
		fault(check, "tsa.url",
		      "must not contain embedded: when signer.key is set; it is for "
		      "development only");
	check_networks(check, "revocation.allow_networks", settings->revocation_allow_networks);
	check_duration(check, "revocation.timeout", settings->revocation_timeout, 100000, "100ms");
}

/* ---- keys ---- */

/* The fitness of the keys is checked by the process that holds them (node_check_signer). */
void check_signer(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	bool on_token = starts_with(slice_of(settings->signer_key), "pkcs11:");
	if (!*settings->signer_key && (*settings->signer_chain || *settings->signer_passphrase_file))
		fault(check, "signer.key",
		      "must be set when signer.chain or signer.passphrase_file is set");
	if (on_token && !*settings->signer_chain)
		fault(check, "signer.chain", "must be set with a pkcs11: key");
	if (!*settings->signer_key && *settings->signer_next_key)
		fault(check, "signer.key", "must be set when signer.next_key is set");
	if (!*settings->signer_next_key &&
	    (*settings->signer_next_chain || *settings->signer_next_passphrase_file))
		fault(check, "signer.next_key",
		      "must be set when signer.next_chain or signer.next_passphrase_file is set");
	if (serving && !on_token)
		(void)setting_check_readable(&check->report, "signer.key", settings->signer_key);
	if (serving)
		(void)setting_check_readable(&check->report, "signer.chain", settings->signer_chain);
}

/* ---- the log of segments ---- */

static void check_witnesses(const struct check *check)
{
	struct log_witness witnesses[LOG_WITNESSES_MAX];
	size_t count = 0;
	struct error why = {0};
	char most[64];
	if (log_witnesses_parse(check->settings->log_witnesses, witnesses, &count, &why)) {
		fault(check, "log.witnesses", why.cause);
		return;
	}
	snprintf(most, sizeof most, "must be from 0 to %zu, the number of log.witnesses", count);
	if (check->settings->log_quorum < 0 || check->settings->log_quorum > (int64_t)count)
		fault(check, "log.quorum", most);
}

void check_log_publication(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	char origin[NOTE_NAME_MAX + 1];
	log_origin(settings, origin);
	const char *why = note_check_name(slice_of(origin));
	if (why)
		fault(check, "log.origin", why);
	if (strlen(settings->log_origin) > NOTE_NAME_MAX)
		fault(check, "log.origin", note_check_name(slice_of(settings->log_origin)));
	check_witnesses(check);
	check_networks(check, "log.allow_networks", settings->log_allow_networks);
	check_duration(check, "log.witness_timeout", settings->log_witness_timeout, 100000, "100ms");
	if (settings->log_witness_timeout > 60 * US_PER_SECOND)
		fault(check, "log.witness_timeout", "must be at most 60s");
	if (serving)
		(void)setting_check_readable(&check->report, "log.key", settings->log_key);
}
