/* What must be done with a certification's files at the least: each is read once and digested, and
 * what the archive holds compressed is compressed once, by zlib at its fastest. One thread.
 *
 *     bench-evidence ARCHIVE [FILE...]
 *
 * The text of the archive's compressed files is taken from it first, outside of what is measured.
 * Prints one JSON document: seconds by the clock and of the processor, of digesting all files, of
 * deflating the text, and of inflating it again. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK_SIZE ((size_t)64 * 1024)
#define LEVEL 1
#define LOCAL_SIZE 30
#define LINE_BYTES 512 /* given to deflate at once, as lines are */

struct cost {
	double seconds, processor_seconds;
};

static double seconds_by(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct cost cost_since(struct cost start)
{
	return (struct cost){seconds_by(CLOCK_MONOTONIC) - start.seconds,
	                     seconds_by(CLOCK_PROCESS_CPUTIME_ID) - start.processor_seconds};
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static uint64_t digest_file(const char *path)
{
	static unsigned char chunk[CHUNK_SIZE], digest[EVP_MAX_MD_SIZE];
	uint64_t bytes = 0;
	ssize_t size;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	int file = open(path, O_RDONLY);
	if (file < 0 || !context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
		fail(path);
	while ((size = read(file, chunk, sizeof chunk)) > 0) {
		if (EVP_DigestUpdate(context, chunk, (size_t)size) != 1)
			fail("digest");
		bytes += (uint64_t)size;
	}
	if (size < 0 || EVP_DigestFinal_ex(context, digest, NULL) != 1)
		fail(path);
	EVP_MD_CTX_free(context);
	close(file);
	return bytes;
}

/* The compressed files of the archive and all their text. */
struct streams {
	const unsigned char **at;
	size_t *size, count;
	unsigned char *text;
	uint64_t text_bytes;
};

static uint32_t get(const unsigned char *at, int bytes)
{
	uint32_t value = 0;
	for (int i = bytes - 1; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

/* Entries follow each other and are not compressed by the ZIP itself. */
static struct streams find_streams(const char *path)
{
	struct stat facts;
	struct streams found = {0};
	int file = open(path, O_RDONLY);
	if (file < 0 || fstat(file, &facts) < 0)
		fail(path);
	const unsigned char *archive =
		mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
	if (archive == MAP_FAILED)
		fail(path);
	for (size_t at = 0; memcmp(archive + at, "PK\3\4", 4) == 0;) {
		size_t size = get(archive + at + 18, 4), name = get(archive + at + 26, 2);
		at += LOCAL_SIZE + name;
		if (memcmp(archive + at - 3, ".gz", 3) == 0) {
			found.at = reallocarray(found.at, found.count + 1, sizeof *found.at);
			found.size = reallocarray(found.size, found.count + 1, sizeof *found.size);
			if (!found.at || !found.size)
				fail("memory");
			found.at[found.count] = archive + at;
			found.size[found.count++] = size;
		}
		at += size;
	}
	return found;
}

/* Appends the text at `text`, or discards it chunk by chunk if that is NULL. */
static uint64_t inflate_all(const struct streams *streams, unsigned char *text)
{
	static unsigned char chunk[CHUNK_SIZE];
	uint64_t bytes = 0;
	for (size_t i = 0; i < streams->count; i++) {
		z_stream gzip = {.next_in = (z_const Bytef *)streams->at[i],
		                 .avail_in = (uInt)streams->size[i]};
		if (inflateInit2(&gzip, 15 + 16) != Z_OK)
			fail("inflate");
		int outcome;
		do {
			gzip.next_out = text ? text + bytes : chunk;
			gzip.avail_out = CHUNK_SIZE;
			outcome = inflate(&gzip, Z_NO_FLUSH);
			bytes += CHUNK_SIZE - gzip.avail_out;
		} while (outcome == Z_OK);
		if (outcome != Z_STREAM_END)
			fail("inflate");
		inflateEnd(&gzip);
	}
	return bytes;
}

static uint64_t deflate_text(const unsigned char *text, uint64_t size)
{
	static unsigned char chunk[CHUNK_SIZE];
	uint64_t bytes = 0;
	z_stream gzip = {0};
	if (deflateInit2(&gzip, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		fail("deflate");
	for (uint64_t done = 0; done < size;) {
		uint64_t step = size - done < LINE_BYTES ? size - done : LINE_BYTES;
		gzip.next_in = (z_const Bytef *)text + done;
		gzip.avail_in = (uInt)step;
		done += step;
		int outcome;
		do {
			gzip.next_out = chunk;
			gzip.avail_out = CHUNK_SIZE;
			outcome = deflate(&gzip, done == size ? Z_FINISH : Z_NO_FLUSH);
			bytes += CHUNK_SIZE - gzip.avail_out;
		} while (gzip.avail_out == 0 && outcome != Z_STREAM_END);
	}
	deflateEnd(&gzip);
	return bytes;
}

static void print(const char *name, struct cost cost, uint64_t bytes, const char *end)
{
	printf("\"%s\": {\"seconds\": %.4f, \"processor_seconds\": %.4f, \"bytes\": %llu}%s", name,
	       cost.seconds, cost.processor_seconds, (unsigned long long)bytes, end);
}

int main(int count, char **arguments)
{
	if (count < 2) {
		fprintf(stderr, "usage: %s ARCHIVE [FILE...]\n", arguments[0]);
		return 2;
	}
	struct streams streams = find_streams(arguments[1]);
	streams.text_bytes = inflate_all(&streams, NULL);
	streams.text = malloc(streams.text_bytes + CHUNK_SIZE);
	if (!streams.text || inflate_all(&streams, streams.text) != streams.text_bytes)
		fail("text");

	struct cost start = cost_since((struct cost){0});
	uint64_t bytes = 0;
	for (int i = 1; i < count; i++)
		bytes += digest_file(arguments[i]);
	struct cost digest = cost_since(start);
	start = cost_since((struct cost){0});
	uint64_t deflated = deflate_text(streams.text, streams.text_bytes);
	struct cost deflating = cost_since(start);
	start = cost_since((struct cost){0});
	inflate_all(&streams, NULL);
	struct cost inflating = cost_since(start);

	printf("{\"text_bytes\": %llu, ", (unsigned long long)streams.text_bytes);
	print("digest", digest, bytes, ", ");
	print("deflate", deflating, deflated, ", ");
	print("inflate", inflating, streams.text_bytes, "}\n");
	return 0;
}
