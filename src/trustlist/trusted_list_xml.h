/* Internal interface of the program that reads trusted lists. No other program links it. */
#ifndef TRUSTLIST_TRUSTED_LIST_XML_H
#define TRUSTLIST_TRUSTED_LIST_XML_H

#include <libxml/tree.h>
#include <openssl/x509.h>

#include "trustlist/trusted_list.h"

#define LIST_NAMESPACE "http://uri.etsi.org/02231/v2#"
#define LIST_PATH_MAX 8 /* certificates */

struct list {
	xmlDoc *document;
	xmlNode *scheme, *providers;
	struct list_facts facts;
};

/* Initializes the libraries. Called once, before a list is read. */
int list_libraries_begin(struct error *error) MUST_CHECK;

/* Parses a list and reads its scheme information without verifying it. Returns 0 or
 * ERR_INVALID_EVIDENCE. */
int list_parse(struct slice text, struct list *ret_list, struct error *error) MUST_CHECK;
void list_free(struct list *list);
/* Verifies the signature and sets facts.signer. Returns 0 or ERR_INVALID_EVIDENCE. */
int list_verify(struct list *list, struct slice roots_pem, struct error *error) MUST_CHECK;
/* Answers a question from the list. The path in the question may be any bytes. */
void list_judge(const struct list *list, const struct list_question *question,
                struct list_answer *ret_answer);

/* ---- reading nodes: all accept NULL ---- */

bool node_is(const xmlNode *node, const char *space, const char *name);
/* Return the first child element or the next sibling of that name; NULL: none. */
xmlNode *node_child(const xmlNode *node, const char *space, const char *name);
xmlNode *node_next(const xmlNode *node, const char *space, const char *name);
xmlNode *node_first(const xmlNode *node); /* of any name */
xmlNode *node_following(const xmlNode *node);
/* Returns the text without surrounding space; NULL: none. The caller frees it with xmlFree. */
char *node_text(const xmlNode *node);
void node_copy_text(const xmlNode *node, char *text, size_t size);
bool node_text_is(const xmlNode *node, const char *wanted);
bool node_time(const xmlNode *node, int64_t *ret_us);
/* Decodes a certificate in Base64; NULL: invalid. */
X509 *node_certificate(const xmlNode *node);

/* ---- trusted_list_criteria.c ---- */

enum ternary { NO, YES, UNSURE };
/* Returns whether a certificate meets a CriteriaList (TS 119 612, 5.5.9.2.2.2). */
enum ternary criteria_met(const xmlNode *list, X509 *certificate);
struct certificate_statements { /* QcStatements, EN 319 412-5 */
	bool compliant, seal, device, typed;
};
struct certificate_statements certificate_statements(const X509 *certificate);

/* Runs the program. */
_Noreturn void trusted_list_run(void);

#endif
