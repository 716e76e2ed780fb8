#include "trustlist/trusted_list_xml.h"

#include <assert.h>
#include <ctype.h>
#include <libxml/parser.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"

#define CERTIFICATE_MAX 16384

static int invalid(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "the trusted list %s", why);
}

/* ---- nodes ---- */

bool node_is(const xmlNode *node, const char *space, const char *name)
{
	return node && node->type == XML_ELEMENT_NODE && node->ns &&
	       strcmp((const char *)node->ns->href, space) == 0 &&
	       strcmp((const char *)node->name, name) == 0;
}

static xmlNode *from(xmlNode *node, const char *space, const char *name)
{
	while (node && !(name ? node_is(node, space, name) : node->type == XML_ELEMENT_NODE))
		node = node->next;
	return node;
}

xmlNode *node_child(const xmlNode *node, const char *space, const char *name)
{
	return node ? from(node->children, space, name) : NULL;
}

xmlNode *node_next(const xmlNode *node, const char *space, const char *name)
{
	return node ? from(node->next, space, name) : NULL;
}

xmlNode *node_first(const xmlNode *node)
{
	return node ? from(node->children, NULL, NULL) : NULL;
}

xmlNode *node_following(const xmlNode *node)
{
	return node ? from(node->next, NULL, NULL) : NULL;
}

char *node_text(const xmlNode *node)
{
	char *text = node ? (char *)xmlNodeGetContent(node) : NULL;
	if (!text)
		return NULL;
	char *begin = text, *end = text + strlen(text);
	while (isspace((unsigned char)*begin))
		begin++;
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	memmove(text, begin, (size_t)(end - begin));
	text[end - begin] = 0;
	return text;
}

void node_copy_text(const xmlNode *node, char *text, size_t size)
{
	assert(size > 0);
	char *found = node_text(node);
	size_t used = found ? strlen(found) : 0;
	if (used >= size) /* cut at a character boundary */
		for (used = size - 1; used > 0 && ((unsigned char)found[used] & 0xc0) == 0x80;)
			used--;
	if (used > 0)
		memcpy(text, found, used);
	text[used] = 0;
	xmlFree(found);
}

bool node_text_is(const xmlNode *node, const char *wanted)
{
	char *text = node_text(node);
	bool same = text && strcmp(text, wanted) == 0;
	xmlFree(text);
	return same;
}

bool node_time(const xmlNode *node, int64_t *ret_us)
{
	char *text = node_text(node);
	bool read = text && time_parse(slice_of(text), "time", ret_us, NULL) == 0;
	xmlFree(text);
	return read;
}

X509 *node_certificate(const xmlNode *node)
{
	char *text = node_text(node), *to = text;
	unsigned char der[CERTIFICATE_MAX];
	size_t size = 0;
	for (const char *at = text; at && *at; at++)
		if (!isspace((unsigned char)*at))
			*to++ = *at;
	const unsigned char *position = der;
	bool decoded =
		text && base64_decode(slice_make(text, (size_t)(to - text)), der, sizeof der, &size);
	X509 *made = decoded ? d2i_X509(NULL, &position, (long)size) : NULL;
	xmlFree(text);
	return made;
}

/* ---- the list ---- */

/* An empty element means that there will be no next list (TS 119 612, 5.3.15). */
static bool read_next_update(const xmlNode *next, int64_t *ret_us)
{
	char *text = node_text(next);
	bool closed = text && !text[0] && !node_first(next);
	xmlFree(text);
	*ret_us = TIME_NONE;
	return closed || node_time(node_child(next, LIST_NAMESPACE, "dateTime"), ret_us);
}

static bool read_facts(const xmlNode *scheme, struct list_facts *facts)
{
	xmlNode *operator_name = node_child(scheme, LIST_NAMESPACE, "SchemeOperatorName");
	xmlNode *next = node_child(scheme, LIST_NAMESPACE, "NextUpdate");
	node_copy_text(node_child(scheme, LIST_NAMESPACE, "SchemeTerritory"), facts->territory,
	               sizeof facts->territory);
	node_copy_text(node_child(operator_name, LIST_NAMESPACE, "Name"), facts->operator_name,
	               sizeof facts->operator_name);
	return node_time(node_child(scheme, LIST_NAMESPACE, "ListIssueDateTime"), &facts->issued_us) &&
	       read_next_update(next, &facts->next_us);
}

int list_parse(struct slice text, struct list *ret_list, struct error *error)
{
	assert(ret_list);
	struct list list = {0};
	/* Without a document type there are no entities, no default attributes, and nothing to fetch.
	 */
	if (text.size == 0 || text.size > TRUSTED_LIST_MAX ||
	    memmem(text.data, text.size, "<!DOCTYPE", 9))
		return invalid(error, "is empty, too large, or has a document type");
	list.document = xmlReadMemory(text.data, (int)text.size, NULL, NULL,
	                              XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (!list.document || list.document->intSubset) {
		list_free(&list);
		return invalid(error, "is not well-formed XML");
	}
	xmlNode *root = xmlDocGetRootElement(list.document);
	list.scheme = node_child(root, LIST_NAMESPACE, "SchemeInformation");
	list.providers = node_child(root, LIST_NAMESPACE, "TrustServiceProviderList");
	if (!node_is(root, LIST_NAMESPACE, "TrustServiceStatusList") ||
	    !read_facts(list.scheme, &list.facts)) {
		list_free(&list);
		return invalid(error, "has no valid scheme information (ETSI TS 119 612)");
	}
	*ret_list = list;
	return OK;
}

void list_free(struct list *list)
{
	xmlFreeDoc(list->document);
	list->document = NULL;
}
