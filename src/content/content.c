#include "content/content.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/thread.h"
#include "content/content_driver.h"

#define COPY_SIZE 65536
#define RANDOM_CHARACTERS 30

static const struct content_driver *const drivers[] = {
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, help)
#define DRIVER(name) &content_##name##_driver,
#include "content/content_settings.def"
#undef DRIVER
#undef RELOADS
#undef SETTING
};

static bool character_valid(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '_' || c == '.';
}

bool content_name_valid(const char *name)
{
	size_t size = strnlen(name, CONTENT_NAME_MAX);
	if (size == CONTENT_NAME_MAX)
		return false;
	bool starts = true; /* at the start of a part, which must not be empty or begin with a dot */
	unsigned parts = 1;
	for (size_t i = 0; i < size; i++) {
		if (name[i] == '/') {
			if (starts || ++parts > CONTENT_NAME_PARTS_MAX)
				return false;
			starts = true;
			continue;
		}
		if (!character_valid(name[i]) || (starts && name[i] == '.'))
			return false;
		starts = false;
	}
	return !starts;
}

static int refuse_name(struct error *error)
{
	return error_cause(error, ERR_INTERNAL, "not the name of a content object");
}

static const struct content_driver *find_driver(const char *url, const char **ret_place)
{
	for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
		size_t size = strlen(drivers[i]->scheme);
		if (strncmp(url, drivers[i]->scheme, size) == 0 && url[size]) {
			*ret_place = url + size;
			return drivers[i];
		}
	}
	return NULL;
}

int content_open_with(const struct content_options *options, struct content_store **ret_store,
                      struct error *error)
{
	const char *place = NULL;
	const struct content_driver *driver = find_driver(options->url, &place);
	if (!driver)
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_URL, options->url, NULL);
	return driver->open(options, place, ret_store, error);
}

int content_open(const char *url, bool create, struct content_store **ret_store,
                 struct error *error)
{
	struct content_options options = {.url = url, .create = create};
	return content_open_with(&options, ret_store, error);
}

int content_url_check(const char *url, struct error *error)
{
	const char *place = NULL;
	const struct content_driver *driver = find_driver(url, &place);
	if (!driver)
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_URL, url, NULL);
	return driver->check_place ? driver->check_place(place, error) : 0;
}

bool content_url_is_remote(const char *url)
{
	const char *place = NULL;
	const struct content_driver *driver = find_driver(url, &place);
	return driver && driver->remote;
}

const char *content_url_directory(const char *url)
{
	const char *place = NULL;
	const struct content_driver *driver = find_driver(url, &place);
	return driver && !driver->remote ? place : NULL;
}

void content_check_settings(const struct content_options *options,
                            const struct setting_check *check)
{
	struct error error = {0};
	const char *place = NULL;
	const struct content_driver *chosen = find_driver(options->url, &place);
	if (*options->url && content_url_check(options->url, &error))
		setting_fault(check, "content.url", error_message(&error, LANGUAGE_ENGLISH));
	for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
		if (drivers[i]->check_settings)
			drivers[i]->check_settings(options, drivers[i] == chosen, check);
	if (options->keep_swept < US_PER_DAY)
		setting_warn(check, "content.keep_swept",
		             "should be at least one day: by then every database that sweeps this "
		             "content store has run, and a copy of a database is detected before it "
		             "deletes anything");
}

bool content_is_remote(const struct content_store *store)
{
	return store->driver->remote;
}

int content_ready(struct content_store *store, struct error *error)
{
	thread_assert_may_block();
	return store->driver->ready ? store->driver->ready(store, error) : 0;
}

void content_close(struct content_store *store)
{
	if (store)
		store->driver->close(store);
}

int content_write_begin(struct content_store *store, struct content_writer **ret_writer,
                        struct error *error)
{
	thread_assert_may_block();
	return store->driver->write_begin(store, ret_writer, error);
}

int content_write(struct content_writer *writer, const void *data, size_t size, struct error *error)
{
	thread_assert_may_block();
	return writer->store->driver->write(writer, data, size, error);
}

int content_write_commit(struct content_writer *writer, const char *name, struct error *error)
{
	thread_assert_may_block();
	int result = content_name_valid(name) ? writer->store->driver->write_commit(writer, name, error)
	                                      : refuse_name(error);
	content_write_abort(writer);
	return result;
}

void content_write_abort(struct content_writer *writer)
{
	if (!writer)
		return;
	thread_assert_may_block();
	writer->store->driver->write_abort(writer);
}

static int copy_file(int descriptor, struct content_writer *writer, struct error *error)
{
	char data[COPY_SIZE];
	for (;;) {
		ssize_t size = read(descriptor, data, sizeof data);
		if (size == 0)
			return 0;
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return error_cause(error, ERR_IO, "reading a finished file: %s",
			                   strerrordesc_np(errno));
		int result = content_write(writer, data, (size_t)size, error);
		if (result)
			return result;
	}
}

static int put_by_writer(struct content_store *store, int descriptor, const char *name,
                         struct error *error)
{
	struct content_writer *writer = NULL;
	int result = content_write_begin(store, &writer, error);
	if (!result)
		result = copy_file(descriptor, writer, error);
	if (!result)
		return content_write_commit(writer, name, error);
	content_write_abort(writer);
	return result;
}

int content_put_file(struct content_store *store, const char *path, const char *name,
                     struct error *error)
{
	thread_assert_may_block();
	DESCRIPTOR_AUTO int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;
	if (descriptor < 0)
		return error_cause(error, ERR_IO, "opening a finished file: %s", strerrordesc_np(errno));
	if (!content_name_valid(name))
		return refuse_name(error);
	int result =
		store->driver->link ? store->driver->link(store, descriptor, name, error) : ERR_REFUSED;
	if (result != ERR_REFUSED)
		return result;
	if (!store->driver->put)
		return put_by_writer(store, descriptor, name, error);
	if (fstat(descriptor, &status) < 0)
		return error_cause(error, ERR_IO, "reading a finished file: %s", strerrordesc_np(errno));
	return store->driver->put(store, descriptor, (uint64_t)status.st_size, name, error);
}

int content_read_begin(struct content_store *store, const char *name, uint64_t offset,
                       struct content_reader **ret_reader, uint64_t *ret_size, struct error *error)
{
	thread_assert_may_block();
	if (!content_name_valid(name))
		return refuse_name(error);
	return store->driver->read_begin(store, name, offset, ret_reader, ret_size, error);
}

int64_t content_read(struct content_reader *reader, void *data, size_t size, struct error *error)
{
	thread_assert_may_block();
	int64_t got = reader->store->driver->read(reader, data, size, error);
	assert(got <= (int64_t)size); /* a driver writes no further */
	return got;
}

size_t content_read_now(struct content_reader *reader, void *data, size_t size)
{
	const struct content_driver *driver = reader->store->driver;
	size_t got = driver->read_now ? driver->read_now(reader, data, size) : 0;
	assert(got <= size);
	return got;
}

void content_read_end(struct content_reader *reader)
{
	if (!reader)
		return;
	thread_assert_may_block();
	reader->store->driver->read_end(reader);
}

int content_read_descriptor(struct content_store *store, const char *name, uint64_t *ret_size)
{
	thread_assert_may_block();
	if (!store->driver->read_descriptor || !content_name_valid(name))
		return -1;
	return store->driver->read_descriptor(store, name, ret_size);
}

int content_make_link(struct content_store *store, const char *name,
                      const struct content_link *link, struct buf *out, struct error *error)
{
	if (!content_name_valid(name))
		return refuse_name(error);
	if (!store->driver->make_link)
		return error_cause(error, ERR_REFUSED, "content: this store does not provide links");
	return store->driver->make_link(store, name, link, out, error);
}

int content_delete(struct content_store *store, const char *name, struct error *error)
{
	thread_assert_may_block();
	if (!content_name_valid(name))
		return refuse_name(error);
	return store->driver->delete (store, name, error);
}

void content_discard(struct content_store *store, const char *name)
{
	(void)!content_delete(store, name, NULL);
}

static const char alphabet[] = "0123456789abcdefghijklmnopqrstuv";

void content_fresh_name(const char *area, char name[CONTENT_NAME_MAX])
{
	uint8_t bytes[1 + RANDOM_CHARACTERS];
	char text[RANDOM_CHARACTERS + 1] = "";
	random_bytes(bytes, sizeof bytes);
	for (size_t i = 0; i < RANDOM_CHARACTERS; i++)
		text[i] = alphabet[bytes[1 + i] % (sizeof alphabet - 1)];
	snprintf(name, CONTENT_NAME_MAX, "%s/%02x/%s", area, bytes[0], text);
	assert(content_name_valid(name) && strlen(name) == strlen(area) + 4 + RANDOM_CHARACTERS);
}

/* ---- listing and sweeping ---- */

static bool is_fresh_part(const char *part)
{
	return strlen(part) == RANDOM_CHARACTERS && strspn(part, alphabet) == RANDOM_CHARACTERS;
}

/* The part of a name before "/xx/<30 characters>". */
static bool is_area(const char *name, size_t size)
{
	static const char issued[] = "issued/";
	const size_t prefix = sizeof issued - 1;
	if ((size == 5 && memcmp(name, "event", 5) == 0) ||
	    (size == prefix - 1 && memcmp(name, issued, prefix - 1) == 0))
		return true;
	return size > prefix && memcmp(name, issued, prefix) == 0 &&
	       !memchr(name + prefix, '/', size - prefix);
}

bool content_name_is_fresh(const char *name)
{
	if (!content_name_valid(name))
		return false;
	size_t size = strlen(name);
	const size_t tail = 4 + RANDOM_CHARACTERS; /* "/xx/…" */
	if (size <= tail)
		return false;
	const char *at = name + size - tail;
	return at[0] == '/' && at[3] == '/' && strspn(at + 1, "0123456789abcdef") == 2 &&
	       is_fresh_part(at + 4) && is_area(name, (size_t)(at - name));
}

int content_now_us(struct content_store *store, int64_t *ret_now_us, struct error *error)
{
	thread_assert_may_block();
	return store->driver->now_us(store, ret_now_us, error);
}

int content_list(struct content_store *store, const struct content_range *range,
                 int (*visit)(void *context, const char *name), void *context, struct error *error)
{
	thread_assert_may_block();
	return store->driver->list(store, range, visit, context, error);
}

int content_remove_leftovers(struct content_store *store, const struct content_range *range,
                             int (*visit)(void *context, const char *name), void *context,
                             struct error *error)
{
	thread_assert_may_block();
	return store->driver->tidy(store, range, visit, context, error);
}
