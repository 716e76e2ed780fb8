/* The log on a disk that loses data without a sync: wrapped calls keep, next to the file, the state
 * that a power cut would leave. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seal/signer_log.h"

#define DISK_MAX 131072

static struct {
	char synced[DISK_MAX]; /* state after a power cut */
	size_t size;
	bool dirty[DISK_MAX]; /* written since the last sync, successful or not */
	bool directory_synced;
	int failing_syncs;
	int failing_writes;
	int write_error;
	size_t short_write; /* bytes that the failing write still writes */
} disk;

int __real_fsync(int file);
int __real_fdatasync(int file);
ssize_t __real_pwrite64(int file, const void *data, size_t size, off_t offset);
int __wrap_fsync(int file);
int __wrap_fdatasync(int file);
ssize_t __wrap_pwrite64(int file, const void *data, size_t size, off_t offset);

ssize_t __wrap_pwrite64(int file, const void *data, size_t size, off_t offset)
{
	if (disk.failing_writes > 0) {
		disk.failing_writes--;
		if (disk.short_write > 0)
			(void)!__real_pwrite64(file, data, disk.short_write, offset);
		errno = disk.write_error;
		return -1;
	}
	assert_true((size_t)offset + size <= DISK_MAX);
	memset(disk.dirty + offset, true, size);
	return __real_pwrite64(file, data, size, offset);
}

/* As in Linux: whether the sync succeeds or not, the pages are clean afterwards. */
static int sync_file(int file)
{
	struct stat found;
	char byte;

	assert_int_equal(fstat(file, &found), 0);
	if (S_ISDIR(found.st_mode)) {
		disk.directory_synced = true;
		return 0;
	}
	bool fails = disk.failing_syncs > 0 && disk.failing_syncs--;
	for (off_t i = 0; i < found.st_size && !fails; i++)
		if (disk.dirty[i] && pread(file, &byte, 1, i) == 1)
			disk.synced[i] = byte;
	memset(disk.dirty, 0, sizeof disk.dirty);
	if (!fails)
		disk.size = (size_t)found.st_size;
	errno = EIO;
	return fails ? -1 : 0;
}

int __wrap_fsync(int file)
{
	return sync_file(file);
}

int __wrap_fdatasync(int file)
{
	return sync_file(file);
}

/* Cuts the power: only the synced state remains. */
static void cut_power(void)
{
	FILE *file = fopen(scratch_path("signer.log"), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(disk.synced, 1, disk.size, file), disk.size);
	fclose(file);
}

static int begin(void **state)
{
	memset(&disk, 0, sizeof disk);
	return scratch_begin(state);
}

static struct signer_log opened(void)
{
	struct signer_log log = {.file = -1};
	struct error error = {0};
	if (signer_log_open(scratch, NULL, NULL, &log, &error) != 0)
		fail_msg("%s", error.cause);
	return log;
}

static int add(struct signer_log *log, const char *what)
{
	struct signer_log_entry entry = {.purpose = slice_of("report"),
	                                 .sha256 = sha256_of(what, strlen(what))};
	return signer_log_add(log, &entry, slice_make(NULL, 0), NULL);
}

struct heard {
	int count;
	struct sha256 last;
	char purpose[32];
};

static int hear(void *context, const struct signer_log_entry *entry)
{
	struct heard *heard = context;
	heard->count++;
	heard->last = entry->sha256;
	snprintf(heard->purpose, sizeof heard->purpose, "%.*s", (int)entry->purpose.size,
	         entry->purpose.data);
	return 0;
}

static struct heard read_back(void)
{
	struct heard heard = {0};
	struct signer_log_facts facts;
	struct error error = {0};
	if (signer_log_check(scratch, hear, &heard, &facts, &error) != 0)
		fail_msg("%s", error.cause);
	assert_int_equal(facts.lines, heard.count);
	assert_int_equal(facts.torn_size, 0);
	return heard;
}

static void assert_corrupt(const char *cause)
{
	struct signer_log log = {.file = -1};
	struct signer_log_facts facts;
	struct error error = {0};
	assert_int_equal(signer_log_check(scratch, NULL, NULL, &facts, &error), ERR_CORRUPT);
	assert_int_equal(signer_log_open(scratch, NULL, NULL, &log, &error), ERR_CORRUPT);
	assert_int_equal(log.file, -1);
	if (!strstr(error.cause, cause))
		fail_msg("%s instead of %s", error.cause, cause);
}

static void write_three(void)
{
	struct signer_log log = opened();
	assert_int_equal(add(&log, "1"), 0);
	assert_int_equal(add(&log, "2"), 0);
	assert_int_equal(add(&log, "3"), 0);
	close(log.file);
}

TEST_CASE(test_chain_can_be_recomputed)
{
	write_three();
	assert_int_equal(read_back().count, 3);
	assert_int_equal(
		scratch_run(
			"p=$(printf '%%064d' 0); while IFS= read -r line; do "
			"test \"$(printf '%%s' \"$line\" | jq -r .previous)\" = $p || exit 1; "
			"p=$(printf '%%s\\n' \"$line\" | sha256sum | cut -d' ' -f1); done < signer.log"),
		0);
}

/* A line that is removed, added, changed or swapped with another. */
TEST_CASE(test_tampering_is_found)
{
	static const struct {
		const char *change;
		const char *cause;
	} cases[] = {
		{"sed -i 2d signer.log", "line 2: its hash does not match"},
		{"sed -i 1d signer.log", "line 1: its hash does not match"},
		{"sed -i '2s/report/parade/' signer.log", "line 3: its hash does not match"},
		{"sed -i '2{h;d};3G' signer.log", "line 2: its hash does not match"},
		{"sed -i '2s/,\"previous.*/}/' signer.log", "line 2: it does not name"},
		{"sed -i '2s/{/[/' signer.log", "line 2: not a line"},
		{"sed -i '3s/\"previous\":\"./\"previous\":\"x/' signer.log",
	     "line 3: its hash does not match"},
		{"head -c 100000 /dev/zero >> signer.log", "line 4: not a line"},
		{"head -c 3000 /dev/zero >> signer.log", "line 4: not a line"},
		{"{ head -c 2000 /dev/zero; echo; head -c 48 /dev/zero; } >> signer.log",
	     "line 4: not a line"},
		{"sed -i '2s/{/[/' signer.log && truncate -s -1 signer.log", "line 2: not a line"},
		{"sed -i '2s/{/\\n/' signer.log", "line 2: not a line"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		scratch_run("rm -f signer.log");
		write_three();
		assert_int_equal(scratch_run("%s", cases[i].change), 0);
		assert_corrupt(cases[i].cause);
	}
}

/* The remains of the line that was being written at a power cut, with its pages in any order. */
TEST_CASE(test_torn_line_is_cut_off)
{
	static const char *const tears[] = {
		"printf '{\"time\":\"2026' >> signer.log",
		"head -c 200 /dev/zero >> signer.log",
		"{ head -c 200 /dev/zero; echo; } >> signer.log",
		"{ head -c 80 /dev/zero; echo 'a\":\"b\"}'; } >> signer.log",
		"printf 'ab\\ncd' >> signer.log",
		"printf '\\n\\nab\\n' >> signer.log",
		"printf '\\n' >> signer.log",
		"{ head -c 2000 /dev/zero; echo; head -c 47 /dev/zero; } >> signer.log",
		"truncate -s -1 signer.log",
	};
	const size_t count = sizeof tears / sizeof *tears;
	for (size_t i = 0; i < count; i++) {
		scratch_run("rm -f signer.log");
		write_three();
		assert_int_equal(scratch_run("%s", tears[i]), 0);
		struct signer_log log = opened();
		assert_int_equal(add(&log, "4"), 0);
		close(log.file);
		struct heard heard = read_back();
		assert_int_equal(heard.count, i == count - 1 ? 4 : 5); /* its entry, the new one */
		assert_int_equal(scratch_run("grep -c torn_line signer.log | grep -qx 1"), 0);
	}
}

/* It begins in one block of the reader and ends in another. */
TEST_CASE(test_torn_line_across_blocks)
{
	struct signer_log log = opened();
	while (log.size < 65536 - 300)
		assert_int_equal(add(&log, "x"), 0);
	close(log.file);
	struct heard before = read_back();
	assert_int_equal(scratch_run("{ head -c 20 /dev/zero; echo; head -c 1000 /dev/zero; } "
	                             ">> signer.log"),
	                 0);
	log = opened();
	close(log.file);
	assert_int_equal(read_back().count, before.count + 1);
}

/* Logs of versions without the hash chain. */
TEST_CASE(test_older_lines)
{
	scratch_run("for i in 1 2 3; do echo '{\"time\":\"2026-01-01T00:00:00.000000Z\",\"purpose\":"
	            "\"report\",\"sha256\":\"'$(printf '%%064d' $i)'\"}'; done > signer.log");
	struct signer_log log = opened();
	assert_int_equal(add(&log, "4"), 0);
	close(log.file);
	assert_int_equal(read_back().count, 4);
	scratch_run("sed -i 2d signer.log");
	assert_int_equal(read_back().count, 3); /* these have no protection */
	scratch_run("sed -i '2s/report/parade/' signer.log");
	assert_corrupt("line 3: its hash does not match");
}

TEST_CASE(test_many_lines)
{
	struct signer_log log = opened();
	for (int i = 0; i < 300; i++)
		assert_int_equal(add(&log, "x"), 0);
	close(log.file);
	assert_int_equal(read_back().count, 300);
}

TEST_CASE(test_new_log_is_in_its_directory)
{
	struct signer_log log = opened();
	assert_true(disk.directory_synced);
	close(log.file);
}

/* A sync fails: the line is only in the page cache. The next process reads it and must write it to
 * the disk before it signs anything after it. */
TEST_CASE(test_what_was_read_is_durable)
{
	write_three();
	struct signer_log log = opened();
	disk.failing_syncs = 1;
	assert_int_equal(add(&log, "4"), ERR_IO);
	close(log.file);
	log = opened();
	assert_int_equal(add(&log, "5"), 0);
	close(log.file);
	cut_power();
	struct heard heard = read_back();
	assert_int_equal(heard.count, 5);
	struct sha256 last = sha256_of("5", 1);
	assert_memory_equal(&heard.last, &last, SHA256_SIZE);
}

TEST_CASE(test_start_refuses_what_it_cannot_make_durable)
{
	struct signer_log log = {.file = -1};
	struct error error = {0};
	write_three();
	disk.failing_syncs = 1;
	assert_int_equal(signer_log_open(scratch, NULL, NULL, &log, &error), ERR_IO);
	assert_non_null(strstr(error.cause, "cannot be made durable"));
	assert_int_equal(log.file, -1);
}

/* A full disk, with part of the line written or none: nothing of it remains, and signing resumes
 * later. */
TEST_CASE(test_full_disk)
{
	static const int errors[] = {ENOSPC, EDQUOT, EFBIG};
	struct signer_log log = opened();
	for (size_t i = 0; i < 6; i++) {
		disk.failing_writes = 1;
		disk.write_error = errors[i % 3];
		disk.short_write = i < 3 ? 0 : 10;
		assert_int_equal(add(&log, "full"), ERR_NO_SPACE);
	}
	assert_int_equal(add(&log, "1"), 0);
	disk.failing_writes = 1;
	disk.write_error = EIO;
	disk.short_write = 0;
	assert_int_equal(add(&log, "lost"), ERR_IO);
	close(log.file);
	assert_int_equal(read_back().count, 1);
}

/* A check that someone makes block on a pipe would never report its findings. */
TEST_CASE(test_a_pipe_in_its_place_is_not_waited_for)
{
	struct signer_log log = {.file = -1};
	struct signer_log_facts facts;
	struct error error = {0};
	assert_int_equal(mkfifo(scratch_path("signer.log"), 0600), 0);
	alarm(120);
	assert_int_equal(signer_log_check(scratch, NULL, NULL, &facts, &error), ERR_IO);
	assert_non_null(strstr(error.cause, "is not a regular file"));
	assert_int_equal(signer_log_open(scratch, NULL, NULL, &log, &error), ERR_IO);
	alarm(0);
}

TEST_MAIN_EACH(begin, scratch_end)
