package badrequests

import (
	"net/http"
	"strings"

	"flashsale.dev/seckill/internal/apierror"
)

// sessions adds bad tokens and guests of POST and DELETE /session. There are fewer than the rule
// session allows.
func (t *table) sessions() {
	for _, body := range []string{`{"token":"x"}`, `{"token":""}`, `{}`} {
		t.add("a session of "+body, post("/session", "", body), apierror.Unauthenticated,
			http.StatusUnauthorized, "")
	}
	for field, bodies := range map[string][]string{
		"token": {`{"token":null}`, `{"token":1}`, `{"token":["x"]}`, "{\"token\":\"\xff\"}"},
		"guest": {`{"guest":null}`, `{"guest":1}`, `{"guest":{}}`, `{"guest":"2","token":"x"}`},
		"role":  {`{"guest":"2","role":"operator"}`},
		"body":  {`[]`, `{`, "{}" + strings.Repeat(" ", 64<<10)},
	} {
		for _, body := range bodies {
			t.bad("a session", post("/session", "", body), field)
		}
	}
	t.bad("a token in the query", post("/session?token=x", ""), "token")
	t.missing("no such guest", post("/session", "", `{"guest":"x"}`))
	leave := call{method: http.MethodDelete, target: "/session"}
	t.bad("unknown in the query", join(leave, "x=1"), "x")
	leave.body = `{"token":"x"}`
	t.bad("a token to leave", leave, "token")
}
