/* `dev`: a complete service for development, with demo account, channels and keys in one
 * directory. */
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/demo.h"
#include "cli/node.h"
#include "http/server.h"

const struct option dev_options[] = {
	{"listen", "ADDR:PORT", "service.listen; port 0 selects a free port"},
	{"ready-file", "FILE",
     "file written when the service is ready: addresses, identifiers and keys"},
	{"debuggable", NULL, "allow debuggers and core dumps; the signing process stays protected"},
	{0},
};

static const char *const presets[] = {
	"service.data_dir=demo",
	"service.admin_listen=127.0.0.1:0",
	"tsa.url=embedded:",
	"seal.interval=10s",
	"evidence.interval=10s",
	"webhook.allow_http=true",
	"webhook.allow_networks=127.0.0.0/8,::1/128",
	NULL,
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

/* ---- addresses ---- */

/* Links in responses need the port number before the listener exists. */
static int free_port(const char *host, struct error *error)
{
	bool six = strchr(host, ':') != NULL;
	struct sockaddr_in6 address6 = {.sin6_family = AF_INET6};
	struct sockaddr_in address4 = {.sin_family = AF_INET};
	struct sockaddr *address = six ? (struct sockaddr *)&address6 : (struct sockaddr *)&address4;
	socklen_t size = six ? sizeof address6 : sizeof address4;
	void *bytes = six ? (void *)&address6.sin6_addr : (void *)&address4.sin_addr;
	if (inet_pton(address->sa_family, host, bytes) != 1)
		return error_cause(error, ERR_VALIDATION, "port 0 needs a numeric address, not %s", host);
	DESCRIPTOR_AUTO int descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int port = -1;
	if (descriptor >= 0 && bind(descriptor, address, size) == 0 &&
	    getsockname(descriptor, address, &size) == 0)
		port = ntohs(six ? address6.sin6_port : address4.sin_port);
	return port > 0 ? port : error_cause(error, ERR_IO, "no free port on %s", host);
}

/* Replaces port 0 in service.listen by a free port and derives service.public_url, unless
 * configured. */
static int resolve_addresses(struct config *config, struct error *error)
{
	struct settings *settings = &config->settings;
	const char *listen = settings->service_listen;
	const char *colon = strrchr(listen, ':');
	bool bracketed = *listen == '[';
	const char *host =
		arena_copy(&config->arena, listen + bracketed, (size_t)(colon - listen) - 2 * bracketed);
	int port = http_listen_port(listen);
	if (!host)
		return ERR_NO_MEMORY;
	if (port == 0 && (port = free_port(host, error)) < 0)
		return port;
	bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
	const char *open = bracketed ? "[" : "", *shut = bracketed ? "]" : "";
	settings->service_listen = arena_printf(&config->arena, "%s%s%s:%d", open, host, shut, port);
	const char *scheme = *settings->service_tls_certificate ? "https" : "http";
	if (!config_is_given(config, "service.public_url") && any)
		settings->service_public_url =
			arena_printf(&config->arena, "%s://127.0.0.1:%d", scheme, port);
	else if (!config_is_given(config, "service.public_url"))
		settings->service_public_url =
			arena_printf(&config->arena, "%s://%s%s%s:%d", scheme, open, host, shut, port);
	return settings->service_listen && settings->service_public_url ? OK : ERR_NO_MEMORY;
}

/* ---- readiness ---- */

static const char *scheme_of_operators(const struct settings *settings)
{
	return *settings->service_admin_tls_certificate ? "https" : "http";
}

static void ready_document(const struct settings *settings, struct node *node,
                           const struct demo *demo, const char *console_url, struct buf *out)
{
	struct json_writer writer = {.out = out};
	BUF_AUTO struct buf address;
	buf_init(&address, 4096);
	json_begin_object(&writer, NULL);
	buf_printf(&address, "%s/v1", settings->service_public_url);
	json_slice(&writer, "base_url", buf_slice(&address));
	json_text(&writer, "public_url", settings->service_public_url);
	json_text(&writer, "admin_socket", settings->service_admin_socket);
	buf_clear(&address);
	if (node_monitor_port(node)) {
		buf_printf(&address, "%s://127.0.0.1:%u", scheme_of_operators(settings),
		           node_monitor_port(node));
		json_slice(&writer, "operator_url", buf_slice(&address));
		json_slice(&writer, "admin_url", buf_slice(&address));
	}
	json_text(&writer, "console_url", console_url);
	json_text(&writer, "data_dir", settings->service_data_dir);
	demo_members(demo, &writer);
	json_end_object(&writer);
	buf_add_byte(out, '\n');
}

static void print_welcome(const struct settings *settings, struct node *node,
                          const struct demo *demo, const char *console_url, bool debuggable)
{
	printf("\nconstancia %s for development, data in %s\n\n", CONSTANCIA_VERSION,
	       settings->service_data_dir);
	printf("  base address     %s/v1\n", settings->service_public_url);
	if (node_monitor_port(node))
		printf("  operator         %s://127.0.0.1:%u/metrics\n", scheme_of_operators(settings),
		       node_monitor_port(node));
	printf("  account          %s\n", demo->account_id);
	for (int i = 0; i < DEMO_CHANNELS; i++) {
		printf("\n  channel          %s  (%s)\n", demo->channels[i].channel_id,
		       modality_text((enum modality)i));
		printf("    live key       %s\n", demo->channels[i].keys[MODE_LIVE]);
		printf("    test key       %s\n", demo->channels[i].keys[MODE_TEST]);
	}
	printf("\n  console          %s\n", console_url);
	printf("                   (valid once, for 15 minutes; new link: constancia "
	       "user link %s --data %s)\n",
	       DEMO_USER, settings->service_data_dir);
	printf("  administration   constancia account list --data %s\n", settings->service_data_dir);
	printf("  trust roots      %s/trust.pem\n", settings->service_data_dir);
	if (debuggable)
		printf("  debuggers        allowed, core dumps too (--debuggable)\n");
	printf("\nEvidence of this service has no probative value. Press Ctrl-C to stop.\n\n");
	fflush(stdout);
}

/* Replaces the loopback address by localhost: passkeys need a host name (console/webauthn.h), and
 * both reach the same service. */
static void use_localhost(struct buf *url)
{
	static const char address[] = "http://127.0.0.1", name[] = "http://localhost";
	static_assert(sizeof address == sizeof name, "both texts have the same size");
	if (strncmp(url->data, address, sizeof address - 1) == 0)
		memcpy(url->data, name, sizeof name - 1);
}

/* ---- the command ---- */

static int report_ready(const struct command_line *line, const struct settings *settings,
                        struct node *node, const struct demo *demo, struct error *error)
{
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf link;
	buf_init(&text, (size_t)64 * 1024);
	buf_init(&link, 4096);
	int result = demo_link(node_admin(node), &link, error);
	if (result)
		return result;
	use_localhost(&link);
	ready_document(settings, node, demo, link.data, &text);
	result = buf_check(&text);
	const char *path = command_option(line, "ready-file");
	if (!result && path)
		result = file_replace(path, buf_slice(&text), error);
	if (result)
		return result;
	if (line->json)
		fputs(text.data, stdout);
	else
		print_welcome(settings, node, demo, link.data, command_option(line, "debuggable") != NULL);
	fflush(stdout);
	return OK;
}

int command_dev(const struct command_line *line)
{
	CONFIG_AUTO struct config config = {0};
	struct config_sources sources = line->sources;
	struct error error = {0};
	struct node *node = NULL;
	struct demo demo = {0};
	char listen[300];
	bool debuggable = command_option(line, "debuggable") != NULL;
	error.code = debuggable ? OK : confine_memory(&error);
	if (error.code)
		return command_fail(line, &error);
	sources.presets = presets;
	sources.serving = true;
	if (command_option(line, "listen")) {
		snprintf(listen, sizeof listen, "service.listen=%s", command_option(line, "listen"));
		if (sources.set_count == CONFIG_SETS_MAX)
			return command_usage_error(line, "Too many --set options.");
		sources.sets[sources.set_count++] = listen;
	}
	int exit_code = command_settings(line, &sources, &config);
	if (exit_code)
		return exit_code;
	command_prepare_log(&config);
	int result = resolve_addresses(&config, &error);
	if (!result)
		result = node_open(&config.settings, true, &node, NULL, &error);
	if (!result)
		node_service(node)->development = true;
	if (!result)
		result = node_check_history(node, &error);
	if (!result)
		result = node_write_trust(node, &error);
	if (!result)
		result = demo_prepare(node_admin(node), &demo, &error);
	if (!result)
		result = node_listen(node, &error);
	if (!result)
		result = report_ready(line, &config.settings, node, &demo, &error);
	exit_code = result ? fail(line, result, &error) : node_wait(node, NULL, NULL);
	node_close(node);
	explicit_bzero(&demo, sizeof demo);
	return exit_code;
}
