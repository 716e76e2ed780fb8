/* Finds the services of a list that issued a certificate, and their status at a time. */
#include "trustlist/trusted_list_xml.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define GRANTED "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
#define TYPE_SEAL "http://uri.etsi.org/TrstSvc/Svctype/CA/QC"
#define TYPE_TIME "http://uri.etsi.org/TrstSvc/Svctype/TSA/QTST"
#define FOR_SEALS "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/ForeSeals"
#define QUALIFIER "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/"
#define QUALIFICATIONS "http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#"
#define PERIODS_MAX 256

/* A status of a service, until the next newer one began. */
struct period {
	const xmlNode *node; /* ServiceInformation or ServiceHistoryInstance */
	int64_t from_us, to_us;
};

struct question {
	const struct list_question *asked;
	int64_t until_us; /* the list makes no statement about later times */
	X509 *path[LIST_PATH_MAX];
	int count;
	const char *type;
};

static void answer(struct list_answer *to, enum list_status standing, const char *reason)
{
	assert(strlen(reason) < sizeof to->reason);
	to->standing = standing;
	snprintf(to->reason, sizeof to->reason, "%s", reason);
}

/* ---- services ---- */

static bool same_key(X509 *a, X509 *b)
{
	return X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b)) == 0 &&
	       EVP_PKEY_eq(X509_get0_pubkey(a), X509_get0_pubkey(b)) == 1;
}

static bool is_issuer(X509 *listed, X509 *certificate)
{
	return X509_NAME_cmp(X509_get_subject_name(listed), X509_get_issuer_name(certificate)) == 0 &&
	       X509_verify(certificate, X509_get0_pubkey(listed)) == 1;
}

/* Returns whether the service issued the certificate of a seal, or is or issued that of an
 * authority. The path may end below the service's certificate if that one is not embedded. */
static bool is_above(const xmlNode *information, const struct question *question)
{
	assert(question->count > 0 && question->count <= LIST_PATH_MAX);
	const xmlNode *identity = node_child(information, LIST_NAMESPACE, "ServiceDigitalIdentity");
	bool found = false;
	for (const xmlNode *id = node_child(identity, LIST_NAMESPACE, "DigitalId"); id && !found;
	     id = node_next(id, LIST_NAMESPACE, "DigitalId")) {
		X509 *listed = node_certificate(node_child(id, LIST_NAMESPACE, "X509Certificate"));
		for (int i = question->asked->seal; listed && i < question->count; i++)
			found |= same_key(listed, question->path[i]);
		if (listed && !found)
			found = is_issuer(listed, question->path[question->count - 1]);
		X509_free(listed);
	}
	return found;
}

/* ---- periods ---- */

/* Reads the periods, newest first as required. Returns false if their order is wrong or there are
 * too many. */
static bool read_periods(const xmlNode *service, struct period periods[PERIODS_MAX],
                         size_t *ret_count)
{
	const xmlNode *node = node_child(service, LIST_NAMESPACE, "ServiceInformation");
	const xmlNode *history = node_child(service, LIST_NAMESPACE, "ServiceHistory");
	int64_t to_us = INT64_MAX;
	*ret_count = 0;
	for (bool first = true; node; first = false) {
		struct period *period = &periods[*ret_count];
		if (*ret_count == PERIODS_MAX ||
		    !node_time(node_child(node, LIST_NAMESPACE, "StatusStartingTime"), &period->from_us) ||
		    period->from_us > to_us)
			return false;
		period->node = node;
		period->to_us = to_us;
		to_us = period->from_us;
		++*ret_count;
		node = first ? node_child(history, LIST_NAMESPACE, "ServiceHistoryInstance")
		             : node_next(node, LIST_NAMESPACE, "ServiceHistoryInstance");
	}
	return *ret_count > 0;
}

/* ---- status ---- */

static bool is_for_seals(const xmlNode *extensions)
{
	for (const xmlNode *extension = node_child(extensions, LIST_NAMESPACE, "Extension"); extension;
	     extension = node_next(extension, LIST_NAMESPACE, "Extension")) {
		const xmlNode *more = node_child(extension, LIST_NAMESPACE, "AdditionalServiceInformation");
		if (node_text_is(node_child(more, LIST_NAMESPACE, "URI"), FOR_SEALS))
			return true;
	}
	return false;
}

struct qualifiers {
	bool statement, not_qualified, for_seals, for_others, device, no_device, unsure;
};

static void take_qualifier(const char *uri, struct qualifiers *found)
{
	size_t prefix = strlen(QUALIFIER);
	if (strncmp(uri, QUALIFIER, prefix) != 0)
		return;
	const char *name = uri + prefix;
	found->statement |= strcmp(name, "QCStatement") == 0;
	found->not_qualified |= strcmp(name, "NotQualified") == 0;
	found->for_seals |= strcmp(name, "QCForESeal") == 0;
	found->for_others |= strcmp(name, "QCForESig") == 0 || strcmp(name, "QCForWSA") == 0;
	found->device |= strcmp(name, "QCWithQSCD") == 0 || strcmp(name, "QCWithSSCD") == 0;
	found->no_device |= strcmp(name, "QCNoQSCD") == 0 || strcmp(name, "QCNoSSCD") == 0;
}

static void take_element(const xmlNode *element, X509 *certificate, struct qualifiers *found)
{
	const xmlNode *qualifiers = node_child(element, QUALIFICATIONS, "Qualifiers");
	enum ternary met =
		criteria_met(node_child(element, QUALIFICATIONS, "CriteriaList"), certificate);
	found->unsure |= met == UNSURE;
	if (met != YES)
		return;
	for (const xmlNode *at = node_child(qualifiers, QUALIFICATIONS, "Qualifier"); at;
	     at = node_next(at, QUALIFICATIONS, "Qualifier")) {
		xmlChar *uri = xmlGetNoNsProp(at, (const xmlChar *)"uri");
		if (uri)
			take_qualifier((const char *)uri, found);
		xmlFree(uri);
	}
}

static struct qualifiers read_qualifiers(const xmlNode *extensions, X509 *certificate)
{
	struct qualifiers found = {0};
	for (const xmlNode *extension = node_child(extensions, LIST_NAMESPACE, "Extension"); extension;
	     extension = node_next(extension, LIST_NAMESPACE, "Extension")) {
		const xmlNode *all = node_child(extension, QUALIFICATIONS, "Qualifications");
		for (const xmlNode *element = node_child(all, QUALIFICATIONS, "QualificationElement");
		     element; element = node_next(element, QUALIFICATIONS, "QualificationElement"))
			take_element(element, certificate, &found);
	}
	return found;
}

/* Judges whether a certificate is a qualified certificate for electronic seals (Regulation (EU)
 * 910/2014, article 38; ETSI TS 119 615), by its own statements unless the list overrides them. */
static void judge_seal(const xmlNode *node, X509 *certificate, struct list_answer *to)
{
	const xmlNode *extensions = node_child(node, LIST_NAMESPACE, "ServiceInformationExtensions");
	struct qualifiers listed = read_qualifiers(extensions, certificate);
	struct certificate_statements said = certificate_statements(certificate);
	bool seal = listed.for_seals || (said.seal && !listed.for_others);
	bool device = listed.device || (said.device && !listed.no_device);
	if (!is_for_seals(extensions))
		answer(to, LIST_STATUS_NOT_QUALIFIED,
		       "the service does not issue certificates for electronic seals");
	else if (listed.unsure)
		answer(to, LIST_STATUS_UNKNOWN,
		       "the list has conditions for this certificate that are not supported");
	else if (listed.not_qualified || !(said.compliant || listed.statement))
		answer(to, LIST_STATUS_NOT_QUALIFIED, "its certificate is not a qualified certificate");
	else if (!seal)
		answer(to, LIST_STATUS_NOT_QUALIFIED, "its certificate is not for electronic seals");
	else
		answer(
			to, LIST_STATUS_QUALIFIED,
			device
				? "a qualified certificate for electronic seals, with its key in a qualified device"
				: "a qualified certificate for electronic seals; whether its key is in a "
				  "qualified device is not stated");
}

static void judge_period(const struct period *period, const struct question *question,
                         struct list_answer *to)
{
	assert(question->count > 0);
	if (!node_text_is(node_child(period->node, LIST_NAMESPACE, "ServiceTypeIdentifier"),
	                  question->type))
		answer(to, LIST_STATUS_NOT_QUALIFIED, "the service was of another type at that time");
	else if (!node_text_is(node_child(period->node, LIST_NAMESPACE, "ServiceStatus"), GRANTED))
		answer(to, LIST_STATUS_NOT_QUALIFIED,
		       "the qualified status of the service was not granted at that time");
	else if (question->asked->seal)
		judge_seal(period->node, question->path[0], to);
	else
		answer(to, LIST_STATUS_QUALIFIED, "a qualified time stamping service");
}

/* Determines the worst status of a service in the queried period. */
static void judge_service(const xmlNode *service, const struct question *question,
                          struct list_answer *to)
{
	struct period periods[PERIODS_MAX];
	size_t count;
	if (!read_periods(service, periods, &count)) {
		answer(to, LIST_STATUS_UNKNOWN, "the history of the service cannot be read");
		return;
	}
	assert(count >= 1 && count <= PERIODS_MAX);
	if (periods[count - 1].from_us > question->asked->from_us) {
		answer(to, LIST_STATUS_NOT_QUALIFIED, "the service was not yet on the list");
		return;
	}
	answer(to, LIST_STATUS_QUALIFIED, "");
	for (size_t i = 0; i < count && to->standing == LIST_STATUS_QUALIFIED; i++)
		if (periods[i].from_us <= question->asked->to_us &&
		    periods[i].to_us > question->asked->from_us)
			judge_period(&periods[i], question, to);
	if (to->standing == LIST_STATUS_QUALIFIED && question->asked->to_us > question->until_us)
		answer(to, LIST_STATUS_UNKNOWN, "the list was closed before that time");
}

/* Returns whether a service has, or once had, the queried type. */
static bool is_of_type(const xmlNode *service, const char *type)
{
	const xmlNode *now = node_child(service, LIST_NAMESPACE, "ServiceInformation");
	const xmlNode *history = node_child(service, LIST_NAMESPACE, "ServiceHistory");
	bool found = node_text_is(node_child(now, LIST_NAMESPACE, "ServiceTypeIdentifier"), type);
	for (const xmlNode *at = node_child(history, LIST_NAMESPACE, "ServiceHistoryInstance");
	     at && !found; at = node_next(at, LIST_NAMESPACE, "ServiceHistoryInstance"))
		found = node_text_is(node_child(at, LIST_NAMESPACE, "ServiceTypeIdentifier"), type);
	return found;
}

static void consider(const xmlNode *provider, const xmlNode *service,
                     const struct question *question, struct list_answer *best)
{
	const xmlNode *information = node_child(service, LIST_NAMESPACE, "ServiceInformation");
	const xmlNode *whose = node_child(provider, LIST_NAMESPACE, "TSPInformation");
	struct list_answer found = {0};
	if (!is_of_type(service, question->type) || !is_above(information, question))
		return;
	judge_service(service, question, &found);
	if (best->service[0] && found.standing <= best->standing)
		return;
	node_copy_text(
		node_child(node_child(information, LIST_NAMESPACE, "ServiceName"), LIST_NAMESPACE, "Name"),
		found.service, sizeof found.service);
	node_copy_text(node_child(node_child(whose, LIST_NAMESPACE, "TSPName"), LIST_NAMESPACE, "Name"),
	               found.provider, sizeof found.provider);
	if (!found.service[0])
		snprintf(found.service, sizeof found.service, "unnamed service");
	*best = found;
}

void list_judge(const struct list *list, const struct list_question *asked,
                struct list_answer *ret_answer)
{
	assert(ret_answer && list->document);
	struct question question = {.asked = asked,
	                            .type = asked->seal ? TYPE_SEAL : TYPE_TIME,
	                            .until_us = list->facts.next_us == TIME_NONE ? list->facts.issued_us
	                                                                         : INT64_MAX};
	const unsigned char *at = (const unsigned char *)asked->path.data;
	const unsigned char *end = at + asked->path.size;
	*ret_answer = (struct list_answer){0};
	while (at < end && question.count < LIST_PATH_MAX) {
		X509 *certificate = d2i_X509(NULL, &at, end - at);
		if (!certificate)
			break;
		question.path[question.count++] = certificate;
	}
	answer(ret_answer, LIST_STATUS_UNKNOWN,
	       question.count > 0 ? "no service of this type on the list issued its certificate"
	                          : "its certificate cannot be read");
	const xmlNode *provider = node_child(list->providers, LIST_NAMESPACE, "TrustServiceProvider");
	for (; provider && question.count > 0;
	     provider = node_next(provider, LIST_NAMESPACE, "TrustServiceProvider")) {
		const xmlNode *services = node_child(provider, LIST_NAMESPACE, "TSPServices");
		for (const xmlNode *service = node_child(services, LIST_NAMESPACE, "TSPService"); service;
		     service = node_next(service, LIST_NAMESPACE, "TSPService"))
			consider(provider, service, &question, ret_answer);
	}
	for (int i = 0; i < question.count; i++)
		X509_free(question.path[i]);
	ERR_clear_error();
}
