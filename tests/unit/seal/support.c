#include "support.h"

#include <sys/wait.h>
#include <unistd.h>

char scratch[SCRATCH_MAX];

int scratch_begin(void **state)
{
	scratch_make(scratch);
	return 0;
}

int scratch_end(void **state)
{
	scratch_remove(scratch);
	return 0;
}

const char *scratch_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", scratch, name);
	return path;
}

void scratch_write(const char *name, struct slice content)
{
	FILE *file = fopen(scratch_path(name), "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
	assert_int_equal(fclose(file), 0);
}

void scratch_read(const char *name, struct buf *out)
{
	char block[4096];
	size_t size;
	FILE *file = fopen(scratch_path(name), "rb");

	assert_non_null(file);
	buf_clear(out);
	while ((size = fread(block, 1, sizeof block, file)) > 0)
		buf_add(out, block, size);
	fclose(file);
	assert_int_equal(buf_check(out), 0);
}

int scratch_run(const char *format, ...)
{
	char command[2048];
	char whole[2304];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	snprintf(whole, sizeof whole, "cd '%s' && { %s; } >output 2>&1", scratch, command);
	int status = system(whole);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct signer *development_signer(void)
{
	struct signer_options options = {.directory = scratch_path("signer"), .development = true};
	struct signer *signer = NULL;
	struct error error = {0};

	if (signer_start(&options, &signer, &error) != 0)
		fail_msg("%s", error.cause);
	return signer;
}
