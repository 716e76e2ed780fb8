/* The command `chaos`, a proxy that fails on purpose, for the tests of clients. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/api_access.h"
#include "tools/fault_proxy.h"

const struct option chaos_options[] = {
	{"listen", "ADDR:PORT", "address to listen on, plain http; port 0: a free one (required)"},
	{"to", "URL", "address of the service, http or https, without /v1 (required)"},
	{"seed", "N", "seed of the random choices; by default a random one, which is printed"},
	{"script", "FAULTS", "faults of the first requests, such as lost,pass,503,half,hang"},
	{"lost", "P", "probability, 0 to 1, that a request is sent on and its answer dropped"},
	{"unavailable", "P", "probability that it is answered with 503 and not sent on"},
	{"half", "P", "probability that it is sent on, and the answer ends in the middle"},
	{"hang", "P",
     "probability that it is sent on, and the connection ends without an answer "
     "after --hang-for"},
	{"hang-for", "DURATION", "duration of a hang; by default 5s"},
	{"delay", "DURATION", "delay of each request; by default none"},
	{"retry-after", "SECONDS", "Retry-After of 503, by default 1"},
	{"tls-roots", "FILE", "trusted PEM certificates for https; by default the system's"},
	{0},
};

static atomic_bool stopped;

static void stop(int signal)
{
	(void)signal;
	atomic_store(&stopped, true);
}

static void print_report(void *context, const struct fault_report *report)
{
	const struct command_line *line = context;
	BUF_AUTO struct buf text;
	buf_init(&text, 65536);
	if (!line->json) {
		printf("%llu %s %.*s: %s", (unsigned long long)report->number, report->method,
		       (int)report->path.size, report->path.data, fault_text(report->fault));
		printf(report->status ? " (%d)\n" : "\n", report->status);
	} else {
		struct json_writer writer = {.out = &text};
		json_begin_object(&writer, NULL);
		json_text(&writer, "fault", fault_text(report->fault));
		json_text(&writer, "method", report->method);
		json_integer(&writer, "number", (int64_t)report->number);
		json_slice(&writer, "path", report->path);
		if (report->status)
			json_integer(&writer, "status", report->status);
		else
			json_null(&writer, "status");
		json_end_object(&writer);
		if (!buf_check(&text))
			printf("%s\n", text.data);
	}
	(void)fflush(stdout);
}

static void print_start(const struct command_line *line, const struct fault_proxy *proxy,
                        const struct fault_plan *plan)
{
	char address[FAULT_PROXY_ADDRESS_SIZE];
	fault_proxy_address(proxy, address);
	fputs(
		"constancia chaos: THIS PROXY IS FOR TESTS. It loses and breaks answers on purpose; never "
		"send real events through it.\n",
		stderr);
	if (line->json)
		printf("{\"listening\":\"%s\",\"seed\":%llu}\n", address, (unsigned long long)plan->seed);
	else
		printf("listening on %s, seed %llu\n", address, (unsigned long long)plan->seed);
	(void)fflush(stdout);
}

/* Reads the probability of each fault, whose option has its name. */
static int read_probabilities(const struct command_line *line, struct fault_plan *plan)
{
	double sum = 0;
	for (int i = FAULT_PASS + 1; i < FAULT_COUNT; i++) {
		const char *text = command_option(line, fault_text((enum fault)i));
		char *end;
		if (!text)
			continue;
		plan->probability[i] = strtod(text, &end);
		if (end == text || *end || !(plan->probability[i] >= 0 && plan->probability[i] <= 1))
			return command_usage_error(line, "--%s must be a probability from 0 to 1, got '%s'.",
			                           fault_text((enum fault)i), text);
		sum += plan->probability[i];
	}
	return sum > 1.000001 ? command_usage_error(line, "The sum of the probabilities exceeds 1.")
	                      : 0;
}

static int read_plan(const struct command_line *line, struct fault_plan *plan)
{
	const char *script = command_option(line, "script");
	uint32_t random;
	struct error error = {0};
	random_bytes(&random, sizeof random);
	int64_t seed = random;
	int exit_code = command_number(line, "seed", 0, INT64_MAX, &seed);
	plan->seed = (uint64_t)seed;
	if (!exit_code)
		exit_code = read_probabilities(line, plan);
	if (!exit_code && script)
		error.code = fault_plan_script(plan, script, &error);
	return error.code ? command_fail(line, &error) : exit_code;
}

static int read_options(const struct command_line *line, struct fault_proxy_options *options)
{
	int64_t retry_after = 1;
	options->listen = command_option(line, "listen");
	options->upstream = command_option(line, "to");
	options->tls_roots = command_option(line, "tls-roots");
	options->hang_us = 5 * US_PER_SECOND;
	if (!options->listen || !options->upstream)
		return command_usage_error(line, "--listen and --to are required. See --help.");
	int exit_code = command_duration(line, "hang-for", 3600 * US_PER_SECOND, &options->hang_us);
	if (!exit_code)
		exit_code = command_duration(line, "delay", 3600 * US_PER_SECOND, &options->delay_us);
	if (!exit_code)
		exit_code = command_number(line, "retry-after", 0, 86400, &retry_after);
	options->retry_after_seconds = (unsigned)retry_after;
	return exit_code;
}

int command_chaos(const struct command_line *line)
{
	static struct fault_plan plan;
	struct fault_proxy_options options = {
		.plan = &plan, .report = print_report, .context = (void *)line};
	struct fault_proxy *proxy;
	struct error error = {0};
	int exit_code = read_options(line, &options);
	if (!exit_code)
		exit_code = read_plan(line, &plan);
	if (exit_code)
		return exit_code;
	error.code = fault_proxy_open(&options, &proxy, &error);
	if (error.code)
		return command_fail(line, &error);
	const struct sigaction action = {.sa_handler = stop};
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	print_start(line, proxy, &plan);
	if (!fault_proxy_run(proxy, &stopped))
		_exit(0); /* a request that is still sent on uses the proxy and the options */
	fault_proxy_close(proxy);
	return 0;
}
