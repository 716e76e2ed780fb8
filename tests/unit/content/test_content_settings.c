/* The settings of the content store: addresses, and the check of each driver's settings. */
#include "testing.h"
#include "base/clock.h"
#include "content/content.h"

static char problems[1024], warnings[1024];

static void add(char *list, const char *setting)
{
	size_t size = strlen(list);
	snprintf(list + size, sizeof problems - size, "%s%s", size ? " " : "", setting);
}

static void add_problem(void *context, const char *setting, const char *what)
{
	(void)context;
	assert_non_null(what);
	add(problems, setting);
}

static void add_warning(void *context, const char *setting, const char *what)
{
	(void)context;
	assert_non_null(what);
	add(warnings, setting);
}

static void check(const struct content_options *options, bool serving)
{
	struct setting_check report = {add_problem, add_warning, NULL, serving};
	*problems = *warnings = '\0';
	content_check_settings(options, &report);
}

TEST_CASE(only_files_are_on_this_machine)
{
	(void)state;
	assert_string_equal(content_url_directory("file:/srv/content"), "/srv/content");
	assert_null(content_url_directory("s3://bucket?endpoint=https://s3.example.org"));
	assert_null(content_url_directory("ftp://example.org"));
	assert_null(content_url_directory(""));
}

TEST_CASE(settings_are_checked)
{
	(void)state;
	const struct content_options files = {
		.url = "file:/srv/content",
		.access_key = "",
		.secret_key = "",
		.allow_networks = "",
		.timeout = 10 * US_PER_SECOND,
		.keep_swept = 7 * US_PER_DAY,
	};
	struct content_options options = files;
	check(&options, true);
	assert_string_equal(problems, "");
	assert_string_equal(warnings, "");
	options.url = "";
	check(&options, true); /* the default follows from the data directory */
	assert_string_equal(problems, "");
	options.url = "ftp://example.org";
	check(&options, true);
	assert_string_equal(problems, "content.url");
	options = files;
	options.presigned_links = true;
	options.keep_swept = US_PER_DAY - 1;
	options.timeout = 0;
	options.allow_networks = "somewhere";
	check(&options, true);
	assert_string_equal(problems, "content.presigned_links content.allow_networks content.timeout");
	assert_string_equal(warnings, "content.keep_swept");
}

TEST_CASE(an_s3_address_needs_keys_to_serve)
{
	(void)state;
	struct content_options options = {
		.url = "s3://bucket?endpoint=https://s3.example.org",
		.access_key = "",
		.secret_key = "",
		.allow_networks = "10.0.0.0/8",
		.timeout = 10 * US_PER_SECOND,
		.keep_swept = 7 * US_PER_DAY,
		.presigned_links = true,
	};
	check(&options, false);
	assert_string_equal(problems, "");
	check(&options, true);
	assert_string_equal(problems, "content.access_key content.secret_key");
	options.access_key = "access";
	options.secret_key = "secret";
	check(&options, true);
	assert_string_equal(problems, "");
}

TEST_MAIN(NULL, NULL)
