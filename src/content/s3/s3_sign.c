/* Presigned URLs, because libcurl signs only headers. "Authenticating Requests: Using Query
 * Parameters (AWS Signature Version 4)". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/percent.h"
#include "content/s3/s3.h"

#define SCOPE_MAX 160

static struct sha256 keyed(struct sha256 key, const char *text)
{
	return hmac_sha256(slice_make(key.bytes, SHA256_SIZE), slice_of(text));
}

/* Derives the signing key of a day, region and service. */
static struct sha256 signing_key(const struct s3_signing *signing, const char *day)
{
	BUF_AUTO struct buf secret;
	buf_init(&secret, 1024);
	buf_add_text(&secret, "AWS4");
	buf_add_text(&secret, signing->secret_key);
	struct sha256 key = hmac_sha256(buf_slice(&secret), slice_of(day));
	if (secret.data)
		explicit_bzero(secret.data, secret.size);
	return keyed(keyed(keyed(key, signing->region), "s3"), "aws4_request");
}

static void add_hash(struct buf *out, struct slice text)
{
	struct sha256 hash = sha256_of(text.data, text.size);
	buf_add_hex(out, hash.bytes, SHA256_SIZE);
}

void s3_presign(const struct s3_signing *signing, const char *host, const char *path,
                const char *overrides, int64_t lifetime_seconds, struct buf *out)
{
	char time[TIME_TEXT_SIZE], stamp[17], day[9], scope[SCOPE_MAX];
	time_format(signing->now_us, time);
	snprintf(day, sizeof day, "%.4s%.2s%.2s", time, time + 5, time + 8);
	snprintf(stamp, sizeof stamp, "%sT%.2s%.2s%.2sZ", day, time + 11, time + 14, time + 17);
	snprintf(scope, sizeof scope, "%s/%s/s3/aws4_request", day, signing->region);
	BUF_AUTO struct buf query;
	BUF_AUTO struct buf text;
	buf_init(&query, S3_URL_MAX);
	buf_init(&text, 2 * S3_URL_MAX);
	buf_add_text(&query, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
	buf_add_percent(&query, slice_of(signing->access_key), "");
	buf_add_text(&query, "%2F");
	buf_add_percent(&query, slice_of(scope), "");
	buf_printf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%" PRId64 "&X-Amz-SignedHeaders=host", stamp,
	           lifetime_seconds);
	if (*overrides)
		buf_printf(&query, "&%s", overrides);
	buf_printf(&text, "GET\n%s\n%s\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD", path,
	           buf_slice(&query).data, host);
	BUF_AUTO struct buf to_sign;
	buf_init(&to_sign, 1024);
	buf_printf(&to_sign, "AWS4-HMAC-SHA256\n%s\n%s\n", stamp, scope);
	add_hash(&to_sign, buf_slice(&text));
	struct sha256 key = signing_key(signing, day);
	struct sha256 signature = hmac_sha256(slice_make(key.bytes, SHA256_SIZE), buf_slice(&to_sign));
	explicit_bzero(&key, sizeof key);
	buf_add_slice(out, buf_slice(&query));
	buf_add_text(out, "&X-Amz-Signature=");
	buf_add_hex(out, signature.bytes, SHA256_SIZE);
	/* A part that exceeded its buffer must fail the result. */
	out->failed |= query.failed || text.failed || to_sign.failed;
}
