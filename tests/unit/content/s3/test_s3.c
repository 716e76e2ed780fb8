/* Addresses, signatures and answers of S3, without a service. */
#include "testing.h"
#include "base/clock.h"
#include "content/s3/s3.h"
#include "content/s3/s3_xml.h"

/* ---- addresses ---- */

TEST_CASE(test_addresses)
{
	static const struct {
		const char *text, *endpoint, *links, *path, *region;
	} cases[] = {
		{"//evidence", "https://evidence.s3.us-east-1.amazonaws.com",
	     "https://evidence.s3.us-east-1.amazonaws.com", "/a/b", "us-east-1"},
		{"//evidence/?region=eu-west-1", "https://evidence.s3.eu-west-1.amazonaws.com",
	     "https://evidence.s3.eu-west-1.amazonaws.com", "/a/b", "eu-west-1"},
		{"//my.evidence/x", "https://s3.us-east-1.amazonaws.com",
	     "https://s3.us-east-1.amazonaws.com", "/my.evidence/x/a/b", "us-east-1"},
		{"//evidence/x/y/?endpoint=https://minio:9000/", "https://minio:9000", "https://minio:9000",
	     "/evidence/x/y/a/b", "us-east-1"},
		{"//evidence?endpoint=http%3A%2F%2F10.0.0.1%3A80&links=https://files.example.org:443",
	     "http://10.0.0.1", "https://files.example.org", "/evidence/a/b", "us-east-1"},
		{"//evidence/p?endpoint=https://s3.example.org&style=virtual&region=garage",
	     "https://evidence.s3.example.org", "https://evidence.s3.example.org", "/p/a/b", "garage"},
		{"//evidence/p?region=eu-west-1&style=path", "https://s3.eu-west-1.amazonaws.com",
	     "https://s3.eu-west-1.amazonaws.com", "/evidence/p/a/b", "eu-west-1"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct s3_place place;
		BUF_AUTO struct buf path = {.limit = 1024};
		assert_int_equal(s3_place_parse(cases[i].text, &place, NULL), 0);
		s3_add_path(&place, "a/b", &path);
		assert_string_equal(place.endpoint, cases[i].endpoint);
		assert_string_equal(place.links, cases[i].links);
		assert_string_equal(place.region, cases[i].region);
		assert_string_equal(path.data, cases[i].path);
	}
}

TEST_CASE(test_addresses_refused)
{
	static const struct {
		const char *text;
		enum message message;
	} cases[] = {
		{"evidence", MSG_CONTENT_S3_BUCKET},
		{"//", MSG_CONTENT_S3_BUCKET},
		{"//ab", MSG_CONTENT_S3_BUCKET},
		{"//Evidence", MSG_CONTENT_S3_BUCKET},
		{"//evi_dence", MSG_CONTENT_S3_BUCKET},
		{"//evidence-", MSG_CONTENT_S3_BUCKET},
		{"//evi..dence", MSG_CONTENT_S3_BUCKET},
		{"//key:secret@evidence", MSG_CONTENT_S3_BUCKET},
		{"//evidence/a//b", MSG_CONTENT_S3_PREFIX},
		{"//evidence/../b", MSG_CONTENT_S3_PREFIX},
		{"//evidence/a b", MSG_CONTENT_S3_PREFIX},
		{"//evidence//", MSG_CONTENT_S3_PREFIX},
		{"//evidence/a/b/c/d/e/f/g/h/i", MSG_CONTENT_S3_PREFIX},
		{"//evidence?x=y", MSG_CONTENT_S3_PARAMETER},
		{"//evidence?region", MSG_CONTENT_S3_PARAMETER},
		{"//evidence?region=a&region=b", MSG_CONTENT_S3_PARAMETER},
		{"//evidence?region=%4", MSG_CONTENT_S3_PARAMETER},
		{"//evidence?region=%00", MSG_CONTENT_S3_PARAMETER},
		{"//evidence?region=eu%20west", MSG_CONTENT_S3_REGION},
		{"//evidence?style=both", MSG_CONTENT_S3_STYLE},
		{"//evidence?endpoint=minio", MSG_CONTENT_S3_ENDPOINT},
		{"//evidence?endpoint=ftp://minio", MSG_CONTENT_S3_ENDPOINT},
		{"//evidence?endpoint=https://", MSG_CONTENT_S3_ENDPOINT},
		{"//evidence?endpoint=https://minio/s3", MSG_CONTENT_S3_ENDPOINT},
		{"//evidence?endpoint=https://key:secret@minio", MSG_CONTENT_S3_ENDPOINT},
		{"//evidence?links=minio", MSG_CONTENT_S3_ENDPOINT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct s3_place place;
		struct error error = {0};
		if (s3_place_parse(cases[i].text, &place, &error) != ERR_VALIDATION)
			fail_msg("%s is taken", cases[i].text);
		if (error.message != cases[i].message)
			fail_msg("%s: %s", cases[i].text, error.english);
	}
}

/* ---- signatures ---- */

/* ---- answers ---- */

TEST_CASE(test_errors)
{
	struct s3_error error = {0};
	assert_int_equal(
		s3_xml_error(
			slice_of(
				"\n  <?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Please &lt;wait"
				"</Message><Extra><Deep>x</Deep></Extra></Error>"),
			&error),
		0);
	assert_string_equal(error.code, "SlowDown");
	assert_string_equal(error.message, "Please <wait");
	static const char *const others[] = {
		"",
		"   ",
		"no XML",
		"<Error>",
		"<Errors/>",
		"<x><Error/></x>",
		"<CompleteMultipartUploadResult/>",
		"<!DOCTYPE Error [<!ENTITY a \"b\">]><Error><Code>&a;</Code></Error>",
		("<Error><Code>0123456789012345678901234567890123456789012345678901234567890123456789"
	     "</Code></Error>"),
		"<Error><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></Error>",
		"<Error/><Error/>",
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (s3_xml_error(slice_of(others[i]), &error) != ERR_IO)
			fail_msg("%s is taken", others[i]);
	assert_string_equal(error.code, "SlowDown");
}

TEST_CASE(test_single_values)
{
	char text[16] = "";
	assert_int_equal(s3_xml_upload_id(slice_of("<InitiateMultipartUploadResult xmlns=\"u\"><Key>k"
	                                           "</Key><UploadId>a+/=</UploadId>"
	                                           "</InitiateMultipartUploadResult>"),
	                                  text, sizeof text, NULL),
	                 0);
	assert_string_equal(text, "a+/=");
	assert_int_equal(s3_xml_completion(slice_of("<CompleteMultipartUploadResult><ETag>&quot;x-2"
	                                            "&quot;</ETag></CompleteMultipartUploadResult>"),
	                                   text, sizeof text, NULL),
	                 0);
	assert_string_equal(text, "\"x-2\"");
	static const char *const unusable[] = {
		"<InitiateMultipartUploadResult/>",
		"<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>",
		"<InitiateMultipartUploadResult><UploadId>0123456789abcdef</UploadId>"
		"</InitiateMultipartUploadResult>",
		"<InitiateMultipartUploadResult><UploadId>a</UploadId><UploadId>b</UploadId>"
		"</InitiateMultipartUploadResult>",
		"<Other><UploadId>a</UploadId></Other>",
	};
	for (size_t i = 0; i < sizeof unusable / sizeof *unusable; i++)
		assert_int_equal(s3_xml_upload_id(slice_of(unusable[i]), text, sizeof text, NULL), ERR_IO);
	assert_string_equal(text, "\"x-2\"");
}

static int read_listing(const char *text, size_t most, struct arena *arena,
                        struct s3_listing *ret_listing)
{
	return s3_xml_listing(slice_of(text), most, arena, ret_listing, NULL);
}

TEST_CASE(test_listings)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct s3_listing listing;
	assert_int_equal(
		read_listing("<ListBucketResult><Name>b</Name><IsTruncated>true</IsTruncated>"
	                 "<Contents><Key>a%2Fb</Key><LastModified>2026-01-02T03:04:05.678Z"
	                 "</LastModified><Owner><ID>x</ID></Owner></Contents>"
	                 "<Contents><LastModified>2026-01-02T03:04:05Z</LastModified><Key>%zz%</Key>"
	                 "</Contents><NextContinuationToken>t%2F</NextContinuationToken>"
	                 "</ListBucketResult>",
	                 2, &arena, &listing),
		0);
	assert_int_equal(listing.count, 2);
	assert_true(listing.truncated);
	assert_string_equal(listing.token, "t%2F");
	assert_string_equal(listing.items[0].key, "a/b");
	assert_int_equal(listing.items[0].changed_us, INT64_C(1767323045678000));
	assert_string_equal(listing.items[1].key, "%zz%");
	assert_null(listing.items[1].upload_id);
	assert_int_equal(
		read_listing("<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>u</UploadId>"
	                 "<Initiated>2026-01-02T03:04:05Z</Initiated></Upload><NextKeyMarker>k"
	                 "</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>"
	                 "<IsTruncated>true</IsTruncated></ListMultipartUploadsResult>",
	                 5, &arena, &listing),
		0);
	assert_string_equal(listing.items[0].upload_id, "u");
	assert_string_equal(listing.key_marker, "k");
	assert_string_equal(listing.upload_marker, "u");
	assert_int_equal(read_listing("<ListBucketResult/>", 5, &arena, &listing), 0);
	assert_int_equal(listing.count, 0);
	assert_false(listing.truncated);
}

TEST_CASE(test_listings_refused)
{
#define ITEM "<Contents><Key>k</Key><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>"
	static const char *const refused[] = {
		"<Other/>",
		"<ListBucketResult>",
		"<ListBucketResult><Contents/></ListBucketResult>",
		"<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
		"<ListBucketResult><Contents><Key>k</Key><LastModified>now</LastModified></Contents>"
		"</ListBucketResult>",
		"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
		"<ListBucketResult>" ITEM ITEM ITEM "</ListBucketResult>",
		"<ListMultipartUploadsResult><Upload><Key>k</Key>"
		"<Initiated>2026-01-02T03:04:05Z</Initiated></Upload></ListMultipartUploadsResult>",
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
		struct s3_listing listing;
		if (read_listing(refused[i], 2, &arena, &listing) != ERR_IO)
			fail_msg("%s is taken", refused[i]);
	}
}

/* The example of "Authenticating Requests: Using Query Parameters". */
TEST_CASE(test_presigned_example)
{
	struct s3_signing signing = {.access_key = "AKIAIOSFODNN7EXAMPLE",
	                             .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	                             .region = "us-east-1"};
	BUF_AUTO struct buf query = {.limit = 4096};
	assert_int_equal(time_parse(slice_of("2013-05-24T00:00:00Z"), "time", &signing.now_us, NULL),
	                 0);
	s3_presign(&signing, "examplebucket.s3.amazonaws.com", "/test.txt", "", 86400, &query);
	assert_string_equal(
		query.data,
		"X-Amz-Algorithm=AWS4-HMAC-SHA256"
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
		"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
		"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST_MAIN(NULL, NULL)
