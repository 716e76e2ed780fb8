/* The receipt of a purchase: a PDF in one language, with the look and the form of a report
 * (report.h), from facts that are settled. It says what the purchase's record says, and of what is
 * not recorded that it is not. It is no report: it has nothing that binds it to an archive, and the
 * verifier takes it for none. Any text may be hostile. */
#ifndef REPORT_SALE_H
#define REPORT_SALE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SALE_TEXT_MAX 1024 /* bytes of any one text */

enum sale_state { SALE_PAID, SALE_REFUNDED, SALE_REVERTED };

struct sale_facts {
	int64_t issued_at_us; /* when the file is made */
	/* The seller, as the settings know him then. */
	const char *service_name;
	const char *service_url;
	/* The customer. */
	const char *account_id;
	const char *account_name;
	const char *country;  /* as recorded, like all that follows; NULL: none was */
	const char *customer; /* the payment provider's name of him; NULL: none was */
	bool recorded; /* account_name and tax_rate are; else today's, and worked out from the tax */
	/* The purchase. */
	const char *sale_id;
	const char *description;
	int64_t credits;
	int64_t net_minor, tax_minor;
	int64_t tax_rate; /* in hundredths of a percent; below 0: it is not said */
	const char *currency;
	int64_t created_at_us;
	/* The payment. */
	int64_t paid_at_us;
	const char *provider;  /* who took it; NULL: the seller himself, by hand */
	const char *reference; /* NULL: none */
	bool automatic;
	enum sale_state state;
	int64_t ended_at_us; /* refunded or reverted */
};

/* Writes the unsigned receipt to an open, empty file. As report_render. */
int sale_render(const struct sale_facts *facts, enum language language, int file,
                struct error *error) MUST_CHECK;

#endif
