/* Uploads. Data is first written to an unnamed temporary file. So the size is known, parts can be
 * sent again, and the writer never blocks on the network. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/percent.h"
#include "base/tuned.h"
#include "content/s3/s3.h"
#include "content/s3/s3_xml.h"

#define CHUNK ((size_t)64 << 10)
#define UPLOAD_ID_MAX 1024
#define ETAG_MAX 136
#define COMPLETION_MAX ((size_t)8 << 20)

struct s3_writer {
	struct content_writer base;
	int descriptor;
	uint64_t size;
};

/* Part of a file that is being uploaded. */
struct piece {
	int descriptor;
	uint64_t offset;
	uint64_t size;
	struct sha256 digest;
};

static int fail(struct error *error, const char *what, int number)
{
	return error_cause(error, file_code(number), "content: %s: %s", what, strerrordesc_np(number));
}

/* ---- the spool ---- */

int s3_write_begin(struct content_store *base, struct content_writer **ret_writer,
                   struct error *error)
{
	const struct s3_store *store = (const struct s3_store *)base;
	struct s3_writer *writer = calloc(1, sizeof *writer);
	if (!writer)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a writer");
	writer->base.store = base;
	writer->descriptor = file_open_unnamed(store->spool_directory);
	if (writer->descriptor < 0) {
		int number = errno;
		free(writer);
		return fail(error, "creating a spool file", number);
	}
	*ret_writer = &writer->base;
	return OK;
}

int s3_write(struct content_writer *base, const void *data, size_t size, struct error *error)
{
	struct s3_writer *writer = (struct s3_writer *)base;
	if (!file_write_all(writer->descriptor, slice_make(data, size)))
		return fail(error, "writing a spool file", errno);
	writer->size += size;
	return OK;
}

void s3_write_abort(struct content_writer *base)
{
	struct s3_writer *writer = (struct s3_writer *)base;
	close(writer->descriptor);
	free(writer);
}

/* ---- parts of a file ---- */

static ssize_t read_at(int descriptor, void *data, size_t size, uint64_t offset)
{
	ssize_t got;
	do
		got = pread(descriptor, data, size, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got;
}

static size_t give(void *context, uint64_t offset, void *data, size_t size)
{
	const struct piece *piece = context;
	ssize_t got = read_at(piece->descriptor, data, size, piece->offset + offset);
	return got > 0 ? (size_t)got : 0;
}

static int digest_piece(struct piece *piece, struct error *error)
{
	char data[CHUNK];
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a digest");
	for (uint64_t done = 0; done < piece->size;) {
		size_t wanted = piece->size - done < CHUNK ? (size_t)(piece->size - done) : CHUNK;
		ssize_t got = read_at(piece->descriptor, data, wanted, piece->offset + done);
		if (got <= 0) {
			digest_cancel(digest);
			return fail(error, "reading the data to store", got < 0 ? errno : EIO);
		}
		digest_add(digest, data, (size_t)got);
		done += (uint64_t)got;
	}
	piece->digest = digest_end(digest);
	return OK;
}

/* Sends a PUT of an object or a part. The answer belongs to the caller in any case. */
static int put_piece(struct s3_store *store, const char *name, const char *query,
                     struct piece *piece, char checksum[48], struct s3_answer *ret_answer,
                     struct error *error)
{
	char header[80];
	*ret_answer = (struct s3_answer){0};
	int result = digest_piece(piece, error);
	if (result)
		return result;
	base64_encode(piece->digest.bytes, SHA256_SIZE, checksum);
	snprintf(header, sizeof header, "x-amz-checksum-sha256: %s", checksum);
	struct http_upload upload = {.read = give, .context = piece, .size = piece->size};
	struct s3_request request = {.method = "PUT",
	                             .name = name,
	                             .query = query,
	                             .headers = {header},
	                             .upload = &upload,
	                             .body_sha256 = &piece->digest,
	                             .checksum = checksum,
	                             .expected_bytes = piece->size};
	return s3_send(store, &request, ret_answer, error);
}

/* ---- multipart uploads ---- */

struct parts {
	struct s3_store *store;
	const char *name;
	uint64_t size;
	char mark[33]; /* stored with the object, to distinguish it from others of that name */
	char upload_id[UPLOAD_ID_MAX];
	char escaped_id[3 * UPLOAD_ID_MAX];
	struct buf completion;
};

static int begin_parts(struct parts *parts, struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	char mark_header[80];
	uint8_t random[(sizeof parts->mark - 1) / 2];
	random_bytes(random, sizeof random);
	hex_encode(random, sizeof random, parts->mark);
	snprintf(mark_header, sizeof mark_header, S3_UPLOAD_HEADER ": %s", parts->mark);
	struct s3_request request = {.method = "POST",
	                             .name = parts->name,
	                             .query = "uploads=",
	                             .headers = {"x-amz-checksum-algorithm: SHA256", mark_header}};
	int result = s3_send(parts->store, &request, &answer, error);
	if (!result)
		result = s3_xml_upload_id(buf_slice(&answer.http.body), parts->upload_id,
		                          sizeof parts->upload_id, error);
	if (result)
		return result;
	BUF_AUTO struct buf escaped;
	buf_init(&escaped, sizeof parts->escaped_id);
	buf_add_percent(&escaped, slice_of(parts->upload_id), "");
	result = buf_check(&escaped);
	if (!result)
		memcpy(parts->escaped_id, escaped.data, escaped.size + 1);
	return result;
}

static int send_part(struct parts *parts, struct piece *piece, unsigned number, struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	char query[sizeof parts->escaped_id + 48], checksum[48], etag[ETAG_MAX];
	snprintf(query, sizeof query, "partNumber=%u&uploadId=%s", number, parts->escaped_id);
	int result = put_piece(parts->store, parts->name, query, piece, checksum, &answer, error);
	if (result)
		return result;
	if (!s3_header(&answer, "ETag", etag, sizeof etag) || strpbrk(etag, "<>&"))
		return s3_protocol_error(error, "a part without a usable ETag");
	buf_printf(&parts->completion,
	           "<Part><ChecksumSHA256>%s</ChecksumSHA256><ETag>%s</ETag><PartNumber>%u</PartNumber>"
	           "</Part>",
	           checksum, etag, number);
	return OK;
}

static int send_parts(struct parts *parts, int descriptor, struct error *error)
{
	uint64_t part_size = (uint64_t)tuned_up_to("s3_part", S3_PART_SIZE);
	if (parts->size / part_size >= S3_PARTS_MAX)
		part_size = parts->size / (S3_PARTS_MAX - 1) + 1;
	int result = OK;
	unsigned number = 1;
	buf_add_text(&parts->completion,
	             "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (uint64_t offset = 0; offset < parts->size && !result; offset += part_size, number++) {
		uint64_t left = parts->size - offset;
		assert(number <= S3_PARTS_MAX);
		struct piece piece = {.descriptor = descriptor,
		                      .offset = offset,
		                      .size = left < part_size ? left : part_size};
		result = send_part(parts, &piece, number, error);
	}
	buf_add_text(&parts->completion, "</CompleteMultipartUpload>");
	return result ? result : buf_check(&parts->completion);
}

/* The answer to the last step may be lost or incomplete, so this checks the stored object. */
static int check_result(const struct parts *parts, const char *etag, struct error *error)
{
	struct s3_object object;
	int result = s3_head(parts->store, parts->name, &object, error);
	if (result)
		return result == ERR_NOT_FOUND
		           ? s3_protocol_error(error, "a completed upload left no object")
		           : result;
	if (object.size != parts->size)
		return s3_protocol_error(error, "the object of a completed upload has a wrong size");
	if (strcmp(object.upload, parts->mark) != 0)
		return s3_protocol_error(error, "a completed upload left an older object");
	if (etag && *object.etag && strcmp(object.etag, etag) != 0)
		return s3_protocol_error(error, "the object of a completed upload has a wrong ETag");
	return OK;
}

static int finish_parts(const struct parts *parts, struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	char query[sizeof parts->escaped_id + 16], etag[ETAG_MAX];
	snprintf(query, sizeof query, "uploadId=%s", parts->escaped_id);
	struct s3_request request = {.method = "POST",
	                             .name = parts->name,
	                             .query = query,
	                             .body = buf_slice(&parts->completion),
	                             .slow = true};
	int result = s3_send(parts->store, &request, &answer, error);
	/* A retry after a lost answer finds no upload any more. */
	if (result == ERR_NETWORK || result == ERR_NOT_FOUND)
		return !check_result(parts, NULL, NULL) ? OK : result;
	if (!result)
		result = s3_xml_completion(buf_slice(&answer.http.body), etag, sizeof etag, error);
	return result ? result : check_result(parts, etag, error);
}

int s3_abort_upload(struct s3_store *store, const char *name, const char *upload_id,
                    struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	BUF_AUTO struct buf query;
	buf_init(&query, 3 * UPLOAD_ID_MAX + 16);
	buf_add_text(&query, "uploadId=");
	buf_add_percent(&query, slice_of(upload_id), "");
	answer = (struct s3_answer){0};
	if (buf_check(&query))
		return error_cause(error, ERR_IO, "content: the upload id is too long");
	struct s3_request request = {.method = "DELETE", .name = name, .query = query.data};
	int result = s3_send(store, &request, &answer, error);
	return result == ERR_NOT_FOUND ? OK : result;
}

static int put_in_parts(struct parts *parts, int descriptor, struct error *error)
{
	int result = begin_parts(parts, error);
	if (result)
		return result == ERR_NOT_FOUND ? ERR_IO : result;
	result = send_parts(parts, descriptor, error);
	if (!result)
		result = finish_parts(parts, error);
	if (result) /* if this fails, a sweep aborts the upload later */
		(void)!s3_abort_upload(parts->store, parts->name, parts->upload_id, NULL);
	return result == ERR_NOT_FOUND ? ERR_IO : result;
}

/* ---- whole objects ---- */

int s3_put(struct content_store *base, int descriptor, uint64_t size, const char *name,
           struct error *error)
{
	struct s3_store *store = (struct s3_store *)base;
	if (size > (uint64_t)tuned_up_to("s3_single", S3_SINGLE_MAX)) {
		struct parts parts = {.store = store, .name = name, .size = size};
		buf_init(&parts.completion, COMPLETION_MAX);
		int result = put_in_parts(&parts, descriptor, error);
		buf_free(&parts.completion);
		return result;
	}
	S3_ANSWER_AUTO struct s3_answer answer;
	struct piece piece = {.descriptor = descriptor, .size = size};
	char checksum[48];
	int result = put_piece(store, name, NULL, &piece, checksum, &answer, error);
	return result == ERR_NOT_FOUND ? ERR_IO : result;
}

int s3_write_commit(struct content_writer *base, const char *name, struct error *error)
{
	const struct s3_writer *writer = (const struct s3_writer *)base;
	return s3_put(base->store, writer->descriptor, writer->size, name, error);
}
