#include "report/sale.h"

#include <string.h>

#include "ledger/purchase.h"
#include "report/report_draft.h"

#define FINISHING_MAX ((size_t)64 << 10)

/* "1,234.50 EUR", "1234,50 EUR" */
static const char *money(struct draft *draft, int64_t minor)
{
	bool spanish = draft->language == LANGUAGE_SPANISH;
	return draft_keep(draft,
	                  arena_printf(&draft->arena, "%s%c%02lld %s", draft_number(draft, minor / 100),
	                               spanish ? ',' : '.', (long long)(minor % 100),
	                               draft_show(draft, draft->sale->currency)));
}

/* "21 %", "5.5 %" */
static const char *rate(struct draft *draft)
{
	long long whole = draft->sale->tax_rate / 100, part = draft->sale->tax_rate % 100;
	char point = draft->language == LANGUAGE_SPANISH ? ',' : '.';
	const char *text =
		part % 10 ? arena_printf(&draft->arena, "%lld%c%02lld %%", whole, point, part)
		: part    ? arena_printf(&draft->arena, "%lld%c%lld %%", whole, point, part / 10)
				  : arena_printf(&draft->arena, "%lld %%", whole);
	return draft_keep(draft, text);
}

static const char *recorded(struct draft *draft, const char *text)
{
	return text ? draft_show(draft, text) : draft_say(draft, TEXT_SALE_NOT_RECORDED);
}

/* Adds a notice if the purchase was refunded or charged back. */
static void add_refund_notice(struct draft *draft)
{
	const struct sale_facts *sale = draft->sale;
	if (sale->state == SALE_PAID)
		return;
	bool refunded = sale->state == SALE_REFUNDED;
	sheet_notice(&draft->sheet,
	             draft_say(draft, refunded ? TEXT_SALE_REFUNDED : TEXT_SALE_REVERTED),
	             DRAFT_FILL(draft, refunded ? TEXT_SALE_REFUNDED_TEXT : TEXT_SALE_REVERTED_TEXT,
	                        draft_moment(draft, sale->ended_at_us)));
	sheet_space(&draft->sheet, 14);
}

static void parties(struct draft *draft)
{
	const struct sale_facts *sale = draft->sale;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_say(draft, TEXT_SALE_SELLER));
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_SALE_NAME, SHEET_STRONG, draft_show(draft, sale->service_name));
	draft_fact(draft, TEXT_SALE_SITE, SHEET_BODY, draft_show(draft, sale->service_url));
	sheet_close(sheet, "L");
	sheet_heading(sheet, draft_say(draft, TEXT_SALE_CUSTOMER));
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_SALE_ACCOUNT, SHEET_STRONG, draft_show(draft, sale->account_id));
	draft_fact(draft, sale->recorded ? TEXT_SALE_NAME_THEN : TEXT_SALE_NAME_TODAY, SHEET_BODY,
	           draft_show(draft, sale->account_name));
	draft_fact(draft, TEXT_SALE_COUNTRY, SHEET_BODY, recorded(draft, sale->country));
	if (sale->customer)
		draft_fact(draft, TEXT_SALE_CUSTOMER_NAME, SHEET_BODY, draft_show(draft, sale->customer));
	sheet_close(sheet, "L");
}

static void amounts(struct draft *draft)
{
	static const enum sheet_style styles[] = {SHEET_TABLE, SHEET_TABLE, SHEET_TABLE};
	const struct sale_facts *sale = draft->sale;
	struct sheet *sheet = &draft->sheet;
	const struct sheet_column columns[] = {
		{draft_say(draft, TEXT_SALE_PACK), SHEET_WIDTH - 210, false},
		{draft_say(draft, TEXT_SALE_CREDITS), 90, true},
		{draft_say(draft, TEXT_SALE_NET), 120, true},
	};
	const char *texts[] = {draft_show(draft, sale->description), draft_number(draft, sale->credits),
	                       money(draft, sale->net_minor)};
	sheet_heading(sheet, draft_say(draft, TEXT_SALE_BOUGHT));
	sheet_table_begin(sheet, columns, 3);
	sheet_table_row(sheet, texts, styles);
	sheet_table_end(sheet);
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_SALE_NET, SHEET_BODY, money(draft, sale->net_minor));
	if (sale->tax_rate >= 0)
		draft_fact(draft, TEXT_SALE_TAX_RATE, SHEET_BODY, rate(draft));
	draft_fact(draft, TEXT_SALE_TAX, SHEET_BODY, money(draft, sale->tax_minor));
	draft_fact(draft, TEXT_SALE_TOTAL, SHEET_STRONG,
	           money(draft, sale->net_minor + sale->tax_minor));
	draft_fact(draft, TEXT_SALE_CURRENCY, SHEET_BODY, draft_show(draft, sale->currency));
	sheet_close(sheet, "L");
}

static void payment(struct draft *draft)
{
	const struct sale_facts *sale = draft->sale;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_say(draft, TEXT_SALE_PAYMENT));
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_SALE_ORDERED, SHEET_BODY, draft_moment(draft, sale->created_at_us));
	draft_fact(draft, TEXT_SALE_PAID_AT, SHEET_BODY, draft_moment(draft, sale->paid_at_us));
	draft_fact(draft, TEXT_SALE_HOW, SHEET_BODY,
	           sale->provider
	               ? DRAFT_FILL(draft, TEXT_SALE_BY_PROVIDER, draft_show(draft, sale->provider))
	               : draft_say(draft, TEXT_SALE_BY_HAND));
	if (sale->automatic)
		draft_fact(draft, TEXT_SALE_OCCASION, SHEET_BODY, draft_say(draft, TEXT_SALE_AUTOMATIC));
	if (sale->reference)
		draft_fact(draft, TEXT_SALE_REFERENCE, SHEET_BODY, draft_show(draft, sale->reference));
	if (sale->state != SALE_PAID)
		draft_fact(draft, sale->state == SALE_REFUNDED ? TEXT_SALE_REFUNDED : TEXT_SALE_REVERTED,
		           SHEET_STRONG, draft_moment(draft, sale->ended_at_us));
	sheet_close(sheet, "L");
}

static void notes(struct draft *draft)
{
	const struct sale_facts *sale = draft->sale;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_say(draft, TEXT_SALE_NOTES));
	sheet_open(sheet, "L");
	sheet_item(
		sheet, "•",
		draft_say(draft, sale->recorded ? TEXT_SALE_NOTE_RECORD : TEXT_SALE_NOTE_RECORD_OLD));
	sheet_item(sheet, "•",
	           draft_say(draft, sale->recorded ? TEXT_SALE_NOTE_SELLER : TEXT_SALE_NOTE_NAME));
	if (!sale->recorded && sale->tax_rate > 0)
		sheet_item(sheet, "•", draft_say(draft, TEXT_SALE_NOTE_RATE));
	sheet_item(sheet, "•", draft_say(draft, TEXT_SALE_NOTE_INVOICE));
	sheet_close(sheet, "L");
	draft_explain_written_out(draft);
}

static struct sheet_frame frame(struct draft *draft)
{
	const struct sale_facts *sale = draft->sale;
	return (struct sheet_frame){
		.header_left = draft_say(draft, TEXT_SALE_TITLE),
		.header_right = draft_show(draft, sale->sale_id),
		.footer_left = DRAFT_FILL(draft, TEXT_SALE_FOOTER, draft_show(draft, sale->service_name),
	                              draft_moment(draft, sale->paid_at_us)),
		.page_format = draft_say(draft, TEXT_PAGE),
	};
}

static int compose(struct draft *draft, struct error *error)
{
	struct sheet *sheet = &draft->sheet;
	(void)error;
	draft->written_out = false;
	sheet_paragraph(sheet, SHEET_TITLE, draft_say(draft, TEXT_SALE_TITLE));
	sheet_paragraph(sheet, SHEET_SUBTITLE, draft_say(draft, TEXT_SALE_SUBTITLE));
	sheet_space(sheet, 10);
	add_refund_notice(draft);
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_SALE_CODE, SHEET_STRONG, draft_show(draft, draft->sale->sale_id));
	draft_fact(draft, TEXT_SALE_ISSUED, SHEET_BODY, draft_moment(draft, draft->sale->issued_at_us));
	sheet_close(sheet, "L");
	parties(draft);
	amounts(draft);
	payment(draft);
	notes(draft);
	return OK;
}

static bool fits(const char *text, bool required)
{
	return text ? strlen(text) <= SALE_TEXT_MAX && (*text || !required) : !required;
}

static int check_facts(const struct sale_facts *sale, struct error *error)
{
	bool texts = fits(sale->service_name, true) && fits(sale->service_url, true) &&
	             fits(sale->account_id, true) && fits(sale->account_name, false) &&
	             sale->account_name && fits(sale->country, false) && fits(sale->customer, false) &&
	             fits(sale->sale_id, true) && fits(sale->description, true) &&
	             fits(sale->currency, true) && fits(sale->provider, false) &&
	             fits(sale->reference, false);
	bool numbers =
		sale->credits > 0 && sale->net_minor >= 0 && sale->tax_minor >= 0 &&
		(!sale->recorded || amount_is_taxed(sale->net_minor, sale->tax_rate, sale->tax_minor));
	return texts && numbers
	           ? OK
	           : error_cause(error, ERR_VALIDATION, "receipt data: a text or a number is invalid");
}

int sale_render(const struct sale_facts *facts, enum language language, int file,
                struct error *error)
{
	int result = check_facts(facts, error);
	if (result)
		return result;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, FINISHING_MAX);
	const char *title =
		arena_printf(&arena, "%s %s", report_text(TEXT_SALE_TITLE, language), facts->sale_id);
	if (!title)
		return error_cause(error, ERR_NO_MEMORY, "finishing the receipt");
	struct report_finishing finishing = {
		.language = language,
		.title = title,
		.author = facts->service_name,
		.made_at_us = facts->state == SALE_PAID ? facts->paid_at_us : facts->ended_at_us,
		.figure_text = "",
		.link_text = ""};
	struct draft draft = {.sale = facts, .language = language, .frame = frame, .compose = compose};
	return draft_draw(&draft, &finishing, file, error);
}
