/* Which of the verifier's findings make a file this service's own. */
#include "testing.h"
#include "base/json.h"
#include "issue/check_file.h"
#include "issue/file_origin.h"
#include "store/certifications/certifications.h"
#include "store/evidence/signer_records.h"

#define OURS "1111111111111111111111111111111111111111111111111111111111111111"
#define STOLEN "2222222222222222222222222222222222222222222222222222222222222222"
#define CUSTOMERS "3333333333333333333333333333333333333333333333333333333333333333"
#define ISSUED "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define BEGIN "2026-01-01T00:00:00.000000Z"
#define END "2026-05-03T10:00:00.000000Z"

static int store_status;

static struct sha256 sha256_from(const char *hex)
{
	struct sha256 sha256;
	assert_true(hex_decode(slice_of(hex), sha256.bytes, SHA256_SIZE));
	return sha256;
}

static int64_t us(const char *time)
{
	int64_t time_us;
	assert_int_equal(time_parse(slice_of(time), "time", &time_us, NULL), OK);
	return time_us;
}

/* ---- the store ---- */

int __wrap_store_list_signers(struct store *store, struct arena *arena,
                              struct signer_record **ret_items, size_t *ret_count,
                              struct error *error);
int __wrap_store_list_signers(struct store *store, struct arena *arena,
                              struct signer_record **ret_items, size_t *ret_count,
                              struct error *error)
{
	static struct signer_record records[2];
	records[0] = (struct signer_record){.sha256 = sha256_from(STOLEN),
	                                    .used_from_us = us(BEGIN),
	                                    .used_until_us = us(END),
	                                    .reason = "stolen"};
	records[1] = (struct signer_record){
		.sha256 = sha256_from(OURS), .used_from_us = us(END), .used_until_us = TIME_NONE};
	*ret_items = records;
	*ret_count = 2;
	return store_status;
}

int __wrap_store_find_issued(struct store *store, struct slice code, const struct sha256 *digest,
                             struct arena *arena, struct certification *ret, struct error *error);
int __wrap_store_find_issued(struct store *store, struct slice code, const struct sha256 *digest,
                             struct arena *arena, struct certification *ret, struct error *error)
{
	struct sha256 issued = sha256_from(ISSUED);
	if (store_status)
		return store_status;
	if (!sha256_equal(digest, &issued))
		return ERR_NOT_FOUND;
	*ret = (struct certification){0};
	snprintf(ret->certification_id, sizeof ret->certification_id, "CERT-2026-0000001");
	return OK;
}

/* ---- what the verifier said ---- */

#define VALID                                                                                      \
	"\"could_not_check\":false,\"findings\":[],\"trusted\":true,\"valid\":true,\"warnings\":[]"
#define UNCHECKED                                                                                  \
	"\"could_not_check\":true,\"findings\":[],\"trusted\":false,\"valid\":false,\"warnings\":[]"
#define FILE_OF(path, kind, sha256, listed, signed_at, signer)                                     \
	"{\"kind\":\"" kind "\",\"listed\":" listed ",\"path\":\"" path "\",\"sha256\":\"" sha256      \
	"\",\"signed_at\":" signed_at ",\"signer\":" signer "}"
#define ARCHIVE(sha256, signed_at, signer)                                                         \
	FILE_OF("file", "archive", sha256, "false", signed_at, signer)
#define SAID(files) "{" VALID ",\"files\":[" files "]}"

struct judged {
	struct arena arena;
	struct file_check check;
	struct buf text;
	int status;
};

static void judge(struct judged *judged, const char *said, const char *digest)
{
	struct sha256 sha256 = sha256_from(digest);
	struct service service = {.settings = NULL};
	struct error error = {0};
	arena_init(&judged->arena, 1 << 20);
	buf_init(&judged->text, 1 << 20);
	judged->check = (struct file_check){0};
	assert_int_equal(
		json_parse(&judged->arena, slice_of(said), NULL, &judged->check.verification, &error), OK);
	judged->status = file_origin_judge(&service, &sha256, &judged->arena, &judged->check, &error);
	json_canonical(judged->check.verification, &judged->text);
	buf_add_byte(&judged->text, '\0');
	assert_int_equal(buf_check(&judged->text), OK);
}

static void judged_free(struct judged *judged)
{
	arena_free(&judged->arena);
	buf_free(&judged->text);
}
#define JUDGED_AUTO __attribute__((cleanup(judged_free)))

static void says(const struct judged *judged, const char *words)
{
	if (!strstr(judged->text.data, words))
		fail_msg("no %s in %s", words, judged->text.data);
}

static void is_judged(const char *said, const char *digest, enum file_origin origin,
                      const char *words)
{
	JUDGED_AUTO struct judged judged;
	judge(&judged, said, digest);
	assert_int_equal(judged.status, OK);
	assert_int_equal(judged.check.origin, origin);
	says(&judged, origin == FILE_FOREIGN ? "\"valid\":false" : "\"valid\":true");
	says(&judged, origin == FILE_FOREIGN ? "\"trusted\":false" : "\"trusted\":true");
	says(&judged, "\"could_not_check\":false");
	says(&judged, words);
	if (origin != FILE_FOREIGN)
		says(&judged, "\"findings\":[]");
	if (origin != FILE_SIGNED)
		says(&judged, "\"warnings\":[]");
}

TEST_CASE(test_only_signers_of_the_store_count)
{
	is_judged(SAID(ARCHIVE(OTHER, "\"2026-06-01T00:00:00.000000Z\"", "\"" OURS "\"")), OTHER,
	          FILE_SIGNED, "no record of having issued it");
	is_judged(SAID(ARCHIVE(OTHER, "\"2026-06-01T00:00:00.000000Z\"", "\"" CUSTOMERS "\"")), OTHER,
	          FILE_FOREIGN, "certificate is not one of this service (SHA-256 " CUSTOMERS ")");
	is_judged(SAID(ARCHIVE(OTHER, "null", "null")), OTHER, FILE_FOREIGN,
	          "no record of its SHA-256");
	is_judged(SAID(FILE_OF("file", "other", OTHER, "false", "null", "null")), OTHER, FILE_FOREIGN,
	          "no record of its SHA-256");
}

/* However it was signed: the store records that this was issued. */
TEST_CASE(test_what_was_issued_is_this_services)
{
	is_judged(SAID(ARCHIVE(ISSUED, "\"2026-06-01T00:00:00.000000Z\"", "\"" STOLEN "\"")), ISSUED,
	          FILE_ISSUED, "\"certification_id\":\"CERT-2026-0000001\"");
	is_judged(SAID(ARCHIVE(ISSUED, "null", "\"" CUSTOMERS "\"")), ISSUED, FILE_ISSUED,
	          "\"origin\":\"issued\"");
	/* The service itself knows the digest of the uploaded file. */
	is_judged(SAID(ARCHIVE(ISSUED, "null", "\"" CUSTOMERS "\"")), OTHER, FILE_FOREIGN,
	          "\"certification_id\":null");
}

static void signed_at(const char *time, const char *signer, enum file_origin origin,
                      const char *words)
{
	char said[1024];
	snprintf(said, sizeof said, SAID(ARCHIVE(OTHER, "%s", "\"%s\"")), time, signer);
	is_judged(said, OTHER, origin, words);
}

TEST_CASE(test_a_key_counts_while_it_is_in_force)
{
	signed_at("\"2026-02-01T00:00:00.000000Z\"", STOLEN, FILE_SIGNED, "ended later (stolen)");
	signed_at("\"" END "\"", STOLEN, FILE_SIGNED, "ended later (stolen)");
	signed_at("\"2026-05-03T10:00:00.000001Z\"", STOLEN, FILE_FOREIGN,
	          "is 2026-05-03T10:00:00.000001Z, but the key ended at " END " (stolen)");
	signed_at("\"2036-01-01T00:00:00.000000Z\"", STOLEN, FILE_FOREIGN, "the key ended at");
	signed_at("null", STOLEN, FILE_FOREIGN, "no timestamp shows that the signature is older");
	signed_at("\"nonsense\"", STOLEN, FILE_FOREIGN, "no timestamp shows");
	signed_at("\"2025-12-31T23:55:00.000000Z\"", STOLEN, FILE_SIGNED, "no record");
	signed_at("\"2025-12-31T23:54:59.000000Z\"", STOLEN, FILE_FOREIGN,
	          "the key came into force only at");
	signed_at("null", OURS, FILE_SIGNED, "no record");
	signed_at("\"2036-01-01T00:00:00.000000Z\"", OURS, FILE_SIGNED, "no record");
}

#define CONTAINER FILE_OF("file", "container", OTHER, "false", "null", "null")
#define RECORD FILE_OF("file/META-INF/r.ers", "evidence_record", OTHER, "false", "null", "null")
#define INSIDE(kind, sha256, listed, signer) FILE_OF("file/x", kind, sha256, listed, "null", signer)

TEST_CASE(test_each_file_of_a_container_is_judged)
{
	is_judged(SAID(CONTAINER "," RECORD "," INSIDE("archive", ISSUED, "false", "\"" OURS "\"")),
	          OTHER, FILE_ISSUED, "\"origin\":null,\"path\":\"file/META-INF/r.ers\"");
	is_judged(
		SAID(CONTAINER "," RECORD "," INSIDE("archive", ISSUED, "false", "\"" OURS "\"") "," INSIDE(
			"report", OTHER, "false", "\"" OURS "\"")),
		OTHER, FILE_SIGNED, "no record");
	is_judged(
		SAID(CONTAINER "," RECORD "," INSIDE("archive", OTHER, "false", "\"" OURS "\"") "," INSIDE(
			"content_part", OTHER, "true", "null")),
		OTHER, FILE_SIGNED, "no record");
	is_judged(
		SAID(CONTAINER "," RECORD "," INSIDE("archive", ISSUED, "false", "\"" OURS "\"") "," INSIDE(
			"other", OTHER, "false", "null")),
		OTHER, FILE_FOREIGN, "\"code\":\"origin.not_signed\"");
	is_judged(
		SAID(CONTAINER "," RECORD "," INSIDE("archive", ISSUED, "false", "\"" OURS "\"") "," INSIDE(
			"report", OTHER, "false", "\"" CUSTOMERS "\"")),
		OTHER, FILE_FOREIGN, "certificate is not one of this service");
	/* Only an archive lists parts. */
	is_judged(SAID(CONTAINER "," RECORD "," INSIDE("other", OTHER, "true", "null")), OTHER,
	          FILE_FOREIGN, "no record of its SHA-256");
}

/* Anyone can get a timestamp from the same authority. */
TEST_CASE(test_nothing_signed_is_nothing_valid)
{
	is_judged(SAID(CONTAINER "," RECORD), OTHER, FILE_FOREIGN,
	          "contains no signature of this service");
	is_judged(SAID(FILE_OF("file", "evidence_record", OTHER, "false", "null", "null")), OTHER,
	          FILE_FOREIGN, "contains no signature of this service");
	is_judged(SAID(""), OTHER, FILE_FOREIGN, "contains no signature of this service");
	is_judged("{" VALID "}", OTHER, FILE_FOREIGN, "contains no signature of this service");
	is_judged("{" VALID ",\"files\":true}", OTHER, FILE_FOREIGN,
	          "contains no signature of this service");
}

TEST_CASE(test_what_could_not_be_checked)
{
	JUDGED_AUTO struct judged record, part, mine;
	judge(&record,
	      "{" UNCHECKED
	      ",\"files\":[" FILE_OF("file", "evidence_record", OTHER, "false", "null", "null") "]}",
	      OTHER);
	says(&record, "\"could_not_check\":true");
	says(&record, "\"findings\":[]");
	assert_true(record.check.is_intact);
	judge(&part,
	      "{" UNCHECKED
	      ",\"files\":[" FILE_OF("file", "content_part", OTHER, "false", "null", "null") "]}",
	      OTHER);
	says(&part, "\"could_not_check\":false");
	says(&part, "\"valid\":false");
	says(&part, "no record of its SHA-256");
	judge(&mine,
	      "{" UNCHECKED
	      ",\"files\":[" FILE_OF("file", "content_part", ISSUED, "false", "null", "null") "]}",
	      ISSUED);
	says(&mine, "\"could_not_check\":true");
	assert_int_equal(mine.check.origin, FILE_ISSUED);
}

/* A file may have taken control of the verifier's process. */
TEST_CASE(test_a_form_that_is_none)
{
	static const char *const said[] = {
		"{" VALID ",\"files\":[1]}",
		"{" VALID ",\"files\":[{\"path\":\"file/x\",\"sha256\":\"a\"}]}",
		"{" VALID ",\"files\":[{\"path\":\"file/x\"}]}",
	};
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		JUDGED_AUTO struct judged judged;
		judge(&judged, said[i], OTHER);
		assert_int_equal(judged.status, ERR_UNAVAILABLE);
	}
	is_judged("{\"valid\":true,\"findings\":7,\"files\":[{\"path\":\"file\",\"signer\":{},"
	          "\"kind\":[]}],\"warnings\":[],\"signers\":[1,{\"sha256\":3}]}",
	          OTHER, FILE_FOREIGN, "no record of its SHA-256");
}

TEST_CASE(test_a_store_that_is_away)
{
	JUDGED_AUTO struct judged judged;
	store_status = ERR_UNAVAILABLE;
	judge(&judged, SAID(ARCHIVE(OTHER, "null", "\"" OURS "\"")), OTHER);
	store_status = OK;
	assert_int_equal(judged.status, ERR_UNAVAILABLE);
}

TEST_MAIN(NULL, NULL)
