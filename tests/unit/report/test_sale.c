/* Receipts of purchases, as other programs read them, and as the renderer draws them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/purchase.h"
#include "report/renderer.h"
#include "report/report_wire.h"
#include "scratch.h"
#include "test_report_tools.h"

#define HOSTILE "</w><script>\x1b[31m\xe2\x80\xae(evil)\xff\n%PDF \\ ) ( {0}"

static char directory[SCRATCH_MAX];
static char path[128];

static int setup(void **state)
{
	scratch_make(directory);
	snprintf(path, sizeof path, "%s/receipt.pdf", directory);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(directory);
	return 0;
}

static struct sale_facts ordinary(void)
{
	return (struct sale_facts){
		.issued_at_us = INT64_C(1798012345000000),
		.service_name = "Constancia",
		.service_url = "https://constancia.example",
		.account_id = "acc_one",
		.account_name = "Logística del Norte, S.L.",
		.recorded = true,
		.country = "ES",
		.sale_id = "sal_one",
		.description = "Thousand (1000)",
		.credits = 1000,
		.net_minor = 123450,
		.tax_minor = 25925,
		.tax_rate = 2100,
		.currency = "EUR",
		.created_at_us = INT64_C(1795252502123456),
		.paid_at_us = INT64_C(1795252602000000),
		.ended_at_us = TIME_NONE,
	};
}

static int render(const struct sale_facts *facts, enum language language, struct error *error)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	int result = sale_render(facts, language, file, error);
	close(file);
	return result;
}

static void words_of(const struct sale_facts *facts, enum language language, struct buf *words)
{
	struct error error = {0};
	BUF_AUTO struct buf out = {0};
	if (render(facts, language, &error))
		fail_msg("%s", error.cause);
	if (tools_run(&out, "qpdf --check '%s'", path))
		fail_msg("%s", out.data);
	tools_words(path, words);
}

static void expect_without(const struct buf *words, const char *sentence)
{
	if (memmem(words->data, words->size, sentence, strlen(sentence)))
		fail_msg("found: %s", sentence);
}

static void says_all_of_it_in_both_languages(void **state)
{
	static const char *const sentences[2][18] = {
		{"Receipt", "sal_one", "Seller", "https://constancia.example", "acc_one",
	     "Logística del Norte, S.L.", "ES", "Thousand (1000)", "1,234.50 EUR", "21 %", "259.25 EUR",
	     "1,493.75 EUR", "Manually:", "It is not an invoice.", "Account name at order",
	     "Issued 23 December 2026"},
		{"Recibo", "sal_one", "Vendedor", "https://constancia.example", "acc_one",
	     "Logística del Norte, S.L.", "ES", "Thousand (1000)", "1234,50 EUR", "21 %", "259,25 EUR",
	     "1493,75 EUR", "Manualmente:", "No es una factura.", "Nombre al hacer el pedido",
	     "Emitido 23 de diciembre de 2026"},
	};
	struct sale_facts facts = ordinary();
	for (int language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		BUF_AUTO struct buf words = {0};
		words_of(&facts, language, &words);
		for (size_t i = 0; sentences[language][i]; i++)
			tools_expect(&words, sentences[language][i]);
		expect_without(&words, language ? "Reembolsado" : "Refunded");
		expect_without(&words, language ? "Contracargo" : "Charged back");
		expect_without(&words, language ? "único múltiplo" : "only multiple");
		expect_without(&words, language ? "Nombre actual" : "Current account name");
	}
}

static void names_any_recorded_rate(void **state)
{
	static const struct {
		int64_t rate;
		const char *shown;
	} rates[] = {{0, "Tax rate 0"}, {525, "5.25 %"}, {550, "5.5 %"}, {10000, "100 %"}};
	struct sale_facts facts = ordinary();
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		BUF_AUTO struct buf words = {0};
		facts.tax_rate = rates[i].rate;
		facts.tax_minor = amount_tax(facts.net_minor, rates[i].rate);
		words_of(&facts, LANGUAGE_ENGLISH, &words);
		tools_expect(&words, rates[i].shown);
	}
}

/* One from before the name and the rate were recorded. */
static void says_what_was_worked_out(void **state)
{
	static const char *const sentences[2][5] = {
		{"Current account name", "21 %", "only multiple", "were not recorded with this purchase"},
		{"Nombre actual", "21 %", "único múltiplo", "no se registraron con esta compra"},
	};
	struct sale_facts facts = ordinary();
	facts.recorded = false;
	for (int language = LANGUAGE_ENGLISH; language <= LANGUAGE_SPANISH; language++) {
		BUF_AUTO struct buf words = {0};
		words_of(&facts, language, &words);
		for (size_t i = 0; sentences[language][i]; i++)
			tools_expect(&words, sentences[language][i]);
		expect_without(&words, language ? "al hacer el pedido" : "name at order");
	}
}

static void says_what_became_of_it(void **state)
{
	struct sale_facts facts = ordinary();
	BUF_AUTO struct buf refunded = {0}, reverted = {0};
	facts.ended_at_us = facts.paid_at_us + 86400 * US_PER_SECOND;
	facts.state = SALE_REFUNDED;
	words_of(&facts, LANGUAGE_ENGLISH, &refunded);
	tools_expect(&refunded, "The price of this purchase was refunded");
	facts.state = SALE_REVERTED;
	words_of(&facts, LANGUAGE_SPANISH, &reverted);
	tools_expect(&reverted, "El banco del cliente anuló el pago de esta compra");
}

static void says_what_is_not_recorded(void **state)
{
	struct sale_facts facts = ordinary();
	BUF_AUTO struct buf words = {0};
	facts.country = NULL;
	facts.recorded = false;
	facts.tax_rate = -1;
	facts.provider = "stripe";
	facts.reference = "pi_17";
	facts.automatic = true;
	words_of(&facts, LANGUAGE_ENGLISH, &words);
	tools_expect(&words, "not recorded with this purchase");
	tools_expect(&words, "Through the payment provider stripe");
	tools_expect(&words, "pi_17");
	tools_expect(&words, "automatic top-up");
	expect_without(&words, "Tax rate");
	expect_without(&words, "only multiple");
}

static void hostile_texts_are_shown_and_do_nothing(void **state)
{
	struct sale_facts facts = ordinary();
	BUF_AUTO struct buf words = {0}, file = {0};
	facts.service_name = facts.account_name = facts.country = facts.description = HOSTILE;
	facts.customer = facts.provider = facts.reference = HOSTILE;
	words_of(&facts, LANGUAGE_ENGLISH, &words);
	tools_expect(&words, "‹U+001B›[31m‹U+202E›(evil)‹0xFF›");
	tools_expect(&words, "In third-party texts, characters that are invisible");
	tools_read(path, &file);
	assert_null(memmem(file.data, file.size, "<script>", 8)); /* in the metadata, too */
}

static void facts_that_are_not_whole_are_refused(void **state)
{
	struct error error = {0};
	struct sale_facts facts = ordinary();
	char long_text[SALE_TEXT_MAX + 2];
	memset(long_text, 'x', sizeof long_text);
	long_text[sizeof long_text - 1] = '\0';
	facts.description = long_text;
	assert_int_equal(render(&facts, LANGUAGE_ENGLISH, &error), ERR_VALIDATION);
	facts = ordinary();
	facts.account_name = NULL;
	assert_int_equal(render(&facts, LANGUAGE_ENGLISH, &error), ERR_VALIDATION);
	facts = ordinary();
	facts.net_minor = -1;
	assert_int_equal(render(&facts, LANGUAGE_ENGLISH, &error), ERR_VALIDATION);
	facts = ordinary();
	facts.tax_rate = 2000; /* not the one that gave this tax */
	assert_int_equal(render(&facts, LANGUAGE_ENGLISH, &error), ERR_VALIDATION);
}

static void the_renderer_draws_the_same(void **state)
{
	struct renderer renderer;
	struct sale_facts facts = ordinary();
	struct error error = {0};
	BUF_AUTO struct buf here = {0}, there = {0};
	assert_int_equal(render(&facts, LANGUAGE_SPANISH, &error), OK);
	tools_read(path, &here);
	assert_int_equal(renderer_open(getenv("CONSTANCIA_RENDERER"), &renderer, &error), OK);
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (renderer_draw_sale(&renderer, &facts, LANGUAGE_SPANISH, file, &error))
		fail_msg("%s", error.cause);
	facts.currency = NULL;
	assert_int_equal(renderer_draw_sale(&renderer, &facts, LANGUAGE_SPANISH, file, &error),
	                 ERR_VALIDATION);
	close(file);
	renderer_close(&renderer);
	tools_read(path, &there);
	assert_true(here.size > 0 && slice_equal(buf_slice(&here), buf_slice(&there)));
}

/* Whatever is cut off is noticed, and no address of this process is sent. */
static void facts_that_are_cut_short_are_refused(void **state)
{
	enum language language;
	struct sale_facts facts = ordinary(), elsewhere;
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf sent = {0}, again = {0};
	arena_init(&arena, REPORT_WIRE_MAX);
	buf_init(&sent, REPORT_WIRE_MAX);
	buf_init(&again, REPORT_WIRE_MAX);
	assert_int_equal(sale_wire_write(&facts, LANGUAGE_SPANISH, &sent), OK);
	for (size_t size = 0; size < sent.size; size++)
		assert_int_equal(
			sale_wire_read(slice_make(sent.data, size), &arena, &elsewhere, &language, NULL),
			ERR_VALIDATION);
	assert_int_equal(sale_wire_read(buf_slice(&sent), &arena, &elsewhere, &language, NULL), OK);
	assert_int_equal(sale_wire_write(&elsewhere, language, &again), OK);
	assert_true(slice_equal(buf_slice(&sent), buf_slice(&again)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_all_of_it_in_both_languages),
		cmocka_unit_test(names_any_recorded_rate),
		cmocka_unit_test(says_what_was_worked_out),
		cmocka_unit_test(says_what_became_of_it),
		cmocka_unit_test(says_what_is_not_recorded),
		cmocka_unit_test(hostile_texts_are_shown_and_do_nothing),
		cmocka_unit_test(facts_that_are_not_whole_are_refused),
		cmocka_unit_test(the_renderer_draws_the_same),
		cmocka_unit_test(facts_that_are_cut_short_are_refused),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
