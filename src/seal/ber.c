#include "seal/ber.h"

#include <stdlib.h>

#define LENGTH_OCTETS_MAX sizeof(size_t)
#define CONSTRUCTED 0x20
#define OCTET_STRING 0x04
#define SET 0x31
#define CLASS_MASK 0xc0
#define CLASS_CONTEXT 0x80

struct header {
	unsigned char identifier;
	bool indefinite;
	size_t size;    /* of the header */
	size_t content; /* of what follows; 0 when indefinite */
};

static bool read_length(struct slice bytes, struct header *header)
{
	size_t octets = (unsigned char)bytes.data[1] & 0x7f;

	if (octets > LENGTH_OCTETS_MAX || octets > bytes.size - 2)
		return false;
	for (size_t i = 0; i < octets; i++) {
		if (header->content > SIZE_MAX >> 8)
			return false;
		header->content = header->content << 8 | (unsigned char)bytes.data[2 + i];
	}
	header->size += octets;
	return true;
}

static bool read_header(struct slice bytes, struct header *ret_header)
{
	if (bytes.size < 2)
		return false;
	unsigned char length = (unsigned char)bytes.data[1];
	struct header header = {.identifier = (unsigned char)bytes.data[0], .size = 2};

	if ((header.identifier & 0x1f) == 0x1f)
		return false;
	header.indefinite = length == 0x80;
	if (length < 0x80)
		header.content = length;
	else if (!header.indefinite && !read_length(bytes, &header))
		return false;
	/* Only constructed elements can have indefinite length. No element has the number 0. */
	if (header.indefinite ? !(header.identifier & CONSTRUCTED)
	                      : header.identifier == 0 && header.content + header.size != 2)
		return false;
	*ret_header = header;
	return header.content <= bytes.size - header.size;
}

static bool is_end_of_contents(const struct header *header)
{
	return header->identifier == 0;
}

/* Finds the number of bytes before the end-of-contents octets of the element itself. */
static bool find_end(struct slice bytes, size_t *ret_size)
{
	size_t at = 0;

	for (size_t open = 1; open > 0;) {
		struct header header;
		if (!read_header(slice_make(bytes.data + at, bytes.size - at), &header))
			return false;
		open += header.indefinite;
		open -= is_end_of_contents(&header);
		if (open == 0)
			*ret_size = at;
		at += header.size + header.content;
	}
	return true;
}

bool ber_next(struct slice *rest, struct ber_element *ret_element)
{
	struct header header;

	if (!read_header(*rest, &header) || is_end_of_contents(&header))
		return false;
	struct slice contents = slice_make(rest->data + header.size, rest->size - header.size);
	size_t content = header.content;
	if (header.indefinite && !find_end(contents, &content))
		return false;
	size_t size = header.size + content + (header.indefinite ? 2 : 0);
	*ret_element = (struct ber_element){
		.identifier = header.identifier,
		.whole = slice_make(rest->data, size),
		.inside = slice_make(contents.data, content),
	};
	*rest = slice_make(rest->data + size, rest->size - size);
	return true;
}

/* ---- to DER ---- */

static void write_header(unsigned char identifier, size_t size, struct buf *out)
{
	buf_add_byte(out, (char)identifier);
	if (size < 0x80) {
		buf_add_byte(out, (char)size);
		return;
	}
	unsigned octets = 1;
	while (octets < sizeof size && size >> (8 * octets))
		octets++;
	buf_add_byte(out, (char)(0x80 | octets));
	while (octets-- > 0)
		buf_add_byte(out, (char)(size >> (8 * octets)));
}

void ber_write(unsigned char identifier, struct slice inside, struct buf *out)
{
	write_header(identifier, inside.size, out);
	buf_add_slice(out, inside);
}

/* Order of X.690 section 11.6. Neither element is a prefix of the other, since both begin with
 * their length. */
static int compare_elements(const void *a, const void *b)
{
	const struct slice *one = a, *other = b;

	return memcmp(one->data, other->data, one->size < other->size ? one->size : other->size);
}

static int write_sorted(struct slice elements, struct buf *out)
{
	struct slice rest = elements;
	struct ber_element element;
	size_t count = 0;

	while (ber_next(&rest, &element))
		count++;
	struct slice *list = malloc((count + 1) * sizeof *list);
	if (!list)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count && ber_next(&elements, &element); i++)
		list[i] = element.whole;
	qsort(list, count, sizeof *list, compare_elements);
	for (size_t i = 0; i < count; i++)
		buf_add_slice(out, list[i]);
	free(list);
	return buf_check(out);
}

static int write_element(const struct ber_element *element, enum ber_order order, unsigned depth,
                         struct buf *out)
{
	bool is_string = element->identifier == (OCTET_STRING | CONSTRUCTED);
	bool is_set = element->identifier == SET || (element->identifier & CLASS_MASK) == CLASS_CONTEXT;
	struct slice rest = element->inside;
	BUF_AUTO struct buf inside;
	int result = 0;

	if (!(element->identifier & CONSTRUCTED)) {
		ber_write(element->identifier, rest, out);
		return buf_check(out);
	}
	if (depth == BER_DEPTH_MAX)
		return ERR_INVALID_EVIDENCE;
	buf_init(&inside, element->whole.size * 2 + 16);
	while (!result && rest.size > 0) {
		struct ber_element part;
		if (!ber_next(&rest, &part))
			return ERR_INVALID_EVIDENCE;
		if (!is_string) {
			result = write_element(&part, order, depth + 1, &inside);
		} else if (part.identifier == OCTET_STRING) {
			buf_add_slice(&inside, part.inside);
		} else {
			return ERR_INVALID_EVIDENCE; /* nested constructed strings are not supported */
		}
	}
	if (!result)
		result = buf_check(&inside);
	write_header(is_string ? OCTET_STRING : element->identifier, inside.size, out);
	if (!result && order == BER_ORDER_SORTED && is_set)
		return write_sorted(buf_slice(&inside), out);
	buf_add_slice(out, buf_slice(&inside));
	return result ? result : buf_check(out);
}

int ber_to_der(struct slice ber, enum ber_order order, struct buf *out)
{
	struct ber_element element;

	if (!ber_next(&ber, &element) || ber.size > 0)
		return ERR_INVALID_EVIDENCE;
	return write_element(&element, order, 0, out);
}
