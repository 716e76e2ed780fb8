/* Page templates. With any JSON values, a page has exactly the tags of its template. */
#include "console/template.h"
#include "fuzz.h"
#include "test_pages.h"

#define ARENA_LIMIT ((size_t)64 * 1024 * 1024)
#define PAGE_MAX ((size_t)16 * 1024 * 1024)

/* Checks that '<' is followed only by '/' or a tag name of the test's pages, and that the page
 * contains no unescaped text of a value. */
static void check(struct slice page)
{
	static const char *const tags[] = {
		"!DOCTYPE ", "html ", "head>", "title>",   "body>",  "main>",  "h1>",  "p",
		"a ",        "form ", "input", "textarea", "select", "option", "pre>", "code",
		"i>",        "ul>",   "li",    "div>",     "label ", "time ",  "/",
	};
	for (size_t i = 0; i < page.size; i++) {
		bool known = page.data[i] != '<';
		for (size_t tag = 0; !known && tag < sizeof tags / sizeof *tags; tag++)
			known = strncmp(page.data + i + 1, tags[tag], strlen(tags[tag])) == 0;
		require(known, "every tag is from the template");
		require((unsigned char)page.data[i] >= 0x20 || strchr("\t\n", page.data[i]),
		        "no control characters");
		require(page.data[i] != '\'', "apostrophes are escaped");
	}
	require(!strstr(page.data, "<script") && !strstr(page.data, "href=\"//"),
	        "there are no scripts or foreign links");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_AUTO struct arena arena = {.limit = ARENA_LIMIT};
	struct json *json = NULL;
	if (json_parse(&arena, slice_make(data, size), NULL, &json, NULL))
		return 0;
	for (int i = 0; all_pages[i]; i++) {
		for (enum language language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
			BUF_AUTO struct buf out = {.limit = PAGE_MAX};
			const struct template_view view = {
				.data = json, .globals = json, .language = language, .words = &all_words};
			if (template_draw(all_pages[i], &view, &out) == 0)
				check(buf_slice(&out));
		}
	}
	return 0;
}
