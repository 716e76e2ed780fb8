/* S3 URLs. Bucket, prefix and names have only characters that need no escapes in a URL, so that all
 * parts of a signature use the same path. */
#include <stdio.h>
#include <string.h>

#include "base/percent.h"
#include "content/s3/s3.h"

#define REGION_DEFAULT "us-east-1"
#define LETTERS_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789"

void s3_add_path(const struct s3_place *place, const char *name, struct buf *out)
{
	buf_add_byte(out, '/');
	if (place->path_style)
		buf_add_text(out, place->bucket);
	if (!name)
		return;
	if (place->path_style)
		buf_add_byte(out, '/');
	buf_add_text(out, place->prefix);
	buf_add_text(out, name);
}

/* ---- parsing ---- */

/* Copies a value with %XX decoded. Returns false if an escape is invalid or the result is too
 * long. */
static bool copy_value(struct slice text, char *to, size_t size)
{
	size_t used;
	if (!percent_decode(text, to, size - 1, &used))
		return false;
	to[used] = '\0';
	return true;
}

static bool bucket_valid(const char *bucket)
{
	size_t size = strlen(bucket);
	return size >= 3 && size <= 63 && strspn(bucket, LETTERS_DIGITS "-.") == size &&
	       strchr(LETTERS_DIGITS, bucket[0]) && strchr(LETTERS_DIGITS, bucket[size - 1]) &&
	       !strstr(bucket, "..");
}

/* Removes a default port, as the Host header does. */
static void drop_default_port(char *endpoint)
{
	const char *port = strncmp(endpoint, "https:", 6) == 0 ? ":443" : ":80";
	size_t size = strlen(endpoint);
	if (size > strlen(port) && strcmp(endpoint + size - strlen(port), port) == 0)
		endpoint[size - strlen(port)] = '\0';
}

static int check_endpoint(char *endpoint, const char *field, struct error *error)
{
	char *host = strstr(endpoint, "://");
	size_t size = strlen(endpoint);
	if (host && size > 1 && endpoint[size - 1] == '/' && endpoint + size - 1 > host + 2)
		endpoint[size - 1] = '\0';
	if (!host || strpbrk(host + 3, "/?") || http_url_check(slice_of(endpoint), true, field, NULL))
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_ENDPOINT, endpoint, field, NULL);
	drop_default_port(endpoint);
	return OK;
}

/* "https://host" becomes "https://bucket.host". */
static bool add_bucket_host(const char *bucket, char *endpoint)
{
	char whole[S3_ENDPOINT_MAX];
	const char *host = strstr(endpoint, "://") + 3;
	int size =
		snprintf(whole, sizeof whole, "%.*s%s.%s", (int)(host - endpoint), endpoint, bucket, host);
	if (size < 0 || (size_t)size >= sizeof whole)
		return false;
	memcpy(endpoint, whole, (size_t)size + 1);
	return true;
}

struct parameters {
	char endpoint[S3_ENDPOINT_MAX];
	char links[S3_ENDPOINT_MAX];
	char region[S3_REGION_MAX];
	char style[16];
};

static int take_parameter(struct parameters *parameters, struct slice item, struct error *error)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} known[] = {
		{"endpoint", parameters->endpoint, sizeof parameters->endpoint},
		{"links", parameters->links, sizeof parameters->links},
		{"region", parameters->region, sizeof parameters->region},
		{"style", parameters->style, sizeof parameters->style},
	};
	const char *equals = memchr(item.data, '=', item.size);
	size_t name_size = equals ? (size_t)(equals - item.data) : item.size;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (slice_is(slice_make(item.data, name_size), known[i].name) && !*known[i].to && equals &&
		    copy_value(slice_make(equals + 1, item.size - name_size - 1), known[i].to,
		               known[i].size))
			return OK;
	char text[64];
	snprintf(text, sizeof text, "%.*s", (int)(item.size < 60 ? item.size : 60), item.data);
	return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_PARAMETER, text, NULL);
}

static int take_query(struct parameters *parameters, const char *query, struct error *error)
{
	int result = OK;
	while (*query && !result) {
		size_t size = strcspn(query, "&");
		result = take_parameter(parameters, slice_make(query, size), error);
		query += size + (query[size] == '&');
	}
	return result;
}

static int take_names(struct s3_place *place, const char *text, size_t size, struct error *error)
{
	char names[S3_BUCKET_MAX + S3_PREFIX_MAX] = "";
	if (size < sizeof names)
		memcpy(names, text, size);
	char *slash = strchr(names, '/');
	if (slash)
		*slash = '\0';
	if (!bucket_valid(names))
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_BUCKET, names, NULL);
	memcpy(place->bucket, names, strlen(names) + 1);
	if (!slash || !slash[1])
		return OK;
	char *prefix = slash + 1;
	size_t length = strlen(prefix);
	if (prefix[length - 1] == '/')
		prefix[--length] = '\0';
	if (!content_name_valid(prefix))
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_PREFIX, prefix, NULL);
	snprintf(place->prefix, sizeof place->prefix, "%s/", prefix);
	return OK;
}

static int take_endpoints(struct s3_place *place, struct parameters *parameters,
                          struct error *error)
{
	bool own = *parameters->endpoint != '\0';
	if (!own)
		snprintf(parameters->endpoint, sizeof parameters->endpoint, "https://s3.%s.amazonaws.com",
		         place->region);
	if (!*parameters->links)
		memcpy(parameters->links, parameters->endpoint, sizeof parameters->links);
	int result = check_endpoint(parameters->endpoint, "endpoint", error);
	if (!result)
		result = check_endpoint(parameters->links, "links", error);
	if (result)
		return result;
	/* A certificate for *.host does not cover a bucket with dots. */
	place->path_style = *parameters->style ? strcmp(parameters->style, "path") == 0
	                                       : own || strchr(place->bucket, '.') != NULL;
	if (!place->path_style && (!add_bucket_host(place->bucket, parameters->endpoint) ||
	                           !add_bucket_host(place->bucket, parameters->links)))
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_ENDPOINT, parameters->endpoint,
		                 "endpoint", NULL);
	memcpy(place->endpoint, parameters->endpoint, sizeof place->endpoint);
	memcpy(place->links, parameters->links, sizeof place->links);
	return OK;
}

int s3_place_parse(const char *text, struct s3_place *ret_place, struct error *error)
{
	struct s3_place place = {0};
	struct parameters parameters = {0};
	if (strncmp(text, "//", 2) != 0)
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_BUCKET, text, NULL);
	text += 2;
	size_t size = strcspn(text, "?");
	int result = take_names(&place, text, size, error);
	if (!result && text[size])
		result = take_query(&parameters, text + size + 1, error);
	if (result)
		return result;
	const char *region = *parameters.region ? parameters.region : REGION_DEFAULT;
	if (strspn(region, LETTERS_DIGITS "-") != strlen(region))
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_REGION, region, NULL);
	snprintf(place.region, sizeof place.region, "%s", region);
	if (*parameters.style && strcmp(parameters.style, "path") != 0 &&
	    strcmp(parameters.style, "virtual") != 0)
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_STYLE, parameters.style, NULL);
	result = take_endpoints(&place, &parameters, error);
	if (!result)
		*ret_place = place;
	return result;
}
