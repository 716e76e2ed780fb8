/* Who asks for a drawing and who draws say to each other of which make they are: facts travel as
 * they lie in memory, so two of one version but another layout would read them wrongly. Inside
 * src/report only. */
#ifndef REPORT_RENDERER_IDENTITY_H
#define REPORT_RENDERER_IDENTITY_H

#include "renderer_build.h"

#define RENDERER_IDENTITY CONSTANCIA_VERSION "-" RENDERER_BUILD

#endif
