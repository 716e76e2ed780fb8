#include "test_report_facts.h"

#include <stdio.h>
#include <string.h>

#define ISSUED_US INT64_C(1795252502123456) /* 2026-11-21T09:15:02.123456Z */

static void add_events(struct sample *sample, int64_t event_count)
{
	struct report_facts *facts = &sample->facts;
	bool all = event_count <= REPORT_EVENT_ROWS_MAX;
	size_t rows = all ? (size_t)event_count : 2 * REPORT_EDGE_ROWS;
	for (size_t i = 0; i < rows; i++) {
		struct report_event *event = &sample->events[i];
		int64_t place =
			all || i < REPORT_EDGE_ROWS ? (int64_t)i : event_count - (int64_t)(rows - i);
		event->sequence = 4120 + place;
		event->received_at_us = ISSUED_US - US_PER_DAY + place * 97000123;
		event->occurred_at_us = i % 5 == 3 ? TIME_NONE : event->received_at_us - 1234567;
		snprintf(sample->references[i], sizeof(sample->references[i]), "lectura/2026-11/%06lld",
		         (long long)(88310 + place));
		event->client_ref = slice_of(sample->references[i]);
		struct sha256 hash = sha256_of(sample->references[i], strlen(sample->references[i]));
		memcpy(sample->hashes[i], hash.bytes, SHA256_SIZE);
		memcpy(sample->hashes[i] + SHA256_SIZE, hash.bytes, SHA256_SIZE);
		event->hash_algorithm = HASH_SHA256;
		event->hash = sample->hashes[i];
	}
	facts->events = sample->events;
	facts->event_rows = rows;
	facts->event_count = event_count;
	facts->first_sequence = 4120;
	facts->last_sequence = 4120 + event_count - 1;
	facts->first_received_at_us = sample->events[0].received_at_us;
	facts->last_received_at_us = sample->events[rows - 1].received_at_us;
}

static void add_seals(struct sample *sample)
{
	static const char *const names[] = {
		"CN=Unidad de Sellado de Tiempo 3,O=Autoridad de Ejemplo S.A.,C=ES",
		"CN=Example Time Stamping Unit 7,O=Example Trust Services Ltd,C=IE"};
	static const enum authority_kind kinds[] = {AUTHORITY_QUALIFIED, AUTHORITY_NON_QUALIFIED};
	for (int i = 0; i < 2; i++)
		sample->authorities[i] = (struct report_authority){names[i], kinds[i]};
	for (int i = 0; i < 6; i++) {
		snprintf(sample->segments[i], ID_SIZE, "seg_0Kx7Yp2Qm4Zr8T%02d", i);
		sample->seals[i] = (struct report_seal){
			.segment_id = sample->segments[i],
			.first_sequence = 4120 + i * 7,
			.last_sequence = 4126 + i * 7,
			.time_us = ISSUED_US - US_PER_DAY + i * INT64_C(700000000),
			.authority = names[i == 4],
			.kind = kinds[i == 4],
		};
	}
	sample->facts.seals = sample->seals;
	sample->facts.seal_rows = 6;
	sample->facts.seal_count = 6;
	sample->facts.authorities = sample->authorities;
	sample->facts.authority_rows = 2;
	static const struct report_witness witness = {"testigo.example/uno", ISSUED_US - US_PER_SECOND};
	sample->facts.log = (struct report_log){"registro.example/log", 4711, 6, &witness, 1};
	sample->facts.has_history = true;
}

static void add_configurations(struct sample *sample)
{
	static const char *const descriptions[SAMPLE_CONFIGURATIONS] = {
		"Lecturas de temperatura de las cámaras frigoríficas del almacén central, cada cinco "
		"minutos, tal como las entrega el sistema de control.",
		"Lecturas de temperatura y humedad de las cámaras frigoríficas del almacén central, cada "
		"cinco minutos, tal como las entrega el sistema de control.\nDesde esta versión se incluye "
		"la humedad relativa.",
		NULL};
	static const char explanation[] = "«t» es la temperatura en grados Celsius; «h», la humedad "
									  "relativa en tanto por ciento; «c», el número de cámara.";
	for (int i = 0; i < SAMPLE_CONFIGURATIONS; i++) {
		struct config_facts *facts = &sample->configurations[i].facts;
		*facts = (struct config_facts){
			.channel_id = "chn_4fQ9sLr2Vw8KxT0m",
			.version = i + 1,
			.sealed_at_us = ISSUED_US - (40 - i) * US_PER_DAY,
			.modality = MODALITY_CONTENT,
			.name = "Cámaras frigoríficas, almacén central",
			.description = descriptions[i],
			.declarant = "Logística del Norte, S.L. (CIF B00000000)",
			.supplementary_info = i == 1 ? explanation : NULL,
		};
		sample->configurations[i].digest = sha256_of(&i, sizeof(i));
	}
	sample->facts.configurations = sample->configurations;
	sample->facts.configuration_rows = SAMPLE_CONFIGURATIONS;
	sample->facts.configuration_count = SAMPLE_CONFIGURATIONS;
}

static void add_parts(struct sample *sample)
{
	static const char *const names[SAMPLE_PARTS] = {"content-part-001.zip", "content-part-002.zip",
	                                                "content-part-003.zip", "content-part-004.zip"};
	for (int i = 0; i < SAMPLE_PARTS; i++)
		sample->parts[i] =
			(struct report_part){names[i], INT64_C(999999870) - i, sha256_of(names[i], 20)};
	sample->facts.parts = sample->parts;
	sample->facts.part_rows = SAMPLE_PARTS;
	sample->facts.part_count = SAMPLE_PARTS;
}

void sample_ordinary(struct sample *sample, int64_t event_count)
{
	*sample = (struct sample){0};
	sample->facts = (struct report_facts){
		.mode = MODE_LIVE,
		.service_name = "Constancia",
		.certification_id = "CERT-2026-0000417",
		.verification_code = "SVC-2026-7K3M-Q9XD",
		.verification_url = "https://constancia.example/verify/SVC-2026-7K3M-Q9XD",
		.requested_at_us = ISSUED_US - 90 * US_PER_SECOND,
		.issued_at_us = ISSUED_US,
		.channel_id = "chn_4fQ9sLr2Vw8KxT0m",
		.modality = MODALITY_CONTENT,
		.from_us = ISSUED_US - US_PER_DAY,
		.to_us = ISSUED_US,
		.chain_hash_before = sha256_of("before", 6),
		.first_chain_hash = sha256_of("first", 5),
		.last_chain_hash = sha256_of("last", 4),
		.archive_name = "CERT-2026-0000417-evidence.zip",
		.archive_size_bytes = 18734112,
		.archive_digest = sha256_of("archive", 7),
	};
	add_configurations(sample);
	add_events(sample, event_count);
	add_seals(sample);
	add_parts(sample);
}

static void repeat(char *text, size_t size, const char *pattern)
{
	size_t length = strlen(pattern);
	size_t used = 0;
	for (; used + length < size; used += length)
		memcpy(text + used, pattern, length);
	text[used] = '\0';
}

void sample_hostile(struct sample *sample, int64_t event_count)
{
	static const char *const patterns[] = {
		"Supercalifragilistico",
		"\u202Eabc\u202C \u2067def\u2069 \u2066ghi\u2069 \u202Djkl",
		"שלום עולם مرحبا بالعالم ",
		"a\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309\u030A\u030B\u030C",
		"漢字仮名交じり文한국어텍스트",
		"😀👩\u200D👩\u200D👧\u200D👦🏳️\u200D🌈 ",
		"\x01\x02\x03\t\x1b[31m\x7f\xc2\x85\u2028\u2029",
		"\u200B\u200E\u200F\uFEFF\u00AD\u2060\u3164\U000E0041",
		"\xff\xfe\xc0\x80",
		"﷽𒐫𒈙꧅",
		"') Tj ET Q (\\) <</Type/Catalog>> endstream endobj EMC BDC ",
		"\uE000\U000F0000\uFFFE\U0010FFFF",
		"ﬁ ﬂ ﬃ ĳ ǆ İı ß ẞ ",
		"<b>&amp;</b> {0} %s %n ${x} `id` ",
		"WWWWWWWWWWWWWWWW iiiiiiiiiiiiiiii",
		"ཧཱུྃ ကြောင့် नमस्ते กำลัง ਸਤਿ ",
	};
	size_t count = sizeof(patterns) / sizeof(*patterns);
	sample_ordinary(sample, event_count);
	struct report_facts *facts = &sample->facts;
	facts->mode = MODE_TEST;
	facts->certification_id = "CERT-TEST-2026-0000009";
	facts->verification_code = "SVC-TEST-2026-7K3M-Q9XD";
	facts->verification_url = "https://constancia.example/verify/SVC-TEST-2026-7K3M-Q9XD?x='(\\)";
	facts->seal_rows = 0;
	facts->seal_count = 0;
	facts->authority_rows = 0;
	facts->log = (struct report_log){0};
	facts->from_us = TIME_NONE;
	facts->to_us = TIME_NONE;
	facts->seq_from = facts->first_sequence;
	facts->seq_to = facts->last_sequence;
	sample->description[0] = '\0';
	size_t used = 0;
	for (size_t i = 0; used < sizeof(sample->description) - 140; i++)
		used += (size_t)snprintf(sample->description + used, sizeof(sample->description) - used,
		                         "%s\n", patterns[i % count]);
	repeat(sample->supplementary, sizeof(sample->supplementary), patterns[7]);
	for (int i = 0; i < SAMPLE_CONFIGURATIONS; i++) {
		struct config_facts *texts = &sample->configurations[i].facts;
		texts->name = patterns[1 + i];
		texts->declarant = patterns[(size_t)(4 + i)];
		texts->description = sample->description;
		texts->supplementary_info = sample->supplementary;
	}
	for (size_t i = 0; i < facts->event_rows; i++) {
		repeat(sample->references[i], sizeof(sample->references[i]), patterns[i % count]);
		sample->events[i].client_ref = slice_of(sample->references[i]);
		sample->events[i].hash_algorithm = i % 2 ? HASH_SHA512 : HASH_SHA256;
	}
}
