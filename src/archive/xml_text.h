/* Text in XML, for the manifest of the archive and the metadata of the reports. */
#ifndef ARCHIVE_XML_TEXT_H
#define ARCHIVE_XML_TEXT_H

#include "base/buf.h"

/* As character data or as the value of an attribute in double quotes. XML takes no control
 * characters: a blank stands for each. */
void xml_add_text(struct buf *out, const char *text);

#endif
