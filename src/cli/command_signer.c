/* The command `signer request`: a key and the request for its certificate. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/service_user.h"
#include "seal/signing_request.h"

const struct option signer_request_options[] = {
	{"key", "FILE|URI",
     "key file, which is made unless it exists, or pkcs11: URI of a key on a token (required)"},
	{"country", "CODE", "ISO 3166-1 code of the organization's country (required)"},
	{"organization", "NAME", "registered name of the organization (required)"},
	{"organization-id", "ID",
     "identifier of the organization (ETSI EN 319 412-1), such as VATES-B00000000"},
	{"common-name", "NAME", "name of the seal; the organization by default"},
	{"type", "p256|rsa3072", "type of a key that is made (p256 by default)"},
	{"passphrase-file", "FILE",
     "file whose first line is the passphrase of the key file, or the PIN of the token"},
	{"output", "FILE", "output file of the request; KEY.csr by default (required for a token)"},
	{0},
};

static int fail(const struct command_line *line, int code, struct error *error)
{
	error->code = code;
	return command_fail(line, error);
}

static void print_json(const struct signing_request *request, const char *output, bool made)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)64 * 1024);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "key", request->key);
	json_boolean(&writer, "key_made", made);
	json_text(&writer, "request", output);
	json_end_object(&writer);
	if (!buf_check(&text))
		puts(text.data);
}

static void print_text(const struct signing_request *request, const char *output, bool made)
{
	if (made)
		printf("Made the key %s.\n", request->key);
	printf("Wrote the request %s.\n"
	       "Send it to a provider of certificates for electronic seals. Then set signer.key to\n"
	       "%s, and signer.chain to a file with the certificate and its issuers up to the root.\n",
	       output, request->key);
}

/* Returns the name of the first required option that is missing; NULL: none. */
static const char *find_missing(const struct command_line *line)
{
	static const char *const required[] = {"key", "country", "organization", NULL};
	for (const char *const *at = required; *at; at++)
		if (!command_option(line, *at))
			return *at;
	return NULL;
}

int signer_request_run(const struct signing_request *request, const char *output, bool *ret_made,
                       struct error *error)
{
	const struct service_user owner = service_user_find();
	BUF_AUTO struct buf pem;
	buf_init(&pem, (size_t)64 * 1024);
	int result = signing_request_check(&request->subject, error);
	if (!result)
		result = signing_request_make_key(request, ret_made, error);
	if (!result && *ret_made)
		result = service_user_own(&owner, request->key, false, error);
	if (!result)
		result = signing_request_write(request, &pem, error);
	return result ? result : durable_replace(output, 0644, buf_slice(&pem), error);
}

int command_signer_request(const struct command_line *line)
{
	struct signing_request request = {
		.subject = {command_option(line, "country"), command_option(line, "organization"),
	                command_option(line, "organization-id"), command_option(line, "common-name")},
		.key = command_option(line, "key"),
		.passphrase = command_option(line, "passphrase-file"),
	};
	const char *missing = find_missing(line), *type = command_option(line, "type");
	const char *output = command_option(line, "output");
	char beside[PATH_MAX];
	struct error error = {0};
	bool made = false;
	if (missing)
		return command_usage_error(line, "--%s is missing. See --help.", missing);
	if (type && !signing_key_kind_parse(type, &request.kind))
		return command_usage_error(line, "--type must be p256 or rsa3072.");
	if (!output && signing_request_is_on_token(request.key))
		return command_usage_error(line, "--output is missing: the key is on a token.");
	snprintf(beside, sizeof beside, "%s.csr", request.key);
	output = output ? output : beside;
	int result = signer_request_run(&request, output, &made, &error);
	if (result)
		return fail(line, result, &error);
	if (line->json)
		print_json(&request, output, made);
	else
		print_text(&request, output, made);
	return 0;
}
