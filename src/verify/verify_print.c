/* Output of the result of a verification as text and as JSON. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"
#include "tlog/note.h"
#include "verify/verify_check.h"

#define TEXT_MAX ((size_t)64 << 20)
#define SENTENCE_MAX ((size_t)64 << 10)

static void print_files(const struct verify_result *result, struct json_writer *writer)
{
	static const char *const kinds[] = {"other",  "archive",         "content_part",
	                                    "report", "evidence_record", "container"};
	json_begin_array(writer, "files");
	for (const struct verify_file *at = result->files; at; at = at->next) {
		json_begin_object(writer, NULL);
		json_text(writer, "kind", kinds[at->kind]);
		json_boolean(writer, "listed", at->is_listed);
		json_text(writer, "path", at->path);
		if (at->contents && at->contents->has_seals)
			json_boolean(writer, "seal_history", at->contents->has_history);
		else
			json_null(writer, "seal_history");
		json_hex(writer, "sha256", at->sha256.bytes, SHA256_SIZE);
		json_time(writer, "signed_at", at->signed_at_us);
		if (at->is_signed)
			json_hex(writer, "signer", at->signer.bytes, SHA256_SIZE);
		else
			json_null(writer, "signer");
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_findings(const struct verify_result *result, struct json_writer *writer,
                           const char *name, bool warnings)
{
	json_begin_array(writer, name);
	for (const struct verify_finding *at = result->first; at; at = at->next) {
		if ((at->severity == VERIFY_WARNING) != warnings)
			continue;
		json_begin_object(writer, NULL);
		json_text(writer, "code", finding_code(at->finding));
		json_text(writer, "detail", at->detail);
		json_text(writer, "path", at->path);
		json_text(writer, "severity", verify_severity_text(at->severity));
		json_text(writer, "what", at->what);
		json_text(writer, "what_es", at->what_es);
		json_text(writer, "where", at->where);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_listed(const struct list_answer *listed, struct json_writer *writer)
{
	if (!listed) {
		json_null(writer, "qualified");
		return;
	}
	json_begin_object(writer, "qualified");
	json_text(writer, "provider", listed->provider[0] ? listed->provider : NULL);
	json_text(writer, "reason", listed->reason);
	json_text(writer, "service", listed->service[0] ? listed->service : NULL);
	json_text(writer, "standing", list_status_text(listed->standing));
	json_end_object(writer);
}

static void print_list(const struct list_facts *list, struct json_writer *writer)
{
	if (!list) {
		json_null(writer, "trusted_list");
		return;
	}
	json_begin_object(writer, "trusted_list");
	json_time(writer, "issued_at", list->issued_us);
	json_time(writer, "next_update", list->next_us);
	json_text(writer, "operator", list->operator_name);
	json_text(writer, "signer", list->signer);
	json_text(writer, "territory", list->territory);
	json_end_object(writer);
}

static void print_identities(const struct verify_identities *list, struct json_writer *writer,
                             const char *name)
{
	json_begin_array(writer, name);
	for (const struct verify_identity *at = list->first; at; at = at->next) {
		json_begin_object(writer, NULL);
		if (at->timestamps > 0)
			json_time(writer, "first_gen_time", at->first_gen_time_us);
		json_text(writer, "issuer", at->certificate.issuer);
		json_text(writer, "issuer_name", at->certificate.issuer_name);
		if (at->timestamps > 0)
			json_time(writer, "last_gen_time", at->last_gen_time_us);
		json_text(writer, "name", at->certificate.name);
		json_time(writer, "not_after", at->certificate.not_after_us);
		json_time(writer, "not_before", at->certificate.not_before_us);
		if (at->timestamps > 0)
			json_integer(writer, "not_revoked", (int64_t)at->not_revoked);
		print_listed(at->listed, writer);
		json_hex(writer, "sha256", at->certificate.sha256.bytes, SHA256_SIZE);
		json_text(writer, "subject", at->certificate.subject);
		if (at->timestamps > 0)
			json_integer(writer, "timestamps", (int64_t)at->timestamps);
		json_boolean(writer, "trusted", at->trusted);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_levels(const struct verify_result *result, struct json_writer *writer)
{
	char level[8];
	json_begin_array(writer, "signatures");
	for (const struct verify_level *at = result->first_level; at; at = at->next) {
		snprintf(level, sizeof level, "B-%s", level_text(at->level));
		json_begin_object(writer, NULL);
		json_time(writer, "checkable_until", at->until_us);
		json_text(writer, "level", level);
		json_text(writer, "path", at->path);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_delay(const struct verify_delay *delay, struct json_writer *writer)
{
	if (!delay->sequence) {
		json_null(writer, "longest_delay");
		return;
	}
	json_begin_object(writer, "longest_delay");
	json_time(writer, "between", delay->between_us);
	json_time(writer, "gen_time", delay->gen_time_us);
	json_integer(writer, "microseconds", delay->gen_time_us - delay->received_at_us);
	json_text(writer, "path", delay->path);
	json_time(writer, "received_at", delay->received_at_us);
	json_integer(writer, "sequence", delay->sequence);
	json_end_object(writer);
}

static void print_logs(const struct verify_result *result, struct json_writer *writer)
{
	json_begin_array(writer, "logs");
	for (const struct verify_log *at = result->logs; at; at = at->next) {
		json_begin_object(writer, NULL);
		json_begin_array(writer, "cosigned_by");
		for (size_t i = 0; i < at->witness_count; i++) {
			json_begin_object(writer, NULL);
			json_text(writer, "name", at->witnesses[i].name);
			json_time(writer, "time", at->witnesses[i].time_us);
			json_end_object(writer);
		}
		json_end_array(writer);
		json_integer(writer, "entries", (int64_t)at->entries);
		json_text(writer, "origin", at->origin);
		json_text(writer, "path", at->path);
		json_integer(writer, "segments", (int64_t)at->segments);
		json_integer(writer, "segments_logged", (int64_t)at->logged);
		json_boolean(writer, "signed", at->is_signed);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_signer_list(const struct verify_signer_list *list, struct json_writer *writer)
{
	if (!list) {
		json_null(writer, "signer_list");
		return;
	}
	json_begin_object(writer, "signer_list");
	json_time(writer, "issued_at", list->issued_at_us);
	json_text(writer, "path", list->path);
	json_text(writer, "service", list->service);
	json_time(writer, "signed_at", list->signed_at_us);
	json_hex(writer, "signer", list->signer.bytes, SHA256_SIZE);
	json_end_object(writer);
}

static void print_records(const struct verify_result *result, struct json_writer *writer)
{
	json_begin_array(writer, "evidence_records");
	for (const struct verify_record *at = result->records; at; at = at->next) {
		json_begin_object(writer, NULL);
		json_begin_array(writer, "covers");
		for (const struct verify_covered *covered = at->covers; covered; covered = covered->next)
			json_text(writer, NULL, covered->path);
		json_end_array(writer);
		json_time(writer, "exists_since", at->facts.exists_since_us);
		json_text(writer, "path", at->path);
		json_begin_array(writer, "timestamps");
		for (size_t i = 0; i < at->facts.stamp_count; i++) {
			const struct evidence_stamp *stamp = &at->facts.stamps[i];
			json_begin_object(writer, NULL);
			json_text(writer, "algorithm",
			          digest_algorithm_text(stamp->timestamp.imprint.algorithm));
			json_text(writer, "authority", stamp->timestamp.authority.subject);
			json_integer(writer, "chain", (int64_t)stamp->chain);
			json_time(writer, "gen_time", stamp->timestamp.gen_time_us);
			json_integer(writer, "number", (int64_t)stamp->number);
			json_end_object(writer);
		}
		json_end_array(writer);
		json_time(writer, "valid_until", at->facts.valid_until_us);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_histories(const struct verify_result *result, struct json_writer *writer)
{
	json_begin_array(writer, "histories");
	for (const struct verify_history *at = result->histories; at; at = at->next) {
		json_begin_object(writer, NULL);
		json_integer(writer, "archives", (int64_t)at->archives);
		json_integer(writer, "bridges", (int64_t)at->bridges);
		json_text(writer, "channel_id", at->channel_id);
		json_integer(writer, "first_sequence", at->first_sequence);
		json_integer(writer, "last_sequence", at->last_sequence);
		json_text(writer, "mode", mode_text(at->is_test ? MODE_TEST : MODE_LIVE));
		json_boolean(writer, "one_history", at->is_one);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void print_verdict(const struct verify_result *result, struct json_writer *writer)
{
	static const char *const codes[] = {
		[VERIFY_VALID] = "valid",
		[VERIFY_NOT_VALID] = "not_valid",
		[VERIFY_SIGNER_OPEN] = "signer_not_established",
		[VERIFY_AUTHORITY_OPEN] = "authority_not_established",
		[VERIFY_EXISTENCE_ONLY] = "existence_only",
		[VERIFY_NOT_CHECKED] = "could_not_check",
	};
	static const struct {
		enum language language;
		const char *name;
	} texts[] = {{LANGUAGE_ENGLISH, "en"}, {LANGUAGE_SPANISH, "es"}};
	json_begin_object(writer, "verdict");
	json_text(writer, "code", codes[verify_verdict(result)]);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		BUF_AUTO struct buf sentence;
		buf_init(&sentence, SENTENCE_MAX);
		json_text(writer, texts[i].name,
		          verify_write_sentence(result, texts[i].language, &sentence) ? "" : sentence.data);
	}
	json_end_object(writer);
}

static void print_json(const struct verify_result *result, FILE *out)
{
	BUF_AUTO struct buf text;
	buf_init(&text, TEXT_MAX);
	struct json_writer writer = {.out = &text};
	const struct verify_counts *counts = &result->checked;
	json_begin_object(&writer, NULL);
	json_time(&writer, "as_of", result->at_us);
	print_identities(&result->authorities, &writer, "authorities");
	json_begin_object(&writer, "checked");
	json_integer(&writer, "bridge_segments", (int64_t)counts->bridge_segments);
	json_integer(&writer, "events", (int64_t)counts->events);
	json_integer(&writer, "evidence_records", (int64_t)counts->records);
	json_integer(&writer, "files", (int64_t)counts->files);
	json_integer(&writer, "parts", (int64_t)counts->parts);
	json_integer(&writer, "receipts", (int64_t)counts->receipts);
	json_integer(&writer, "renewals", (int64_t)counts->renewals);
	json_integer(&writer, "reports", (int64_t)counts->reports);
	json_integer(&writer, "segments", (int64_t)counts->segments);
	json_integer(&writer, "timestamps", (int64_t)counts->timestamps);
	json_end_object(&writer);
	json_boolean(&writer, "could_not_check", verify_exit_code(result) == 2);
	print_records(result, &writer);
	print_files(result, &writer);
	print_findings(result, &writer, "findings", false);
	json_integer(&writer, "findings_version", FINDINGS_VERSION);
	print_histories(result, &writer);
	print_delay(&result->longest_delay, &writer);
	print_logs(result, &writer);
	print_levels(result, &writer);
	print_signer_list(result->signer_list, &writer);
	print_identities(&result->signers, &writer, "signers");
	json_boolean(&writer, "trusted", result->trusted);
	print_list(result->list, &writer);
	json_boolean(&writer, "valid", verify_exit_code(result) == 0);
	print_verdict(result, &writer);
	print_findings(result, &writer, "warnings", true);
	json_end_object(&writer);
	fprintf(out, "%s\n", text.data ? text.data : "");
}

/* The reason comes from the list reader, in English. */
static void show_listed(const struct list_answer *listed, bool spanish, FILE *out)
{
	static const char *const standings[][2] = {
		{"UNKNOWN whether it was qualified at that time",
	     "NO CONSTA si era cualificado en ese momento"},
		{"NOT QUALIFIED at that time", "NO CUALIFICADO en ese momento"},
		{"QUALIFIED at that time", "CUALIFICADO en ese momento"},
	};
	if (!listed)
		return;
	fprintf(out, "    %s: %s", standings[listed->standing][spanish], listed->reason);
	if (listed->service[0])
		fprintf(out, " (%s, %s)", listed->service, listed->provider);
	fprintf(out, "\n");
}

static void show_list(const struct list_facts *list, bool spanish, FILE *out)
{
	char issued[TIME_TEXT_SIZE], next[TIME_TEXT_SIZE];
	if (!list)
		return;
	time_format(list->issued_us, issued);
	time_format(list->next_us, next);
	fprintf(out,
	        spanish
	            ? "lista de confianza de %s (%s), emitida el %.10s, la próxima antes del %.10s, "
	              "firmada por %s\n"
	            : "trusted list of %s (%s), issued %.10s, the next due %.10s, signed by %s\n",
	        list->territory, list->operator_name, issued, next, list->signer);
}

static void show_signer_list(const struct verify_signer_list *list, bool spanish, FILE *out)
{
	char signed_at[TIME_TEXT_SIZE];
	if (!list)
		return;
	time_format(list->signed_at_us, signed_at);
	fprintf(out,
	        spanish ? "comparado con la lista de firmantes de %s, firmada el %.19sZ (%s)\n"
	                : "compared with the list of signers of %s, signed %.19sZ (%s)\n",
	        list->service, signed_at, list->path);
}

static void show_identities(const struct verify_identities *list, const char *label, bool spanish,
                            FILE *out)
{
	for (const struct verify_identity *at = list->first; at; at = at->next) {
		const struct certificate_facts *identity = &at->certificate;
		char digest[2 * SHA256_SIZE + 1], from[TIME_TEXT_SIZE], to[TIME_TEXT_SIZE];
		hex_encode(identity->sha256.bytes, SHA256_SIZE, digest);
		time_format(identity->not_before_us, from);
		time_format(identity->not_after_us, to);
		fprintf(out,
		        spanish ? "%s: %s\n    emitido por %s\n    válido del %.10s al %.10s, SHA-256 %s\n"
		                : "%s: %s\n    issued by %s\n    valid %.10s to %.10s, SHA-256 %s\n",
		        label, identity->name, identity->issuer_name, from, to, digest);
		if (at->timestamps > 0) {
			time_format(at->first_gen_time_us, from);
			time_format(at->last_gen_time_us, to);
			fprintf(out,
			        spanish ? "    %" PRIu64 " sellos de tiempo, del %s al %s\n"
			                : "    %" PRIu64 " timestamps, %s to %s\n",
			        at->timestamps, from, to);
			if (at->not_revoked > 0)
				fprintf(out,
				        spanish ? "    de %" PRIu64 " de ellos un archivo muestra que no se revocó "
				                  "ningún certificado\n"
				                : "    for %" PRIu64
				                  " of them an archive shows that no certificate "
				                  "was revoked\n",
				        at->not_revoked);
		}
		show_listed(at->listed, spanish, out);
	}
}

static void show_records(const struct verify_result *result, bool spanish, FILE *out)
{
	for (const struct verify_record *at = result->records; at; at = at->next) {
		char since[TIME_TEXT_SIZE], until[TIME_TEXT_SIZE];
		time_format(at->facts.exists_since_us, since);
		time_format(at->facts.valid_until_us, until);
		fprintf(out, spanish ? "registro de evidencias %s:\n" : "evidence record %s:\n", at->path);
		for (const struct verify_covered *covered = at->covers; covered; covered = covered->next)
			fprintf(out, spanish ? "    %s existía el %s\n" : "    %s existed at %s\n",
			        covered->path, since);
		fprintf(out,
		        spanish
		            ? "    renovado %zu veces, %zu de ellas con otro resumen; ha de renovarse de "
		              "nuevo antes del %s\n"
		            : "    renewed %zu times, %zu of them with a new digest; to be renewed again "
		              "by %s\n",
		        at->facts.stamp_count - 1, at->facts.chain_count - 1, until);
	}
}

static void show_levels(const struct verify_result *result, bool spanish, FILE *out)
{
	char until[TIME_TEXT_SIZE];
	for (const struct verify_level *at = result->first_level; at; at = at->next) {
		time_format(at->until_us, until);
		fprintf(out,
		        spanish ? "%s: su firma es de nivel B-%s y puede comprobarse hasta el %.10s\n"
		                : "%s: its signature is of level B-%s and can be checked until %.10s\n",
		        at->path, level_text(at->level), until);
	}
}

static void show_sentence(const struct verify_result *result, enum language language, FILE *out)
{
	BUF_AUTO struct buf sentence;
	buf_init(&sentence, SENTENCE_MAX);
	bool has_sentence = verify_write_sentence(result, language, &sentence) == OK;
	fprintf(out, "%s\n",
	        has_sentence ? sentence.data : verify_verdict_text(verify_verdict(result), language));
}

static void show_findings(const struct verify_result *result, bool spanish, FILE *out)
{
	static const char *const labels[][2] = {{"warning", "aviso"},
	                                        {"not established", "no acreditado"},
	                                        {"not checked", "no comprobado"},
	                                        {"NOT VALID", "NO VÁLIDO"}};
	for (const struct verify_finding *at = result->first; at; at = at->next)
		fprintf(out, "%s: %s%s%s%s%s\n", labels[at->severity][spanish], at->path,
		        at->path[0] ? ": " : "", at->where, at->where[0] ? ": " : "",
		        spanish ? at->what_es : at->what);
	uint64_t all = result->wrong + result->unchecked + result->unestablished + result->warnings;
	if (all > result->kept)
		fprintf(out, spanish ? "… %" PRIu64 " hallazgos más\n" : "… %" PRIu64 " more findings\n",
		        all - result->kept);
}

static void show_delay(const struct verify_delay *delay, bool spanish, FILE *out)
{
	char span[VERIFY_SPAN_SIZE], between[TIME_TEXT_SIZE];
	if (!delay->sequence)
		return;
	verify_format_span(delay->gen_time_us - delay->received_at_us, span);
	fprintf(out,
	        spanish
	            ? "mayor tiempo desde la recepción hasta el primer sello de tiempo que la cubre: "
	              "%s (evento %" PRId64 ")\n"
	            : "longest time from reception to the first timestamp that covers it: %s (event "
	              "%" PRId64 ")\n",
	        span, delay->sequence);
	if (delay->between_us == TIME_NONE)
		return;
	time_format(delay->between_us, between);
	fprintf(out,
	        spanish ? "    entretanto se dio otro sello de tiempo, el %s\n"
	                : "    another timestamp was given in between, at %s\n",
	        between);
}

static void show_logs(const struct verify_result *result, bool spanish, FILE *out)
{
	char time[TIME_TEXT_SIZE];
	for (const struct verify_log *at = result->logs; at; at = at->next) {
		/* Anybody can give a log any name, so it is a quotation. */
		const char *quote = at->is_signed ? "" : "\"";
		char origin[NOTE_NAME_MAX + 1];
		snprintf(origin, sizeof origin, "%s", at->origin);
		for (char *c = origin; *c && !at->is_signed; c++)
			*c = *c == '"' ? '?' : *c;
		fprintf(out,
		        spanish ? "%s: %" PRIu64 " de %" PRIu64
		                  " segmentos están en el registro %s%s%s, de %" PRIu64 " entradas%s\n"
		                : "%s: %" PRIu64 " of %" PRIu64
		                  " segments are in the log %s%s%s of %" PRIu64 " entries%s\n",
		        at->path, at->logged, at->segments, quote, origin, quote, at->entries,
		        at->is_signed ? ""
		        : spanish     ? ", que se llama así: su firma no se ha comprobado (--log-key)"
		                      : ", by its own account: its signature was not checked (--log-key)");
		for (size_t i = 0; i < at->witness_count; i++) {
			time_format(at->witnesses[i].time_us, time);
			fprintf(out, spanish ? "    cofirmado por %s el %s\n" : "    cosigned by %s at %s\n",
			        at->witnesses[i].name, time);
		}
	}
}

static void show_histories(const struct verify_result *result, bool spanish, FILE *out)
{
	for (const struct verify_history *at = result->histories; at; at = at->next)
		if (at->is_one)
			fprintf(out,
			        spanish ? "una sola historia del canal %s, eventos %" PRId64 " a %" PRId64
			                  ": %zu archivos y %zu puentes de documentos de sello\n"
			                : "one history of channel %s, events %" PRId64 " to %" PRId64
			                  ": %zu archives and %zu bridges of seal documents\n",
			        at->channel_id, at->first_sequence, at->last_sequence, at->archives,
			        at->bridges);
}

static void show_extra_counts(const struct verify_counts *counts, bool spanish, FILE *out)
{
	const struct {
		uint64_t count;
		const char *labels[2];
	} items[] = {
		{counts->receipts,
	     {"receipts compared with their events", "acuses de recibo comparados con sus eventos"}},
		{counts->renewals,
	     {"archive timestamps of renewals checked",
	      "sellos de tiempo de archivo de renovaciones comprobados"}},
		{counts->bridge_segments,
	     {"seal documents of other segments checked",
	      "documentos de sello de otros segmentos comprobados"}},
		{counts->records, {"evidence records checked", "registros de evidencias comprobados"}},
	};
	for (size_t i = 0; i < sizeof items / sizeof *items; i++)
		if (items[i].count > 0)
			fprintf(out, "%s: %" PRIu64 "\n", items[i].labels[spanish], items[i].count);
}

static void print_text(const struct verify_result *result, enum language language, FILE *out)
{
	bool spanish = language == LANGUAGE_SPANISH;
	show_sentence(result, LANGUAGE_ENGLISH, out);
	show_sentence(result, LANGUAGE_SPANISH, out);
	show_findings(result, spanish, out);
	show_records(result, spanish, out);
	show_identities(&result->signers, spanish ? "firmado por" : "signed by", spanish, out);
	show_identities(&result->authorities, spanish ? "hora dada por" : "time given by", spanish,
	                out);
	show_signer_list(result->signer_list, spanish, out);
	show_list(result->list, spanish, out);
	show_levels(result, spanish, out);
	show_delay(&result->longest_delay, spanish, out);
	show_logs(result, spanish, out);
	show_histories(result, spanish, out);
	const struct verify_counts *counts = &result->checked;
	enum verify_verdict verdict = verify_verdict(result);
	show_extra_counts(counts, spanish, out);
	fprintf(out,
	        "%s: comprobados %" PRIu64 " eventos, %" PRIu64 " segmentos, %" PRIu64
	        " sellos de tiempo, %" PRIu64 " ficheros, %" PRIu64 " partes de contenido y %" PRIu64
	        " informes.%s\n",
	        verify_verdict_text(verdict, LANGUAGE_SPANISH), counts->events, counts->segments,
	        counts->timestamps, counts->files, counts->parts, counts->reports,
	        verdict == VERIFY_VALID
	            ? " Firmantes y autoridades de sellado conducen a las raíces de confianza."
	            : "");
	fprintf(out,
	        "%s: %" PRIu64 " events, %" PRIu64 " segments, %" PRIu64 " timestamps, %" PRIu64
	        " files, %" PRIu64 " content parts and %" PRIu64 " reports checked.%s\n",
	        verify_verdict_text(verdict, LANGUAGE_ENGLISH), counts->events, counts->segments,
	        counts->timestamps, counts->files, counts->parts, counts->reports,
	        verdict == VERIFY_VALID
	            ? " Signers and timestamp authorities lead to the trusted roots."
	            : "");
}

void verify_print_in(const struct verify_result *result, enum language language, FILE *out)
{
	print_text(result, language, out);
}

void verify_print(const struct verify_result *result, bool json, FILE *out)
{
	if (json)
		print_json(result, out);
	else
		print_text(result, LANGUAGE_ENGLISH, out);
}
