#include "trustlist/trusted_list.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "trustlist/trusted_list_wire.h"

#define ARENA_MAX (4 * TRUSTED_LIST_WIRE_MAX)

const char *list_status_text(enum list_status standing)
{
	static const char *const texts[] = {"unknown", "not_qualified", "qualified"};
	assert((size_t)standing < sizeof texts / sizeof *texts);
	return texts[standing];
}

struct files {
	int list, report, inquiry;
};

static void files_close(struct files *files)
{
	descriptor_close(&files->list);
	descriptor_close(&files->report);
	descriptor_close(&files->inquiry);
}

static int open_files(struct files *files, const char *path, struct slice inquiry,
                      struct error *error)
{
	struct stat facts;
	files->list = file_open_to_read(path, 0, &facts);
	if (files->list < 0)
		return file_fail(error, "opening", path);
	if (!S_ISREG(facts.st_mode) || facts.st_size > (off_t)TRUSTED_LIST_MAX)
		return error_cause(error, ERR_IO,
		                   "%s is not a regular file, or is too large for a trusted list", path);
	if (facts.st_size == 0)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the trusted list is empty");
	files->report = memfd_create("report", MFD_CLOEXEC);
	files->inquiry = memfd_create("inquiry", MFD_CLOEXEC);
	if (files->report < 0 || files->inquiry < 0 || !file_write_all(files->inquiry, inquiry))
		return error_cause(error, ERR_NO_MEMORY,
		                   "creating the files for the trusted list reader: %s", strerror(errno));
	return OK;
}

int trusted_list_check(struct error *error)
{
	char path[CHILD_PATH_MAX];
	int result = child_find(TRUSTED_LIST_NAME, TRUSTED_LIST_INSTALLED, path, error);
	if (!result && access(path, X_OK) != 0)
		result = error_cause(error, ERR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	return result;
}

static int run(const struct files *files, struct error *error)
{
	char *const words[] = {TRUSTED_LIST_NAME, NULL};
	DESCRIPTOR_AUTO int program = -1;
	int result = child_open(TRUSTED_LIST_NAME, TRUSTED_LIST_INSTALLED, &program, error);
	if (!result)
		result = child_run(&(struct child){program,
		                                   words,
		                                   {files->list, files->report, files->inquiry},
		                                   TRUSTED_LIST_SECONDS * 1000},
		                   error);
	return result == CHILD_FAILED
	           ? error_cause(error, ERR_UNAVAILABLE, "the trusted list reader could not run")
	           : result;
}

static int read_report(int file, struct arena *arena, struct list_response *ret_report,
                       struct error *error)
{
	struct stat facts;
	if (fstat(file, &facts) != 0 || facts.st_size > (off_t)TRUSTED_LIST_WIRE_MAX)
		return error_cause(error, ERR_UNAVAILABLE,
		                   "the output of the trusted list reader is too large");
	char *text = arena_alloc(arena, (size_t)facts.st_size + 1);
	if (!text || pread(file, text, (size_t)facts.st_size, 0) != facts.st_size)
		return error_cause(error, ERR_NO_MEMORY, "reading the output of the trusted list reader");
	int result =
		list_response_read(slice_make(text, (size_t)facts.st_size), arena, ret_report, error);
	if (!result && ret_report->refused[0])
		return error_cause(error, ERR_INVALID_EVIDENCE, "%s", ret_report->refused);
	return result;
}

int trusted_list_query(const char *path, struct slice roots_pem, int64_t at_us,
                       const struct list_question *questions, size_t count,
                       struct list_answer *ret_answers, struct list_facts *ret_facts,
                       struct error *error)
{
	assert(path && ret_answers && ret_facts);
	__attribute__((cleanup(files_close))) struct files files = {-1, -1, -1};
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	struct list_response report;
	arena_init(&arena, ARENA_MAX);
	buf_init(&text, TRUSTED_LIST_WIRE_MAX);
	struct list_request inquiry = {roots_pem, at_us, (struct list_question *)questions, count};
	int result = list_request_write(&inquiry, &text);
	if (!result)
		result = open_files(&files, path, buf_slice(&text), error);
	if (!result)
		result = run(&files, error);
	if (!result)
		result = read_report(files.report, &arena, &report, error);
	if (!result && report.count != count)
		result = error_cause(error, ERR_UNAVAILABLE,
		                     "the trusted list reader did not answer all questions");
	if (result)
		return result;
	for (size_t i = 0; i < count; i++)
		ret_answers[i] = report.answers[i];
	*ret_facts = report.facts;
	return OK;
}
