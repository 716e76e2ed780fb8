/* Evidence is verified with each call failing in turn: memory, files, OpenSSL. A failure to read,
 * store or compute is reported as such. It is not a verdict, neither that the evidence is valid nor
 * that it is not. */
#include <unistd.h>

#include "testing.h"
#include "failing.h"
#include "ledger/ledger.h"
#include "report/pdf_sign.h"
#include "report/report.h"
#include "verify/extract.h"
#include "stride.h"
#include "test_archive_fixture.h"
#include "test_report_facts.h"
#include "test_report_tools.h"

#define ALL (FAILING_MEMORY | FAILING_FILES | FAILING_OPENSSL)

static struct fixture fixture;
static struct fixture_archive first, second;
static char report[FIXTURE_PATH_SIZE];

static const struct fixture_plan plan = {
	.mode = MODE_LIVE, .total = 5, .first = 2, .last = 4, .segment_size = 2, .content = true};

static void make_report(void)
{
	static struct sample sample;
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct pdf_signed made;
	char base[FIXTURE_PATH_SIZE];
	sample_ordinary(&sample, plan.last - plan.first + 1);
	struct report_facts *facts = &sample.facts;
	facts->log = (struct report_log){0}; /* the archive has no places in a log */
	facts->certification_id = FIXTURE_CERTIFICATION;
	facts->verification_code = FIXTURE_CODE;
	facts->channel_id = FIXTURE_CHANNEL;
	facts->first_sequence = plan.first;
	facts->last_sequence = plan.last;
	facts->first_chain_hash = first.first_chain_hash;
	facts->last_chain_hash = first.last_chain_hash;
	facts->archive_digest = first.sum.sha256;
	facts->archive_size_bytes = (int64_t)first.sum.size_bytes;
	snprintf(base, sizeof base, "%s/base.pdf", fixture.directory);
	snprintf(report, sizeof report, "%s/report.pdf", fixture.directory);
	assert_int_equal(tools_render(facts, LANGUAGE_ENGLISH, base, NULL), 0);
	assert_int_equal(pdf_sign(base, report, clock_now_us(), &signing, NULL, &made, NULL), 0);
}

static int set_up(void **state)
{
	fixture_open(&fixture);
	assert_int_equal(fixture_make(&fixture, "verified", &plan, &first), 0);
	make_report();
	struct fixture_plan next = plan;
	next.first = next.last = 5;
	snprintf(fixture.certification, sizeof fixture.certification, "CERT-2026-0000002");
	assert_int_equal(fixture_make(&fixture, "next", &next, &second), 0);
	return 0;
}

/* Makes each call of a verification that ends with `verdict` fail in turn. */
static void verify_with_in_turn(const char *const *paths, size_t count,
                                const struct verify_options *options, int verdict, int calls_min)
{
	size_t failures = 0;
	int wrong = 0;
	for (int at = 1;; STRIDE(at)) {
		struct verify_result result = {0};
		struct error error = {0};
		failing_arm(ALL, at);
		int code = verify_paths(paths, count, &fixture.roots, options, &result, &error);
		const char *failed = failing_disarm();
		int exit_code = code < 0 ? 2 : verify_exit_code(&result);
		if (!failed) {
			assert_int_equal(exit_code, verdict);
			verify_result_free(&result);
			break;
		}
		failures++;
		/* A fault that was found earlier is still reported. */
		bool good = exit_code == 2 || (verdict == 1 && exit_code == 1);
		if (!good)
			print_error("call %d, %s: %s: %s\n", at, failed, exit_code ? "not valid" : "VALID",
			            result.first ? result.first->what : "?");
		wrong += !good;
		verify_result_free(&result);
	}
	assert_true(failures * stride_max() > (size_t)calls_min);
	assert_int_equal(wrong, 0);
}

static void verify_in_turn(const char *const *paths, size_t count, int verdict, int calls_min)
{
	verify_with_in_turn(paths, count, NULL, verdict, calls_min);
}

/* Extracts the record of event 3 from the archive. */
static int extract(struct arena *arena, struct extracted *extracted, struct error *error)
{
	char event_id[ID_SIZE];
	event_id_make(FIXTURE_CHANNEL, MODE_LIVE, 3, event_id);
	arena_init(arena, (size_t)16 << 20);
	return extract_record(&(struct extraction){first.path, event_id, NULL, NULL}, arena, extracted,
	                      error);
}

TEST_CASE(a_chain_of_archives_with_content)
{
	const char *paths[] = {first.path, first.part_paths[0], second.path, second.part_paths[0]};
	verify_in_turn(paths, 2, 0, 100);
	verify_in_turn(paths, 4, 0, 200);
}

/* The later archive needs the bridge, and the last one has the seals before it. */
TEST_CASE(a_bridge_between_archives)
{
	struct fixture_plan one = {
		.mode = MODE_LIVE, .total = 3, .first = 1, .last = 1, .segment_size = 1};
	struct fixture_archive earlier, later, last;
	char bridge[FIXTURE_PATH_SIZE];
	snprintf(fixture.certification, sizeof fixture.certification, "CERT-2026-0000003");
	assert_int_equal(fixture_make(&fixture, "earlier", &one, &earlier), 0);
	one.first = one.last = 3;
	snprintf(fixture.certification, sizeof fixture.certification, "CERT-2026-0000004");
	assert_int_equal(fixture_make(&fixture, "later", &one, &later), 0);
	fixture.history = HISTORY_GOOD;
	snprintf(fixture.certification, sizeof fixture.certification, "CERT-2026-0000005");
	assert_int_equal(fixture_make(&fixture, "last", &one, &last), 0);
	fixture.history = HISTORY_NONE;
	snprintf(bridge, sizeof bridge, "%s/bridge.ndjson", fixture.directory);
	fixture_write_seals(&fixture, 1, 2, bridge);
	const char *bridges[] = {bridge};
	const struct verify_options options = {.bridges = bridges, .bridge_count = 1};
	const char *paths[] = {earlier.path, later.path};
	verify_with_in_turn(paths, 2, &options, 0, 100);
	fixture_write_seals(&fixture, 0, 1, bridge); /* it does not lead */
	verify_with_in_turn(paths, 2, &options, 1, 100);
	verify_in_turn((const char *const[]){last.path}, 1, 0, 50);
}

TEST_CASE(a_record_with_what_it_covers)
{
	ARENA_AUTO struct arena arena;
	struct extracted extracted;
	char record[FIXTURE_PATH_SIZE], data[FIXTURE_PATH_SIZE];
	int wrong = 0;
	for (int at = 1;; STRIDE(at)) {
		struct error error = {0};
		failing_arm(ALL, at);
		int result = extract(&arena, &extracted, &error);
		const char *failed = failing_disarm();
		if (!failed) {
			assert_int_equal(result, 0);
			assert_true(at > 40);
			break;
		}
		bool good = !result || result == ERR_NO_MEMORY || result == ERR_IO;
		if (!good)
			print_error("call %d, %s: %d %s\n", at, failed, result, error.cause);
		wrong += !good;
		arena_free(&arena);
	}
	assert_int_equal(wrong, 0);
	snprintf(record, sizeof record, "%s/event.ers", fixture.directory);
	snprintf(data, sizeof data, "%s/event.json", fixture.directory);
	fixture_write(record, extracted.record);
	fixture_write(data, extracted.event);
	const char *paths[] = {record, data, first.path, first.part_paths[0]};
	verify_in_turn(paths, 2, 2, 40); /* existence only */
	verify_in_turn(paths, 4, 0, 100);
}

TEST_CASE(a_report)
{
	const char *paths[] = {report, first.path, first.part_paths[0]};
	verify_in_turn(paths, 3, 0, 100);
}

/* No failure makes it valid. */
TEST_CASE(an_archive_that_was_altered)
{
	BUF_AUTO struct buf file = {.limit = (size_t)1 << 20};
	char path[FIXTURE_PATH_SIZE];
	fixture_read(first.path, &file);
	char *at = memmem(file.data, file.size, "A channel", 9);
	assert_non_null(at);
	at[0] = 'B';
	snprintf(path, sizeof path, "%s/altered.zip", fixture.directory);
	fixture_write(path, buf_slice(&file));
	const char *paths[] = {path, first.part_paths[0]};
	verify_in_turn(paths, 2, 1, 50);
}

struct swap {
	const char *path, *other;
	int left; /* progress callbacks until it happens */
};

/* Replaces a file that is being checked. */
static int swap_files(void *context, const char *path, uint64_t done, uint64_t total)
{
	struct swap *swap = context;
	(void)path, (void)done, (void)total;
	if (swap->left-- == 0)
		assert_int_equal(rename(swap->other, swap->path), 0);
	return 0;
}

TEST_CASE(a_file_that_is_replaced_meanwhile_is_not_checked)
{
	char part[FIXTURE_PATH_SIZE], other[FIXTURE_PATH_SIZE];
	BUF_AUTO struct buf good = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf bad = {.limit = (size_t)1 << 20};
	fixture_read(first.part_paths[0], &good);
	fixture_read(second.part_paths[0], &bad);
	snprintf(part, sizeof part, "%s/part.zip", fixture.directory);
	snprintf(other, sizeof other, "%s/other.zip", fixture.directory);
	const struct slice others[] = {buf_slice(&good), buf_slice(&bad)};
	for (size_t i = 0; i < 2; i++) {
		fixture_write(part, buf_slice(&good));
		fixture_write(other, others[i]);
		struct swap swap = {part, other, 0};
		struct verify_options options = {.progress = swap_files, .progress_context = &swap};
		struct verify_result result;
		struct error error = {0};
		const char *paths[] = {first.path, part};
		assert_int_equal(verify_paths(paths, 2, &fixture.roots, &options, &result, &error), 0);
		assert_true(swap.left < 0);
		assert_int_equal(verify_exit_code(&result), 2);
		assert_true(fixture_finds(&result, VERIFY_UNCHECKED, "", "replaced or changed"));
		verify_result_free(&result);
	}
}

TEST_MAIN(set_up, fixture_tear_down)
