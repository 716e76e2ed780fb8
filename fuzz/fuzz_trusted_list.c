/* Signed and unsigned trusted lists. The results of reading are within limits, and a text without
 * the form of a list is rejected. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "trustlist/trusted_list_xml.h"

/* Asks about a certificate of the list itself, so that all statements about it are read. */
static void ask_about(const struct list *list, const xmlNode *node)
{
	X509 *certificate = node_certificate(node);
	unsigned char *der = NULL;
	int size = certificate ? i2d_X509(certificate, &der) : 0;
	for (int seal = 0; seal < 2 && size > 0; seal++) {
		/* For a seal, the first certificate of the path is not compared. */
		char twice[2 * 16384];
		memcpy(twice, der, (size_t)size);
		memcpy(twice + size, der, (size_t)size);
		struct list_question question = {seal, 0, INT64_MAX, {twice, 2 * (size_t)size}};
		struct list_answer answer;
		list_judge(list, &question, &answer);
		if (answer.standing > LIST_STATUS_QUALIFIED || !answer.reason[0])
			abort();
	}
	OPENSSL_free(der);
	X509_free(certificate);
}

static void ask(const struct list *list)
{
	const xmlNode *provider = node_child(list->providers, LIST_NAMESPACE, "TrustServiceProvider");
	const xmlNode *services = node_child(provider, LIST_NAMESPACE, "TSPServices");
	const xmlNode *service = node_child(services, LIST_NAMESPACE, "TSPService");
	for (; service; service = node_next(service, LIST_NAMESPACE, "TSPService")) {
		const xmlNode *information = node_child(service, LIST_NAMESPACE, "ServiceInformation");
		const xmlNode *id =
			node_child(node_child(information, LIST_NAMESPACE, "ServiceDigitalIdentity"),
		               LIST_NAMESPACE, "DigitalId");
		ask_about(list, node_child(id, LIST_NAMESPACE, "X509Certificate"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	struct error error = {0};
	struct list list;
	if (!begun && list_libraries_begin(&error))
		abort();
	begun = true;
	if (list_parse(slice_make(data, size), &list, &error))
		return 0;
	ask(&list);
	if (!list_verify(&list, slice_make("", 0), &error))
		abort(); /* no signer is trusted */
	list_free(&list);
	return 0;
}
