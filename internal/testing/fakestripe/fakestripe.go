// Package fakestripe is a strict stand-in for the part of Stripe's API that this project calls. In
// a new session it refuses unknown and missing parameters, an amount below 50, and a lifetime
// outside 30 minutes to 24 hours. It refuses an idempotency key that is repeated with other
// parameters. It counts the money that buyers pay and get back. All amounts are in the currency's
// smallest unit.
//
// A test decides what buyers do on Stripe's pages, and which answers get lost. The stand-in sends
// no webhooks itself. Methods that return a body and a header return a signed event, which the test
// delivers as often as it likes.
package fakestripe

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"
)

// Key is the only API key that the stand-in accepts. WebhookSecret signs its events.
const (
	Key           = "sk_test_of_the_stand_in"
	WebhookSecret = "whsec_of_the_stand_in"
)

// leastAmount is the least amount of a session in cents. Stripe's depends on the currency; this is
// that of USD.
const leastAmount = 50

// untakenCurrency is one of the currencies that Stripe does not take.
const untakenCurrency = "kpw"

// Object is a JSON object of Stripe.
type Object = map[string]any

// Server is the stand-in. It is safe for concurrent use.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	serial   int
	run      string // makes ids unique among servers
	sessions map[string]Object
	intents  map[string]Object
	refunds  map[string][]Object // by the id of the payment intent
	disputes map[string][]Object // by the id of the payment intent
	replies  map[string]reply    // by idempotency key
	lose     map[string]int      // number of answers to lose, by path prefix
	broken   map[string]int      // number of requests to fail, by method and path
	calls    map[string]int      // number of requests, by method and path
	refused  string              // error code with which refunds are refused; "": they succeed
}

// reply is the answer that an idempotency key repeats, with the parameters of its request.
type reply struct {
	params string
	status int
	body   Object
}

// Start serves until the test ends.
func Start(tb testing.TB) *Server {
	s := &Server{
		run: rand.Text()[:8], sessions: map[string]Object{}, intents: map[string]Object{},
		refunds: map[string][]Object{}, disputes: map[string][]Object{},
		replies: map[string]reply{}, lose: map[string]int{}, broken: map[string]int{},
		calls: map[string]int{},
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	tb.Cleanup(s.Close)
	return s
}

// Lose makes the next n requests below a path take effect without an answer: the connection breaks.
func (s *Server) Lose(path string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose[path] = n
}

// Break makes the next n requests of a call, such as "POST /v1/refunds", fail with 500 and without
// an effect.
func (s *Server) Break(call string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[call] = n
}

// Calls returns how many requests of a call arrived, such as "POST /v1/refunds".
func (s *Server) Calls(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = r.ParseForm()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	s.calls[r.Method+" "+r.URL.Path]++
	status, body := http.StatusUnauthorized, refusal("invalid_request_error", "", "key")
	if r.Header.Get("Authorization") == "Bearer "+Key {
		status, body = s.repeatOrTry(r, parts)
	}
	for path, n := range s.lose {
		if n > 0 && strings.HasPrefix(r.URL.Path, path) {
			s.lose[path]--
			panic(http.ErrAbortHandler) // closes the connection without an answer
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// repeatOrTry repeats the answer that an idempotency key already has, be it a failure, or executes
// the request. Like Stripe it keeps no answer that refuses a parameter.
func (s *Server) repeatOrTry(r *http.Request, parts []string) (int, Object) {
	key := r.Header.Get("Idempotency-Key")
	params := r.URL.Path + "?" + r.PostForm.Encode()
	if known, ok := s.replies[key]; ok && r.Method == http.MethodPost {
		if known.params != params {
			return 400, refusal("idempotency_error", "", "")
		}
		return known.status, known.body
	}
	status, body := s.try(r, parts)
	if r.Method == http.MethodPost && key != "" && !isInvalid(body) {
		s.replies[key] = reply{params, status, body}
	}
	return status, body
}

// isInvalid reports whether an answer refuses a parameter.
func isInvalid(body Object) bool {
	problem, ok := body["error"].(Object)
	return ok && problem["param"] != ""
}

func (s *Server) try(r *http.Request, parts []string) (int, Object) {
	if call := r.Method + " " + r.URL.Path; s.broken[call] > 0 {
		s.broken[call]--
		return 500, refusal("api_error", "", "")
	}
	return s.call(r.Method, parts, r.Form)
}

func refusal(kind, code, param string) Object {
	return Object{"error": Object{"type": kind, "code": code, "param": param}}
}

func (s *Server) call(method string, parts []string, form url.Values) (int, Object) {
	path := method + " " + strings.Join(parts, "/")
	switch {
	case path == "POST v1/checkout/sessions":
		return s.createSession(form)
	case path == "POST v1/refunds":
		return s.refund(form)
	case path == "GET v1/refunds":
		return 200, Object{
			"object": "list", "has_more": false, "data": s.refunds[form.Get("payment_intent")],
		}
	case path == "GET v1/disputes":
		return 200, Object{
			"object": "list", "has_more": false, "data": s.disputes[form.Get("payment_intent")],
		}
	case len(parts) == 4 && method == "GET" && parts[2] == "sessions":
		if session, ok := s.sessions[parts[3]]; ok {
			return 200, s.expanded(session)
		}
	case len(parts) == 5 && method == "POST" && parts[4] == "expire":
		session, ok := s.sessions[parts[3]]
		if ok && session["status"] == "open" {
			session["status"] = "expired"
			return 200, session
		}
		return 400, refusal("invalid_request_error", "", "session")
	case len(parts) == 3 && method == "GET" && parts[1] == "payment_intents":
		if intent, ok := s.intents[parts[2]]; ok {
			return 200, intent
		}
	}
	return 404, refusal("invalid_request_error", "resource_missing", path)
}

// expanded returns a session with its payment in place of the payment's id.
func (s *Server) expanded(session Object) Object {
	out := maps.Clone(session)
	if id, ok := session["payment_intent"].(string); ok {
		out["payment_intent"] = s.intents[id]
	}
	return out
}

// sessionParams are the parameters that a session must have, no more and no fewer.
var sessionParams = []string{
	"cancel_url", "client_reference_id", "expires_at", "line_items[0][price_data][currency]",
	"line_items[0][price_data][product_data][name]", "line_items[0][price_data][unit_amount]",
	"line_items[0][quantity]", "metadata[goodsId]", "metadata[orderSn]", "mode",
	"payment_intent_data[metadata][goodsId]", "payment_intent_data[metadata][orderSn]",
	"success_url",
}

// saleCurrencies are further parameters of a session for a sale with a currency of its own.
var saleCurrencies = []string{"metadata[currency]", "payment_intent_data[metadata][currency]"}

func (s *Server) createSession(form url.Values) (int, Object) {
	for name := range form {
		if !slices.Contains(sessionParams, name) && !slices.Contains(saleCurrencies, name) {
			return 400, refusal("invalid_request_error", "parameter_unknown", name)
		}
	}
	for _, name := range sessionParams {
		if form.Get(name) == "" {
			return 400, refusal("invalid_request_error", "parameter_missing", name)
		}
	}
	ends, _ := strconv.ParseInt(form.Get("expires_at"), 10, 64)
	lifetime := time.Until(time.Unix(ends, 0))
	if lifetime < 30*time.Minute || lifetime > 24*time.Hour {
		return 400, refusal("invalid_request_error", "", "expires_at")
	}
	amount, err := strconv.ParseInt(form.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	if err != nil || amount < leastAmount || form.Get("line_items[0][quantity]") != "1" {
		return 400, refusal("invalid_request_error", "amount_too_small", "line_items")
	}
	if form.Get("line_items[0][price_data][currency]") == untakenCurrency {
		return 400, refusal("invalid_request_error", "", "line_items[0][price_data][currency]")
	}
	id := s.id("cs_test")
	session := Object{
		"id": id, "object": "checkout.session", "status": "open", "payment_status": "unpaid",
		"url": "https://checkout.stripe.example/c/" + id, "amount_total": amount,
		"currency": form.Get("line_items[0][price_data][currency]"), "payment_intent": nil,
		"client_reference_id": form.Get("client_reference_id"), "expires_at": ends,
		"success_url": form.Get("success_url"), "cancel_url": form.Get("cancel_url"),
		"metadata": Object{
			"goodsId": form.Get("metadata[goodsId]"), "orderSn": form.Get("metadata[orderSn]"),
		},
	}
	if code := form.Get(saleCurrencies[0]); code != "" {
		session["metadata"].(Object)["currency"] = code
	}
	s.sessions[id] = session
	return 200, session
}

func (s *Server) id(kind string) string {
	s.serial++
	return fmt.Sprintf("%s_%s%d", kind, s.run, s.serial)
}

// RefuseRefunds makes every refund fail with an error code of Stripe, such as charge_disputed; with
// "" refunds succeed again.
func (s *Server) RefuseRefunds(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = code
}

func (s *Server) refund(form url.Values) (int, Object) {
	if s.refused != "" {
		return 400, refusal("invalid_request_error", s.refused, "")
	}
	intent, ok := s.intents[form.Get("payment_intent")]
	if !ok {
		return 404, refusal("invalid_request_error", "resource_missing", "payment_intent")
	}
	charge := intent["latest_charge"].(Object)
	if charge["refunded"] == true {
		return 400, refusal("invalid_request_error", "charge_already_refunded", "")
	}
	for _, dispute := range s.disputes[form.Get("payment_intent")] {
		if dispute["status"] != "won" {
			return 400, refusal("invalid_request_error", "charge_disputed", "")
		}
	}
	left := charge["amount"].(int64) - charge["amount_refunded"].(int64)
	return 200, s.makeRefund(intent, left)
}

// makeRefund makes a refund of a payment and returns a copy.
func (s *Server) makeRefund(intent Object, amount int64) Object {
	charge, id := intent["latest_charge"].(Object), intent["id"].(string)
	charge["amount_refunded"] = charge["amount_refunded"].(int64) + amount
	charge["refunded"] = charge["amount_refunded"] == charge["amount"]
	refund := Object{
		"id": s.id("re"), "object": "refund", "status": "succeeded", "amount": amount,
		"currency": intent["currency"], "payment_intent": id,
	}
	s.refunds[id] = append(s.refunds[id], refund)
	return maps.Clone(refund)
}

// Refund refunds a part of a payment intent as the merchant does on Stripe's pages. It returns the
// event refund.created.
func (s *Server) Refund(intent string, amount int64) (body, header string) {
	s.mu.Lock()
	object := s.makeRefund(s.intents[intent], amount)
	s.mu.Unlock()
	return s.Event("refund.created", object)
}

// FailRefund makes the last refund of a payment intent fail at the buyer's bank after it had
// succeeded. The money returns to the merchant's account. It returns the event refund.failed.
func (s *Server) FailRefund(intent string) (body, header string) {
	s.mu.Lock()
	refund := s.refunds[intent][len(s.refunds[intent])-1]
	refund["status"] = "failed"
	charge := s.intents[intent]["latest_charge"].(Object)
	charge["refunded"] = false
	charge["amount_refunded"] = charge["amount_refunded"].(int64) - refund["amount"].(int64)
	object := maps.Clone(refund)
	s.mu.Unlock()
	return s.Event("refund.failed", object)
}

// Dispute disputes a part of a payment intent, as the buyer's bank does. It returns the event
// charge.dispute.created.
func (s *Server) Dispute(intent string, amount int64) (body, header string) {
	s.mu.Lock()
	paid := s.intents[intent]
	paid["latest_charge"].(Object)["disputed"] = true
	dispute := Object{
		"id": s.id("dp"), "object": "dispute", "status": "needs_response", "amount": amount,
		"currency": paid["currency"], "payment_intent": intent,
	}
	s.disputes[intent] = append(s.disputes[intent], dispute)
	object := maps.Clone(dispute)
	s.mu.Unlock()
	return s.Event("charge.dispute.created", object)
}

// CloseDispute closes the last dispute of a payment intent with the status "won" or "lost". It
// returns the event charge.dispute.closed.
func (s *Server) CloseDispute(intent, status string) (body, header string) {
	s.mu.Lock()
	dispute := s.disputes[intent][len(s.disputes[intent])-1]
	dispute["status"] = status
	object := maps.Clone(dispute)
	s.mu.Unlock()
	return s.Event("charge.dispute.closed", object)
}

// Pay pays the session of a page in full and returns its id. Like Stripe's page it fails if the
// session is not open.
func (s *Server) Pay(pageURL string) (session string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := pageURL[strings.LastIndex(pageURL, "/")+1:]
	found, ok := s.sessions[id]
	if !ok || found["status"] != "open" {
		return "", fmt.Errorf("session %s can't be paid", id)
	}
	s.complete(found)
	return id, nil
}

// complete completes a session with a payment.
func (s *Server) complete(session Object) {
	intent := s.id("pi")
	session["status"], session["payment_status"] = "complete", "paid"
	session["payment_intent"] = intent
	s.intents[intent] = Object{
		"id": intent, "object": "payment_intent", "status": "succeeded",
		"amount": session["amount_total"], "currency": session["currency"],
		"metadata": session["metadata"], "latest_charge": Object{
			"id": s.id("ch"), "object": "charge", "amount": session["amount_total"],
			"amount_refunded": int64(0), "refunded": false, "disputed": false,
			"currency": session["currency"],
		},
	}
}

// PayOther makes and pays a copy of a session with changed fields, and returns its id. The copy
// names the same order. Such sessions come from a mistake in the account, for example a payment
// link with another price.
func (s *Server) PayOther(session string, changes Object) (other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := maps.Clone(s.sessions[session])
	maps.Copy(copied, changes)
	copied["id"] = s.id("cs_test")
	s.sessions[copied["id"].(string)] = copied
	s.complete(copied)
	return copied["id"].(string)
}

// Session returns the id of an order's newest session, or "".
func (s *Server) Session(orderSn string) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for candidate, session := range s.sessions {
		newer := cmp.Or(cmp.Compare(len(candidate), len(id)), cmp.Compare(candidate, id)) > 0
		if session["client_reference_id"] == orderSn && newer { // ids end in a serial number
			id = candidate
		}
	}
	return id
}

// Currency returns the currency of a session as the request sent it.
func (s *Server) Currency(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session]["currency"].(string)
}

// Status returns the status of a session: open, complete or expired.
func (s *Server) Status(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session]["status"].(string)
}

// Money returns the sum of an order's payments less refunds and lost disputes, and the number of
// its open sessions.
func (s *Server) Money(orderSn string) (kept int64, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session["client_reference_id"] == orderSn && session["status"] == "open" {
			open++
		}
	}
	for id, intent := range s.intents {
		charge := intent["latest_charge"].(Object)
		if intent["metadata"].(Object)["orderSn"] == orderSn {
			kept += charge["amount"].(int64) - charge["amount_refunded"].(int64)
			for _, dispute := range s.disputes[id] {
				if dispute["status"] == "lost" {
					kept -= dispute["amount"].(int64)
				}
			}
		}
	}
	return kept, open
}

// Webhook returns a signed event about a session, in its present state or with changed fields.
func (s *Server) Webhook(kind, session string, changes Object) (body, header string) {
	s.mu.Lock()
	object := maps.Clone(s.sessions[session])
	s.mu.Unlock()
	maps.Copy(object, changes)
	return s.Event(kind, object)
}

// Event returns a signed event of a kind, such as refund.failed, about any object.
func (s *Server) Event(kind string, object Object) (body, header string) {
	s.mu.Lock()
	id := s.id("evt")
	s.mu.Unlock()
	payload, _ := json.Marshal(Object{
		"id": id, "object": "event", "type": kind, "created": time.Now().Unix(),
		"api_version": "2020-08-27", "data": Object{"object": object},
	})
	return string(payload), Sign(string(payload), WebhookSecret, time.Now())
}

// Intent returns the id of the payment intent of a session that was paid.
func (s *Server) Intent(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session]["payment_intent"].(string)
}

// Sign returns the value of the header Stripe-Signature for a body.
func Sign(body, secret string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: []byte(body), Secret: secret, Timestamp: at,
	}).Header
}
