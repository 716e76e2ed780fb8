#include "report/pdf_sign.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "report/pdf_base.h"
#include "report/pdf_update.h"

#define UPDATE_AUTO __attribute__((cleanup(pdf_update_free)))

static int write_out(int fd, struct slice content, const char *path, struct error *error)
{
	if (!file_write_all(fd, content))
		return error_cause(error, file_code(errno), "%s: %s", path, strerror(errno));
	return OK;
}

/* Copies a whole file to the current offset of another one (negative: no copy), and adds it to a
 * digest. */
static int pass_through(int from_fd, int to_fd, struct digest_stream *digest, const char *path,
                        struct error *error)
{
	char block[65536];
	off_t at = 0;
	for (;;) {
		ssize_t got = pread(from_fd, block, sizeof(block), at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
		if (got == 0)
			return OK;
		digest_add(digest, block, (size_t)got);
		int result = to_fd < 0 ? OK : write_out(to_fd, slice_make(block, (size_t)got), path, error);
		if (result)
			return result;
		at += got;
	}
}

/* Writes '<', the digits padded with zeros, '>'. */
static int write_contents(int fd, const struct buf *cms, const char *path, struct error *error)
{
	assert(cms->size > 0 && cms->size <= PDF_CMS_SIZE_MAX);
	BUF_AUTO struct buf contents;
	buf_init(&contents, 2 * PDF_CMS_SIZE_MAX + 3);
	buf_add_byte(&contents, '<');
	buf_add_hex(&contents, cms->data, cms->size);
	size_t left = 2 * (PDF_CMS_SIZE_MAX - cms->size);
	char *padding = buf_extend(&contents, left);
	if (padding)
		memset(padding, '0', left);
	buf_add_byte(&contents, '>');
	int result = buf_check(&contents);
	return result ? result : write_out(fd, buf_slice(&contents), path, error);
}

/* Computes the digest of a file and of an update after it. Copies the file as pass_through does. */
static int digest_with(int from_fd, int to_fd, const struct pdf_update *update, const char *path,
                       struct sha256 *ret_covered, struct error *error)
{
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "signing a report");
	int result = pass_through(from_fd, to_fd, digest, path, error);
	if (result) {
		digest_cancel(digest);
		return result;
	}
	digest_add(digest, update->before.data, update->before.size);
	digest_add(digest, update->after.data, update->after.size);
	*ret_covered = digest_end(digest);
	return OK;
}

static int write_update(int fd, const struct pdf_update *update, const struct buf *cms,
                        const char *path, struct error *error)
{
	int result = write_out(fd, buf_slice(&update->before), path, error);
	if (!result && update->after.size > 0)
		result = write_contents(fd, cms, path, error);
	return result ? result : write_out(fd, buf_slice(&update->after), path, error);
}

static int sign_copy(int base_fd, int fd, const struct pdf_update *update,
                     const struct cms_signing *signing, const char *path, struct error *error)
{
	struct sha256 covered;
	BUF_AUTO struct buf cms;
	buf_init(&cms, PDF_CMS_SIZE_MAX);
	int result = digest_with(base_fd, fd, update, path, &covered, error);
	if (!result)
		result = cms_create(&covered, TIME_NONE, signing, &cms, error);
	if (!result)
		result = buf_check(&cms);
	return result ? result : write_update(fd, update, &cms, path, error);
}

static int add_signature(int base_fd, int fd, struct pdf_base *base, int64_t time_us,
                         const struct cms_signing *signing, const char *path, struct error *error)
{
	UPDATE_AUTO struct pdf_update update;
	int result = pdf_update_signature(base, time_us, &update);
	if (!result)
		result = sign_copy(base_fd, fd, &update, signing, path, error);
	return result ? result : pdf_base_add_signature(base, &update);
}

static int add_validation(int fd, struct pdf_base *base, const struct validation_set *set,
                          const char *path, struct error *error)
{
	UPDATE_AUTO struct pdf_update update;
	int result = pdf_update_validation(base, set, &update);
	if (!result)
		result = write_update(fd, &update, NULL, path, error);
	if (!result)
		pdf_base_add_validation(base, &update);
	return result;
}

static int add_timestamp(int fd, const struct pdf_base *base, const struct cms_signing *signing,
                         const char *path, struct error *error)
{
	UPDATE_AUTO struct pdf_update update;
	struct sha256 covered;
	BUF_AUTO struct buf token;
	buf_init(&token, PDF_CMS_SIZE_MAX);
	int result = pdf_update_timestamp(base, &update);
	if (!result)
		result = digest_with(fd, -1, &update, path, &covered, error);
	if (!result)
		result = signing->timestamp(signing->timestamp_context, &covered, &token, error);
	if (!result)
		result = buf_check(&token);
	return result ? result : write_update(fd, &update, &token, path, error);
}

static int make_lasting(int fd, struct pdf_base *base, const struct cms_signing *signing,
                        const struct pdf_long_term *lasting, const char *path, struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	int result = lasting->collect(lasting->context, &set, error);
	if (result || set.count == 0)
		return result;
	result = add_validation(fd, base, &set, path, error);
	return result ? result : add_timestamp(fd, base, signing, path, error);
}

/* Computes size and digest of the written file. */
static int summarize(int fd, const char *path, struct pdf_signed *ret_signed, struct error *error)
{
	struct sha256 digest;
	uint64_t size_bytes;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	int result = file_digest(fd, path, &size_bytes, &digest, error);
	if (!result)
		*ret_signed = (struct pdf_signed){digest, (int64_t)size_bytes};
	return result;
}

int pdf_sign(const char *base_path, const char *signed_path, int64_t time_us,
             const struct cms_signing *signing, const struct pdf_long_term *lasting,
             struct pdf_signed *ret_signed, struct error *error)
{
	struct pdf_base base __attribute__((cleanup(pdf_base_free))) = {0};
	DESCRIPTOR_AUTO int base_fd = open(base_path, O_RDONLY | O_CLOEXEC);
	if (base_fd < 0)
		return error_cause(error, ERR_IO, "%s: %s", base_path, strerror(errno));
	int result = pdf_base_read(base_fd, &base, error);
	if (result)
		return result;
	DESCRIPTOR_AUTO int fd = open(signed_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0)
		return error_cause(error, ERR_IO, "%s: %s", signed_path, strerror(errno));
	result = add_signature(base_fd, fd, &base, time_us, signing, signed_path, error);
	if (!result && lasting)
		result = make_lasting(fd, &base, signing, lasting, signed_path, error);
	if (!result && !durable_sync_open(fd))
		result = error_cause(error, ERR_IO, "%s: %s", signed_path, strerror(errno));
	if (!result)
		result = summarize(fd, signed_path, ret_signed, error);
	if (result)
		unlink(signed_path);
	return result;
}
