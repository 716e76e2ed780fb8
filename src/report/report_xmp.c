/* The XMP metadata of a report. */
#include "report/report_finish.h"

#include "archive/xml_text.h"
#include "base/clock.h"

static void add_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "   <" REPORT_XMP_PREFIX ":%s>", name);
	xml_add_text(out, text);
	buf_printf(out, "</" REPORT_XMP_PREFIX ":%s>\n", name);
}

static void add_number(struct buf *out, const char *name, int64_t number)
{
	buf_printf(out, "   <" REPORT_XMP_PREFIX ":%s>%lld</" REPORT_XMP_PREFIX ":%s>\n", name,
	           (long long)number, name);
}

static void add_digest(struct buf *out, const char *name, const struct sha256 *digest)
{
	char text[2 * SHA256_SIZE + 1];
	hex_encode(digest->bytes, SHA256_SIZE, text);
	add_text(out, name, text);
}

/* PDF/A asks that properties of other namespaces be described (ISO 19005-3, 6.6.2.3). */
static void add_schema(struct buf *out, const char *title, const char *namespace,
                       const char *prefix, const char *const (*properties)[3], size_t count)
{
	buf_printf(out,
	           "    <rdf:li rdf:parseType=\"Resource\">\n"
	           "     <pdfaSchema:schema>%s</pdfaSchema:schema>\n"
	           "     <pdfaSchema:namespaceURI>%s</pdfaSchema:namespaceURI>\n"
	           "     <pdfaSchema:prefix>%s</pdfaSchema:prefix>\n"
	           "     <pdfaSchema:property><rdf:Seq>\n",
	           title, namespace, prefix);
	for (size_t i = 0; i < count; i++)
		buf_printf(out,
		           "      <rdf:li rdf:parseType=\"Resource\">"
		           "<pdfaProperty:name>%s</pdfaProperty:name>"
		           "<pdfaProperty:valueType>%s</pdfaProperty:valueType>"
		           "<pdfaProperty:category>internal</pdfaProperty:category>"
		           "<pdfaProperty:description>%s</pdfaProperty:description></rdf:li>\n",
		           properties[i][0], properties[i][1], properties[i][2]);
	buf_add_text(out, "     </rdf:Seq></pdfaSchema:property>\n    </rdf:li>\n");
}

static void add_schemas(struct buf *out)
{
	static const char *const accessibility[][3] = {{"part", "Integer", "Part of ISO 14289"}};
	static const char *const binding[][3] = {
		{"CertificationId", "Text", "Identifier of the certification"},
		{"VerificationCode", "Text", "Code for the public verification page"},
		{"ChannelId", "Text", "Identifier of the channel"},
		{"Chain", "Text", "live or test"},
		{"Language", "Text", "en or es"},
		{"FirstSequence", "Integer", "First sequence number of the range"},
		{"LastSequence", "Integer", "Last sequence number of the range"},
		{"EventCount", "Integer", "Number of events in the range"},
		{"FirstChainHash", "Text", "Chain hash of the first event, SHA-256"},
		{"LastChainHash", "Text", "Chain hash of the last event, SHA-256"},
		{"ArchiveSha256", "Text", "SHA-256 of the evidence archive"},
		{"ArchiveSize", "Integer", "Size of the evidence archive in bytes"},
		{"SegmentLog", "Text",
	     "Entries, segments and name of the log; times and names of witnesses"},
	};
	buf_add_text(out, "  <rdf:Description rdf:about=\"\"\n"
	                  "    xmlns:pdfaExtension=\"http://www.aiim.org/pdfa/ns/extension/\"\n"
	                  "    xmlns:pdfaSchema=\"http://www.aiim.org/pdfa/ns/schema#\"\n"
	                  "    xmlns:pdfaProperty=\"http://www.aiim.org/pdfa/ns/property#\">\n"
	                  "   <pdfaExtension:schemas><rdf:Bag>\n");
	add_schema(out, "PDF/UA", "http://www.aiim.org/pdfua/ns/id/", "pdfuaid", accessibility, 1);
	add_schema(out, "Certification report", REPORT_XMP_NAMESPACE, REPORT_XMP_PREFIX, binding,
	           sizeof(binding) / sizeof(*binding));
	buf_add_text(out, "   </rdf:Bag></pdfaExtension:schemas>\n  </rdf:Description>\n");
}

/* "ENTRIES SEGMENTS ORIGIN", and for each witness " TIME NAME". Names have no spaces. */
static void add_log(const struct report_log *log, struct buf *out)
{
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf escaped;
	buf_init(&text, REPORT_XMP_LOG_SIZE);
	buf_init(&escaped, REPORT_XMP_LOG_SIZE - 1);
	if (!log->origin)
		return;
	buf_printf(&text, "%lld %lld %s", (long long)log->entries, (long long)log->segments,
	           log->origin);
	for (size_t i = 0; i < log->witness_rows; i++) {
		char time[TIME_TEXT_SIZE];
		time_format(log->witnesses[i].time_us, time);
		buf_printf(&text, " %s %s", time, log->witnesses[i].name);
	}
	if (buf_check(&text) == OK)
		xml_add_text(&escaped, text.data);
	if (escaped.size > 0 && buf_check(&escaped) == OK)
		add_text(out, "SegmentLog", text.data);
}

static void add_binding(const struct report_facts *facts, enum language language, struct buf *out)
{
	buf_add_text(out, "  <rdf:Description rdf:about=\"\" xmlns:" REPORT_XMP_PREFIX
	                  "=\"" REPORT_XMP_NAMESPACE "\">\n");
	add_text(out, "CertificationId", facts->certification_id);
	add_text(out, "VerificationCode", facts->verification_code);
	add_text(out, "ChannelId", facts->channel_id);
	add_text(out, "Chain", mode_text(facts->mode));
	add_text(out, "Language", language == LANGUAGE_SPANISH ? "es" : "en");
	add_number(out, "FirstSequence", facts->first_sequence);
	add_number(out, "LastSequence", facts->last_sequence);
	add_number(out, "EventCount", facts->event_count);
	add_digest(out, "FirstChainHash", &facts->first_chain_hash);
	add_digest(out, "LastChainHash", &facts->last_chain_hash);
	add_digest(out, "ArchiveSha256", &facts->archive_digest);
	add_number(out, "ArchiveSize", facts->archive_size_bytes);
	add_log(&facts->log, out);
	buf_add_text(out, "  </rdf:Description>\n");
}

void report_xmp(const struct report_finishing *finishing, struct buf *out)
{
	char time[TIME_TEXT_SIZE];
	time_format(finishing->made_at_us, time);
	buf_add_text(out, REPORT_XMP_BEGIN
	             "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n"
	             " <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n"
	             "  <rdf:Description rdf:about=\"\"\n"
	             "    xmlns:dc=\"http://purl.org/dc/elements/1.1/\"\n"
	             "    xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\"\n"
	             "    xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\"\n"
	             "    xmlns:pdfaid=\"http://www.aiim.org/pdfa/ns/id/\"\n"
	             "    xmlns:pdfuaid=\"http://www.aiim.org/pdfua/ns/id/\">\n"
	             "   <pdfaid:part>3</pdfaid:part>\n"
	             "   <pdfaid:conformance>A</pdfaid:conformance>\n"
	             "   <pdfuaid:part>1</pdfuaid:part>\n"
	             "   <dc:format>application/pdf</dc:format>\n"
	             "   <dc:title><rdf:Alt><rdf:li xml:lang=\"x-default\">");
	xml_add_text(out, finishing->title);
	buf_add_text(out, "</rdf:li></rdf:Alt></dc:title>\n   <dc:creator><rdf:Seq><rdf:li>");
	xml_add_text(out, finishing->author);
	buf_printf(out,
	           "</rdf:li></rdf:Seq></dc:creator>\n"
	           "   <dc:language><rdf:Bag><rdf:li>%s</rdf:li></rdf:Bag></dc:language>\n"
	           "   <xmp:CreateDate>%.19sZ</xmp:CreateDate>\n"
	           "   <xmp:ModifyDate>%.19sZ</xmp:ModifyDate>\n"
	           "   <pdf:Producer>constancia " CONSTANCIA_VERSION "</pdf:Producer>\n"
	           "  </rdf:Description>\n",
	           finishing->language == LANGUAGE_SPANISH ? "es-ES" : "en-GB", time, time);
	add_schemas(out);
	add_binding(finishing->facts, finishing->language, out);
	buf_add_text(out, " </rdf:RDF>\n</x:xmpmeta>\n" REPORT_XMP_END);
}
