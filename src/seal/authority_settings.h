/* The settings of the timestamp authorities: their check, and the authorities that they describe.
 */
#ifndef SEAL_AUTHORITY_SETTINGS_H
#define SEAL_AUTHORITY_SETTINGS_H

#include <stddef.h>

#include "base/error.h"
#include "base/setting.h"

struct authorities;
struct signer;

/* Members are named after the keys of authority_settings.def, which describes them. All text is the
 * caller's and only read during a call. */
struct authority_settings {
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help) SETTING_FIELD_##type key;
#include "seal/authority_settings.def"
#undef RELOADS
#undef SETTING
};

/* Reports what is wrong with the settings. Reads no file, but checks with `check->serving` that
 * each can be read. */
void authority_check_settings(const struct authority_settings *settings,
                              const struct setting_check *check);

/* Returns the number of authorities that the settings list. */
size_t authority_count(const struct authority_settings *settings);
/* Returns whether one of them is embedded in this program, for development. */
bool authority_has_embedded(const struct authority_settings *settings);

/* Creates the authorities as authorities_create does. `signer` serves "embedded:" authorities and
 * outlives the result; NULL: those are left out, and *ret_authorities stays unchanged if no other
 * is listed. */
int authority_create_all(const struct authority_settings *settings, struct signer *signer,
                         struct authorities **ret_authorities, struct error *error) MUST_CHECK;
/* Returns the name of the setting to correct after a failure of authority_create_all. Reads the
 * files. */
const char *authority_setting_at_fault(const struct authority_settings *settings);
/* Returns the name of the setting to correct after a failure of authority `index` with that fault,
 * and what to do, beginning with "; ", or an empty text. */
const char *authority_setting_of_fault(const struct authority_settings *settings, size_t index,
                                       enum error_blame fault, const char **ret_remedy);
/* Creates the one of this index, for a check; *ret_authorities is NULL for an embedded one. */
int authority_create_one(const struct authority_settings *settings, size_t index,
                         struct authorities **ret_authorities, struct error *error) MUST_CHECK;

#endif
