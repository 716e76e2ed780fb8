/* Strict parser for the XML answers of an S3 service (expat): one document, no DOCTYPE, bounded
 * depth and text. Unknown elements are ignored. Pure, thread safe. */
#ifndef CONTENT_S3_XML_H
#define CONTENT_S3_XML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define S3_XML_DEPTH_MAX 8
#define S3_XML_TEXT_MAX 16384 /* bytes per element */

/* <Error>. */
struct s3_error {
	char code[64];
	char message[200]; /* truncated */
};
/* Parses an <Error>. Returns 0, ERR_IO (another document, or not XML) or ERR_NO_MEMORY. */
int s3_xml_error(struct slice text, struct s3_error *ret_error) MUST_CHECK;

/* Gets the UploadId of an <InitiateMultipartUploadResult>. ERR_IO: none of less than `size`
 * bytes. */
int s3_xml_upload_id(struct slice text, char *upload_id, size_t size, struct error *error)
	MUST_CHECK;
/* Gets the ETag of a <CompleteMultipartUploadResult>. ERR_IO: another document. */
int s3_xml_completion(struct slice text, char *etag, size_t size, struct error *error) MUST_CHECK;

struct s3_listed {
	const char *key;       /* unescaped (encoding-type=url) */
	const char *upload_id; /* of an unfinished upload; else NULL */
	int64_t changed_us;    /* LastModified or Initiated, UTC microseconds */
};

struct s3_listing {
	struct s3_listed *items;
	size_t count;
	bool truncated;
	const char *token;         /* NextContinuationToken, or NULL */
	const char *key_marker;    /* NextKeyMarker, or NULL */
	const char *upload_marker; /* NextUploadIdMarker, or NULL */
};
/* Parses a <ListBucketResult> or <ListMultipartUploadsResult> of at most `most` items into the
 * arena. ERR_IO: another document, an item without key or time, or a truncated list without a
 * marker for the next page. ERR_NO_MEMORY. */
int s3_xml_listing(struct slice text, size_t most, struct arena *arena,
                   struct s3_listing *ret_listing, struct error *error) MUST_CHECK;

#endif
