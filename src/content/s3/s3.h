/* Internal to the S3 driver: shared by its files. See content.h for the interface.
 *
 * URLs and signatures (s3_url.c, s3_sign.c), XML answers (s3_xml.h), a request with retries
 * (s3_request.c), uploads (s3_write.c), downloads (s3_read.c), listings (s3_sweep.c). The protocol
 * is Amazon's "S3 API Reference" and "Signature Version 4" as of 2024. */
#ifndef CONTENT_S3_H
#define CONTENT_S3_H

#include <pthread.h>

#include "base/arena.h"
#include "base/digest.h"
#include "content/content_driver.h"
#include "net/http.h"

#define S3_BUCKET_MAX 64
#define S3_PREFIX_MAX 256
#define S3_ENDPOINT_MAX 300
#define S3_REGION_MAX 64
#define S3_QUERY_MAX 4096
#define S3_URL_MAX 8192
#define S3_CODE_MAX 64

#define S3_PART_SIZE ((uint64_t)8 << 20)
#define S3_SINGLE_MAX ((uint64_t)16 << 20) /* larger objects use multipart uploads */
#define S3_PARTS_MAX 10000
#define S3_BLOCK_FIRST ((size_t)256 << 10) /* first request of a reader, and the next */
#define S3_BLOCK_NEXT ((size_t)4 << 20)
#define S3_LIST_MAX 1000
#define S3_ANSWER_MAX ((size_t)4 << 20)
#define S3_SESSIONS_MAX 32 /* idle sessions kept */

/* ---- location (s3_url.c) ---- */

struct s3_place {
	char bucket[S3_BUCKET_MAX];
	char prefix[S3_PREFIX_MAX];     /* empty, or ends with '/' */
	char endpoint[S3_ENDPOINT_MAX]; /* "https://host[:port]" of requests; with the bucket's host in
	                                   virtual style */
	char links[S3_ENDPOINT_MAX];    /* the same for download links */
	char region[S3_REGION_MAX];
	bool path_style; /* the bucket is the first part of the path */
};

/* Parses "//bucket/prefix?endpoint=…". ERR_VALIDATION with a message for the operator. */
int s3_place_parse(const char *text, struct s3_place *ret_place, struct error *error) MUST_CHECK;
/* Appends the path of an object, or of the bucket if `name` is NULL. */
void s3_add_path(const struct s3_place *place, const char *name, struct buf *out);

/* ---- signatures (s3_sign.c) ---- */

struct s3_signing {
	const char *access_key;
	const char *secret_key;
	const char *region;
	int64_t now_us;
};

/* Appends the query of a presigned GET ("X-Amz-Algorithm=…&X-Amz-Signature=…"). `host` is the value
 * of the Host header, `path` is escaped. `overrides` are sorted and escaped response-* parameters,
 * which follow X-Amz-SignedHeaders in order, or "". */
void s3_presign(const struct s3_signing *signing, const char *host, const char *path,
                const char *overrides, int64_t lifetime_seconds, struct buf *out);

/* ---- the store ---- */

struct s3_store {
	struct content_store base;
	struct s3_place place;
	struct address_guard guard;
	char *access_key;
	char *secret_key;
	char *spool_directory;
	char signature[S3_REGION_MAX + 16]; /* "aws:amz:REGION:s3" */
	int timeout_ms;
	pthread_mutex_t lock; /* protects the following */
	struct http_session *sessions[S3_SESSIONS_MAX];
	size_t session_count;
	size_t sessions_max;  /* idle ones kept; S3_SESSIONS_MAX, less in tests */
	int64_t answered_us;  /* monotonic: last successful answer; 0: none yet */
	int64_t asked_us;     /* monotonic: last failed check of s3_ready; 0: none */
	struct error failure; /* the error of that check */
};

/* ---- a request (s3_request.c) ---- */

struct s3_request {
	const char *method;
	const char *name;       /* object name; NULL: the bucket */
	const char *query;      /* sorted, escaped, '=' after each name; NULL: none */
	const char *headers[8]; /* "name: value"; NULL ends */
	struct slice body;
	const struct http_upload *upload; /* instead of body */
	const struct sha256 *body_sha256; /* NULL: of `body` */
	const char *checksum; /* required value of x-amz-checksum-sha256 in the answer, if present */
	bool (*take)(void *context, struct slice part);
	void (*restart)(void *context); /* discards what was taken; called before each attempt */
	void *context;                  /* context of both */
	uint64_t expected_bytes;        /* of upload or download: extends the timeout */
	bool slow;                      /* the service may need long (CompleteMultipartUpload) */
	bool probe;                     /* short timeout, no retries */
};

struct s3_answer {
	struct http_answer http;
	char code[S3_CODE_MAX]; /* <Code> of an <Error>; empty: none */
};

/* Sends a request; retries temporary failures (no answer, 5xx, 429, …) with exponential back-off.
 * Returns OK for a 2xx answer without an <Error>; else ERR_NOT_FOUND (404 for an object),
 * ERR_NO_SPACE, ERR_NETWORK (temporary) or ERR_IO. The last answer belongs to the caller in any
 * case (s3_answer_free); its status is 0 if none arrived. */
int s3_send(struct s3_store *store, const struct s3_request *request, struct s3_answer *ret_answer,
            struct error *error) MUST_CHECK;
void s3_answer_free(struct s3_answer *answer); /* NULL-safe, also for a zeroed answer */
#define S3_ANSWER_AUTO __attribute__((cleanup(s3_answer_free)))

/* Copies a header's value. Returns false if it is missing or does not fit. */
bool s3_header(const struct s3_answer *answer, const char *name, char *text, size_t size);
/* Result of HEAD. */
struct s3_object {
	uint64_t size;
	char etag[136];
	char upload[40]; /* S3_UPLOAD_HEADER, or empty */
};
#define S3_UPLOAD_HEADER "x-amz-meta-constancia-upload"
int s3_head(struct s3_store *store, const char *name, struct s3_object *ret_object,
            struct error *error) MUST_CHECK;
/* Reports an implausible answer as ERR_NETWORK, because the outcome is unknown. */
int s3_protocol_error(struct error *error, const char *what) MUST_CHECK;
int s3_ready(struct content_store *store, struct error *error) MUST_CHECK;

/* ---- the functions of the driver, by file ---- */

int s3_write_begin(struct content_store *store, struct content_writer **ret_writer,
                   struct error *error) MUST_CHECK;
int s3_write(struct content_writer *writer, const void *data, size_t size, struct error *error)
	MUST_CHECK;
int s3_write_commit(struct content_writer *writer, const char *name, struct error *error)
	MUST_CHECK;
void s3_write_abort(struct content_writer *writer);
int s3_put(struct content_store *store, int descriptor, uint64_t size, const char *name,
           struct error *error) MUST_CHECK;
int s3_read_begin(struct content_store *store, const char *name, uint64_t offset,
                  struct content_reader **ret_reader, uint64_t *ret_size, struct error *error)
	MUST_CHECK;
int64_t s3_read(struct content_reader *reader, void *data, size_t size, struct error *error);
void s3_read_end(struct content_reader *reader);
int s3_now_us(struct content_store *store, int64_t *ret_now_us, struct error *error) MUST_CHECK;
int s3_list(struct content_store *store, const struct content_range *range,
            int (*visit)(void *context, const char *name), void *context, struct error *error)
	MUST_CHECK;
int s3_tidy(struct content_store *store, const struct content_range *range,
            int (*visit)(void *context, const char *name), void *context, struct error *error)
	MUST_CHECK;
/* Aborts a multipart upload. Returns 0 also if it does not exist. */
int s3_abort_upload(struct s3_store *store, const char *name, const char *upload_id,
                    struct error *error) MUST_CHECK;

#endif
