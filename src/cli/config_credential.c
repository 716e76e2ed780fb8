#include "cli/config_credential.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define VARIABLE "CREDENTIALS_DIRECTORY="
#define CREDENTIAL_MAX ((size_t)64 * 1024)

static const char *directory_in(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (strncmp(*environment, VARIABLE, sizeof VARIABLE - 1) == 0)
			return *environment + sizeof VARIABLE - 1;
	return NULL;
}

bool credentials_are_given(char *const *environment)
{
	return directory_in(environment);
}

static const char *take(const struct buf *text, struct arena *arena, const char **ret_text)
{
	size_t size = text->size;
	if (size && text->data[size - 1] == '\n')
		size--;
	if (!size)
		return "the credential is empty";
	if (memchr(text->data, '\0', size))
		return "the credential contains a NUL byte";
	const char *copy = arena_copy(arena, text->data, size);
	if (!copy)
		return "out of memory reading the credential";
	*ret_text = copy;
	return NULL;
}

const char *credential_read(char *const *environment, const char *name, struct arena *arena,
                            const char **ret_text)
{
	char path[PATH_MAX];
	const char *directory = directory_in(environment);
	struct error error = {0};
	BUF_AUTO struct buf text;
	buf_init(&text, CREDENTIAL_MAX);
	if (!directory)
		return "the supervisor provides no credentials (CREDENTIALS_DIRECTORY is not "
			   "set); see LoadCredential= in systemd.exec(5)";
	if (!*name || *name == '.' || strchr(name, '/') ||
	    snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
		return "must be credential:NAME, without a slash";
	if (file_read_whole(path, &text, &error)) {
		const char *what = arena_printf(arena, "the credential cannot be read: %s", error.cause);
		return what ? what : "the credential cannot be read";
	}
	const char *what = take(&text, arena, ret_text);
	if (text.data)
		explicit_bzero(text.data, text.size);
	return what;
}

char *const *credentials_environment(char *const *environment, const char *file,
                                     struct arena *arena)
{
	static char *const empty[] = {NULL};
	const char *slash = file ? strrchr(file, '/') : NULL;
	if (directory_in(environment) || !file)
		return environment;
	const char *variable = arena_printf(arena, VARIABLE "%.*s" CREDENTIALS_BESIDE,
	                                    slash ? (int)(slash - file) + 1 : 0, file);
	if (!variable || access(variable + sizeof VARIABLE - 1, X_OK) != 0)
		return environment;
	size_t count = 0;
	environment = environment ? environment : empty;
	while (environment[count])
		count++;
	const char **more = arena_alloc(arena, (count + 2) * sizeof *more);
	if (!more)
		return environment;
	memcpy(more, environment, count * sizeof *more);
	more[count] = variable;
	more[count + 1] = NULL;
	return (char *const *)more;
}
