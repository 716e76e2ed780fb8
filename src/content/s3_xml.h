/* The few XML documents that an S3 service answers with, read strictly (expat): one document, no
 * DOCTYPE, bounded depth and text. Pure, thread safe. What is not known in them is passed over. */
#ifndef CONTENT_S3_XML_H
#define CONTENT_S3_XML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define S3_XML_DEPTH_MAX 8
#define S3_XML_TEXT_MAX 16384 /* bytes of one element */

/* <Error>. */
struct s3_error {
	char code[64];
	char message[200]; /* cut there */
};
/* 0: the document is an <Error>. ERR_IO: it is none, or no XML at all. ERR_NO_MEMORY. */
int s3_xml_error(struct slice text, struct s3_error *ret_error) MUST_CHECK;

/* <InitiateMultipartUploadResult>: ERR_IO when there is no usable UploadId of less than `size`. */
int s3_xml_upload_id(struct slice text, char *upload_id, size_t size, struct error *error)
	MUST_CHECK;
/* <CompleteMultipartUploadResult>: its ETag. ERR_IO when the document is another. */
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
/* <ListBucketResult> and <ListMultipartUploadsResult>; at most `most` items. What it holds lives in
 * the arena. ERR_IO: another document, an item without key or time, a truncated list that does not
 * say how it goes on. ERR_NO_MEMORY. */
int s3_xml_listing(struct slice text, size_t most, struct arena *arena,
                   struct s3_listing *ret_listing, struct error *error) MUST_CHECK;

#endif
