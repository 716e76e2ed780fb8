#include "cli/api_access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

/* Reads the key of --key-file, without white space at its end. */
static int read_key(const char *path, struct buf *text, struct error *error)
{
	buf_init(text, 2 * API_KEY_MAX);
	int result = file_read_whole(path, text, error);
	if (result)
		return result;
	while (text->size && strchr(" \t\r\n", text->data[text->size - 1]))
		text->data[--text->size] = '\0';
	return 0;
}

int command_open_api(const struct command_line *line, struct api *ret_api)
{
	BUF_AUTO struct buf key = {0};
	struct error error = {0};
	const char *path = command_option(line, "key-file");
	struct api_access access = {.url = command_option(line, "url"),
	                            .key = getenv("CONSTANCIA_KEY"),
	                            .tls_roots = command_option(line, "tls-roots")};
	*ret_api = (struct api){0};
	if (!access.url)
		access.url = getenv("CONSTANCIA_URL");
	if (!access.url || !*access.url)
		return command_usage_error(line, "The address of the interface is missing. Set "
		                                 "CONSTANCIA_URL or specify --url, such as "
		                                 "https://constancia.example/v1.");
	int result = path ? read_key(path, &key, &error) : 0;
	if (path)
		access.key = key.data ? key.data : "";
	if (!result && (!access.key || !*access.key))
		return command_usage_error(line, "The API key is missing. Set CONSTANCIA_KEY, or specify "
		                                 "--key-file with a file that contains it.");
	if (!result)
		result = api_open(ret_api, &access, &error);
	if (key.data)
		explicit_bzero(key.data, key.size);
	error.code = result;
	return result ? command_fail(line, &error) : 0;
}

int command_number(const struct command_line *line, const char *option, int64_t minimum,
                   int64_t maximum, int64_t *value)
{
	const char *text = command_option(line, option);
	char *end;
	if (!text)
		return 0;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < minimum || number > maximum)
		return command_usage_error(line, "--%s must be a whole number from %lld to %lld, got '%s'.",
		                           option, (long long)minimum, (long long)maximum, text);
	*value = number;
	return 0;
}

int command_duration(const struct command_line *line, const char *option, int64_t maximum_us,
                     int64_t *value_us)
{
	const char *text = command_option(line, option);
	int64_t duration_us;
	if (!text)
		return 0;
	if (!duration_parse(slice_of(text), &duration_us) || duration_us > maximum_us)
		return command_usage_error(line,
		                           "--%s must be a duration such as 500ms, 10s or 5m, of at most "
		                           "%lld s, got '%s'.",
		                           option, (long long)(maximum_us / US_PER_SECOND), text);
	*value_us = duration_us;
	return 0;
}

void command_print_line(struct slice json)
{
	for (size_t i = 0; i < json.size; i++)
		putchar(json.data[i] == '\n' || json.data[i] == '\r' ? ' ' : json.data[i]);
	putchar('\n');
}
