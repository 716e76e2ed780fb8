/* The operation that creates the receipt of a purchase. */
#include "admin/admin_call.h"
#include "base/base64.h"
#include "issue/sale_receipt.h"
#include "store/accounts/accounts.h"

static int write_receipt(const struct purchase_record *purchase, enum language language,
                         const struct buf *pdf, struct arena *arena, struct json_writer *out)
{
	struct sha256 digest = sha256_of(pdf->data, pdf->size);
	const char *code = language == LANGUAGE_SPANISH ? "es" : "en";
	size_t size = BASE64_SIZE(pdf->size);
	char *text = arena_alloc(arena, size + 1);
	const char *name = arena_printf(arena, "%s-%s.pdf", purchase->sale_id, code);
	if (!text || !name)
		return ERR_NO_MEMORY;
	base64_encode(pdf->data, pdf->size, text);
	json_begin_object(out, NULL);
	json_text(out, "sale_id", purchase->sale_id);
	json_text(out, "language", code);
	json_text(out, "name", name);
	json_integer(out, "bytes", (int64_t)pdf->size);
	json_hex(out, "sha256", digest.bytes, SHA256_SIZE);
	json_slice(out, "pdf", slice_make(text, size));
	json_end_object(out);
	return OK;
}

static int run_purchase_receipt(const struct admin_call *call, struct json_writer *out,
                                struct error *error)
{
	struct store *store = call->admin->store;
	struct purchase_record purchase;
	struct account_record account;
	BUF_AUTO struct buf pdf;
	buf_init(&pdf, SALE_RECEIPT_MAX);
	int result =
		store_find_purchase(store, admin_slice(call, "sale"), call->arena, &purchase, error);
	if (!result)
		result = store_find_account(store, slice_of(purchase.account_id), call->now_us, call->arena,
		                            &account, error);
	if (result)
		return result;
	struct sale_receipt_order order = {&purchase, account.name, account.language,
	                                   .of_operator = !call->caller->is_user};
	if (admin_given(call, "language"))
		order.language =
			slice_is(admin_slice(call, "language"), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
	result = sale_receipt_make(call->admin->service, &order, &pdf, error);
	return result ? result : write_receipt(&purchase, order.language, &pdf, call->arena, out);
}

#define SALE ADMIN_POSITIONAL_ID("sale", "SALE", "the purchase's sale code (sal_…)")

const struct admin_operation admin_receipt_operations[] = {
	{.name = "purchase receipt",
     .summary = "create the receipt of a paid purchase, a signed PDF",
     .file = "pdf",
     .parameters = {SALE,
                    ADMIN_FLAG_CHOICE("language", false, "en|es",
                                      "language of the receipt (the account's by default)"),
                    ADMIN_FLAG_OUTPUT},
     .run = run_purchase_receipt},
	{0},
};
