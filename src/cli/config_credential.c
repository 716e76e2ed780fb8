#include "cli/config_credential.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define VARIABLE "CREDENTIALS_DIRECTORY="
#define CREDENTIAL_MAX ((size_t)64 * 1024)
#define LIST_MAX (2 * CREDENTIAL_MAX)

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

static const char *read_credential(char *const *environment, const char *name, struct arena *arena,
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

/* Takes the next entry of the list, or the whole text. Returns false at the end. */
static bool next_entry(const char **rest, bool list, struct slice *ret_entry)
{
	if (!*rest)
		return false;
	size_t size = list ? strcspn(*rest, ",") : strlen(*rest);
	*ret_entry = slice_make(*rest, size);
	*rest = (*rest)[size] ? *rest + size + 1 : NULL;
	return true;
}

/* Returns the name of the credential that the entry stands for; its data is NULL: none. */
static struct slice name_in(struct slice entry)
{
	size_t prefix = sizeof CREDENTIAL_PREFIX - 1;
	while (entry.size && (*entry.data == ' ' || *entry.data == '\t'))
		entry = slice_make(entry.data + 1, entry.size - 1);
	while (entry.size && (entry.data[entry.size - 1] == ' ' || entry.data[entry.size - 1] == '\t'))
		entry.size--;
	if (entry.size < prefix || memcmp(entry.data, CREDENTIAL_PREFIX, prefix) != 0)
		return slice_make(NULL, 0);
	return slice_make(entry.data + prefix, entry.size - prefix);
}

bool credential_is_named(const char *text, bool list)
{
	struct slice entry;
	while (next_entry(&text, list, &entry))
		if (name_in(entry).data)
			return true;
	return false;
}

/* Appends the content of the credential. Returns NULL or the error message. */
static const char *add_credential(char *const *environment, struct slice name, bool alone,
                                  struct arena *arena, struct buf *out)
{
	const char *copy = arena_copy(arena, name.data, name.size);
	const char *text = NULL;
	const char *what = copy ? read_credential(environment, copy, arena, &text)
	                        : "out of memory reading the credential";
	if (!what && !alone && strchr(text, ','))
		what = arena_printf(arena,
		                    "the credential %s contains a comma, which separates the entries of "
		                    "the list",
		                    copy);
	if (!what)
		buf_add_text(out, text);
	return what;
}

const char *credential_resolve(char *const *environment, const char *text, bool list,
                               struct arena *arena, const char **ret_text)
{
	BUF_AUTO struct buf out;
	struct slice entry;
	const char *what = NULL;
	bool alone = !list || !strchr(text, ',');
	buf_init(&out, LIST_MAX);
	for (const char *rest = text; !what && next_entry(&rest, list, &entry);) {
		struct slice name = name_in(entry);
		if (name.data)
			what = add_credential(environment, name, alone, arena, &out);
		else
			buf_add_slice(&out, entry);
		if (rest)
			buf_add_byte(&out, ',');
	}
	if (!what && out.full)
		what = "the credentials of the list are too long";
	if (!what)
		*ret_text = arena_copy(arena, buf_slice(&out).data, out.size);
	if (out.data)
		explicit_bzero(out.data, out.size);
	return what || *ret_text ? what : "out of memory reading the credential";
}

const char *credential_blank(const char *text, bool list, struct arena *arena)
{
	char *copy = arena_alloc(arena, strlen(text) + 1);
	size_t size = 0;
	struct slice entry;
	for (const char *rest = text; copy && next_entry(&rest, list, &entry);) {
		if (!name_in(entry).data) {
			memcpy(copy + size, entry.data, entry.size);
			size += entry.size;
		}
		if (rest)
			copy[size++] = ',';
	}
	if (copy)
		copy[size] = '\0';
	return copy;
}
