/* Files that travel inside the program, made by embed.py. */
#ifndef HTTP_EMBEDDED_H
#define HTTP_EMBEDDED_H

#include <stddef.h>

extern const char embedded_openapi[], embedded_style[], embedded_script[];
extern const size_t embedded_openapi_size, embedded_style_size, embedded_script_size;

#endif
