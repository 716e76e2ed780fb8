/* Every accepted URL is also accepted by libcurl and read in the same way: none is accepted that
 * could never be requested, and none leads elsewhere. */
#include <curl/curl.h>
#include <strings.h>

#include "testing.h"
#include "net/url.h"

/* The judgement of libcurl; *ret_path as libcurl reads it. */
static bool curl_takes(const char *text, char **ret_scheme, char **ret_path)
{
	CURLU *url = curl_url();
	bool taken = curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER | CURLU_PATH_AS_IS) ==
	                 CURLUE_OK &&
	             curl_url_get(url, CURLUPART_SCHEME, ret_scheme, 0) == CURLUE_OK &&
	             curl_url_get(url, CURLUPART_PATH, ret_path, 0) == CURLUE_OK;
	curl_url_cleanup(url);
	return taken;
}

/* Returns whether both accept it; an error if only ours does. */
static bool compare(const char *text)
{
	struct url url;
	char *scheme = NULL, *path = NULL;
	bool ours = url_read(slice_of(text), &url);
	ours = ours && (url_has_scheme(&url, "http") || url_has_scheme(&url, "https") ||
	                url_has_scheme(&url, "smtp") || url_has_scheme(&url, "smtps"));
	bool theirs = curl_takes(text, &scheme, &path);
	if (ours && !theirs)
		fail_msg("libcurl does not take %s", text);
	if (ours) {
		size_t size = strcspn(url.path.data, "?");
		struct slice before =
			slice_make(url.path.data, size < url.path.size ? size : url.path.size);
		assert_true(url_has_scheme(&url, scheme));
		assert_true(slice_is(before, path) || (!before.size && strcmp(path, "/") == 0));
	}
	curl_free(scheme);
	curl_free(path);
	return ours && theirs;
}

TEST_CASE(test_taken)
{
	static const char *const taken[] = {
		"https://example.org",    "HTTPS://Example.ORG/a?b=c",  "http://example.org:8080/a/../b",
		"http://example.org:/",   "http://example.org?x=@y:z",  "http://127.0.0.1:1",
		"http://[::1]:65535/[x]", "https://[2001:db8::1]",      "https://xn--bcher-kva.example./",
		"https://a_b.example/~u", "smtp://mail.example.org:25", "smtps://mail.example.org/",
	};
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (!compare(taken[i]))
			fail_msg("%s is not taken", taken[i]);
}

TEST_CASE(test_refused)
{
	static const char *const refused[] = {
		"",
		"example.org",
		"https:/example.org",
		"https:///example.org",
		"https://",
		"https://?a",
		"https://:80/",
		"https://user@example.org",
		"https://user:word@example.org",
		"https://@example.org",
		"https://example.org:65536",
		"https://example.org:-1",
		"https://example.org:8o",
		"https://example.org:80:80",
		"https://example.org/#a",
		"https://exa mple.org",
		"https://example.org/\x7f",
		("https://b\xc3\xbc"
	     "cher.example"),
		"https://a%2eb/",
		"https://a\\b/",
		"https://[::1",
		"https://[]",
		"https://[::1]x",
		"https://[fe80::1%25eth0]/",
		"https://[1.2.3.4]",
		"1https://example.org",
	};
	struct url url;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (url_read(slice_of(refused[i]), &url))
			fail_msg("%s is taken", refused[i]);
}

/* Random combinations of the parts of URLs. */
TEST_CASE(test_as_libcurl)
{
	static const char *const parts[] = {
		"http", "https", "smtp", "s",           ":",     "//", "/",   "://", "[",
		"]",    "::1",   "a",    "example.org", ".",     "%",  "%41", "@",   "?",
		"#",    "80",    "0x7f", "1.2.3.4",     "65536", "-",  "_",   "\\",  ";",
		",",    "&",     "=",    "+",           "*",     "!",  "~",   "|",   "{",
		"}",    "'",     "\"",   "<",           ">",     "^",  "`",   "$",   "("};
	unsigned both = 0;
	srandom(1);
	for (int round = 0; round < 200000; round++) {
		char text[256] = "";
		if (random() % 4)
			strcat(text, random() % 2 ? "https://" : "http://");
		for (long left = random() % 6; left >= 0; left--)
			strcat(text, parts[(size_t)random() % (sizeof parts / sizeof *parts)]);
		both += compare(text);
	}
	assert_true(both > 10000);
}

TEST_MAIN(NULL, NULL)
