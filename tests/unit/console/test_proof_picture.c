/* The picture of a proof: text that does not fit into a box. */
#include "testing.h"
#include "console/proof_picture.h"

#define DIGEST "0000000000000000000000000000000000000000000000000000000000000000"
#define LONG_NAME "CN=ACCV TSA 2,O=AGENCIA DE TECNOLOGÍA & CERTIFICACIÓN <ELECTRÓNICA>,C=ES"

TEST_CASE(test_a_long_name_is_cut_in_its_box_and_whole_in_its_title)
{
	static const char one[] =
		"{\"receipt\":{\"hash\":\"" DIGEST "\",\"chain_hash\":\"" DIGEST "\"},"
		"\"proof\":{\"path\":[],\"round\":{\"authority\":\"" LONG_NAME "\","
		"\"sealed_at\":\"2026-01-31T09:00:00.000000Z\"}},\"seal\":{}}";
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf out = {.limit = (size_t)1 << 20};
	struct json *json;
	struct error error = {0};
	assert_int_equal(json_parse(&arena, slice_of(one), NULL, &json, &error), 0);
	assert_int_equal(proof_picture(json, LANGUAGE_ENGLISH, &out), 0);
	buf_add_byte(&out, '\0');
	assert_non_null(strstr(out.data, "<title>CN=ACCV TSA 2,O=AGENCIA DE TECNOLOGÍA &amp; "
	                                 "CERTIFICACIÓN &lt;ELECTRÓNICA&gt;,C=ES</title>"));
	assert_non_null(strstr(out.data, ">CN=ACCV TSA 2,O=AGENCIA DE TECNOLOGÍA &amp; CERTI…<"));
	assert_non_null(strstr(out.data, ">Timestamp · 2026-01-31 09:00:00 UTC<"));
}

TEST_MAIN(NULL, NULL)
