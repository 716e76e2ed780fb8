#include "seal/key_uri.h"

#include <stdio.h>

#include "base/percent.h"

/* An attribute split into name and value. */
struct attribute {
	struct slice name, value;
};

/* Removes the next attribute, up to `separator`, from *rest; false: the end. */
static bool next_attribute(struct slice *rest, char separator, struct attribute *ret)
{
	if (rest->size == 0)
		return false;
	const char *end = memchr(rest->data, separator, rest->size);
	size_t size = end ? (size_t)(end - rest->data) : rest->size;
	const char *equals = memchr(rest->data, '=', size);
	size_t name = equals ? (size_t)(equals - rest->data) : size;
	size_t value_at = equals ? name + 1 : size;
	*ret = (struct attribute){slice_make(rest->data, name),
	                          slice_make(rest->data + value_at, size - value_at)};
	size_t used = size + (end ? 1 : 0);
	*rest = slice_make(rest->data + used, rest->size - used);
	return true;
}

static int unusable(const struct attribute *attribute, const char *why, struct error *error)
{
	return error_cause(error, ERR_REFUSED, "pkcs11: URI: %.*s %s",
	                   (int)(attribute->name.size < 40 ? attribute->name.size : 40),
	                   attribute->name.data, why);
}

static int take_text(const struct attribute *attribute, struct key_uri_text *text,
                     struct error *error)
{
	if (text->given)
		return unusable(attribute, "is set twice", error);
	bool bytes = slice_is(attribute->name, "id");
	bool whole = (bytes ? percent_decode_bytes : percent_decode)(attribute->value, text->data,
	                                                             KEY_URI_TEXT_MAX, &text->size);
	if (!whole || text->size == 0)
		return unusable(attribute, "has an invalid value", error);
	text->data[text->size] = '\0';
	text->given = true;
	return OK;
}

static int take_path(const struct attribute *attribute, char path[PATH_MAX], struct error *error)
{
	size_t size;

	if (*path)
		return unusable(attribute, "is set twice", error);
	if (!percent_decode(attribute->value, path, PATH_MAX - 1, &size))
		return unusable(attribute, "has an invalid value", error);
	path[size] = '\0';
	if (strncmp(path, "file:", 5) == 0)
		memmove(path, path + 5, size - 4);
	while (path[0] == '/' && path[1] == '/') /* file:///path */
		memmove(path, path + 1, strlen(path));
	return *path == '/' ? OK : unusable(attribute, "must be an absolute path", error);
}

static int take_path_attribute(struct key_uri *uri, const struct attribute *attribute,
                               struct error *error)
{
	const struct {
		const char *name;
		struct key_uri_text *text;
	} known[] = {
		{"token", &uri->token},   {"manufacturer", &uri->manufacturer},
		{"serial", &uri->serial}, {"model", &uri->model},
		{"object", &uri->object}, {"id", &uri->id},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (slice_is(attribute->name, known[i].name))
			return take_text(attribute, known[i].text, error);
	if (!slice_is(attribute->name, "type"))
		return unusable(attribute, "is not supported", error);
	return slice_is(attribute->value, "private") ? OK
	                                             : unusable(attribute, "must be private", error);
}

static int take_query_attribute(struct key_uri *uri, const struct attribute *attribute,
                                struct error *error)
{
	if (slice_is(attribute->name, "module-path"))
		return take_path(attribute, uri->module_path, error);
	if (slice_is(attribute->name, "pin-source"))
		return take_path(attribute, uri->pin_source, error);
	if (slice_is(attribute->name, "pin-value"))
		return unusable(attribute,
		                "is not permitted because the settings would reveal it: use pin-source "
		                "or signer.passphrase_file",
		                error);
	return unusable(attribute, "is not supported", error);
}

int key_uri_parse(const char *text, struct key_uri *ret_uri, struct error *error)
{
	struct key_uri uri = {0};
	struct attribute attribute;
	const char *path = text + strlen(KEY_URI_SCHEME);
	const char *question = strchr(path, '?');
	struct slice rest = slice_make(path, question ? (size_t)(question - path) : strlen(path));
	int result = OK;

	while (!result && next_attribute(&rest, ';', &attribute))
		result = take_path_attribute(&uri, &attribute, error);
	rest = slice_of(question ? question + 1 : "");
	while (!result && next_attribute(&rest, '&', &attribute))
		result = take_query_attribute(&uri, &attribute, error);
	if (!result && !*uri.module_path)
		result = error_cause(error, ERR_REFUSED, "pkcs11: URI: module-path is missing");
	if (!result && !uri.object.given && !uri.id.given)
		result = error_cause(error, ERR_REFUSED, "pkcs11: URI: object or id is required");
	if (!result)
		*ret_uri = uri;
	return result;
}
