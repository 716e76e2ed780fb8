/* E-mail texts in English and Spanish. Pure. */
#ifndef SERVICE_MAIL_TEMPLATES_H
#define SERVICE_MAIL_TEMPLATES_H

#include "base/buf.h"
#include "base/error.h"

struct mail_facts {
	const char *template_name; /* see store/notices/mails.h */
	const char *values;        /* JSON object */
	const char *service;       /* service.name */
	const char *account_id;
	enum language language;
};

/* Fills in the placeholders. Control characters in values become spaces. ERR_VALIDATION: there is
 * no such template, the values are not an object, or a value of the subject is missing;
 * ERR_NO_MEMORY. */
int mail_template_fill(const struct mail_facts *facts, struct buf *subject, struct buf *text,
                       struct error *error) MUST_CHECK;

#endif
