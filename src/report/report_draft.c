#include "report/report_draft.h"

#include <string.h>

const char *draft_require_text(struct draft *draft, const char *text)
{
	draft->failed |= !text;
	return text ? text : "";
}

const char *draft_text(const struct draft *draft, enum report_text text)
{
	return report_text(text, draft->language);
}

const char *draft_show_slice(struct draft *draft, struct slice text, bool lines)
{
	const char *shown = draft_require_text(draft, report_show(&draft->arena, text, lines));
	draft->written_out |= strlen(shown) != text.size;
	return shown;
}

const char *draft_show(struct draft *draft, const char *text)
{
	return draft_show_slice(draft, slice_of(text), false);
}

void draft_explain_written_out(struct draft *draft)
{
	if (draft->written_out)
		sheet_paragraph(&draft->sheet, SHEET_SMALL, draft_text(draft, TEXT_VISIBLE_NOTE));
}

const char *draft_plain(struct draft *draft, int64_t number)
{
	return draft_require_text(draft, arena_printf(&draft->arena, "%lld", (long long)number));
}

const char *draft_number(struct draft *draft, int64_t value)
{
	return draft_require_text(draft, report_number(&draft->arena, value, draft->language));
}

const char *draft_moment(struct draft *draft, int64_t time_us)
{
	return draft_require_text(draft, report_moment(&draft->arena, time_us, draft->language));
}

void draft_fact(struct draft *draft, enum report_text label, enum sheet_style style,
                const char *value)
{
	sheet_fact(&draft->sheet, draft_text(draft, label), style, value, NULL);
}
