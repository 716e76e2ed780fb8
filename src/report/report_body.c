#include "report/report_body.h"

#include <string.h>

#define QR_SIZE 104.0
#define SUMMARY_WIDTH (SHEET_WIDTH - QR_SIZE - 40)
#define FRAME_INDENT 14.0

/* Returns day and time on two lines, for a table column. */
static const char *two_line_moment(struct draft *draft, int64_t time_us)
{
	char text[TIME_TEXT_SIZE];
	time_format(time_us, text);
	return draft_require_text(draft, arena_printf(&draft->arena, "%.10s\n%s", text, text + 11));
}

/* Returns hexadecimal digits in lines, so that readers can compare two digests. */
static const char *digest_lines(struct draft *draft, const uint8_t *bytes, size_t size,
                                size_t bytes_per_line)
{
	BUF_AUTO struct buf out;
	buf_init(&out, 512);
	for (size_t i = 0; i < size; i += bytes_per_line) {
		if (i > 0)
			buf_add_byte(&out, '\n');
		buf_add_hex(&out, bytes + i, size - i < bytes_per_line ? size - i : bytes_per_line);
	}
	return draft_require_text(
		draft, buf_check(&out) ? NULL : arena_copy(&draft->arena, out.data, out.size));
}

static const char *digest(struct draft *draft, const struct sha256 *value)
{
	return digest_lines(draft, value->bytes, SHA256_SIZE, SHA256_SIZE);
}

static bool has_development_seal(const struct report_facts *facts)
{
	for (size_t i = 0; i < facts->authority_rows; i++)
		if (facts->authorities[i].kind == AUTHORITY_DEVELOPMENT)
			return true;
	for (size_t i = 0; i < facts->seal_rows; i++)
		if (facts->seals[i].kind == AUTHORITY_DEVELOPMENT)
			return true;
	return false;
}

/* Returns an address that needs no escapes in a link, or NULL. */
static const char *link_of(const char *url)
{
	for (const char *c = url; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("'\\\"<>", *c))
			return NULL;
	return strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0 ? url : NULL;
}

static void summary_fact(struct draft *draft, enum report_text label, enum sheet_style style,
                         const char *value)
{
	sheet_add(&draft->sheet, &(struct sheet_row){
								 .count = 2,
								 .tag = "LI",
								 .space_above = 4,
								 .space_below = 4.5,
								 .rule = SHEET_RULE,
								 .width = SUMMARY_WIDTH,
								 .cells = {{.text = draft_text(draft, label),
	                                        .style = SHEET_SMALL,
	                                        .tag = "Lbl",
	                                        .width = 88},
	                                       {.text = value,
	                                        .style = style,
	                                        .tag = "LBody",
	                                        .x = 94,
	                                        .width = SUMMARY_WIDTH - 94}},
							 });
}

static const char *frozen_range(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	return DRAFT_FILL(draft, TEXT_RANGE_FROZEN_VALUE, draft_plain(draft, facts->first_sequence),
	                  draft_plain(draft, facts->last_sequence),
	                  draft_number(draft, facts->event_count));
}

static int summary(struct draft *draft, struct error *error)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	sheet_require_space(sheet, QR_SIZE + 50);
	double top = sheet->y;
	int page = sheet->page;
	double x = SHEET_WIDTH - QR_SIZE;
	int result = sheet_qr(sheet, facts->verification_url, SHEET_LEFT + x, top + 2, QR_SIZE, error);
	if (result)
		return result;
	struct sheet_row row = {.count = 1,
	                        .cells[0] = {.text = draft_text(draft, TEXT_CODE),
	                                     .style = SHEET_SMALL,
	                                     .tag = "P",
	                                     .x = x - 26,
	                                     .width = QR_SIZE + 26,
	                                     .right_aligned = true}};
	sheet->y = top + QR_SIZE + 10;
	sheet_add(sheet, &row);
	sheet_space(sheet, 2);
	row.cells[0].text = draft_show(draft, facts->verification_code);
	row.cells[0].style = SHEET_CODE;
	row.cells[0].x = x - 80;
	row.cells[0].width = QR_SIZE + 80;
	sheet_add(sheet, &row);
	double bottom = sheet->y;

	sheet->y = top;
	sheet_open(sheet, "L");
	summary_fact(draft, TEXT_CERTIFICATION, SHEET_STRONG,
	             draft_show(draft, facts->certification_id));
	summary_fact(draft, TEXT_ISSUED_BY, SHEET_BODY, draft_show(draft, facts->service_name));
	summary_fact(draft, TEXT_ISSUED_AT, SHEET_BODY, draft_moment(draft, facts->issued_at_us));
	summary_fact(draft, TEXT_CHANNEL, SHEET_BODY, draft_show(draft, facts->channel_id));
	summary_fact(draft, TEXT_EVENTS, SHEET_BODY, frozen_range(draft));
	sheet_close(sheet, "L");
	if (sheet->page == page && sheet->y < bottom)
		sheet->y = bottom;
	return OK;
}

static void attestation(struct draft *draft)
{
	struct sheet *sheet = &draft->sheet;
	bool live = draft->facts->mode == MODE_LIVE;
	sheet_heading(sheet, draft_text(draft, TEXT_ATTESTED));
	sheet_paragraph(
		sheet, SHEET_BODY,
		DRAFT_FILL(draft, TEXT_ATTESTED_INTRO, draft_show(draft, draft->facts->service_name)));
	sheet_open(sheet, "L");
	sheet_item(sheet, "1", draft_text(draft, TEXT_ATTESTED_RECEIVED));
	sheet_item(sheet, "2", draft_text(draft, TEXT_ATTESTED_TIME));
	sheet_item(sheet, "3",
	           draft_text(draft, live ? TEXT_ATTESTED_UNALTERED : TEXT_ATTESTED_UNALTERED_TEST));
	sheet_close(sheet, "L");
	sheet_heading(sheet, draft_text(draft, TEXT_NOT_ATTESTED));
	sheet_paragraph(sheet, SHEET_BODY, draft_text(draft, TEXT_NOT_ATTESTED_TRUTH));
	sheet_paragraph(sheet, SHEET_BODY, draft_text(draft, TEXT_NOT_ATTESTED_WHO));
}

static void range(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	const char *first = draft_plain(draft, facts->first_sequence);
	const char *last = draft_plain(draft, facts->last_sequence);
	sheet_require_space(sheet, 225); /* keeps the section on one page */
	sheet_heading(sheet, draft_text(draft, TEXT_RANGE));
	sheet_open(sheet, "L");
	const char *requested =
		facts->from_us != TIME_NONE
			? DRAFT_FILL(draft, TEXT_RANGE_BY_TIME, draft_moment(draft, facts->from_us),
	                     draft_moment(draft, facts->to_us))
			: DRAFT_FILL(draft, TEXT_RANGE_BY_SEQUENCE, draft_plain(draft, facts->seq_from),
	                     draft_plain(draft, facts->seq_to));
	draft_fact(draft, TEXT_REQUESTED_AT, SHEET_BODY, draft_moment(draft, facts->requested_at_us));
	draft_fact(draft, TEXT_RANGE_REQUESTED, SHEET_BODY, requested);
	draft_fact(draft, TEXT_RANGE_FROZEN, SHEET_BODY, frozen_range(draft));
	draft_fact(draft, TEXT_FIRST_EVENT, SHEET_BODY,
	           DRAFT_FILL(draft, TEXT_EVENT_VALUE, first,
	                      draft_moment(draft, facts->first_received_at_us)));
	draft_fact(
		draft, TEXT_LAST_EVENT, SHEET_BODY,
		DRAFT_FILL(draft, TEXT_EVENT_VALUE, last, draft_moment(draft, facts->last_received_at_us)));
	draft_fact(draft, TEXT_CHAIN_BEFORE, SHEET_MONO, digest(draft, &facts->chain_hash_before));
	draft_fact(draft, TEXT_CHAIN_FIRST, SHEET_MONO, digest(draft, &facts->first_chain_hash));
	draft_fact(draft, TEXT_CHAIN_LAST, SHEET_MONO, digest(draft, &facts->last_chain_hash));
	sheet_close(sheet, "L");
	sheet_space(sheet, 6);
	sheet_paragraph(sheet, SHEET_SMALL, draft_text(draft, TEXT_CHAIN_NOTE));
}

/* Adds a line of the frame around the owner's declarations. */
static void frame_row(struct draft *draft, const char *label, const char *text,
                      enum sheet_style style)
{
	struct sheet_row row = {.count = 2,
	                        .tag = "LI",
	                        .space_above = 1,
	                        .space_below = 6,
	                        .background = SHEET_TINT,
	                        .bar = SHEET_GREY};
	row.cells[0] = (struct sheet_cell){
		.text = label, .style = SHEET_SMALL, .tag = "Lbl", .x = FRAME_INDENT, .width = 96};
	row.cells[1] = (struct sheet_cell){.text = text,
	                                   .style = style,
	                                   .tag = "LBody",
	                                   .x = FRAME_INDENT + 104,
	                                   .width = SHEET_WIDTH - 2 * FRAME_INDENT - 104};
	sheet_add(&draft->sheet, &row);
}

static void declared_text(struct draft *draft, enum report_text label, const char *text,
                          enum sheet_style style)
{
	bool nothing = !text || !*text;
	frame_row(draft, draft_text(draft, label),
	          nothing ? draft_text(draft, TEXT_NOTHING_DECLARED)
	                  : draft_show_slice(draft, slice_of(text), true),
	          nothing ? SHEET_SMALL : style);
}

static void configuration(struct draft *draft, const struct report_configuration *version)
{
	struct sheet *sheet = &draft->sheet;
	sheet_require_space(sheet, 120);
	sheet_space(sheet, 6);
	sheet_paragraph(sheet, SHEET_SUBHEADING,
	                DRAFT_FILL(draft, TEXT_VERSION, draft_plain(draft, version->facts.version),
	                           draft_moment(draft, version->facts.sealed_at_us)));
	struct sheet_row mark = {.count = 1,
	                         .space_above = 7,
	                         .space_below = 3,
	                         .background = SHEET_TINT,
	                         .bar = SHEET_GREY,
	                         .cells[0] = {.text = draft_text(draft, TEXT_DECLARED_MARK),
	                                      .style = SHEET_TABLE_HEAD,
	                                      .tag = "P",
	                                      .x = FRAME_INDENT,
	                                      .width = SHEET_WIDTH - 2 * FRAME_INDENT}};
	sheet_repeat(sheet, &mark);
	sheet_open(sheet, "L");
	declared_text(draft, TEXT_NAME, version->facts.name, SHEET_STRONG);
	declared_text(draft, TEXT_DECLARANT, version->facts.declarant, SHEET_BODY);
	declared_text(draft, TEXT_DESCRIPTION, version->facts.description, SHEET_BODY);
	declared_text(draft, TEXT_SUPPLEMENTARY, version->facts.supplementary_info, SHEET_BODY);
	sheet_close(sheet, "L");
	sheet_repeat_end(sheet);
	sheet_space(sheet, 3);
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_VERSION_DIGEST, SHEET_MONO, digest(draft, &version->digest));
	sheet_close(sheet, "L");
	sheet_space(sheet, 4);
}

static void declarations(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_text(draft, TEXT_DECLARED));
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_CHANNEL_ID, SHEET_BODY, draft_show(draft, facts->channel_id));
	draft_fact(draft, TEXT_CHAIN_MODE, SHEET_BODY,
	           draft_text(draft, facts->mode == MODE_LIVE ? TEXT_CHAIN_LIVE : TEXT_CHAIN_TEST));
	draft_fact(draft, TEXT_MODALITY, SHEET_BODY,
	           draft_text(draft, facts->modality == MODALITY_CONTENT ? TEXT_MODALITY_CONTENT
	                                                                 : TEXT_MODALITY_HASH));
	sheet_close(sheet, "L");
	sheet_space(sheet, 8);
	sheet_paragraph(sheet, SHEET_BODY, draft_text(draft, TEXT_DECLARED_INTRO));
	draft->written_out = false;
	for (size_t i = 0; i < facts->configuration_rows; i++)
		configuration(draft, &facts->configurations[i]);
	if (facts->configuration_count > (int64_t)facts->configuration_rows)
		sheet_paragraph(sheet, SHEET_BODY,
		                DRAFT_FILL(draft, TEXT_VERSIONS_OMITTED,
		                           draft_number(draft, (int64_t)facts->configuration_rows),
		                           draft_number(draft, facts->configuration_count)));
	draft_explain_written_out(draft);
}

static void event_row(struct draft *draft, const struct report_event *event)
{
	static const enum sheet_style styles[] = {SHEET_TABLE, SHEET_TABLE, SHEET_TABLE, SHEET_TABLE,
	                                          SHEET_TABLE_MONO};
	const char *texts[] = {
		draft_plain(draft, event->sequence),
		two_line_moment(draft, event->received_at_us),
		event->occurred_at_us == TIME_NONE ? draft_text(draft, TEXT_NOT_DECLARED)
										   : two_line_moment(draft, event->occurred_at_us),
		draft_show_slice(draft, event->client_ref, false),
		digest_lines(draft, event->hash, hash_algorithm_size(event->hash_algorithm), 16),
	};
	sheet_table_row(&draft->sheet, texts, styles);
}

static void events(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	const struct sheet_column columns[] = {
		{draft_text(draft, TEXT_COLUMN_SEQUENCE), 56, true},
		{draft_text(draft, TEXT_COLUMN_RECEIVED), 80, false},
		{draft_text(draft, TEXT_COLUMN_OCCURRED), 82, false},
		{draft_text(draft, TEXT_COLUMN_REFERENCE), SHEET_WIDTH - 358, false},
		{draft_text(draft, TEXT_COLUMN_HASH), 140, false},
	};
	bool all = facts->event_count <= REPORT_EVENT_ROWS_MAX;
	sheet_heading(sheet, draft_text(draft, TEXT_EVENT_LIST));
	sheet_paragraph(sheet, SHEET_BODY,
	                all ? draft_text(draft, TEXT_EVENT_LIST_ALL)
	                    : DRAFT_FILL(draft, TEXT_EVENT_LIST_EDGES,
	                                 draft_number(draft, REPORT_EDGE_ROWS),
	                                 draft_number(draft, REPORT_EDGE_ROWS),
	                                 draft_number(draft, facts->event_count)));
	draft->written_out = false;
	sheet_table_begin(sheet, columns, 5);
	for (size_t i = 0; i < facts->event_rows; i++) {
		const struct report_event *event = &facts->events[i];
		if (!all && i == REPORT_EDGE_ROWS) {
			int64_t before = event[-1].sequence;
			sheet_table_end(sheet);
			sheet_paragraph(sheet, SHEET_STRONG,
			                DRAFT_FILL(draft, TEXT_ROWS_OMITTED, draft_plain(draft, before + 1),
			                           draft_plain(draft, event->sequence - 1),
			                           draft_number(draft, event->sequence - before - 1)));
			sheet_table_begin(sheet, columns, 5);
		}
		event_row(draft, event);
	}
	sheet_table_end(sheet);
	draft_explain_written_out(draft);
}

static const char *kind_name(const struct draft *draft, enum authority_kind kind)
{
	return draft_text(draft, kind == AUTHORITY_QUALIFIED       ? TEXT_KIND_QUALIFIED
	                         : kind == AUTHORITY_NON_QUALIFIED ? TEXT_KIND_NON_QUALIFIED
	                                                           : TEXT_KIND_DEVELOPMENT);
}

static void seal_table(struct draft *draft)
{
	static const enum sheet_style styles[] = {SHEET_TABLE, SHEET_TABLE, SHEET_TABLE, SHEET_TABLE,
	                                          SHEET_TABLE};
	const struct report_facts *facts = draft->facts;
	const struct sheet_column columns[] = {
		{draft_text(draft, TEXT_COLUMN_SEGMENT), 104, false},
		{draft_text(draft, TEXT_COLUMN_NUMBERS), 74, false},
		{draft_text(draft, TEXT_COLUMN_SEALED), 84, false},
		{draft_text(draft, TEXT_COLUMN_AUTHORITY), SHEET_WIDTH - 330, false},
		{draft_text(draft, TEXT_COLUMN_KIND), 68, false},
	};
	sheet_table_begin(&draft->sheet, columns, 5);
	for (size_t i = 0; i < facts->seal_rows; i++) {
		const struct report_seal *seal = &facts->seals[i];
		const char *texts[] = {
			draft_show(draft, seal->segment_id),
			DRAFT_FILL(draft, TEXT_NUMBERS, draft_plain(draft, seal->first_sequence),
		               draft_plain(draft, seal->last_sequence)),
			two_line_moment(draft, seal->time_us),
			draft_show(draft, seal->authority),
			kind_name(draft, seal->kind),
		};
		sheet_table_row(&draft->sheet, texts, styles);
	}
	sheet_table_end(&draft->sheet);
}

static void seals(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_text(draft, TEXT_SEALS));
	if (facts->mode == MODE_TEST) {
		sheet_paragraph(sheet, SHEET_BODY, draft_text(draft, TEXT_SEALS_TEST));
		return;
	}
	sheet_paragraph(sheet, SHEET_BODY,
	                DRAFT_FILL(draft, TEXT_SEALS_INTRO, draft_number(draft, facts->seal_count)));
	if (facts->seal_rows > 0)
		seal_table(draft);
	if (facts->seal_count > (int64_t)facts->seal_rows)
		sheet_paragraph(
			sheet, SHEET_BODY,
			DRAFT_FILL(draft, TEXT_SEALS_OMITTED, draft_number(draft, (int64_t)facts->seal_rows)));
	if (facts->authority_rows == 0)
		return;
	sheet_heading(sheet, draft_text(draft, TEXT_AUTHORITIES));
	for (size_t i = 0; i < facts->authority_rows; i++) {
		const struct report_authority *authority = &facts->authorities[i];
		sheet_paragraph(sheet, SHEET_STRONG, draft_show(draft, authority->name));
		sheet_paragraph(sheet, SHEET_BODY,
		                draft_text(draft, authority->kind == AUTHORITY_QUALIFIED
		                                      ? TEXT_QUALIFIED_TEXT
		                                  : authority->kind == AUTHORITY_NON_QUALIFIED
		                                      ? TEXT_NON_QUALIFIED_TEXT
		                                      : TEXT_DEVELOPMENT_AUTHORITY));
	}
}

static void segment_log(struct draft *draft)
{
	const struct report_log *log = &draft->facts->log;
	struct sheet *sheet = &draft->sheet;
	if (!log->origin)
		return;
	sheet_heading(sheet, draft_text(draft, TEXT_LOG));
	sheet_paragraph(sheet, SHEET_BODY,
	                DRAFT_FILL(draft, TEXT_LOG_ENTRIES, draft_number(draft, log->segments),
	                           draft_number(draft, draft->facts->seal_count),
	                           draft_show(draft, log->origin), draft_number(draft, log->entries)));
	sheet_paragraph(sheet, SHEET_BODY,
	                draft_text(draft, log->witness_rows > 0 ? TEXT_LOG_WITNESSED : TEXT_LOG_ALONE));
	for (size_t i = 0; i < log->witness_rows; i++)
		sheet_paragraph(sheet, SHEET_STRONG,
		                DRAFT_FILL(draft, TEXT_LOG_WITNESS,
		                           draft_show(draft, log->witnesses[i].name),
		                           draft_moment(draft, log->witnesses[i].time_us)));
}

static void parts(struct draft *draft)
{
	static const enum sheet_style styles[] = {SHEET_TABLE, SHEET_TABLE, SHEET_TABLE_MONO};
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_text(draft, TEXT_PARTS));
	if (facts->modality == MODALITY_HASH_ONLY) {
		sheet_paragraph(sheet, SHEET_BODY, draft_text(draft, TEXT_PARTS_NONE_HASH));
		return;
	}
	sheet_paragraph(sheet, SHEET_BODY,
	                DRAFT_FILL(draft, TEXT_PARTS_INTRO, draft_number(draft, facts->part_count)));
	if (facts->part_rows == 0)
		return;
	const struct sheet_column columns[] = {
		{draft_text(draft, TEXT_FILE_NAME), 110, false},
		{draft_text(draft, TEXT_SIZE), SHEET_WIDTH - 378, true},
		{"SHA-256", 268, false},
	};
	sheet_table_begin(sheet, columns, 3);
	for (size_t i = 0; i < facts->part_rows; i++) {
		const struct report_part *part = &facts->parts[i];
		const char *texts[] = {
			draft_show(draft, part->name),
			DRAFT_FILL(draft, TEXT_BYTES, draft_number(draft, part->size_bytes)),
			digest(draft, &part->digest),
		};
		sheet_table_row(sheet, texts, styles);
	}
	sheet_table_end(sheet);
	if (facts->part_count > (int64_t)facts->part_rows)
		sheet_paragraph(
			sheet, SHEET_BODY,
			DRAFT_FILL(draft, TEXT_PARTS_OMITTED, draft_number(draft, (int64_t)facts->part_rows)));
}

static void archive(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_text(draft, TEXT_ARCHIVE));
	sheet_paragraph(sheet, SHEET_BODY, draft_text(draft, TEXT_ARCHIVE_INTRO));
	sheet_open(sheet, "L");
	draft_fact(draft, TEXT_FILE_NAME, SHEET_BODY, draft_show(draft, facts->archive_name));
	draft_fact(draft, TEXT_SIZE, SHEET_BODY,
	           DRAFT_FILL(draft, TEXT_BYTES, draft_number(draft, facts->archive_size_bytes)));
	sheet_fact(sheet, "SHA-256", SHEET_MONO, digest(draft, &facts->archive_digest), NULL);
	sheet_close(sheet, "L");
	if (facts->seal_count > 0)
		sheet_paragraph(
			sheet, SHEET_BODY,
			draft_text(draft, facts->has_history ? TEXT_HISTORY_COMPLETE : TEXT_HISTORY_PARTIAL));
}

static void verification(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_text(draft, TEXT_VERIFY));
	sheet_open(sheet, "L");
	sheet_item(sheet, "1", draft_text(draft, TEXT_VERIFY_PAGE));
	sheet_item(sheet, "2", draft_text(draft, TEXT_VERIFY_PROGRAM));
	sheet_close(sheet, "L");
	struct sheet_row command = {
		.count = 1,
		.space_below = 6,
		.cells[0] = {.text = DRAFT_FILL(draft, TEXT_VERIFY_COMMAND,
	                                    draft_show(draft, facts->archive_name),
	                                    draft_text(draft, TEXT_VERIFY_REPORT_NAME),
	                                    draft_text(draft, TEXT_VERIFY_TRUST_NAME)),
	                 .style = SHEET_MONO,
	                 .tag = "P",
	                 .x = 18,
	                 .width = SHEET_WIDTH - 18}};
	sheet_add(sheet, &command);
	sheet_open(sheet, "L");
	sheet_item(sheet, "3", draft_text(draft, TEXT_VERIFY_TOOLS));
	sheet_close(sheet, "L");
	sheet_open(sheet, "L");
	sheet_fact(sheet, draft_text(draft, TEXT_ADDRESS), SHEET_BODY,
	           draft_show(draft, facts->verification_url), link_of(facts->verification_url));
	draft_fact(draft, TEXT_CODE, SHEET_CODE, draft_show(draft, facts->verification_code));
	if (facts->checkable_until_us)
		draft_fact(draft, TEXT_SIGNATURE, SHEET_BODY,
		           DRAFT_FILL(draft, TEXT_SIGNATURE_VALUE, level_text(facts->level),
		                      draft_moment(draft, facts->checkable_until_us)));
	sheet_close(sheet, "L");
}

static void limits(struct draft *draft)
{
	struct sheet *sheet = &draft->sheet;
	sheet_heading(sheet, draft_text(draft, TEXT_LIMITS));
	sheet_open(sheet, "L");
	sheet_item(sheet, "•", draft_text(draft, TEXT_LIMITS_COURT));
	if (draft->facts->mode == MODE_LIVE)
		sheet_item(sheet, "•", draft_text(draft, TEXT_LIMITS_CLOCK));
	sheet_item(sheet, "•", draft_text(draft, TEXT_LIMITS_DIGEST));
	sheet_item(sheet, "•", draft_text(draft, TEXT_LIMITS_PAPER));
	sheet_item(sheet, "•", draft_text(draft, TEXT_LIMITS_LANGUAGES));
	sheet_close(sheet, "L");
}

/* Sets a section on one page if possible, so that the last page has more than a few lines. */
static void set_unbroken(struct draft *draft, void (*section)(struct draft *draft))
{
	struct sheet before = draft->sheet;
	draft->sheet = sheet_measuring_copy(&before);
	double top = draft->sheet.y;
	section(draft);
	double height = draft->sheet.y - top;
	bool fits = draft->sheet.page == before.page;
	draft->sheet = before;
	if (fits)
		sheet_require_space(&draft->sheet, height + SHEET_HEADING_SPACE);
	section(draft);
}

struct sheet_frame report_frame(struct draft *draft)
{
	const struct report_facts *facts = draft->facts;
	return (struct sheet_frame){
		.header_left = draft_text(draft, TEXT_TITLE),
		.header_right = DRAFT_FILL(draft, TEXT_HEADER, draft_show(draft, facts->certification_id)),
		.footer_left = DRAFT_FILL(draft, TEXT_FOOTER, draft_show(draft, facts->service_name),
	                              draft_moment(draft, facts->issued_at_us)),
		.page_format = draft_text(draft, TEXT_PAGE),
		.banner = facts->mode == MODE_TEST ? draft_text(draft, TEXT_TEST_BANNER) : NULL,
	};
}

int report_compose(struct draft *draft, struct error *error)
{
	struct sheet *sheet = &draft->sheet;
	sheet_paragraph(sheet, SHEET_TITLE, draft_text(draft, TEXT_TITLE));
	sheet_paragraph(sheet, SHEET_SUBTITLE, draft_text(draft, TEXT_SUBTITLE));
	sheet_space(sheet, 10);
	if (draft->facts->mode == MODE_TEST) {
		sheet_notice(sheet, draft_text(draft, TEXT_TEST_TITLE), draft_text(draft, TEXT_TEST_TEXT));
		sheet_space(sheet, 14);
	}
	if (has_development_seal(draft->facts)) {
		sheet_notice(sheet, draft_text(draft, TEXT_DEVELOPMENT_TITLE),
		             draft_text(draft, TEXT_DEVELOPMENT_TEXT));
		sheet_space(sheet, 14);
	}
	int result = summary(draft, error);
	if (result)
		return result;
	attestation(draft);
	range(draft);
	declarations(draft);
	events(draft);
	seals(draft);
	segment_log(draft);
	archive(draft);
	parts(draft);
	verification(draft);
	set_unbroken(draft, limits);
	return OK;
}
