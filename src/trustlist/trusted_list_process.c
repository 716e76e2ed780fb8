/* The program that reads a trusted list. Descriptor 0 is the list, 1 the response, 2 the request.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/file.h"
#include "trustlist/trusted_list_wire.h"
#include "trustlist/trusted_list_xml.h"

#define MEMORY_MAX ((size_t)1 << 30)
#define CLOCK_TOLERANCE_US (300 * US_PER_SECOND)
#define DURATION_MAX_US (214 * US_PER_DAY) /* seven months, because some lists are updated late */
#define ARENA_MAX (4 * TRUSTED_LIST_WIRE_MAX)

static int read_file(int file, size_t size_max, struct buf *out)
{
	struct stat facts;
	buf_init(out, size_max + 1);
	if (fstat(file, &facts) != 0 || facts.st_size <= 0 || facts.st_size > (off_t)size_max)
		return ERR_IO;
	char *to = buf_extend(out, (size_t)facts.st_size);
	return to && pread(file, to, (size_t)facts.st_size, 0) == facts.st_size ? OK : ERR_IO;
}

/* ETSI TS 119 612 section 5.3.15: the next update is due within six months, unless the list is
 * closed. */
static int check_dates(const struct list_facts *facts, int64_t at_us, struct error *error)
{
	char issued[TIME_TEXT_SIZE], next[TIME_TEXT_SIZE] = "";
	time_format(facts->issued_us, issued);
	if (facts->next_us != TIME_NONE)
		time_format(facts->next_us, next);
	if (facts->issued_us > clock_now_us() + CLOCK_TOLERANCE_US)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the issue time of the trusted list, %s, is in the future", issued);
	if (facts->next_us == TIME_NONE)
		return OK;
	if (facts->next_us <= facts->issued_us || facts->next_us - facts->issued_us > DURATION_MAX_US)
		return error_cause(
			error, ERR_INVALID_EVIDENCE,
			"the trusted list was issued %s, but states %s as the time of its next update", issued,
			next);
	if (facts->next_us < at_us)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the trusted list is out of date: its next update was due %s", next);
	return OK;
}

static int judge(const struct list_request *inquiry, struct slice text,
                 struct list_response *report, struct error *error)
{
	struct list list;
	int result = list_parse(text, &list, error);
	if (result)
		return result;
	result = list_verify(&list, inquiry->roots_pem, error);
	if (!result)
		result = check_dates(&list.facts, inquiry->at_us, error);
	for (size_t i = 0; i < inquiry->count && !result; i++)
		list_judge(&list, &inquiry->questions[i], &report->answers[i]);
	if (!result)
		report->count = inquiry->count;
	report->facts = list.facts;
	list_free(&list);
	return result;
}

static int answer(struct slice question, struct slice text, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf out;
	struct list_request inquiry;
	struct list_response report = {0};
	struct error cause = {0};
	arena_init(&arena, ARENA_MAX);
	buf_init(&out, TRUSTED_LIST_WIRE_MAX);
	int result = list_request_read(question, &arena, &inquiry, error);
	if (result)
		return result;
	report.answers = arena_alloc(&arena, (inquiry.count + 1) * sizeof *report.answers);
	if (!report.answers)
		return ERR_NO_MEMORY;
	if (judge(&inquiry, text, &report, &cause))
		snprintf(report.refused, sizeof report.refused, "%s",
		         cause.cause[0] ? cause.cause : "the trusted list cannot be read");
	result = list_response_write(&report, &out);
	return result ? result : file_write_all(STDOUT_FILENO, buf_slice(&out)) ? OK : ERR_IO;
}

void trusted_list_run(void)
{
	BUF_AUTO struct buf question = {0}, text = {0};
	struct error error = {0};
	bool confined;
	int result = child_bound(&(struct child_bounds){"trusted-list", TRUSTED_LIST_SECONDS,
	                                                TRUSTED_LIST_WIRE_MAX, MEMORY_MAX},
	                         &error);
	if (!result)
		result = list_libraries_begin(&error);
	if (!result)
		result = read_file(STDERR_FILENO, TRUSTED_LIST_WIRE_MAX, &question);
	if (!result)
		result = read_file(STDIN_FILENO, TRUSTED_LIST_MAX, &text);
	if (!result)
		result = confine_files(NULL, 0, &confined, &error);
	if (!result)
		result = confine_calls(NULL, 0, &error);
	if (!result)
		result = answer(buf_slice(&question), buf_slice(&text), &error);
	_exit(result ? 1 : 0);
}
