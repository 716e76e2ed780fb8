/* What a trusted list states about a certificate, regardless of who signed the list. */
#include "testing.h"
#include "base/base64.h"
#include "pki.h"
#include "trustlist/trusted_list_xml.h"

#define GRANTED "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
#define WITHDRAWN "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn"
#define TIMES "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
#define SEALS "http://uri.etsi.org/TrstSvc/Svctype/CA/QC"
#define NEXT "<NextUpdate><dateTime>2020-06-01T00:00:00Z</dateTime></NextUpdate>"
#define CLOSED "<NextUpdate/>"

static struct pki_identity root, middle, leaf, stranger, namesake;

static int set_up(void **state)
{
	struct error error = {0};
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	middle = pki_issue(
		&(struct pki_certificate){.name = "Middle", .issuer = &root, .extensions = pki_authority});
	leaf = pki_issue(
		&(struct pki_certificate){.name = "Leaf", .issuer = &middle, .extensions = pki_leaf});
	stranger =
		pki_issue(&(struct pki_certificate){.name = "Stranger", .extensions = pki_authority});
	namesake = pki_issue(
		&(struct pki_certificate){.name = "Middle", .issuer = &root, .extensions = pki_authority});
	return list_libraries_begin(&error);
}

static int tear_down(void **state)
{
	struct pki_identity *all[] = {&root, &middle, &leaf, &stranger, &namesake};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		pki_free(all[i]);
	return 0;
}

static void add_der(const struct pki_identity *identity, struct buf *out)
{
	unsigned char *der = NULL;
	int size = i2d_X509(identity->certificate, &der);
	assert_true(size > 0);
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
}

/* Adds a status from a time on, of a service that is identified by that certificate (NULL: in the
 * history). */
static void add_period(struct buf *out, const char *type, const struct pki_identity *identity,
                       const char *status, const char *from)
{
	BUF_AUTO struct buf der = {.limit = 65536};
	buf_printf(out, "<ServiceTypeIdentifier>%s</ServiceTypeIdentifier><ServiceDigitalIdentity>",
	           type);
	if (identity) {
		add_der(identity, &der);
		buf_add_text(out, "<DigitalId><X509Certificate>");
		buf_add_base64(out, buf_slice(&der));
		buf_add_text(out, "</X509Certificate></DigitalId>");
	}
	buf_printf(out,
	           "</ServiceDigitalIdentity><ServiceStatus>%s</ServiceStatus>"
	           "<StatusStartingTime>%s</StatusStartingTime>",
	           status, from);
}

struct sample {
	const char *next_update;
	const char *type;
	const struct pki_identity *service;
	const char *status; /* since 2019-12-01; granted since 2018 before that */
};

static void write_list(const struct sample *sample, struct buf *out)
{
	buf_printf(out,
	           "<TrustServiceStatusList xmlns=\"" LIST_NAMESPACE "\"><SchemeInformation>"
	           "<ListIssueDateTime>2020-01-01T00:00:00Z</ListIssueDateTime>%s</SchemeInformation>"
	           "<TrustServiceProviderList><TrustServiceProvider><TSPServices><TSPService>"
	           "<ServiceInformation>",
	           sample->next_update);
	add_period(out, sample->type, sample->service, sample->status, "2019-12-01T00:00:00Z");
	buf_add_text(out, "</ServiceInformation><ServiceHistory><ServiceHistoryInstance>");
	add_period(out, sample->type, NULL, GRANTED, "2018-01-01T00:00:00Z");
	buf_add_text(out, "</ServiceHistoryInstance></ServiceHistory></TSPService></TSPServices>"
	                  "</TrustServiceProvider></TrustServiceProviderList>"
	                  "</TrustServiceStatusList>");
	assert_int_equal(buf_check(out), 0);
}

static int64_t time_of(const char *text)
{
	int64_t time_us = 0;
	assert_int_equal(time_parse(slice_of(text), "time", &time_us, NULL), 0);
	return time_us;
}

static void judge(const struct sample *sample, bool seal, const char *at,
                  const struct pki_identity *const *path, size_t count,
                  struct list_answer *ret_answer)
{
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	BUF_AUTO struct buf der = {.limit = 65536};
	struct list list;
	struct error error = {0};
	write_list(sample, &text);
	for (size_t i = 0; i < count; i++)
		add_der(path[i], &der);
	if (list_parse(buf_slice(&text), &list, &error))
		fail_msg("%s", error.cause);
	int64_t at_us = time_of(at);
	struct list_question question = {seal, at_us, at_us, buf_slice(&der)};
	list_judge(&list, &question, ret_answer);
	list_free(&list);
}

/* A path may end below the service: an authority that includes only its own certificate in its
 * tokens, when no root is given. */
TEST_CASE(a_service_is_found_by_what_it_issued)
{
	const struct {
		const struct pki_identity *service;
		size_t count; /* of leaf, middle, root */
		enum list_status time;
		const char *seal; /* its reason */
	} cases[] = {
		{&leaf, 1, LIST_STATUS_QUALIFIED, "no service of this type"},
		{&middle, 1, LIST_STATUS_QUALIFIED, "does not issue certificates for electronic seals"},
		{&root, 1, LIST_STATUS_UNKNOWN, "no service of this type"},
		{&namesake, 1, LIST_STATUS_UNKNOWN, "no service of this type"},
		{&stranger, 1, LIST_STATUS_UNKNOWN, "no service of this type"},
		{&middle, 2, LIST_STATUS_QUALIFIED, "does not issue certificates for electronic seals"},
		{&root, 2, LIST_STATUS_QUALIFIED, "does not issue certificates for electronic seals"},
		{&namesake, 2, LIST_STATUS_UNKNOWN, "no service of this type"},
		{&root, 3, LIST_STATUS_QUALIFIED, "does not issue certificates for electronic seals"},
		{&stranger, 3, LIST_STATUS_UNKNOWN, "no service of this type"},
	};
	const struct pki_identity *path[] = {&leaf, &middle, &root};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct list_answer found;
		struct sample sample = {NEXT, TIMES, cases[i].service, GRANTED};
		judge(&sample, false, "2019-06-01T00:00:00Z", path, cases[i].count, &found);
		if (found.standing != cases[i].time)
			fail_msg("case %zu: %s", i, found.reason);
		sample.type = SEALS;
		judge(&sample, true, "2019-06-01T00:00:00Z", path, cases[i].count, &found);
		if (!strstr(found.reason, cases[i].seal))
			fail_msg("case %zu: %s", i, found.reason);
	}
}

/* Like the last list of the United Kingdom: no next update. Its history counts until it was
 * issued. */
TEST_CASE(a_closed_list_tells_what_was_before)
{
	static const struct {
		const char *next_update, *status, *at;
		enum list_status standing;
		const char *reason;
	} cases[] = {
		{CLOSED, WITHDRAWN, "2019-06-01T00:00:00Z", LIST_STATUS_QUALIFIED, "a qualified"},
		{CLOSED, WITHDRAWN, "2019-12-31T23:59:59Z", LIST_STATUS_NOT_QUALIFIED, "not granted"},
		{CLOSED, WITHDRAWN, "2024-01-01T00:00:00Z", LIST_STATUS_NOT_QUALIFIED, "not granted"},
		{CLOSED, GRANTED, "2020-01-01T00:00:00Z", LIST_STATUS_QUALIFIED, "a qualified"},
		{CLOSED, GRANTED, "2020-01-01T00:00:01Z", LIST_STATUS_UNKNOWN,
	     "the list was closed before"},
		{CLOSED, GRANTED, "2024-01-01T00:00:00Z", LIST_STATUS_UNKNOWN,
	     "the list was closed before"},
		{CLOSED, GRANTED, "2017-01-01T00:00:00Z", LIST_STATUS_NOT_QUALIFIED, "not yet on the list"},
		{NEXT, GRANTED, "2024-01-01T00:00:00Z", LIST_STATUS_QUALIFIED, "a qualified"},
	};
	const struct pki_identity *path[] = {&leaf};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct list_answer found;
		struct sample sample = {cases[i].next_update, TIMES, &leaf, cases[i].status};
		judge(&sample, false, cases[i].at, path, 1, &found);
		if (found.standing != cases[i].standing || !strstr(found.reason, cases[i].reason))
			fail_msg("case %zu: %s", i, found.reason);
	}
}

/* Only an empty element closes a list. */
TEST_CASE(the_next_update_is_read)
{
	static const struct {
		const char *next_update;
		int result;
		bool closed;
	} cases[] = {
		{NEXT, 0, false},
		{CLOSED, 0, true},
		{"<NextUpdate> \n </NextUpdate>", 0, true},
		{"<NextUpdate><!-- none --></NextUpdate>", 0, true},
		{"", ERR_INVALID_EVIDENCE, false},
		{"<NextUpdate>never</NextUpdate>", ERR_INVALID_EVIDENCE, false},
		{"<NextUpdate><dateTime/></NextUpdate>", ERR_INVALID_EVIDENCE, false},
		{"<NextUpdate><dateTime>never</dateTime></NextUpdate>", ERR_INVALID_EVIDENCE, false},
		{"<NextUpdate><other/></NextUpdate>", ERR_INVALID_EVIDENCE, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		BUF_AUTO struct buf text = {.limit = 1 << 20};
		struct list list;
		struct error error = {0};
		struct sample sample = {cases[i].next_update, TIMES, &leaf, GRANTED};
		write_list(&sample, &text);
		int result = list_parse(buf_slice(&text), &list, &error);
		if (result != cases[i].result)
			fail_msg("case %zu: %d %s", i, result, error.cause);
		if (result)
			continue;
		assert_int_equal(list.facts.next_us == TIME_NONE, cases[i].closed);
		list_free(&list);
	}
}

TEST_MAIN(set_up, tear_down)
