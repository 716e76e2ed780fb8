/* JSON documents in files of the program's own. */
#ifndef BASE_JSON_FILE_H
#define BASE_JSON_FILE_H

#include "base/json.h"

/* Ends the object that `writer` began and atomically replaces the file `path` (0600) with it and a
 * line feed. */
int json_file_replace(const char *path, struct json_writer *writer, struct error *error) MUST_CHECK;

#endif
