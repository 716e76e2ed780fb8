/* Boundaries of BER elements (X.690 sections 8.1.2 and 8.1.3), without interpretation of their
 * content. DER is a special case. For src/seal only. */
#ifndef SEAL_BER_H
#define SEAL_BER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

#define BER_SEQUENCE 0x30 /* constructed, universal */

struct ber_element {
	unsigned char
		identifier;      /* class, form and number in one byte; larger numbers are not supported */
	struct slice whole;  /* with header and, for indefinite length, end-of-contents octets */
	struct slice inside; /* the contents octets only */
};

/* Removes the first element from *rest. Returns false, and leaves *rest unchanged, for an
 * incomplete element or one with a number above 30. Indefinite lengths may be nested; the content
 * of an element of definite length is not examined. */
bool ber_next(struct slice *rest, struct ber_element *ret_element);

/* Appends an element with this identifier octet and a DER length. */
void ber_write(unsigned char identifier, struct slice inside, struct buf *out);

#define BER_DEPTH_MAX 32

/* Order of the elements of a SET; such a SET may be implicitly tagged (context-specific). */
enum ber_order { BER_ORDER_KEPT, BER_ORDER_SORTED };

/* Appends the single element `ber` with definite lengths in their shortest form and with OCTET
 * STRINGs in one piece; the content of primitive elements is unchanged. BER_ORDER_KEPT gives DER
 * except for the order in SETs; BER_ORDER_SORTED is for comparison only. Returns 0;
 * ERR_INVALID_EVIDENCE: not exactly one element, or nested deeper than BER_DEPTH_MAX;
 * ERR_NO_MEMORY. */
int ber_to_der(struct slice ber, enum ber_order order, struct buf *out) MUST_CHECK;

#endif
