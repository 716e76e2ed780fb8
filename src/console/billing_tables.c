/* Tables of the pages, forms and exports about billing, usage and certifications. */
#include "console/billing_pages.h"
#include "console/certification_pages.h"
#include "console/certify_page.h"
#include "issue/certify.h"
#include "pages_made.h"

#define PURCHASES_FILTER "state=?state"
#define MOVEMENTS_FILTER "kind=?kind since=?since until=?until"

const struct console_page money_pages[] = {
	{.path = "/money",
     .template = &page_money,
     .section = "money",
     .sources =
         (const struct console_source[]){
			 {"packs", "pack list", "limit=1000 after=?packs", "pack_id"},
			 {"state", "account overview", NULL, NULL},
			 {"billing", "billing show", NULL, NULL},
			 {"thresholds", "threshold list", "limit=1000", NULL},
			 {"purchases", "purchase list", "limit=5", NULL},
			 {0}},
     .more = billing_page_data},
	{.path = "/money/purchases",
     .template = &page_purchases,
     .section = "money",
     .sources =
         (const struct console_source[]){
			 {"purchases", "purchase list", "limit=50 after=?after " PURCHASES_FILTER, "sale_id"},
			 {0}}},
	{.path = "/money/purchases/{sale}",
     .template = &page_purchase,
     .section = "money",
     .sources =
         (const struct console_source[]){{"purchase", "purchase show", "sale={sale}", NULL}, {0}},
     .more = purchase_page_data},
	{.path = "/money/purchases/{sale}/pay", .section = "money", .leads = purchase_payment_page},
	{.path = "/money/movements",
     .template = &page_movements,
     .section = "money",
     .sources =
         (const struct console_source[]){
			 {"movements", "credits list", "limit=50 before=?before " MOVEMENTS_FILTER, "number"},
			 {0}}},
	{.path = "/money/history",
     .template = &page_history,
     .section = "money",
     .more = balance_history_data},
	{.path = "/usage",
     .template = &page_usage,
     .section = "usage",
     .sources =
         (const struct console_source[]){{"channels", "channel list", "limit=1000", NULL}, {0}},
     .more = usage_page_data},
	{.path = "/certifications",
     .template = &page_certifications,
     .section = "certifications",
     .sources = (const struct console_source[]){{"channels", "channel list", "limit=1000", NULL},
                                                {"state", "account overview", NULL, NULL},
                                                {0}},
     .more = certification_list_data},
	{.path = "/certifications/new",
     .template = &page_certify,
     .section = "certifications",
     .sources =
         (const struct console_source[]){{"channels", "channel list", "limit=1000", NULL}, {0}},
     .more = certify_page},
	{.path = "/certifications/{certification}",
     .template = &page_certification,
     .section = "certifications",
     .more = certification_page_data},
	{.path = "/certifications/{certification}/files/{name}",
     .section = "certifications",
     .leads = certification_file},
	{0},
};

const struct console_form money_forms[] = {
	{.path = "/money/buy",
     .operation = "purchase create",
     .page = "/money",
     .done = "purchase_create",
     .leads = "/money/purchases/{sale_id}"},
	{.path = "/money/purchases/{sale}/page",
     .operation = "purchase page",
     .page = "/money/purchases/{sale}",
     .done = "purchase_page"},
	{.path = "/money/purchases/{sale}/cancel",
     .operation = "purchase cancel",
     .page = "/money/purchases/{sale}",
     .done = "purchase_cancel"},
	{.path = "/money/topup/set", .operation = "topup set", .page = "/money", .done = "topup_set"},
	{.path = "/money/topup/on", .operation = "topup on", .page = "/money", .done = "topup_on"},
	{.path = "/money/topup/off", .operation = "topup off", .page = "/money", .done = "topup_off"},
	{.path = "/money/thresholds/create",
     .operation = "threshold create",
     .page = "/money",
     .done = "threshold_create"},
	{.path = "/money/thresholds/delete",
     .operation = "threshold delete",
     .page = "/money",
     .done = "threshold_delete"},
	{.path = "/money/billing",
     .operation = "account billing",
     .page = "/money",
     .done = "account_billing"},
	{.path = "/certifications/request",
     .operation = "certification request",
     .page = "/certifications/new",
     .done = "certification_request",
     .leads = "/certifications/{certification_id}"},
	{.path = "/certifications/{certification}/retry",
     .operation = "certification retry",
     .page = "/certifications/{certification}",
     .done = "certification_retry"},
	{0},
};

const struct console_export money_exports[] = {
	{.path = "/money/purchases",
     .operation = "purchase list",
     .arguments = PURCHASES_FILTER,
     .columns = "sale_id pack_id description credits amount tax total currency state automatic "
                "provider reference created_at paid_at ended_at",
     .after = "sale_id"},
	{.path = "/money/movements",
     .operation = "credits list",
     .arguments = MOVEMENTS_FILTER,
     .columns = "number at kind credits balance channel_id first_sequence last_sequence reference",
     .after = "number",
     .behind = "before"},
	{.path = "/money/history",
     .operation = "credits history",
     .arguments = "from=?from to=?to month=?month",
     .columns = "day balance unpaid_events events settlements purchases returns fees fee_refunds "
                "adjustments",
     .after = "day"},
	{.path = "/usage",
     .operation = "usage",
     .arguments = "by=?by channel=?channel key=?key mode=?mode from=?from to=?to",
     .columns = "period channel_id channel_name key_id key_name mode events unpaid_events "
                "content_bytes certifications_requested certifications_completed "
                "certifications_failed events_certified fees refunds credits",
     .after = "row"},
	{0},
};
