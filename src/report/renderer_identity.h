/* The version and build by which the client of the renderer and the renderer recognize each other.
 * The facts are transferred in their memory layout, so two builds with different layouts would
 * misread them. Internal to src/report. */
#ifndef REPORT_RENDERER_IDENTITY_H
#define REPORT_RENDERER_IDENTITY_H

#include "renderer_build.h"

#define RENDERER_IDENTITY CONSTANCIA_VERSION "-" RENDERER_BUILD

#endif
