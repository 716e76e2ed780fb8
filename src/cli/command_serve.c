/* `init` and `serve`: a production deployment. */
#include <stdio.h>
#include <string.h>

#include "admin/webauthn_party.h"
#include "base/confine.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/node_parts.h"
#include "report/renderer.h"
#include "seal/authority.h"
#include "store/accounts/accounts.h"

const struct option init_options[] = {
	REASON_OPTION,
	{0},
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

/* Prepares the data directory, the store and, for development, the keys. Starts every component
 * that needs no listener once. */
int command_init(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct config_sources sources = line->sources;
	sources.serving = true;
	struct error error = {0};
	struct node *node = NULL;
	const char *reason = NULL;
	int exit_code = command_reason(line, &reason);
	if (!exit_code)
		exit_code = command_settings(line, &sources, &config);
	if (exit_code)
		return exit_code;
	struct db_options options = settings_store(&config.settings, false);
	int result = store_check_alone(&options, &error);
	if (!result)
		result = node_open(&config.settings, true, &node, NULL, &error);
	if (!result)
		result = node_check_history(node, &error);
	if (!result)
		result = node_write_trust(node, &error);
	if (!result)
		result = admin_write_audit_record(node_service(node)->store, "init", slice_of("{}"), reason,
		                                  &error);
	node_close(node);
	if (result)
		return fail(line, result, &error);
	char store[1024];
	db_shown_url(config.settings.store_url, store, sizeof store);
	if (line->json)
		printf("{\"store\":\"%s\"}\n", store);
	else
		printf("The store %s is ready. Next step: constancia serve.\n", store);
	return 0;
}

/* Warns of accounts that require passkeys when service.public_url does not allow them, for example
 * after a change of it. Their users cannot sign in to the console, so that the console cannot show
 * this. */
static void warn_of_passkeys(const struct settings *settings, struct store *store)
{
	struct webauthn_party party;
	struct error error = {0};
	int64_t accounts = 0;
	char number[24];
	if (!webauthn_party_read(settings->service_public_url, &party, &error))
		return;
	int result = store_count_passkey_accounts(store, &accounts, &error);
	snprintf(number, sizeof number, "%lld", (long long)accounts);
	if (result)
		log_warning("passkey_check_failed", "cause", error_reason(&error, result));
	else if (accounts)
		log_warning("passkeys_unavailable", "url", settings->service_public_url, "accounts", number,
		            "meaning",
		            "passkeys need https and a host name in service.public_url; this number "
		            "of accounts require them; 'account set ACCOUNT --passkeys optional' "
		            "lets their users sign in again");
}

/* Logs the limits of what this deployment guarantees. */
static void warn_of_limits(const struct settings *settings, struct node *node)
{
	struct service *service = node_service(node);
	const char *promise = store_promise(service->store);
	if (strcmp(promise, "replicated") != 0)
		log_warning("receipts_not_replicated", "promise", promise, "meaning",
		            "a receipt confirms that the event is durable on this machine, not that "
		            "a second machine holds it");
	struct authority_settings authorities = settings_authorities(settings);
	if (authority_has_embedded(&authorities))
		log_warning("development_timestamp_authority", "meaning",
		            "its timestamps prove nothing to third parties");
	if (!*settings->signer_key)
		log_warning("development_signing_key", "meaning",
		            "reports are signed with a key that no certification authority vouches "
		            "for; set signer.key");
	if (!renderer_can_restrict_files())
		log_warning("report_sandbox_disabled", "meaning",
		            "the kernel lacks Landlock: the process that renders reports can read "
		            "every file that this user can read");
	if (settings->http_check_size > 0 && !confine_knows_files())
		log_warning("file_verification_disabled", "meaning",
		            "the kernel lacks Landlock: /verify accepts no files, because the "
		            "process that verifies them could read every file that this user can read");
	if (strncmp(settings->service_public_url, "http://", 7) == 0)
		log_warning("public_url_without_tls", "url", settings->service_public_url);
	warn_of_passkeys(settings, service->store);
}

void command_apply_log_level(const struct settings *settings)
{
	const char *level = settings->log_level;
	log_set_level(strcmp(level, "debug") == 0     ? LOG_DEBUG
	              : strcmp(level, "warning") == 0 ? LOG_WARNING
	              : strcmp(level, "error") == 0   ? LOG_ERROR
	                                              : LOG_INFO);
}

void command_prepare_log(const struct config *config)
{
	log_detect_journal();
	command_apply_log_level(&config->settings);
	for (const char *at = config->warnings.data; at && *at;) {
		char text[512];
		size_t size = strcspn(at, "\n");
		snprintf(text, sizeof text, "%.*s", (int)size, at);
		log_warning("setting", "message", text);
		at += size + (at[size] == '\n');
	}
}

/* The error that prevented the start, which is logged already. Further errors are logged unless
 * they are the same. */
struct logged {
	const char *message;
	const char *cause;
};

static void log_refusal(void *context, bool warning, const char *setting, const struct error *error)
{
	const struct logged *logged = context;
	const char *message = command_message(error);
	bool same = strcmp(message, logged->message) == 0 &&
	            (!*error->cause || strcmp(error->cause, logged->cause) == 0);
	if (!warning && !same)
		log_error("start_failed_also", "setting", setting ? setting : "", "message", message,
		          "cause", error->cause);
}

/* The keys are not retried after an attempt to open them: a PKCS#11 token locks after several
 * wrong PINs. */
static int report_start_failure(const struct settings *settings, struct node *node, bool keys_tried,
                                int result, struct error *error)
{
	error->code = result; /* a lack of memory may have no details */
	struct logged logged = {command_message(error), error->cause};
	log_error("start_failed", "message", logged.message, "cause", logged.cause);
	node_close(node);
	struct node_keys keys = {0};
	log_stop(); /* node_check_start forks to try the keys */
	node_check_start(settings, keys_tried ? NULL : &keys, log_refusal, &logged);
	node_keys_free(&keys);
	return error_exit_code(result);
}

/* Logs invalid settings, and what else would prevent a start. */
static int settings_refused(struct config *config)
{
	struct node_keys keys = {0};
	bool first = true;
	node_check_start(&config->settings, &keys, command_add_finding, config);
	node_keys_free(&keys);
	command_prepare_log(config);
	for (const struct config_finding *at = config->findings; at; at = at->next) {
		if (at->warning)
			continue;
		log_error(first ? "start_failed" : "start_failed_also", "setting",
		          at->setting ? at->setting : "", "origin", at->origin ? at->origin : "", "message",
		          at->what, "cause", "");
		first = false;
	}
	return error_exit_code(ERR_USAGE);
}

int command_serve(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct config_sources sources = line->sources;
	sources.serving = true;
	struct error error = {0};
	struct node *node = NULL;
	bool keys_tried;
	int exit_code = 0;
	int result = config_load(&sources, &config);
	if (result)
		return result == ERR_USAGE ? settings_refused(&config) : fail(line, result, &error);
	command_prepare_log(&config);
	log_enable_stderr_capture();
	result = node_open(&config.settings, false, &node, &keys_tried, &error);
	if (!result)
		result = node_check_history(node, &error);
	if (!result)
		result = node_write_trust(node, &error);
	if (!result)
		result = node_listen(node, &error);
	if (result)
		return report_start_failure(&config.settings, node, keys_tried, result, &error);
	warn_of_limits(&config.settings, node);
	char port[8], admin_port[8];
	snprintf(port, sizeof port, "%u", node_port(node));
	snprintf(admin_port, sizeof admin_port, "%u", node_monitor_port(node));
	log_info("serving", "version", CONSTANCIA_VERSION, "listen", config.settings.service_listen,
	         "port", port, "admin_port", admin_port, "public_url",
	         config.settings.service_public_url);
	exit_code = node_wait(node, &sources, &config);
	node_close(node);
	log_info("stopped");
	return exit_code;
}
