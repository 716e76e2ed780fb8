/* Marker object of a content store: the owning installation and the last sweep. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "content/content.h"

#define MARKER_SIZE_MAX 512

/* Parses the lines that a sweep adds. Lines that are neither complete nor missing may be from an
 * unknown version. */
static bool parse_sweep(const char *text, struct content_marker *marker)
{
	int end = 0;
	return !*text || (sscanf(text, "sweep %32[0-9a-z]\naccepted %18" SCNd64 "\n%n", marker->sweep,
	                         &marker->accepted_us, &end) == 2 &&
	                  end > 0 && !text[end]);
}

static int parse(const char *text, struct content_marker *ret, struct error *error)
{
	char time[TIME_TEXT_SIZE];
	int end = 0;
	struct content_marker marker = {0};
	if (sscanf(text, "constancia content 1\ninstallation %64[0-9a-f]\nsince %27[-0-9T:.Z]\n%n",
	           marker.installation, time, &end) != 2 ||
	    end == 0 || time_parse(slice_of(time), "since", &marker.since_us, NULL) ||
	    !parse_sweep(text + end, &marker))
		return error_set(error, ERR_REFUSED, MSG_CONTENT_NO_MARKER, CONTENT_MARKER, NULL);
	*ret = marker;
	return OK;
}

static int read_marker(struct content_store *store, struct content_marker *ret, struct error *error)
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

static size_t print(const struct content_marker *marker, char text[MARKER_SIZE_MAX])
{
	char time[TIME_TEXT_SIZE];
	time_format(marker->since_us, time);
	int size = snprintf(text, MARKER_SIZE_MAX, "constancia content 1\ninstallation %s\nsince %s\n",
	                    marker->installation, time);
	if (*marker->sweep)
		size += snprintf(text + size, MARKER_SIZE_MAX - (size_t)size,
		                 "sweep %s\naccepted %" PRId64 "\n", marker->sweep, marker->accepted_us);
	return (size_t)size;
}

int content_mark(struct content_store *store, const struct content_marker *marker,
                 struct error *error)
{
	struct content_writer *writer = NULL;
	int result = content_write_begin(store, &writer, error);
	if (result)
		return result;
	char text[MARKER_SIZE_MAX];
	result = content_write(writer, text, print(marker, text), error);
	if (result) {
		content_write_abort(writer);
		return result;
	}
	return content_write_commit(writer, CONTENT_MARKER, error);
}

static int refuse_other(const struct content_marker *found, const char *installation,
                        struct error *error)
{
	return strcmp(found->installation, installation) == 0
	           ? OK
	           : error_set(error, ERR_REFUSED, MSG_CONTENT_ANOTHERS, found->installation,
	                       installation, CONTENT_MARKER, NULL);
}

static int write_first(struct content_store *store, const char *installation, struct error *error)
{
	struct content_marker marker = {0};
	snprintf(marker.installation, sizeof marker.installation, "%s", installation);
	int result = content_now_us(store, &marker.since_us, error);
	return result ? result : content_mark(store, &marker, error);
}

int content_claim(struct content_store *store, const char *installation,
                  struct content_marker *ret_marker, struct error *error)
{
	struct content_marker marker;
	int result = read_marker(store, &marker, error);
	if (result == ERR_NOT_FOUND) {
		error_clear(error);
		result = write_first(store, installation, error);
		/* If two nodes write at the same time, the second marker remains. */
		if (!result)
			result = read_marker(store, &marker, error);
	}
	if (!result)
		result = refuse_other(&marker, installation, error);
	if (!result)
		*ret_marker = marker;
	return result;
}

int content_check_claim(struct content_store *store, const char *installation, struct error *error)
{
	struct content_marker marker;
	int result = read_marker(store, &marker, error);
	if (result == ERR_NOT_FOUND) {
		error_clear(error);
		return OK;
	}
	if (!result && !*installation)
		return error_set(error, ERR_REFUSED, MSG_CONTENT_OWNER_UNKNOWN, marker.installation,
		                 CONTENT_MARKER, NULL);
	return result ? result : refuse_other(&marker, installation, error);
}
