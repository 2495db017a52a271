package badrequests

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
)

// newAPIKey returns the JSON of a valid new API key with one field set to a JSON value; "" omits
// the field.
func newAPIKey(name, value string) string {
	fields := map[string]string{"name": `"erp"`, "scopes": `["sales:read"]`}
	fields[name] = value
	var members []string
	for _, name := range []string{"name", "scopes", "merchantId"} {
		if fields[name] != "" {
			members = append(members, fmt.Sprintf("%q:%s", name, fields[name]))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// apiKeys adds invalid fields of new API keys, and invalid keys. There are fewer of these than the
// failures that the rule failedApiKey allows.
func (t *table) apiKeys() {
	wrong := []string{"null", "true", "{}", "1"}
	for field, values := range map[string][]string{
		"name": slices.Concat(wrong, []string{
			"", "[]", `""`, `"  "`, text(81), `"a\r\nb"`, `"\u0000"`, "\"\xff\"",
		}),
		"scopes": slices.Concat(wrong, []string{
			"", "[]", `"sales:read"`, "[1]", `[""]`, `["*"]`, `["sales:read","sales:read"]`,
			`["sales:read,sales:write"]`, `[["sales:read"]]`, `["sales:read",null]`, `["Sales:Read"]`,
		}),
		"merchantId": slices.Concat(wrong, []string{"[]", `""`, `"a b"`, text(65), `"é"`}),
	} {
		for _, value := range values {
			c := post("/admin/api-keys", t.merchant, newAPIKey(field, value))
			t.bad(fmt.Sprintf("%s %.20s of an API key", field, value), c, field)
		}
	}
	t.forbidden("another merchant's API key", post("/admin/api-keys", t.merchant,
		newAPIKey("merchantId", `"`+t.OtherMerchant.ID+`"`)))
	t.forbidden("a buyer's API key", post("/admin/api-keys", t.buyer, newAPIKey("", "")))
	t.missing("no such API key",
		call{http.MethodDelete, "/admin/api-keys/" + strings.Repeat("0", 26), t.merchant, ""})
	id, secret := strings.Repeat("0", 26), strings.Repeat("0", 52)
	for _, key := range []string{
		"sk_", "sk__", "sk_" + id, "sk_" + id + "_" + secret, "sk_" + id + "_" + secret + "0",
		"sk_" + id + "-" + secret, "sk_" + id[1:] + "_" + secret + "0", "sk_live_" + secret,
		"sk_' OR 1=1", "sk_" + strings.Repeat("x", 8000),
	} {
		t.add(fmt.Sprintf("the API key %.40s", key), get("/admin/sales", "Bearer "+key),
			apierror.Unauthenticated, http.StatusUnauthorized, "")
	}
}
