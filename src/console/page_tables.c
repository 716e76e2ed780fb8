/* Tables of the console's general pages, forms and exports. */
#include "console/audit_pages.h"
#include "console/overview_page.h"
#include "pages_made.h"
#include "console/visit.h"

#define AUDIT_LOG_FILTER "operation=?operation since=?since until=?until"

const struct console_page console_pages[] = {
	{.path = "/",
     .template = &page_overview,
     .section = "overview",
     .sources = (const struct console_source[]){{"account", "account show", NULL, NULL},
                                                {"state", "account overview", NULL, NULL},
                                                {"endpoints", "webhook list", "limit=1000", NULL},
                                                {0}},
     .more = overview_usage},
	{.path = "/users",
     .template = &page_users,
     .section = "users",
     .sources = (const struct console_source[]){{"users", "user list", NULL, NULL}, {0}}},
	{.path = "/sessions",
     .template = &page_sessions,
     .section = "sessions",
     .sources = (const struct console_source[]){{"sessions", "session list", NULL, NULL}, {0}}},
	/* The list of users, which only owners may see, is first, so that only owners may see the
     * page. */
	{.path = "/account",
     .template = &page_account,
     .section = "account",
     .sources = (const struct console_source[]){{"users", "user list", NULL, NULL},
                                                {"settings", "account show", NULL, NULL},
                                                {0}}},
	{.path = "/passkeys",
     .template = &page_passkeys,
     .section = "passkeys",
     .sources = (const struct console_source[]){{"passkeys", "passkey list", NULL, NULL}, {0}}},
	{.path = "/acts",
     .template = &page_acts,
     .section = "acts",
     .sources =
         (const struct console_source[]){
			 {"acts", "audit list", "limit=50 after=?after " AUDIT_LOG_FILTER, "act_id"}, {0}},
     .more = audit_operations},
	{.path = "/acts/{act}",
     .template = &page_act,
     .section = "acts",
     .sources = (const struct console_source[]){{"act", "audit show", "act={act}", NULL}, {0}}},
	{.path = "/acts/{act}/{file}", .section = "acts", .leads = audit_file},
	{0},
};

const struct console_form console_forms[] = {
	{.path = "/users/invite", .operation = "user invite", .page = "/users", .done = "user_invite"},
	{.path = "/users/role", .operation = "user role", .page = "/users", .done = "user_role"},
	{.path = "/users/remove", .operation = "user remove", .page = "/users", .done = "user_remove"},
	{.path = "/users/leave", .operation = "user leave", .page = "/sessions", .done = "user_leave"},
	{.path = "/account/set",
     .operation = "account set",
     .page = "/account",
     .done = "account_set",
     .empties = "email"},
	{.path = "/account/passkeys",
     .operation = "account set",
     .page = "/account",
     .done = "account_set"},
	{.path = "/passkeys/remove",
     .operation = "passkey remove",
     .page = "/passkeys",
     .done = "passkey_remove"},
	{.path = "/passkeys/leave",
     .operation = "user leave",
     .page = "/passkeys",
     .done = "user_leave"},
	{.path = "/sessions/end",
     .operation = "session end",
     .page = "/sessions",
     .done = "session_end"},
	{0},
};

const struct console_export console_exports[] = {
	{.path = "/acts",
     .operation = "audit list",
     .arguments = AUDIT_LOG_FILTER,
     .columns =
         "at operation act_id account_id actor user email address claimed reason arguments before after "
         "made found outcome chain_hash seal signed_in_by",
     .after = "act_id"},
	{0},
};

/* ---- lookup ---- */

static bool match(struct visit *visit, const char *pattern, struct slice path)
{
	size_t places = 0;
	memset(visit->places, 0, sizeof visit->places);
	while (*pattern) {
		if (*pattern != '{') {
			if (!path.size || path.data[0] != *pattern++)
				return false;
			path = slice_make(path.data + 1, path.size - 1);
			continue;
		}
		const char *end = path.size ? memchr(path.data, '/', path.size) : NULL;
		size_t size = end ? (size_t)(end - path.data) : path.size;
		struct field *place = &visit->places[places++];
		place->name = slice_make(pattern + 1, strcspn(pattern, "}") - 1);
		if (!size || places > PLACES_MAX ||
		    !path_decode(slice_make(path.data, size), visit->arena, &place->value))
			return false;
		path = slice_make(path.data + size, path.size - size);
		pattern += place->name.size + 2;
	}
	return !path.size;
}

const struct console_page *page_find(struct visit *visit, struct slice path)
{
	static const struct console_page *const tables[] = {console_pages, work_pages, money_pages};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct console_page *page = tables[i]; page->path; page++)
			if (match(visit, page->path, path))
				return page;
	return NULL;
}

const struct console_form *form_find(struct visit *visit, struct slice path)
{
	static const struct console_form *const tables[] = {console_forms, work_forms, money_forms};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct console_form *form = tables[i]; form->path; form++)
			if (match(visit, form->path, path))
				return form;
	return NULL;
}

const struct console_export *export_at(size_t index)
{
	static const struct console_export *const tables[] = {console_exports, money_exports};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (const struct console_export *export = tables[i]; export->path; export ++)
			if (!index--)
				return export;
	return NULL;
}
