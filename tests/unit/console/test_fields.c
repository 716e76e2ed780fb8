/* Forms, cookies and paths, and the addresses that belong to the console. */
#include "testing.h"
#include "console/fields.h"
#include "console/visit.h"

static struct arena arena;

static struct fields *read_form(const char *text)
{
	struct fields *fields = arena_alloc(&arena, sizeof *fields);
	assert_int_equal(fields_read(slice_of(text), &arena, fields, NULL), 0);
	return fields;
}

TEST_CASE(test_forms)
{
	struct fields *fields = read_form("a=1+2%2B3&b=%C3%A9%0D%0Ax%0D&&c&types=x&types=y&d=1=2&=v");
	assert_int_equal(fields->count, 7);
	assert_string_equal(fields_get(fields, "a").data, "1 2+3");
	assert_string_equal(fields_get(fields, "b").data, "é\nx\n");
	assert_string_equal(fields_get(fields, "c").data, "");
	assert_string_equal(fields_get(fields, "d").data, "1=2");
	assert_non_null(fields_find(fields, "c"));
	assert_null(fields_find(fields, "e"));
	assert_int_equal(fields_get(fields, "e").size, 0);
	assert_string_equal(fields_join(fields, slice_of("types"), &arena), "x,y");
	assert_string_equal(fields_join(fields, slice_of("e"), &arena), "");
	assert_int_equal(read_form("")->count, 0);
	static const char *const broken[] = {"a=%",   "a=%1",  "a=%zz", "a=%00",
	                                     "a=%ff", "%ff=a", "a=%C3"};
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
		assert_int_equal(fields_read(slice_of(broken[i]), &arena, fields, NULL), ERR_VALIDATION);
}

TEST_CASE(test_the_field_that_is_broken_is_named)
{
	struct fields fields;
	struct error error = {0};
	assert_int_equal(fields_read(slice_of("a=1&reason=x%00"), &arena, &fields, &error),
	                 ERR_VALIDATION);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "reason"));
	static const char *const strange[] = {"%ff=x", "<b>=%00", "%01=%ff", "=%00"};
	for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
		error_clear(&error);
		assert_int_equal(fields_read(slice_of(strange[i]), &arena, &fields, &error),
		                 ERR_VALIDATION);
		assert_int_equal(error.message, MSG_CONSOLE_FORM);
	}
}

TEST_CASE(test_many)
{
	char text[4 * FIELDS_MAX + 8] = "";
	struct fields fields;
	for (int i = 0; i < FIELDS_MAX; i++)
		strcat(text, "a=1&");
	assert_int_equal(fields_read(slice_of(text), &arena, &fields, NULL), 0);
	strcat(text, "a");
	assert_int_equal(fields_read(slice_of(text), &arena, &fields, NULL), ERR_VALIDATION);
}

static void expect_cookie(const char *header, const char *value)
{
	struct slice found = cookie_find(slice_of(header), "name");
	assert_true(slice_is(found, value));
}

TEST_CASE(test_cookies)
{
	expect_cookie("name=value", "value");
	expect_cookie("other=1; name=value; more=2", "value");
	expect_cookie("rename=1; name=value", "value");
	expect_cookie("name=value;name=value", "value");
	/* Browsers differ in which of two equal names they use. */
	expect_cookie("name=value; name=other", "");
	expect_cookie("name=", "");
	expect_cookie("name", "");
	expect_cookie("", "");
	expect_cookie("names=1; Name=2;;  ;", "");
}

TEST_CASE(test_paths)
{
	struct slice path;
	assert_true(path_decode(slice_of("a%20b+c"), &arena, &path) && slice_is(path, "a b+c"));
	assert_false(path_decode(slice_of("%00"), &arena, &path));
	assert_false(path_decode(slice_of("%ff"), &arena, &path));
	assert_false(path_decode(slice_of("%"), &arena, &path));
	static const char *const own[] = {"/console", "/console/", "/console/users?a=b&c=%20",
	                                  "/console?x"};
	static const char *const strange[] = {
		"",
		"/",
		"/v1",
		"//console/",
		"/consoles",
		"https://a/console/",
		"/console/\\",
		"/console/ ",
		"/console/\n",
		"/console/é",
		"/console/../v1",
		"/console/./x",
		"/console#x",
		"/console\"",
		"console/",
	};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		assert_true(visit_is_console_address(slice_of(own[i])));
	for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
		assert_false(visit_is_console_address(slice_of(strange[i])));
}

/* Each form leads back to an existing page; each operation is in the table. */
TEST_CASE(test_tables)
{
	struct visit visit = {.arena = &arena};
	for (const struct console_page *page = console_pages; page->path; page++) {
		for (const struct console_source *source = page->sources; source && source->member;
		     source++)
			assert_non_null(admin_find(slice_of(source->operation)));
	}
	for (const struct console_form *form = console_forms; form->path; form++) {
		const struct admin_operation *operation = admin_find(slice_of(form->operation));
		assert_true(operation && admin_writes_audit_log(operation));
		assert_non_null(page_find(&visit, slice_of(form->page)));
	}
	for (const struct console_export *export = console_exports; export->path; export ++)
		assert_non_null(admin_find(slice_of(export->operation)));
}

int main(void)
{
	arena_init(&arena, (size_t)16 << 20);
	int failed = tests_run(NULL, NULL, NULL, NULL);
	arena_free(&arena);
	return failed;
}
