/* Shared by the files that check the meaning of settings. */
#ifndef CLI_CONFIG_CHECK_H
#define CLI_CONFIG_CHECK_H

#include <string.h>

#include "cli/config.h"
#include "net/address.h"

struct check {
	const struct settings *settings;
	struct setting_check report;
};

static inline void fault(const struct check *check, const char *setting, const char *what)
{
	setting_fault(&check->report, setting, what);
}

static inline bool starts_with(struct slice text, const char *start)
{
	return text.size > strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

static inline void check_range(const struct check *check, const char *setting, int64_t value,
                               int64_t least, int64_t most)
{
	setting_check_range(&check->report, setting, value, least, most);
}

/* `least` is the text of least_us. */
static inline void check_duration(const struct check *check, const char *setting, int64_t value_us,
                                  int64_t least_us, const char *least)
{
	setting_check_duration(&check->report, setting, value_us, least_us, least);
}

static inline void check_networks(const struct check *check, const char *setting, const char *list)
{
	network_list_check(list, &check->report, setting);
}

/* config_check_trust.c. `serving`: also check what a service needs. */
void check_authorities(const struct check *check);
void check_signer(const struct check *check, bool serving);
void check_log_publication(const struct check *check, bool serving);

#endif
