/* The settings at fault when a connection of `config check --connect` fails. */
#include <stdio.h>
#include <string.h>

#include "cli/connection_probe_internal.h"

/* An empty setting: the one that the check began with. */
struct blame {
	const char *setting, *remedy;
};

static void fail(struct trial *trial, struct blame blame, int result, const struct error *error)
{
	if (blame.setting)
		trial->setting = blame.setting;
	probe_end(trial, true, "%s%s", error_reason(error, result), blame.remedy ? blame.remedy : "");
}

static struct blame blame_login(const struct settings *settings)
{
	if (*settings->mail_user)
		return (struct blame){"mail.password", "; check mail.user and mail.password"};
	return (struct blame){"mail.user", "; set mail.user and mail.password"};
}

static struct blame blame_roots(const struct settings *settings)
{
	return (struct blame){"mail.roots",
	                      *settings->mail_roots
	                          ? "; mail.roots must contain the root of its TLS certificate"
	                          : "; the roots of the system do not include that of its TLS "
	                            "certificate: set mail.roots"};
}

void probe_fail_mail(struct trial *trial, int result, const struct error *error)
{
	struct blame blame = {0};
	switch (error->fault) {
	case BLAME_NETWORK:
		blame = (struct blame){"mail.allow_networks", "; if it is the right one, add its network "
		                                              "to mail.allow_networks"};
		break;
	case BLAME_USER:
	case BLAME_PASSWORD: blame = blame_login(trial->settings); break;
	case BLAME_TLS_ROOTS: blame = blame_roots(trial->settings); break;
	case BLAME_TLS:
		blame = (struct blame){"mail.require_tls",
		                       "; the server offers no STARTTLS, which mail.require_tls demands"};
		break;
	default: break;
	}
	fail(trial, blame, result, error);
}

void probe_fail_content(struct trial *trial, int result, const struct error *error)
{
	struct blame blame = {0};
	switch (error->fault) {
	case BLAME_NETWORK:
		blame = (struct blame){"content.allow_networks", "; if it is the right one, add its "
		                                                 "network to content.allow_networks"};
		break;
	case BLAME_USER:
		blame = (struct blame){"content.access_key",
		                       "; check content.access_key, its permissions for the bucket, and "
		                       "content.secret_key"};
		break;
	case BLAME_PASSWORD:
		blame = (struct blame){"content.secret_key", "; check content.secret_key"};
		break;
	case BLAME_TLS_ROOTS:
		blame = (struct blame){"content.url", "; the roots of the system do not include that of "
		                                      "its TLS certificate"};
		break;
	default: break;
	}
	fail(trial, blame, result, error);
}

void probe_fail_payments(struct trial *trial, const struct payment_provider *provider, int result,
                         const struct error *error)
{
	struct blame blame = {payment_fault_setting(provider, error->fault), NULL};
	char remedy[128];
	if (error->fault == BLAME_PASSWORD)
		snprintf(remedy, sizeof remedy, "; check %s and its permissions", blame.setting);
	else if (error->fault == BLAME_NETWORK)
		snprintf(remedy, sizeof remedy, "; if it is the right one, add its network to %s",
		         blame.setting);
	else
		snprintf(remedy, sizeof remedy, "; check %s", blame.setting);
	blame.remedy = remedy;
	fail(trial, blame, result, error);
}
