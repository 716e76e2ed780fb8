/* Foreign text is made visible and harmless, and the service's own text is complete in both
 * languages. */
#include "testing.h"
#include "base/utf8.h"
#include "report/report_artifact.h"
#include "report/report_text.h"

static void expect_shown(struct slice text, bool lines, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 4096};
	report_visible(text, lines, &out);
	assert_int_equal(buf_check(&out), 0);
	assert_string_equal(out.data ? out.data : "", expected);
}

TEST_CASE(shows_ordinary_text_unchanged)
{
	static const char *const texts[] = {
		"",
		"Cámaras frigoríficas, almacén central «t» ‹x› – 12 €",
		"שלום עולם",
		"می\u200Cخواهم",
		"漢字\u3000한국어",
		"नमस्ते ก็ é̂",
		"👩\u200D👧",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect_shown(slice_of(texts[i]), false, texts[i]);
}

TEST_CASE(writes_out_what_cannot_be_seen)
{
	expect_shown(slice_of("a\u202Eb\u2066c\u2069d"), false, "a‹U+202E›b‹U+2066›c‹U+2069›d");
	expect_shown(slice_of("a\tb\x1b[0m\x7f"), false, "a‹U+0009›b‹U+001B›[0m‹U+007F›");
	expect_shown(slice_make("a\0b", 3), false, "a‹U+0000›b");
	expect_shown(slice_of("\u200B\u200E\uFEFF\u00AD\u3164\u2028"), true,
	             "‹U+200B›‹U+200E›‹U+FEFF›‹U+00AD›‹U+3164›‹U+2028›");
	expect_shown(slice_of("\U000E0041\uE000\U0010FFFF"), false, "‹U+E0041›‹U+E000›‹U+10FFFF›");
	expect_shown(slice_make("\xff"
	                        "a\xc0\x80\xed\xa0\x80",
	                        7),
	             false, "‹0xFF›a‹0xC0›‹0x80›‹0xED›‹0xA0›‹0x80›");
}

TEST_CASE(keeps_line_feeds_only_in_blocks)
{
	expect_shown(slice_of("a\nb\r\nc"), true, "a\nb‹U+000D›\nc");
	expect_shown(slice_of("a\nb"), false, "a‹U+000A›b");
}

TEST_CASE(limits_piles_of_marks)
{
	expect_shown(slice_of("a\u0301\u0302\u0303\u0304\u0305\u0306e\u0301"), false,
	             "a\u0301\u0302\u0303\u0304‹U+0305›‹U+0306›e\u0301");
}

static size_t places(const char *text)
{
	size_t found = 0;
	for (const char *c = text; (c = strchr(c, '{')); c++)
		found |= (size_t)1 << (c[1] - '0');
	return found;
}

TEST_CASE(says_the_same_in_both_languages)
{
	for (int i = 0; i < TEXT_COUNT; i++) {
		const char *english = report_text((enum report_text)i, LANGUAGE_ENGLISH);
		const char *spanish = report_text((enum report_text)i, LANGUAGE_SPANISH);
		assert_true(*english && *spanish);
		assert_true(utf8_valid(slice_of(english)) && utf8_valid(slice_of(spanish)));
		assert_int_equal(places(english), places(spanish));
	}
}

TEST_CASE(fills_places)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	assert_string_equal(report_fill(&arena, TEXT_PAGE, LANGUAGE_SPANISH, "3", "12", NULL),
	                    "Página 3 de 12");
	assert_string_equal(report_fill(&arena, TEXT_PAGE, LANGUAGE_ENGLISH, "{1}", "%s", NULL),
	                    "Page {1} of %s");
}

TEST_CASE(formats_numbers_and_moments)
{
	ARENA_AUTO struct arena arena = {.limit = 65536};
	assert_string_equal(report_number(&arena, 0, LANGUAGE_ENGLISH), "0");
	assert_string_equal(report_number(&arena, 1234, LANGUAGE_ENGLISH), "1,234");
	assert_string_equal(report_number(&arena, 1234, LANGUAGE_SPANISH), "1234");
	assert_string_equal(report_number(&arena, 12345678, LANGUAGE_SPANISH), "12.345.678");
	assert_string_equal(report_number(&arena, INT64_MAX, LANGUAGE_ENGLISH),
	                    "9,223,372,036,854,775,807");
	int64_t time_us = INT64_C(1795252502123456);
	assert_string_equal(report_moment(&arena, time_us, LANGUAGE_ENGLISH),
	                    "21 November 2026, 09:15:02.123456 UTC");
	assert_string_equal(report_moment(&arena, time_us, LANGUAGE_SPANISH),
	                    "21 de noviembre de 2026, 09:15:02.123456 UTC");
}

static void expect_marked(const char *content, const char *expected)
{
	BUF_AUTO struct buf out = {.limit = 4096};
	assert_int_equal(report_mark_artifacts(slice_of(content), &out, NULL), 0);
	assert_string_equal(out.data, expected);
}

TEST_CASE(marks_artifacts_round_tagged_content)
{
	expect_marked("q 1 0 0 rg\n/P <</MCID 0>> BDC\n(a) Tj\nEMC\nf\n",
	              "/Artifact BMC\nq 1 0 0 rg\nEMC\n/P <</MCID 0>> BDC\n(a) Tj\nEMC\n"
	              "/Artifact BMC\nf\n\nEMC\n");
	/* Nested marks are kept, and words in strings are not operators. */
	expect_marked("/P BMC (EMC \\) BDC (x) ) Tj <EE> Tj /Span BMC EMC EMC",
	              "/Artifact BMC\n\nEMC/P BMC (EMC \\) BDC (x) ) Tj <EE> Tj /Span BMC EMC EMC\n"
	              "/Artifact BMC\nEMC\n");
	BUF_AUTO struct buf out = {.limit = 4096};
	assert_int_equal(report_mark_artifacts(slice_of("/P BMC"), &out, NULL), ERR_INTERNAL);
	assert_int_equal(report_mark_artifacts(slice_of("EMC /P BMC"), &out, NULL), ERR_INTERNAL);
}

TEST_MAIN(NULL, NULL)
