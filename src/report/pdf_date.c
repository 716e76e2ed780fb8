/* Dates in the syntax of PDF. */
#include <stdio.h>

#include "base/clock.h"
#include "report/pdf_sign_form.h"

void pdf_date(int64_t time_us, char text[PDF_DATE_SIZE])
{
	char iso[TIME_TEXT_SIZE];
	time_format(time_us, iso);
	snprintf(text, PDF_DATE_SIZE, "D:%.4s%.2s%.2s%.2s%.2s%.2sZ", iso, iso + 5, iso + 8, iso + 11,
	         iso + 14, iso + 17);
}
