/* The texts of e-mails, in English and Spanish. Pure. */
#ifndef SERVICE_MAIL_TEMPLATES_H
#define SERVICE_MAIL_TEMPLATES_H

#include "base/buf.h"
#include "base/error.h"

struct mail_facts {
	const char *template_name; /* as store/notices/mails.h names them */
	const char *values;        /* JSON object */
	const char *service;       /* service.name */
	const char *account_id;
	enum language language;
};

/* Fills the places. Control characters in values become spaces. ERR_VALIDATION: no such template,
 * or values that are no object; ERR_NO_MEMORY. */
int mail_template_fill(const struct mail_facts *facts, struct buf *subject, struct buf *text,
                       struct error *error) MUST_CHECK;

#endif
