/* Rendered reports, as other programs read them: qpdf --check, pdftotext, pdfinfo, pdffonts. */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "testing.h"
#include "report/report.h"
#include "scratch.h"
#include "stride.h"
#include "test_report_facts.h"
#include "test_report_tools.h"

static char directory[SCRATCH_MAX];
static char path[128];
static struct sample sample;

static int setup(void **state)
{
	scratch_make(directory);
	snprintf(path, sizeof(path), "%s/report.pdf", directory);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(directory);
	return 0;
}

static void render(enum language language)
{
	struct error error = {0};
	if (tools_render(&sample.facts, language, path, &error))
		fail_msg("%s", error.cause);
	BUF_AUTO struct buf out = {0};
	if (tools_run(&out, "qpdf --check '%s'", path))
		fail_msg("%s", out.data);
}

TEST_CASE(says_what_it_must_in_english)
{
	static const char *const sentences[] = {
		"Certification report",
		"CERT-2026-0000417",
		"SVC-2026-7K3M-Q9XD",
		"21 November 2026, 09:15:02.123456 UTC",
		"It does not attest that the declared facts are true.",
		"The declaration was received on the channel named here",
		"It was received at the time shown as the time of reception",
		"It has not been altered since",
		"DECLARED BY THE CHANNEL'S OWNER · NOT VERIFIED",
		"Logística del Norte, S.L. (CIF B00000000)",
		"Numbers 4120 to 4162, without gaps (43 in all)",
		("Reception from 20 November 2026, 09:15:02.123456 UTC (included) to 21 November 2026, "
	     "09:15:02.123456 UTC (excluded)"),
		"lectura/2026-11/088310",
		"2026-11-20 09:15:02.123456Z",
		"All events of the range.",
		"seg_0Kx7Yp2Qm4Zr8T00",
		"Qualified: engaged as a provider of qualified electronic timestamps",
		"Not qualified: its timestamps are admissible as evidence",
		"content-part-004.zip",
		"999,999,870 bytes",
		"CERT-2026-0000417-evidence.zip",
		"18,734,112 bytes",
		"constancia verify CERT-2026-0000417-evidence.zip report.pdf",
		"https://constancia.example/verify/SVC-2026-7K3M-Q9XD",
		"Both are equally authentic.",
		"Page 1 of 6",
		"Page 6 of 6",
	};
	sample_ordinary(&sample, 43);
	render(LANGUAGE_ENGLISH);
	BUF_AUTO struct buf words = {0};
	tools_words(path, &words);
	for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++)
		tools_expect(&words, sentences[i]);
	char digest[2 * SHA256_SIZE + 1];
	const struct sha256 *digests[] = {
		&sample.facts.archive_digest,   &sample.facts.chain_hash_before,
		&sample.facts.first_chain_hash, &sample.facts.last_chain_hash,
		&sample.parts[3].digest,        &sample.configurations[1].digest};
	for (size_t i = 0; i < sizeof(digests) / sizeof(*digests); i++) {
		hex_encode(digests[i]->bytes, SHA256_SIZE, digest);
		tools_expect(&words, digest);
	}
	assert_null(strstr(words.data, "PROBATIVE"));
	assert_null(strstr(words.data, "probative"));
}

TEST_CASE(says_what_it_must_in_spanish)
{
	static const char *const sentences[] = {
		"Informe de certificación",
		"SVC-2026-7K3M-Q9XD",
		"No acredita que los hechos declarados sean ciertos.",
		"DECLARADO POR EL TITULAR DEL CANAL · NO VERIFICADO",
		"Números 4120 a 4122, sin huecos (3 en total)",
		"Ambos son igualmente auténticos.",
		"Cualificada: contratada como prestadora",
		"no se declara",
	};
	sample_ordinary(&sample, 3);
	sample.events[1].occurred_at_us = TIME_NONE;
	render(LANGUAGE_SPANISH);
	BUF_AUTO struct buf words = {0};
	tools_words(path, &words);
	for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++)
		tools_expect(&words, sentences[i]);
}

static size_t count_in(const char *text, const char *wanted)
{
	size_t count = 0;
	for (; (text = strstr(text, wanted)); text += strlen(wanted))
		count++;
	return count;
}

/* The box of every word lies within the margins of the page, whatever the texts are. */
static void expect_words_within_margins(void)
{
	BUF_AUTO struct buf out = {0};
	assert_int_equal(tools_run(&out, "pdftotext -bbox '%s' -", path), 0);
	size_t words = 0;
	for (const char *word = out.data; (word = strstr(word, "<word ")); word++) {
		double x_min;
		double y_min;
		double x_max;
		double y_max;
		assert_int_equal(sscanf(word, "<word xMin=\"%lf\" yMin=\"%lf\" xMax=\"%lf\" yMax=\"%lf\"",
		                        &x_min, &y_min, &x_max, &y_max),
		                 4);
		if (y_max - y_min > 30) /* of the mark across the page */
			continue;
		if (x_min < 55 || x_max > 541 || y_min < 0 || y_max > 812)
			fail_msg("out of the margins: %.120s", word);
		words++;
	}
	assert_true(words > 1000);
}

TEST_CASE(holds_hostile_texts)
{
	for (int language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		sample_hostile(&sample, 40);
		render((enum language)language);
		expect_words_within_margins();
		BUF_AUTO struct buf words = {0};
		tools_words(path, &words);
		/* On every page; the last form feed ends the last page. */
		size_t pages = count_in(words.data, "\f");
		const char *banner = language == LANGUAGE_ENGLISH ? "TEST · NO PROBATIVE VALUE"
		                                                  : "PRUEBA · SIN VALOR PROBATORIO";
		assert_true(pages > 10);
		assert_true(count_in(words.data, banner) >= pages);
		tools_expect(&words, language == LANGUAGE_ENGLISH ? "it has no probative value"
		                                                  : "no tiene valor probatorio");
		tools_expect(&words, "SVC-TEST-2026-7K3M-Q9XD");
		tools_expect(&words, "‹U+202E›");
		tools_expect(&words, "‹0xFF›");
		static const char *const acting[] = {"\u202E", "\u202D", "\u2066", "\u2067",
		                                     "\uFEFF", "\u200F", "\x1b"};
		for (size_t i = 0; i < sizeof(acting) / sizeof(*acting); i++)
			assert_null(strstr(words.data, acting[i]));
	}
}

TEST_CASE(is_tagged_embedded_and_titled)
{
	sample_hostile(&sample, 20);
	render(LANGUAGE_SPANISH);
	BUF_AUTO struct buf out = {0};
	assert_int_equal(tools_run(&out, "pdfinfo '%s'", path), 0);
	assert_non_null(strstr(out.data, "Tagged:          yes"));
	assert_non_null(strstr(out.data, "Informe de certificación CERT-TEST-2026-0000009"));
	assert_int_equal(tools_run(&out, "pdffonts '%s' | tail -n +3", path), 0);
	assert_true(count_in(out.data, "yes yes yes") > 10);
	assert_int_equal(count_in(out.data, "yes yes yes"), count_in(out.data, "\n"));
	assert_int_equal(tools_run(&out, "qpdf --json --json-key=qpdf '%s'", path), 0);
	static const char *const keys[] = {"\"/Lang\": \"u:es-ES\"",
	                                   "\"/DisplayDocTitle\": true",
	                                   "\"/OutputIntents\"",
	                                   "\"/Tabs\": \"/S\"",
	                                   "\"/Alt\": ",
	                                   "\"/Scope\": \"/Column\"",
	                                   "\"/Marked\": true",
	                                   "\"/ID\": "};
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strstr(out.data, keys[i]))
			fail_msg("not found: %s", keys[i]);
}

TEST_CASE(lists_the_edges_of_a_large_range)
{
	sample_ordinary(&sample, 12345);
	render(LANGUAGE_ENGLISH);
	BUF_AUTO struct buf words = {0};
	tools_words(path, &words);
	tools_expect(&words, "The first 50 and the last 50 of 12,345 events; "
	                     "the complete list is in the evidence archive.");
	tools_expect(&words, "Numbers 4170 to 16414: 12,245 events in the evidence archive");
	tools_expect(&words, " 4169 2026-");
	tools_expect(&words, " 16415 2026-");
	assert_null(strstr(words.data, " 4170 2026-"));
}

/* Returns the lowest number of lines of a page, without its header and footer. */
static int fewest_lines(const struct buf *text)
{
	int fewest = INT_MAX, lines = 0;
	for (const char *at = text->data; *at; at++) {
		if (*at == '\f') {
			fewest = lines < fewest ? lines : fewest;
			lines = 0;
		}
		lines += *at == '\n' && at > text->data && at[-1] != '\n';
	}
	return fewest - 3;
}

/* However long the table is, the last page has a complete section. */
TEST_CASE(no_page_is_nearly_empty)
{
	for (int64_t events = 1; events <= 40; STRIDE(events))
		for (int language = 0; language < 2; language++) {
			BUF_AUTO struct buf text = {0};
			sample_ordinary(&sample, events);
			sample.facts.seal_rows = (size_t)events % 6 + 1;
			sample.facts.seal_count = (int64_t)sample.facts.seal_rows;
			render(language ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH);
			buf_clear(&text);
			assert_int_equal(tools_run(&text, "pdftotext -layout '%s' -", path), 0);
			if (fewest_lines(&text) < 10)
				fail_msg("%d lines on a page, with %d events", fewest_lines(&text), (int)events);
		}
}

/* The same when the next box is nearly as high as a page. */
TEST_CASE(a_high_box_leaves_no_page_empty)
{
	static char high[1990];
	memset(high, 'a', sizeof high - 1);
	for (size_t i = 3; i < sizeof high - 1; i += 4)
		high[i] = '\n';
	for (size_t nth = 0; nth < 19; STRIDE(nth)) {
		size_t size = 100 + 101 * nth;
		BUF_AUTO struct buf text = {0};
		sample_ordinary(&sample, 3);
		high[size] = 0;
		sample.configurations[0].facts.description = high;
		render(LANGUAGE_ENGLISH);
		high[size] = 'a';
		assert_int_equal(tools_run(&text, "pdftotext -layout '%s' -", path), 0);
		if (fewest_lines(&text) < 10)
			fail_msg("%d lines on a page, with a box of %zu characters", fewest_lines(&text), size);
	}
}

TEST_CASE(says_what_its_signature_reaches)
{
	BUF_AUTO struct buf words = {0}, spanish = {0}, without = {0};
	sample_ordinary(&sample, 3);
	sample.facts.level = LEVEL_LTA;
	sample.facts.checkable_until_us = INT64_C(1795252502000000);
	render(LANGUAGE_ENGLISH);
	tools_words(path, &words);
	tools_expect(&words,
	             "PAdES, level B-LTA. It can be checked without this service until at least "
	             "21 November 2026, 09:15:02");
	render(LANGUAGE_SPANISH);
	tools_words(path, &spanish);
	tools_expect(&spanish,
	             "PAdES, nivel B-LTA. Puede comprobarse sin este servicio al menos hasta");
	sample.facts.checkable_until_us = 0;
	render(LANGUAGE_ENGLISH);
	tools_words(path, &without);
	assert_null(strstr(without.data, "level B-"));
}

TEST_CASE(states_development_on_the_first_page)
{
	sample_ordinary(&sample, 5);
	sample.authorities[1].kind = AUTHORITY_DEVELOPMENT;
	render(LANGUAGE_ENGLISH);
	BUF_AUTO struct buf words = {0};
	tools_words(path, &words);
	const char *page_end = strchr(words.data, '\f');
	const char *notice = strstr(words.data, "Development timestamps: without probative value");
	assert_true(notice && page_end && notice < page_end);
	tools_expect(&words, "Development: operated by the service itself for development.");
}

TEST_CASE(shows_nothing_held_for_digests_alone)
{
	sample_ordinary(&sample, 5);
	sample.facts.modality = MODALITY_HASH_ONLY;
	sample.facts.part_rows = 0;
	sample.facts.part_count = 0;
	render(LANGUAGE_ENGLISH);
	BUF_AUTO struct buf words = {0};
	tools_words(path, &words);
	tools_expect(&words, "the service holds no declared content");
	tools_expect(&words, "the service has not seen it");
}

TEST_CASE(renders_the_same_bytes_again)
{
	BUF_AUTO struct buf first = {0};
	BUF_AUTO struct buf second = {0};
	sample_hostile(&sample, 7);
	render(LANGUAGE_ENGLISH);
	tools_read(path, &first);
	render(LANGUAGE_ENGLISH);
	tools_read(path, &second);
	assert_true(slice_equal(buf_slice(&first), buf_slice(&second)));
}

static void expect_refused(void)
{
	unlink(path);
	struct error error = {0};
	assert_int_equal(tools_render(&sample.facts, LANGUAGE_ENGLISH, path, &error), ERR_VALIDATION);
	BUF_AUTO struct buf left = {.limit = 16};
	tools_read(path, &left);
	assert_int_equal(left.size, 0);
}

TEST_CASE(refuses_facts_that_do_not_agree)
{
	static char long_name[REPORT_NAME_MAX + 2];
	memset(long_name, 'x', sizeof(long_name) - 1);
	sample_ordinary(&sample, 9);
	sample.facts.event_count++;
	expect_refused();
	sample_ordinary(&sample, 9);
	sample.facts.event_rows--;
	expect_refused();
	sample_ordinary(&sample, 9);
	sample.facts.verification_code = NULL;
	expect_refused();
	sample_ordinary(&sample, 9);
	sample.facts.certification_id = long_name;
	expect_refused();
	sample_ordinary(&sample, 9);
	sample.facts.seq_from = 4120;
	expect_refused();
	sample_ordinary(&sample, 9);
	sample.facts.configuration_rows = 0;
	expect_refused();
	sample_ordinary(&sample, 9);
	sample.events[3].hash = NULL;
	expect_refused();
}

/* No text is cut and no row omitted: each fact that does not fit is refused. */
TEST_CASE(refuses_each_fact_that_does_not_fit)
{
	static char long_text[1 << 16];
	memset(long_text, 'x', sizeof long_text - 1);
	struct report_facts *facts = &sample.facts;
#define REFUSED(change)                                                                            \
	do {                                                                                           \
		sample_ordinary(&sample, 9);                                                               \
		change;                                                                                    \
		expect_refused();                                                                          \
	} while (0)
	REFUSED(facts->service_name = "");
	REFUSED(facts->verification_url = long_text);
	REFUSED(facts->channel_id = NULL);
	REFUSED(facts->archive_name = long_text);
	REFUSED(facts->first_sequence = 0);
	REFUSED(facts->last_sequence = facts->first_sequence - 1);
	REFUSED(facts->configuration_rows = REPORT_CONFIGURATION_ROWS_MAX + 1);
	REFUSED(facts->configuration_count = 0);
	REFUSED(facts->seal_rows = REPORT_SEAL_ROWS_MAX + 1);
	REFUSED(facts->seal_count = 1);
	REFUSED(facts->authority_rows = REPORT_AUTHORITY_ROWS_MAX + 1);
	REFUSED(facts->log.origin = NULL);
	REFUSED(facts->log.witness_rows = REPORT_WITNESS_ROWS_MAX + 1);
	REFUSED(facts->part_rows = REPORT_PART_ROWS_MAX + 1);
	REFUSED(facts->part_count = -1);
	REFUSED(facts->archive_size_bytes = -1);
	REFUSED(facts->from_us = facts->to_us = TIME_NONE; facts->seq_from = facts->seq_to = 0);
	REFUSED(facts->from_us = facts->to_us = TIME_NONE; facts->seq_from = 5; facts->seq_to = 4);
	REFUSED(facts->from_us = 2; facts->to_us = 1; facts->seq_from = facts->seq_to = 0);
	REFUSED(facts->from_us = 1; facts->to_us = 2; facts->seq_from = 1; facts->seq_to = 2);
	REFUSED(sample.events[2].client_ref.size = sizeof long_text);
	REFUSED(sample.seals[1].segment_id = long_text);
	REFUSED(sample.seals[1].authority = NULL);
	REFUSED(sample.authorities[1].name = "");
#undef REFUSED
}

TEST_CASE(says_when_it_cannot_write)
{
	sample_ordinary(&sample, 1);
	struct error error = {0};
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(report_render(&sample.facts, LANGUAGE_ENGLISH, file, &error), ERR_IO);
	close(file);
	file = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(report_render(&sample.facts, LANGUAGE_ENGLISH, file, &error), ERR_NO_SPACE);
	close(file);
}

TEST_MAIN(setup, teardown)
