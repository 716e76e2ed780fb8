/* Pages with hostile and ordinary values: no value leaves its place, in either language. */
#include "testing.h"
#include "base/clock.h"
#include "console/template.h"
#include "test_pages.h"

#define PAGE_MAX ((size_t)1 << 20)

static int chart(const char *name, const struct json *data, enum language language, struct buf *out)
{
	struct slice inner = {"", 0};
	json_get_text(data, "name", &inner);
	buf_printf(out, "<svg class=\"%s\">", name);
	template_escape(out, inner, TEMPLATE_IN_TEXT);
	buf_add_text(out, language == LANGUAGE_SPANISH ? " es</svg>" : " en</svg>");
	return inner.size ? 0 : ERR_INTERNAL;
}

static struct json *parse(struct arena *arena, const char *text)
{
	struct json *json;
	struct error error;
	assert_int_equal(json_parse(arena, slice_of(text), NULL, &json, &error), 0);
	return json;
}

static char *draw(struct arena *arena, const struct template *template, const struct json *data,
                  enum language language)
{
	BUF_AUTO struct buf out = {.limit = PAGE_MAX};
	const struct template_view view = {
		.data = data,
		.globals = parse(arena, "{\"token\": \"T0\", \"account\": {\"account_id\": \"acc_0\"}}"),
		.language = language,
		.words = &all_words,
		.picture = chart,
	};
	assert_int_equal(template_draw(template, &view, &out), 0);
	return arena_copy(arena, out.data, out.size);
}

static size_t count(const char *text, const char *what)
{
	size_t found = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		found++;
	return found;
}

/* JSON of a page whose every value is `hostile`. */
static const struct json *hostile_data(struct arena *arena, struct slice hostile)
{
	BUF_AUTO struct buf text = {.limit = PAGE_MAX};
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_slice(&writer, "name", hostile);
	json_slice(&writer, "other", hostile);
	json_begin_array(&writer, "list");
	json_slice(&writer, NULL, hostile);
	json_end_array(&writer);
	json_end_object(&writer);
	return parse(arena, arena_copy(arena, text.data, text.size));
}

static const char *const hostile_values[] = {
	"<script>alert(1)</script>",
	"\"><img src=x onerror=alert(1)>",
	"' onmouseover='alert(1)",
	"\" autofocus onfocus=\"alert(1)",
	"</title></textarea></pre></select></option><script>alert(1)</script>",
	"--><svg/onload=alert(1)>",
	"]]><script>",
	"javascript:alert(1)",
	"//evil.example/",
	"/\\evil.example/",
	"\\\\evil.example",
	"data:text/html,<script>",
	"..",
	"../../admin?x=y#z",
	"a&lt;b&#60;c&amp",
	"{{name}} \x01\x02\x03 ${name}",
	("\xe2\x80\xae"
     "gnp.exe\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf"),
	"line\r\nSet-Cookie: a=b\n\ttab",
	"\xf3\xa0\x80\xa1",
	"`<!-- \\u003cscript\\u003e",
};

static void check_hostile(const char *page, const char *plain, const char *value)
{
	/* As many tags and quotes as with a harmless value, so that none comes from the value. */
	static const char *const counted[] = {"<", ">", "\"", "<script", "<p ", "<input", "<!--"};
	for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
		if (count(page, counted[i]) != count(plain, counted[i]))
			fail_msg("%s: %zu of %s, not %zu:\n%s", value, count(page, counted[i]), counted[i],
			         count(plain, counted[i]), page);
	}
	assert_null(strchr(page, '\''));
	assert_null(strstr(page, "href=\"j"));
	assert_null(strstr(page, "href=\"d"));
	assert_null(strstr(page, "href=\"//"));
	assert_null(strstr(page, "href=\"/\\"));
	assert_null(strstr(page, "things/../"));
	assert_null(strstr(page, "\r"));
	assert_null(strstr(page, "things/..?"));
	assert_null(strstr(page, "things/..\""));
	assert_null(strstr(page, "\x01"));
}

TEST_CASE(test_hostile)
{
	for (enum language language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		for (size_t i = 0; i < sizeof hostile_values / sizeof *hostile_values; i++) {
			ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
			const struct json *data = hostile_data(&arena, slice_of(hostile_values[i]));
			const struct json *harmless = hostile_data(&arena, slice_of("harmless"));
			char *page = draw(&arena, &page_places, data, language);
			char *plain = draw(&arena, &page_places, harmless, language);
			check_hostile(page, plain, hostile_values[i]);
		}
	}
}

static void expect(const struct template *template, const char *data, enum language language,
                   const char *part)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	const char *page = draw(&arena, template, parse(&arena, data), language);
	if (!strstr(page, part))
		fail_msg("%s is not in\n%s", part, page);
}

TEST_CASE(test_places)
{
	static const char odd[] = "{\"name\": \"a/b?c&d=\\\"<\\u202e\\u0000é\", \"other\": \"\"}";
	static const char *const parts[] = {
		"<title>a/b?c&amp;d=&quot;&lt;‹U+202E›‹U+0000›é</title>",
		"class=\"c a/b?c&amp;d=&quot;&lt;\xe2\x80\xae‹U+0000›é\"",
		"/console/things/a%2Fb%3Fc%26d%3D%22%3C%E2%80%AE%00%C3%A9/edit?q=a%2Fb%3Fc%26d%3D",
		"<textarea name=\"b\">\na/b?c&amp;d=&quot;&lt;\xe2\x80\xae‹U+0000›é</textarea>",
		"<a href=\"#\"",
		("<input type=\"hidden\" name=\"token\" value=\"T0\"><input type=\"hidden\" name=\"in_account\""
	     " value=\"acc_0\">"),
		" readonly>",
		"<pre>&quot;a/b?c&amp;d=\\&quot;&lt;‹U+202E›\\u0000é&quot;\n\t{",
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		expect(&page_places, odd, LANGUAGE_ENGLISH, parts[i]);
	expect(&page_places, "{\"name\": \"/console/x?a=1&b=2\"}", LANGUAGE_ENGLISH,
	       "<a href=\"/console/x?a=1&amp;b=2\"");
	expect(&page_places, "{\"name\": \"..\"}", LANGUAGE_ENGLISH, "/console/things/%3F/edit?q=%3F&");
	expect(&page_places, "{\"name\": \"x\"}", LANGUAGE_ENGLISH,
	       ">Hello &#60;x&#62; &#38; &#34;all&#34;</a>");
	expect(&page_places, "{\"name\": \"x\"}", LANGUAGE_SPANISH, "title=\"«x», hola\"");
	expect(&page_places, "{\"name\": \"on\"}", LANGUAGE_SPANISH, ">Encendido</a>");
	expect(&page_places, "{\"name\": \"x\", \"other\": \"x\"}", LANGUAGE_ENGLISH, " selected>");
	expect(&page_places, "{}", LANGUAGE_ENGLISH, "<a href=\"#\" title=\"Hello");
}

TEST_CASE(test_values)
{
	static const char data[] =
		"{\"n\": 1234567, \"amount\": \"-1234.50\", \"currency\": \"E<R\", \"at\": "
		"\"2026-02-03T04:05:06.7Z\", \"day\": \"2026-12-31\", \"digest\": \"ab<\", \"mixed\": {\"a\": "
		"[1, null, true, \"<\"]}, \"rows\": [1, 2], \"yes\": true, \"state\": \"unknown<\"}";
	expect(
		&page_values, data, LANGUAGE_ENGLISH,
		"<li>1,234,567|1,234,567 credits|1.2 MiB|14 d 6 h|−1,234.50 E&lt;R|<time "
		"datetime=\"2026-02-03T04:05:06.700000Z\">3 February 2026, 04:05:06 UTC</time>|<time "
		"datetime=\"2026-02-03\">3 February 2026</time>|<time datetime=\"2026-12-31\">31 December "
		"2026</time></li>");
	expect(&page_values, data, LANGUAGE_SPANISH,
	       "<li title=\"1.234.567|1.234.567 créditos|1,2 MiB|14 d 6 h|−1234,50 E&lt;R|3 de febrero "
	       "de 2026, 04:05:06 UTC|3 de febrero de 2026|31 de diciembre de 2026\">1.234.567 "
	       "eventos</li>");
	expect(&page_values, data, LANGUAGE_SPANISH,
	       "<li><code class=\"hash\">ab&lt;</code>|{&quot;a&quot;: [1, null, true, "
	       "&quot;&lt;&quot;]}|2||Sí|unknown&lt;|ejecute <code>a &#60; b</code> ya</li>");
	expect(&page_values, "{\"n\": 1}", LANGUAGE_ENGLISH, "<li>1|1 credit|1 byte|1 s||||</li>");
	expect(&page_values, "{\"n\": 1}", LANGUAGE_ENGLISH, ">1 event</li>");
	expect(&page_values, "{\"n\": 1234}", LANGUAGE_SPANISH,
	       "<li>1234|1234 créditos|1,2 KiB|20 min|");
	expect(&page_values, "{\"n\": 1048575}", LANGUAGE_ENGLISH, "|1 MiB|");
	expect(&page_values, "{\"n\": \"<\", \"at\": \"<\", \"amount\": \"1<\"}", LANGUAGE_ENGLISH,
	       "<li>&lt;|&lt;|&lt;|&lt;|1&lt;|&lt;|&lt;|</li>");
	expect(&page_values, "{\"n\": [], \"at\": {}, \"amount\": [], \"day\": 7}", LANGUAGE_ENGLISH,
	       "<li>0|0 credits|0 bytes|0 s||||7</li>");
}

TEST_CASE(test_blocks)
{
	expect(
		&page_blocks,
		"{\"rows\": [{\"name\": \"a\", \"first\": true, \"inner\": {\"name\": \"i\"}}, {\"name\": "
		"\"b\"}], \"outer\": \"o\", \"zero\": 0, \"state\": \"on\", \"a\": 1, \"b\": \"1\", \"empty\": "
		"[], \"deep\": {\"er\": {\"value\": \"v\"}}, \"token\": \"own\", \"form\": {\"email\": "
		"\"e\\\"@\"}, \"inner\": {\"name\": \"<n>\"}}",
		LANGUAGE_ENGLISH,
		"<div><p class=\"first\">a o i</p><p class=\"other\">b o &lt;n&gt;</p>[not][0][on][same]vT0own\n"
		"<label for=\"f_email\">E-mail</label><input id=\"f_email\" name=\"email\" "
		"value=\"e&quot;@\">\n<svg class=\"chart\">&lt;n&gt; en</svg></div>");
	expect(&page_blocks, "{\"state\": \"off\", \"a\": \"x\", \"rows\": {}}", LANGUAGE_SPANISH,
	       "<div><p>none</p>[not][0][off]T0\n<label for=\"f_email\">Correo</label>");
}

TEST_CASE(test_ends)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	BUF_AUTO struct buf out = {.limit = PAGE_MAX};
	struct template_view view = {.data = parse(&arena, "{\"inner\": {}}"), .picture = chart};
	assert_int_equal(template_draw(&page_blocks, &view, &out), ERR_INTERNAL);
	buf_free(&out);
	buf_init(&out, 10);
	view.picture = NULL;
	assert_int_equal(template_draw(&page_blocks, &view, &out), ERR_NO_MEMORY);
	assert_string_equal(all_pictures[0], "chart");
	assert_null(all_pictures[1]);
	assert_null(template_word(&all_words, "status", slice_of("o\0n"), LANGUAGE_ENGLISH));
	assert_null(template_word(&all_words, "status", slice_of(""), LANGUAGE_ENGLISH));
	assert_string_equal(template_word(&all_words, "status", slice_of("half on"), LANGUAGE_ENGLISH),
	                    "Half on");
	assert_string_equal(template_word(&all_words, "status", slice_of("half-on"), LANGUAGE_SPANISH),
	                    "Medio encendido");
	size_t pages = 0;
	while (all_pages[pages])
		pages++;
	assert_int_equal(pages, 3);
}

TEST_MAIN(NULL, NULL)
