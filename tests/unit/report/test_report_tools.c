#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "test_report_tools.h"

#define FILE_MAX ((size_t)64 << 20)

/* Pango, cairo and fontconfig keep data about fonts until the thread ends; the leak sanitizer
 * regards it as lost at the end of main. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig\nleak:libcairo\nleak:libpango\n";
}

void tools_read(const char *path, struct buf *out)
{
	buf_init(out, FILE_MAX);
	FILE *file = fopen(path, "rbe");
	assert_non_null(file);
	char block[65536];
	size_t got;
	while ((got = fread(block, 1, sizeof(block), file)) > 0)
		buf_add(out, block, got);
	fclose(file);
	assert_int_equal(buf_check(out), 0);
}

void tools_write(const char *path, struct slice data)
{
	FILE *file = fopen(path, "wbe");
	assert_non_null(file);
	assert_int_equal(fwrite(data.data, 1, data.size, file), data.size);
	assert_int_equal(fclose(file), 0);
}

int tools_run(struct buf *out, const char *format, ...)
{
	char command[2048];
	char line[4096];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_true(length > 0 && (size_t)length < sizeof(command) - 8);
	strcat(command, " 2>&1");
	buf_free(out);
	buf_init(out, FILE_MAX);
	FILE *pipe = popen(command, "re");
	assert_non_null(pipe);
	size_t got;
	while ((got = fread(line, 1, sizeof(line), pipe)) > 0)
		buf_add(out, line, got);
	int status = pclose(pipe);
	assert_int_equal(buf_check(out), 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void tools_words(const char *pdf, struct buf *out)
{
	BUF_AUTO struct buf text = {0};
	assert_int_equal(tools_run(&text, "pdftotext -enc UTF-8 '%s' -", pdf), 0);
	buf_free(out);
	buf_init(out, FILE_MAX);
	bool space = false;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		if (c == ' ' || c == '\n') {
			space = true;
			continue;
		}
		if (space && c != '\f')
			buf_add_byte(out, ' ');
		space = false;
		buf_add_byte(out, c);
	}
	assert_int_equal(buf_check(out), 0);
}

void tools_expect(const struct buf *words, const char *sentence)
{
	if (!memmem(words->data, words->size, sentence, strlen(sentence)))
		fail_msg("not found: %s", sentence);
}

int tools_render(const struct report_facts *facts, enum language language, const char *path,
                 struct error *error)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	int result = report_render(facts, language, file, error);
	close(file);
	return result;
}
