/* Completes the PDF file that cairo wrote for PDF/A-3a and PDF/UA-1: XMP metadata, output intent,
 * language, title, identifiers, tab order, artifact marks, scopes, alternative texts. Internal to
 * proof. */
#ifndef REPORT_REPORT_FINISH_H
#define REPORT_REPORT_FINISH_H

#include "base/buf.h"
#include "base/error.h"
#include "report/report.h"

/* The namespace and frame of the properties that bind a report to its archive. pdf_check.h reads
 * them from the XMP packet, in which each one is <constancia:Name>value</constancia:Name>. */
#define REPORT_XMP_NAMESPACE "urn:constancia:report:1#"
#define REPORT_XMP_PREFIX "constancia"
/* Bytes of the property SegmentLog, with the NUL; a longer one is left out. */
#define REPORT_XMP_LOG_SIZE 8192
#define REPORT_XMP_BEGIN "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
#define REPORT_XMP_END "<?xpacket end=\"r\"?>\n"

struct report_finishing {
	const struct report_facts *facts; /* for the binding of the report to its archive */
	enum language language;
	const char *title, *author;
	int64_t made_at_us;
	const char *figure_text; /* the alternative text of the QR code */
	const char *link_text;
};

/* Appends the XMP packet. */
void report_xmp(const struct report_finishing *finishing, struct buf *out);

/* The colour profile that reports embed. */
#define REPORT_PROFILE_PATH "/usr/share/color/icc/sRGB.icc"

/* Completes the given PDF and writes it to an open file. Returns 0 or an error. */
int report_finish(struct slice pdf, const struct report_finishing *finishing, int file,
                  struct error *error) MUST_CHECK;

#endif
