/* The receipt of a purchase: a PDF file in one language, with the layout and the form of a report
 * (report.h), made from given facts. It shows the recorded data of the purchase and states which
 * data was not recorded. It has no binding to an archive, so the verifier does not accept it as a
 * report. Every text may be hostile. */
#ifndef REPORT_SALE_H
#define REPORT_SALE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SALE_TEXT_MAX 1024 /* bytes of any one text */

enum sale_state { SALE_PAID, SALE_REFUNDED, SALE_REVERTED };

struct sale_facts {
	int64_t issued_at_us; /* time at which the file is made */
	/* The seller, from the current settings. */
	const char *service_name;
	const char *service_url;
	/* The customer. */
	const char *account_id;
	const char *account_name;
	const char *country;  /* as recorded, like all members below; NULL: not recorded */
	const char *customer; /* the customer's name at the payment provider; NULL: not recorded */
	bool recorded; /* account_name and tax_rate are recorded; false: the current name, and the rate
	                  calculated from the tax */
	/* The purchase. */
	const char *sale_id;
	const char *description;
	int64_t credits;
	int64_t net_minor, tax_minor;
	int64_t tax_rate; /* in hundredths of a percent; negative: not printed */
	const char *currency;
	int64_t created_at_us;
	/* The payment. */
	int64_t paid_at_us;
	const char *provider;  /* payment provider; NULL: the seller confirmed the payment manually */
	const char *reference; /* NULL: none */
	bool automatic;
	enum sale_state state;
	int64_t ended_at_us; /* time of the refund or chargeback */
};

/* Writes the unsigned receipt to an open, empty file. Returns the errors of report_render. */
int sale_render(const struct sale_facts *facts, enum language language, int file,
                struct error *error) MUST_CHECK;

#endif
