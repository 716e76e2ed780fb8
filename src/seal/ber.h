/* Where the elements of BER begin and end (X.690 sections 8.1.2 and 8.1.3), without knowing what
 * they mean. DER is the special case. Inside src/seal only. */
#ifndef SEAL_BER_H
#define SEAL_BER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

#define BER_SEQUENCE 0x30 /* constructed, universal */

struct ber_element {
	unsigned char identifier; /* class, form and number in one byte: no larger numbers occur here */
	struct slice whole;       /* with its header, and the end-of-contents octets if it has any */
	struct slice inside;      /* without both */
};

/* Takes the element that *rest begins with. false, and *rest as it was: there is no whole one, or
 * one with a number above 30. Indefinite lengths may be nested; what stands inside an element of
 * definite length is not looked at. */
bool ber_next(struct slice *rest, struct ber_element *ret_element);

/* Appends an element with that identifier octet, and its length as DER has it. */
void ber_write(unsigned char identifier, struct slice inside, struct buf *out);

#define BER_DEPTH_MAX 32

/* What may stand in any order: the elements of a SET, which may hide behind a tag of a context. */
enum ber_order { BER_ORDER_KEPT, BER_ORDER_SORTED };

/* Appends the one element that `ber` is, with definite lengths, the shortest there are, and OCTET
 * STRINGs in one piece; what stands in primitive elements stays as it is. With BER_ORDER_KEPT that
 * is DER but for the order in SETs; BER_ORDER_SORTED is for comparing. 0, ERR_INVALID_EVIDENCE: it
 * is not one element, or nested deeper than BER_DEPTH_MAX; ERR_NO_MEMORY. */
int ber_to_der(struct slice ber, enum ber_order order, struct buf *out) MUST_CHECK;

#endif
