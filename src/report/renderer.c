#include "report/renderer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/confine.h"
#include "base/file.h"
#include "report/renderer_identity.h"
#include "report/renderer_process.h"
#include "report/report_wire.h"

#define CAUSE_PREFIX "renderer: "

struct drawing {
	int facts;  /* the facts to read */
	int report; /* the report to write */
	int timeout_ms;
	int error_read_end; /* read end of the pipe for the error */
	int error_write_end;
	bool started; /* the program was executed */
};

/* Makes the file of the facts. `written` is the result of encoding them into `wire`. */
static int make_facts(int written, const struct buf *wire, struct drawing *drawing,
                      struct error *error)
{
	if (written)
		return error_cause(error, written, "encoding the report data");
	drawing->facts = memfd_create("facts", MFD_CLOEXEC);
	if (drawing->facts < 0 ||
	    pwrite(drawing->facts, wire->data, wire->size, 0) != (ssize_t)wire->size)
		return error_cause(error, ERR_NO_MEMORY, "encoding the report data: %s", strerror(errno));
	return OK;
}

/* Reads the last line of the pipe, shortened to its beginning if it is too long. */
static void read_last_line(int error_read_end, char *text, size_t size)
{
	char chunk[4096];
	size_t used = 0;
	bool ended = false;
	for (ssize_t got; (got = read(error_read_end, chunk, sizeof chunk)) > 0;)
		for (ssize_t i = 0; i < got; i++) {
			if (ended)
				used = 0;
			ended = chunk[i] == '\n';
			if (!ended && used < size - 1)
				text[used++] = chunk[i] < ' ' || chunk[i] > '~' ? '?' : chunk[i];
		}
	text[used] = '\0';
}

/* Reads the error of the renderer, the last line of the pipe after any output of libraries: an
 * error code, a space, the cause. The drawn text may have compromised the process, so only error
 * codes that a renderer can return are accepted. */
static int read_failure(int error_read_end, struct error *error)
{
	static const int known[] = {ERR_VALIDATION, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY, ERR_INTERNAL};
	char text[ERROR_CAUSE_MAX / 2] = "";
	int result = 0, used = 0;
	read_last_line(error_read_end, text, sizeof text);
	if (sscanf(text, "%d %n", &result, &used) >= 1)
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (result == known[i])
				return error_cause(error, result, CAUSE_PREFIX "%s", text + used);
	return error_cause(error, ERR_INTERNAL, CAUSE_PREFIX "%s", text);
}

static int open_pipe(struct drawing *drawing, struct error *error)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0)
		return error_cause(error, ERR_IO, "pipe: %s", strerror(errno));
	drawing->error_read_end = pipes[0];
	drawing->error_write_end = pipes[1];
	return OK;
}

/* Runs the renderer on the facts. */
static int run(const struct renderer *renderer, struct drawing *drawing, struct error *error)
{
	char *const words[] = {"renderer", RENDERER_IDENTITY, NULL};
	int result = open_pipe(drawing, error);
	const struct child child = {renderer->program,
	                            words,
	                            {drawing->facts, drawing->report, drawing->error_write_end},
	                            drawing->timeout_ms};
	pid_t id;
	if (!result)
		result = child_start(&child, &id, error);
	drawing->started = !result;
	if (!result)
		result = child_await(&child, id, error);
	if (result == CHILD_FAILED)
		result = read_failure(drawing->error_read_end, error);
	descriptor_close(&drawing->error_read_end);
	descriptor_close(&drawing->error_write_end);
	return result;
}

static struct drawing begin(const struct renderer *renderer)
{
	return (struct drawing){.facts = -1,
	                        .report = -1,
	                        .error_read_end = -1,
	                        .error_write_end = -1,
	                        .timeout_ms = renderer->timeout_ms};
}

int renderer_draw(const struct renderer *renderer, const struct report_facts *facts,
                  enum language language, const char *path, struct error *error)
{
	struct drawing drawing = begin(renderer);
	BUF_AUTO struct buf wire;
	buf_init(&wire, REPORT_WIRE_MAX);
	int written = report_wire_write(facts, language, &wire);
	int result = make_facts(written, &wire, &drawing, error);
	if (!result) {
		drawing.report = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
		result = drawing.report >= 0 ? run(renderer, &drawing, error)
		                             : error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	}
	if (result && drawing.report >= 0)
		unlink(path);
	descriptor_close(&drawing.facts);
	descriptor_close(&drawing.report);
	return result;
}

bool renderer_can_restrict_files(void)
{
	return confine_knows_files();
}

/* ---- the program ---- */

int renderer_open(const char *path, struct renderer *ret_renderer, struct error *error)
{
	int program = open(path, O_PATH | O_CLOEXEC);
	if (program < 0)
		return error_cause(error, ERR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	*ret_renderer = (struct renderer){program, RENDERER_TIMEOUT_S * 1000};
	return OK;
}

void renderer_close(struct renderer *renderer)
{
	descriptor_close(&renderer->program);
	renderer->program = -1;
}

int renderer_check(const struct renderer *renderer, bool *ret_started, struct error *error)
{
	struct drawing drawing = begin(renderer);
	drawing.facts = memfd_create("no facts", MFD_CLOEXEC);
	drawing.report = memfd_create("no report", MFD_CLOEXEC);
	int result = drawing.facts >= 0 && drawing.report >= 0
	                 ? run(renderer, &drawing, error)
	                 : error_cause(error, ERR_NO_MEMORY, "memfd_create: %s", strerror(errno));
	descriptor_close(&drawing.facts);
	descriptor_close(&drawing.report);
	*ret_started = drawing.started;
	return result;
}

/* Advises to install the program only if it could not be executed or reported an error itself; a
 * signal, a time-out or a lack of memory has another cause. */
static int explain(const char *path, int result, bool started, const struct error *cause,
                   struct error *error)
{
	const size_t prefix = sizeof CAUSE_PREFIX - 1;
	const bool reported = strncmp(cause->cause, CAUSE_PREFIX, prefix) == 0;
	if (reported && result == ERR_IO) /* the renderer works, but files are missing */
		return error_set(error, ERR_UNAVAILABLE, MSG_RENDERER_MISSES, cause->cause + prefix, NULL);
	const bool is_unusable =
		reported ? result != ERR_NO_MEMORY : result == ERR_UNAVAILABLE && !started;
	return error_set(error, ERR_UNAVAILABLE,
	                 is_unusable ? MSG_RENDERER_UNUSABLE : MSG_RENDERER_FAILED, path,
	                 error_reason(cause, result), NULL);
}

int renderer_find(struct renderer *ret_renderer, struct error *error)
{
	char path[CHILD_PATH_MAX];
	struct error local = {0};
	bool started = false;
	int result = child_find(RENDERER_NAME, RENDERER_INSTALLED, path, error);
	if (result)
		return result;
	result = renderer_open(path, ret_renderer, &local);
	if (result)
		return explain(path, result, started, &local, error);
	result = renderer_check(ret_renderer, &started, &local);
	if (!result)
		return OK;
	renderer_close(ret_renderer);
	return explain(path, result, started, &local, error);
}
