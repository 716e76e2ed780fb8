/* Whose place it is: an object with the installation's identifier. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "content/content.h"

#define MARKER_SIZE_MAX 512

struct marker {
	char installation[CONTENT_INSTALLATION_SIZE];
	int64_t since_us;
};

static int parse(const char *text, struct marker *ret, struct error *error)
{
	char time[TIME_TEXT_SIZE];
	struct marker marker;
	if (sscanf(text, "constancia content 1\ninstallation %64[0-9a-f]\nsince %27[-0-9T:.Z]\n",
	           marker.installation, time) != 2 ||
	    time_parse(slice_of(time), "since", &marker.since_us, NULL))
		return error_set(error, ERR_REFUSED, MSG_CONTENT_NO_MARKER, CONTENT_MARKER, NULL);
	*ret = marker;
	return OK;
}

static int read_marker(struct content_store *store, struct marker *ret, struct error *error)
{
	struct content_reader *reader = NULL;
	char text[MARKER_SIZE_MAX + 1];
	uint64_t size = 0;
	int result = content_read_begin(store, CONTENT_MARKER, 0, &reader, &size, error);
	if (result)
		return result;
	size_t used = 0;
	int64_t got = 1;
	while (got > 0 && used < MARKER_SIZE_MAX) {
		got = content_read(reader, text + used, MARKER_SIZE_MAX - used, error);
		used += got > 0 ? (size_t)got : 0;
	}
	content_read_end(reader);
	text[used] = '\0';
	return got < 0 ? (int)got : parse(text, ret, error);
}

static int write_marker(struct content_store *store, const char *installation, struct error *error)
{
	int64_t now_us = 0;
	struct content_writer *writer = NULL;
	int result = content_now_us(store, &now_us, error);
	if (!result)
		result = content_write_begin(store, &writer, error);
	if (result)
		return result;
	char time[TIME_TEXT_SIZE], text[MARKER_SIZE_MAX];
	time_format(now_us, time);
	int size = snprintf(text, sizeof text, "constancia content 1\ninstallation %s\nsince %s\n",
	                    installation, time);
	result = content_write(writer, text, (size_t)size, error);
	if (result) {
		content_write_abort(writer);
		return result;
	}
	return content_write_commit(writer, CONTENT_MARKER, error);
}

int content_claim(struct content_store *store, const char *installation, int64_t *ret_since_us,
                  struct error *error)
{
	struct marker marker;
	int result = read_marker(store, &marker, error);
	if (result == ERR_NOT_FOUND) {
		error_clear(error);
		result = write_marker(store, installation, error);
		/* Of two that write at the same time, the second one's stays. */
		if (!result)
			result = read_marker(store, &marker, error);
	}
	if (!result && strcmp(marker.installation, installation) != 0)
		result = error_set(error, ERR_REFUSED, MSG_CONTENT_ANOTHERS, marker.installation,
		                   installation, CONTENT_MARKER, NULL);
	if (!result)
		*ret_since_us = marker.since_us;
	return result;
}
