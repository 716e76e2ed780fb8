#include "base/json_file.h"

#include "base/durable.h"

int json_file_replace(const char *path, struct json_writer *writer, struct error *error)
{
	json_end_object(writer);
	buf_add_byte(writer->out, '\n');
	int result = buf_check(writer->out);
	return result ? result : durable_replace(path, 0600, buf_slice(writer->out), error);
}
