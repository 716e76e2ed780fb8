/* Text in XML, for the manifest of archives and the metadata of reports. */
#ifndef ARCHIVE_XML_TEXT_H
#define ARCHIVE_XML_TEXT_H

#include "base/buf.h"

/* Appends text as character data or as the value of an attribute in double quotes. Control
 * characters, which XML does not allow, become spaces. */
void xml_add_text(struct buf *out, const char *text);

#endif
