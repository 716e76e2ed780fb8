/* The only form of a signed report, which pdf_sign writes and pdf_check accepts. Internal to
 * src/report.
 *
 * The update appends the catalog, the first page, the widget and, last of its objects, the
 * signature dictionary:
 *   N 0 obj LF PDF_FORM_BEGIN date PDF_FORM_RANGE a SP b SP c SP* PDF_FORM_CONTENTS
 *   '<' 2 * PDF_CMS_SIZE_MAX digits '>' PDF_FORM_END
 *   xref … its entry last … trailer … startxref … %%EOF LF
 * The signature covers bytes 0 to a and c bytes from b, which are all bytes except '<', the digits
 * and '>'. The document timestamp of a later update has the same form from " /ByteRange" on. */
#ifndef REPORT_PDF_SIGN_FORM_H
#define REPORT_PDF_SIGN_FORM_H

#include <stdint.h>

#define PDF_FORM_BEGIN "<< /Type /Sig /Filter /Adobe.PPKLite /SubFilter /ETSI.CAdES.detached /M ("
#define PDF_FORM_TIMESTAMP_BEGIN                                                                   \
	"<< /Type /DocTimeStamp /Filter /Adobe.PPKLite /SubFilter /ETSI.RFC3161 /ByteRange [0 "
#define PDF_FORM_DSS_BEGIN "<< /Type /DSS"
#define PDF_FORM_STREAM_BEGIN "<< /Length "
#define PDF_FORM_STREAM_DATA " >>\nstream\n"
#define PDF_FORM_STREAM_END "\nendstream\nendobj\n"
#define PDF_FORM_RANGE ") /ByteRange [0 "
#define PDF_FORM_RANGE_SIZE 36 /* the three numbers, padded with spaces */
#define PDF_FORM_CONTENTS "] /Contents "
#define PDF_FORM_END " >>\nendobj\n"
#define PDF_FORM_ENTRY "%010lld 00000 n \n"
#define PDF_FORM_ENTRY_SIZE 20
#define PDF_DATE_SIZE 18 /* "D:20261121091502Z" and NUL */

/* Writes a time as a PDF date in UTC with whole seconds. */
void pdf_date(int64_t time_us, char text[PDF_DATE_SIZE]);

#endif
