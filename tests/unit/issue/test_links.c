/* Download links: their content, what is refused, and the rotation of their secrets. The test sets
 * the clock that the nodes share. */
#include <inttypes.h>

#include "testing.h"
#include "sample.h"
#include "issue/links.h"
#include "store/certifications/certifications.h"
#include "store/certifications/link_secrets.h"

#define NOW (INT64_C(1800000000) * US_PER_SECOND)
#define LIFETIME US_PER_DAY
#define ID "CERT-2026-0000001"
#define NAME "report.pdf"
#define LINK_MAX 2000

static struct sample sample;
static struct settings settings;
static struct service service;
static struct error error;
static int64_t shared_now_us;
static bool store_fails;

int64_t __wrap_store_now_us(const struct store *store);
int __real_store_read_link_secrets(struct store *store,
                                   struct link_secret ret_secrets[LINK_SECRETS_MAX],
                                   size_t *ret_count, struct error *why);
int __wrap_store_read_link_secrets(struct store *store,
                                   struct link_secret ret_secrets[LINK_SECRETS_MAX],
                                   size_t *ret_count, struct error *why);
int __wrap_store_find_document(struct store *store, struct slice certification_id,
                               struct slice name, struct document *ret, struct error *why);

int64_t __wrap_store_now_us(const struct store *store)
{
	return shared_now_us;
}

int __wrap_store_read_link_secrets(struct store *store,
                                   struct link_secret ret_secrets[LINK_SECRETS_MAX],
                                   size_t *ret_count, struct error *why)
{
	return store_fails ? error_cause(why, ERR_UNAVAILABLE, "a fault of the test")
	                   : __real_store_read_link_secrets(store, ret_secrets, ret_count, why);
}

static struct document issued(enum document_kind kind)
{
	struct document document = {.kind = kind, .size_bytes = 1234};
	strcpy(document.name, NAME);
	strcpy(document.object, "issued/0001");
	return document;
}

/* Of the only certification. */
int __wrap_store_find_document(struct store *store, struct slice certification_id,
                               struct slice name, struct document *ret, struct error *why)
{
	if (store_fails)
		return error_cause(why, ERR_UNAVAILABLE, "a fault of the test");
	if (!slice_is(certification_id, ID))
		return ERR_NOT_FOUND;
	*ret = issued(slice_is(name, NAME) ? DOCUMENT_REPORT : DOCUMENT_EVIDENCE);
	return OK;
}

static int set_up(void **state)
{
	shared_now_us = NOW;
	store_fails = false;
	sample_open(&sample, MODALITY_HASH_ONLY, 0);
	settings = (struct settings){
		.service_public_url = "https://public.example",
		.certification_link_lifetime = LIFETIME,
	};
	service = (struct service){.settings = &settings, .store = sample.store};
	assert_int_equal(links_open(&service, &error), OK);
	return 0;
}

static int tear_down(void **state)
{
	links_close(&service);
	content_close(service.content);
	sample_close(&sample);
	return 0;
}

/* A link as a client presents it. */
struct link {
	char text[LINK_MAX];
	char expires[32];
	char mac[2 * SHA256_SIZE + 1];
};

static bool is_good_at(const struct link *link, int64_t now_us)
{
	return link_check(&service, ID, NAME, slice_of(link->expires), slice_of(link->mac), now_us);
}

static bool is_good(const struct link *link)
{
	return is_good_at(link, NOW);
}

static struct link make_link(void)
{
	struct link link;
	BUF_AUTO struct buf out = {.limit = LINK_MAX - 1};
	struct document document = issued(DOCUMENT_REPORT);
	document_link(&service, ID, &document, NOW, &out);
	assert_int_equal(buf_check(&out), OK);
	memcpy(link.text, out.data, out.size + 1);
	const char *query = strchr(link.text, '?');
	assert_non_null(query);
	assert_int_equal(sscanf(query, "?expires=%31[^&]&mac=%64s", link.expires, link.mac), 2);
	return link;
}

/* Makes a link with the MAC that the service would compute for this text. */
static struct link forge_link(const char *id, const char *name, const char *expires,
                              int64_t seconds)
{
	struct link_secret secrets[LINK_SECRETS_MAX];
	size_t count;
	char text[LINK_MAX];
	struct link link = {0};
	assert_int_equal(store_read_link_secrets(service.store, secrets, &count, &error), OK);
	int size = snprintf(text, sizeof text, "GET\n/v1/downloads/%s/%s\n%" PRId64, id, name, seconds);
	struct sha256 mac = hmac_sha256(slice_make(secrets[0].secret.bytes, SHA256_SIZE),
	                                slice_make(text, (size_t)size));
	hex_encode(mac.bytes, SHA256_SIZE, link.mac);
	strcpy(link.expires, expires);
	return link;
}

/* The text under the MAC must not change, because links remain valid during an upgrade of the
 * nodes. */
TEST_CASE(a_link_says_where_until_when_and_its_mac)
{
	struct link link = make_link();
	struct link expected = forge_link(ID, NAME, "1800086400", 1800086400);
	snprintf(expected.text, LINK_MAX,
	         "https://public.example/v1/downloads/" ID "/" NAME "?expires=1800086400&mac=%s",
	         expected.mac);
	assert_string_equal(link.text, expected.text);
	assert_true(is_good(&link));
}

TEST_CASE(it_is_good_until_it_expires)
{
	struct link link = make_link();
	assert_true(is_good_at(&link, NOW + LIFETIME - 1));
	assert_false(is_good_at(&link, NOW + LIFETIME));
}

TEST_CASE(what_was_altered_is_refused)
{
	struct link link = make_link(), altered;
	struct slice expires = slice_of(link.expires), mac = slice_of(link.mac);
	assert_true(link_check(&service, ID, NAME, expires, mac, NOW));
	assert_false(link_check(&service, ID "0", NAME, expires, mac, NOW));
	assert_false(link_check(&service, ID, "evidence.zip", expires, mac, NOW));
	for (size_t i = 0; i < expires.size; i++) {
		altered = link;
		altered.expires[i] = altered.expires[i] == '9' ? '8' : '9';
		assert_false(is_good(&altered));
	}
	for (size_t i = 0; i < mac.size; i++) {
		altered = link;
		altered.mac[i] = altered.mac[i] == '0' ? '1' : '0';
		assert_false(is_good(&altered));
	}
	mac.size--;
	assert_false(link_check(&service, ID, NAME, expires, mac, NOW));
	mac.size = 0;
	assert_false(link_check(&service, ID, NAME, expires, mac, NOW));
}

/* A time has only one valid spelling, even with a correct MAC. */
TEST_CASE(only_plain_numbers_are_times)
{
	static const struct {
		const char *expires;
		int64_t seconds;
		bool good;
	} spellings[] = {
		{"1800086400", 1800086400, true},
		{"01800086400", 1800086400, false},
		{"180008639:", 1800086400, false}, /* ':' comes after '9' */
		{"1800086401/", INT64_C(18000864009), false},
		{"", 0, false},
		{"999999999999", INT64_C(999999999999), true},
		{"1000000000000", INT64_C(1000000000000), false},
	};
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		struct link link = forge_link(ID, NAME, spellings[i].expires, spellings[i].seconds);
		assert_int_equal(is_good(&link), spellings[i].good);
	}
}

TEST_CASE(names_of_nobody_are_refused)
{
	char name[300];
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	for (size_t size = 200; size < sizeof name; size += 99) {
		name[size] = '\0';
		struct link link = forge_link(ID, name, "1800086400", 1800086400);
		assert_int_equal(
			link_check(&service, ID, name, slice_of(link.expires), slice_of(link.mac), NOW),
			size == 200);
		name[size] = 'n';
	}
}

static void rotate(bool at_once)
{
	assert_int_equal(
		store_rotate_link_secret(service.store, LINKS_SPREAD_US, LIFETIME, at_once, &error), OK);
}

static void refresh(void)
{
	assert_int_equal(service_refresh_links(&service, &error), OK);
}

static bool same(const struct link *a, const struct link *b)
{
	return strcmp(a->text, b->text) == 0;
}

TEST_CASE(a_new_secret_is_used_once_every_node_knows_it)
{
	struct link before = make_link();
	rotate(false);
	refresh();
	shared_now_us = NOW + LINKS_SPREAD_US - 1;
	struct link still = make_link();
	assert_true(same(&still, &before));
	shared_now_us = NOW + LINKS_SPREAD_US;
	struct link after = make_link();
	assert_false(same(&after, &before));
	assert_true(is_good(&after));
	assert_true(is_good(&before));
	/* The old secret ends by the shared clock, whether or not that is known. */
	shared_now_us = NOW + LINKS_SPREAD_US + LIFETIME - 1;
	assert_true(is_good(&before));
	shared_now_us++;
	assert_false(is_good(&before));
	assert_true(is_good(&after));
}

/* A link that another node has just made is never refused. */
TEST_CASE(a_link_of_the_next_secret_is_good_before_its_time)
{
	rotate(false);
	refresh();
	shared_now_us = NOW + LINKS_SPREAD_US;
	struct link early = make_link();
	shared_now_us = NOW;
	assert_true(is_good(&early));
}

TEST_CASE(at_once_refuses_all_links_made_before)
{
	struct link before = make_link();
	rotate(true);
	assert_true(is_good(&before)); /* not read yet */
	refresh();
	assert_false(is_good(&before));
	shared_now_us--; /* the next writer's clock differs slightly */
	struct link after = make_link();
	assert_true(is_good(&after));
}

TEST_CASE(a_store_that_fails_leaves_the_secrets_known)
{
	struct link before = make_link();
	store_fails = true;
	assert_int_equal(service_refresh_links(&service, &error), ERR_UNAVAILABLE);
	struct link after = make_link();
	assert_true(same(&after, &before));
	assert_true(is_good(&before));
	links_close(&service);
	assert_int_equal(links_open(&service, &error), ERR_UNAVAILABLE);
	links_close(&service);
	assert_null(service.link_secrets);
	links_close(&service);
}

/* Such a link is not checked against the content store, which may be unavailable. */
TEST_CASE(links_of_the_content_store)
{
	struct content_options options = {
		.url = "s3://bucket?endpoint=https://s3.invalid&region=eu-west-1",
		.access_key = "access",
		.secret_key = "secret",
	};
	assert_int_equal(content_open_with(&options, &service.content, &error), OK);
	struct link link = make_link();
	assert_true(is_good(&link)); /* not read before it is needed */
	settings.content_presigned_links = true;
	static const enum document_kind kinds[] = {DOCUMENT_REPORT, DOCUMENT_EVIDENCE, DOCUMENT_PART};
	static const char *const types[] = {"application%2Fpdf", "application%2Fzip",
	                                    "application%2Fzip"};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		BUF_AUTO struct buf out = {.limit = LINK_MAX};
		struct document document = issued(kinds[i]);
		document_link(&service, ID, &document, NOW, &out);
		assert_int_equal(buf_check(&out), OK);
		assert_ptr_equal(strstr(out.data, "https://"), out.data);
		assert_null(strstr(out.data, "public.example"));
		assert_non_null(strstr(out.data, "s3.invalid"));
		assert_non_null(strstr(out.data, "/issued/0001?"));
		assert_non_null(strstr(out.data, "X-Amz-Expires=86400"));
		assert_non_null(strstr(out.data, "X-Amz-Date=20270115T080000Z"));
		assert_non_null(strstr(out.data, types[i]));
		assert_non_null(strstr(out.data, NAME));
	}
}

TEST_CASE(a_directory_has_no_links_of_its_own)
{
	char url[128];
	snprintf(url, sizeof url, "file:%s/content", sample.directory);
	assert_int_equal(content_open(url, true, &service.content, &error), OK);
	settings.content_presigned_links = true;
	struct link link = make_link();
	assert_true(is_good(&link));
}

TEST_CASE(an_issued_file_is_found)
{
	struct issued_file file = {.size = 7};
	assert_int_equal(issued_file_find(&service, slice_of("other"), slice_of(NAME), &file, &error),
	                 ERR_NOT_FOUND);
	store_fails = true;
	assert_int_equal(issued_file_find(&service, slice_of(ID), slice_of(NAME), &file, &error),
	                 ERR_UNAVAILABLE);
	store_fails = false;
	assert_int_equal(file.size, 7);
	assert_int_equal(issued_file_find(&service, slice_of(ID), slice_of(NAME), &file, &error), OK);
	assert_string_equal(file.object, "issued/0001");
	assert_string_equal(file.content_type, "application/pdf");
	assert_int_equal(file.size, 1234);
	assert_int_equal(
		issued_file_find(&service, slice_of(ID), slice_of("evidence.zip"), &file, &error), OK);
	assert_string_equal(file.content_type, "application/zip");
}

TEST_MAIN_EACH(set_up, tear_down)
