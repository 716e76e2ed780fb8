/* The parts of a report that signing reads: only the expected form is accepted, and no change
 * misleads the reader. */
#include <sys/mman.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "report/pdf_base.h"
#include "report/pdf_sign_form.h"

#define OBJECTS 3
#define CHANGES 20000
#define IDENTIFIER "00112233445566778899aabbccddeeff"

/* A file of this form; NULL: the default. */
struct form {
	const char *objects[OBJECTS]; /* catalog, pages, page */
	const char *count;            /* in the table and in the trailer */
	const char *trailer;
};

static const struct form usual = {
	.objects = {"<< /Lang (en-GB) /Pages 2 0 R /Type /Catalog >>",
                "<< /Count 1 /Kids [ 3 0 R ] /Type /Pages >>",
                "<< /Annots [ 7 0 R 12 0 R ] /Contents 9 0 R /Type /Page >>"},
	.count = "4",
	.trailer = "<< /Info 3 0 R /Root 1 0 R /Size 4 /ID [<" IDENTIFIER "><" IDENTIFIER ">] >>",
};

static void build(const struct form *form, struct buf *out)
{
	int64_t at[OBJECTS];
	buf_init(out, 1 << 20);
	buf_add_text(out, "%PDF-1.7\n");
	for (int i = 0; i < OBJECTS; i++) {
		at[i] = (int64_t)out->size;
		buf_printf(out, "%d 0 obj\n%s\nendobj\n", i + 1,
		           form->objects[i] ? form->objects[i] : usual.objects[i]);
	}
	int64_t table_at = (int64_t)out->size;
	buf_printf(out, "xref\n0 %s\n0000000000 65535 f \n", form->count ? form->count : usual.count);
	for (int i = 0; i < OBJECTS; i++)
		buf_printf(out, PDF_FORM_ENTRY, (long long)at[i]);
	buf_printf(out, "trailer %s\nstartxref\n%lld\n%%%%EOF\n",
	           form->trailer ? form->trailer : usual.trailer, (long long)table_at);
	assert_int_equal(buf_check(out), 0);
}

/* Must be freed whatever the result. */
static int read_bytes(struct slice bytes, struct pdf_base *ret_base)
{
	struct error error = {0};
	int file = memfd_create("base", MFD_CLOEXEC);
	assert_int_equal(write(file, bytes.data, bytes.size), bytes.size);
	int result = pdf_base_read(file, ret_base, &error);
	close(file);
	return result;
}

static void expect_page(const char *page, const char *expected)
{
	struct form form = {.objects = {NULL, NULL, page}};
	struct pdf_base base;
	BUF_AUTO struct buf file;
	build(&form, &file);
	assert_int_equal(read_bytes(buf_slice(&file), &base), 0);
	assert_string_equal(base.page.data, expected);
	assert_string_equal(base.catalog.data, "<< /Lang (en-GB) /Pages 2 0 R /Type /Catalog ");
	assert_string_equal(base.first_id, IDENTIFIER);
	assert_int_equal(base.catalog_id, 1);
	assert_int_equal(base.page_id, 3);
	assert_int_equal(base.info_id, 3);
	assert_int_equal(base.next_id, 4);
	assert_int_equal(base.size_bytes, file.size);
	assert_memory_equal(file.data + base.cross_reference_at, "xref\n", 5);
	pdf_base_free(&base);
}

TEST_CASE(reads_what_the_update_needs)
{
	expect_page(NULL, "<< /Contents 9 0 R /Type /Page /Annots [ 7 0 R 12 0 R ");
	expect_page("<< /Contents 9 0 R /Type /Page >>", "<< /Contents 9 0 R /Type /Page /Annots [ ");
	expect_page("<< /Annots [ ] /Type /Page >>", "<< /Type /Page /Annots [ ");
}

static void expect_refused(struct form form)
{
	struct pdf_base base;
	BUF_AUTO struct buf file;
	build(&form, &file);
	assert_int_equal(read_bytes(buf_slice(&file), &base), ERR_REFUSED);
	pdf_base_free(&base);
}

#define TRAILER(root, size, identifier)                                                            \
	"<< /Info 3 0 R /Root " root " 0 R /Size " size " /ID [<" identifier "><" IDENTIFIER ">] >>"

TEST_CASE(refuses_another_form)
{
	static const char *const catalogs[] = {
		"<< /AcroForm 3 0 R /Pages 2 0 R >>",    "<< /Pages 4 0 R >>",     "<< /Pages 0 0 R >>",
		"<< /Pages 99999999999999999999 0 R >>", "<< /Pages [ 2 0 R ] >>", "<< /Type /Catalog >>",
		"<< /Pages 2 0 R\n/Type /Catalog >>",    "/Pages 2 0 R >>",        "<< /Pages 2 0 R",
	};
	static const char *const pages[] = {"<< /Kids [ ] >>", "<< /Kids 3 0 R >>", "<< /Count 1 >>",
	                                    "<< /Kids [ 1 0 R ] >>", "<< /Kids [ 2 0 R ] >>"};
	static const char *const of_page[] = {"<< /Type /Pages >>", "<< /Annots 7 0 R /Type /Page >>",
	                                      "<< /Annots [ (text) ] /Type /Page >>",
	                                      "<< /Annots [ 7 1 R ] /Type /Page >>",
	                                      "<< /Type /Page /Annots [ 7 0 R"};
	static const char *const trailers[] = {
		TRAILER("0", "4", IDENTIFIER), TRAILER("4", "4", IDENTIFIER),
		TRAILER("1", "5", IDENTIFIER), TRAILER("1", "4", "00"),
		"<< /Root 1 0 R /Size 4 >>",   "<< /Size 4 /ID [<" IDENTIFIER ">] >>"};
	static const char *const counts[] = {"3", "5", "0", "-4", "99999999", "four"};
	for (size_t i = 0; i < sizeof catalogs / sizeof *catalogs; i++)
		expect_refused((struct form){.objects = {catalogs[i]}});
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
		expect_refused((struct form){.objects = {NULL, pages[i]}});
	for (size_t i = 0; i < sizeof of_page / sizeof *of_page; i++)
		expect_refused((struct form){.objects = {NULL, NULL, of_page[i]}});
	for (size_t i = 0; i < sizeof trailers / sizeof *trailers; i++)
		expect_refused((struct form){.trailer = trailers[i]});
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		expect_refused((struct form){.count = counts[i]});
}

TEST_CASE(refuses_what_is_cut_off)
{
	BUF_AUTO struct buf file;
	build(&usual, &file);
	for (size_t size = 0; size < file.size; size++) {
		struct pdf_base base;
		assert_int_equal(read_bytes(slice_make(file.data, size), &base), ERR_REFUSED);
		pdf_base_free(&base);
	}
}

/* The author of the file may be hostile. */
TEST_CASE(takes_or_refuses_whatever_is_changed)
{
	BUF_AUTO struct buf file;
	build(&usual, &file);
	unsigned seed = (unsigned)clock_now_us();
	print_message("seed %u\n", seed);
	for (int i = 0; i < CHANGES; i++) {
		BUF_AUTO struct buf changed;
		struct pdf_base base;
		buf_init(&changed, file.size);
		buf_add_slice(&changed, buf_slice(&file));
		for (int count = 1 + rand_r(&seed) % 3; count; count--) {
			static const char bytes[] = "0123456789 \n<>[]/R\0\xff-+";
			changed.data[(size_t)rand_r(&seed) % file.size] =
				bytes[(size_t)rand_r(&seed) % (sizeof bytes - 1)];
		}
		int result = read_bytes(buf_slice(&changed), &base);
		assert_true(!result || result == ERR_REFUSED);
		if (!result)
			assert_true(base.catalog.size && base.page.size && base.page_id < base.next_id);
		pdf_base_free(&base);
	}
}

TEST_MAIN(NULL, NULL)
