#include "report/report.h"

#include <string.h>

#include "report/report_draft.h"

#define FINISHING_MAX ((size_t)1 << 20)
#define TEXT_MAX 4096 /* bytes of a text in the facts */
#define URL_MAX 1000

static bool text_fits(const char *text, size_t limit)
{
	return text && *text && strlen(text) <= limit;
}

static bool optional_fits(const char *text)
{
	return !text || strlen(text) <= TEXT_MAX;
}

static bool rows_fit(const struct report_facts *facts)
{
	for (size_t i = 0; i < facts->configuration_rows; i++) {
		const struct config_facts *texts = &facts->configurations[i].facts;
		if (!optional_fits(texts->name) || !optional_fits(texts->declarant) ||
		    !optional_fits(texts->description) || !optional_fits(texts->supplementary_info))
			return false;
	}
	for (size_t i = 0; i < facts->event_rows; i++)
		if (!facts->events[i].hash || facts->events[i].client_ref.size > CLIENT_REF_MAX)
			return false;
	for (size_t i = 0; i < facts->seal_rows; i++)
		if (!text_fits(facts->seals[i].segment_id, REPORT_NAME_MAX) ||
		    !text_fits(facts->seals[i].authority, TEXT_MAX))
			return false;
	for (size_t i = 0; i < facts->authority_rows; i++)
		if (!text_fits(facts->authorities[i].name, TEXT_MAX))
			return false;
	for (size_t i = 0; i < facts->log.witness_rows; i++)
		if (!text_fits(facts->log.witnesses[i].name, TEXT_MAX))
			return false;
	for (size_t i = 0; i < facts->part_rows; i++)
		if (!text_fits(facts->parts[i].name, REPORT_NAME_MAX))
			return false;
	return true;
}

static bool request_fits(const struct report_facts *facts)
{
	bool no_times = facts->from_us == TIME_NONE && facts->to_us == TIME_NONE;
	bool no_sequences = facts->seq_from == 0 && facts->seq_to == 0;
	return no_times ? facts->seq_from > 0 && facts->seq_to >= facts->seq_from
	                : no_sequences && facts->from_us != TIME_NONE && facts->to_us > facts->from_us;
}

static bool counts_fit(const struct report_facts *facts)
{
	int64_t expected_rows =
		facts->event_count <= REPORT_EVENT_ROWS_MAX ? facts->event_count : 2 * REPORT_EDGE_ROWS;
	return facts->first_sequence >= 1 && facts->last_sequence >= facts->first_sequence &&
	       facts->event_count == facts->last_sequence - facts->first_sequence + 1 &&
	       (int64_t)facts->event_rows == expected_rows && facts->configuration_rows >= 1 &&
	       facts->configuration_rows <= REPORT_CONFIGURATION_ROWS_MAX &&
	       facts->configuration_count >= (int64_t)facts->configuration_rows &&
	       facts->seal_rows <= REPORT_SEAL_ROWS_MAX &&
	       facts->seal_count >= (int64_t)facts->seal_rows &&
	       facts->authority_rows <= REPORT_AUTHORITY_ROWS_MAX &&
	       facts->log.witness_rows <= REPORT_WITNESS_ROWS_MAX &&
	       (facts->log.origin || facts->log.witness_rows == 0) &&
	       facts->part_rows <= REPORT_PART_ROWS_MAX &&
	       facts->part_count >= (int64_t)facts->part_rows && facts->archive_size_bytes >= 0 &&
	       request_fits(facts);
}

static int check_facts(const struct report_facts *facts, struct error *error)
{
	if (!text_fits(facts->service_name, REPORT_NAME_MAX) ||
	    !text_fits(facts->certification_id, REPORT_NAME_MAX) ||
	    !text_fits(facts->verification_code, REPORT_NAME_MAX) ||
	    !text_fits(facts->verification_url, URL_MAX) ||
	    !text_fits(facts->channel_id, REPORT_NAME_MAX) ||
	    !text_fits(facts->archive_name, REPORT_NAME_MAX))
		return error_cause(error, ERR_VALIDATION, "report data: a text is missing or too long");
	if (!optional_fits(facts->log.origin))
		return error_cause(error, ERR_VALIDATION, "report data: the log's name is too long");
	if (!counts_fit(facts))
		return error_cause(error, ERR_VALIDATION, "report data: the numbers are inconsistent");
	if (!rows_fit(facts))
		return error_cause(error, ERR_VALIDATION, "report data: a row is incomplete");
	return OK;
}

int report_render(const struct report_facts *facts, enum language language, int file,
                  struct error *error)
{
	int result = check_facts(facts, error);
	if (result)
		return result;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, FINISHING_MAX);
	const char *title =
		arena_printf(&arena, "%s %s", report_text(TEXT_TITLE, language), facts->certification_id);
	const char *figure =
		report_fill(&arena, TEXT_QR_DESCRIPTION, language, facts->verification_url, NULL);
	if (!title || !figure)
		return error_cause(error, ERR_NO_MEMORY, "finishing the report");
	struct report_finishing finishing = {.facts = facts,
	                                     .language = language,
	                                     .title = title,
	                                     .author = facts->service_name,
	                                     .made_at_us = facts->issued_at_us,
	                                     .figure_text = figure,
	                                     .link_text = report_text(TEXT_ADDRESS, language)};
	struct draft draft = {.facts = facts, .language = language};
	return draft_draw(&draft, &finishing, file, error);
}
