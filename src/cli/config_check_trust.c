/* Checks of the settings of timestamp authorities and signing keys. */
#include <string.h>

#include "cli/config_check.h"

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
