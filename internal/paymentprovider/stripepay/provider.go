package stripepay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/order/payment"
)

// Options configure a Provider.
type Options struct {
	Key           string // the secret or restricted key
	WebhookSecret string // signs webhooks; a program that receives none has none
	URL           string // of Stripe's API
	PublicURL     string // of the pages, to which buyers return
	Currency      string // of sales without one of their own, ISO 4217
}

// Provider takes payments by Stripe.
type Provider struct {
	client   *stripe.Client
	secret   string
	orders   string // the URL of the orders' pages, to which buyers return, with a slash
	currency string // as in Options
}

var (
	_ payment.Provider = (*Provider)(nil)
	_ payment.Pages    = (*Provider)(nil)
)

// callTimeout bounds one request to Stripe. A caller repeats what got no answer.
const callTimeout = 4 * time.Second

// New returns a provider. It contacts no server. Its error names the wrong option.
func New(o Options) (*Provider, error) {
	if _, err := unitOf(o.Currency); err != nil {
		return nil, err
	}
	back, err := url.Parse(o.PublicURL)
	if err != nil || back.Host == "" {
		return nil, errors.New("the URL to which buyers return must be absolute")
	}
	config := &stripe.BackendConfig{
		URL: stripe.String(o.URL), HTTPClient: &http.Client{Timeout: callTimeout},
		// The library would log to stderr, and repeat calls beyond their deadline.
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
	}
	return &Provider{
		client: stripe.NewClient(o.Key, stripe.WithBackends(stripe.NewBackendsWithConfig(config))),
		secret: o.WebhookSecret, orders: strings.TrimSuffix(back.String(), "/") + "/o/",
		currency: o.Currency,
	}, nil
}

// unitOf returns the unit of a sale's currency; "" is the installation's.
func (p *Provider) unitOf(currency string) (unit, error) {
	return unitOf(cmp.Or(currency, p.currency))
}

// The metadata of a session and of its payment.
const (
	goodsIDKey  = "goodsId"
	orderSnKey  = "orderSn"
	currencyKey = "currency" // of the sale; absent is the installation's
)

// Stripe accepts sessions that end 30 minutes to 24 hours after their start. The margins allow for
// a clock that differs from Stripe's and for a request that arrives late.
const (
	minLifetime = 31 * time.Minute
	maxLifetime = 24*time.Hour - time.Minute
)

// expiry returns when Stripe ends a session by itself: at payBy, if Stripe allows that. An earlier
// payBy ends the session by End. It depends on the attempt alone, because Stripe refuses a repeated
// key with other parameters.
func expiry(o order.Order, c payment.Checkout) time.Time {
	first, last := c.BegunAt.Add(minLifetime), c.BegunAt.Add(maxLifetime)
	switch {
	case o.PayBy.Before(first):
		return first
	case o.PayBy.After(last):
		return last
	}
	return o.PayBy
}

// key is the idempotency key of an attempt.
func key(c payment.Checkout) string {
	if c.Attempt <= 1 {
		return c.OrderSn
	}
	return c.OrderSn + "-" + strconv.Itoa(c.Attempt)
}

// Open makes a Checkout Session.
func (p *Provider) Open(
	ctx context.Context, o order.Order, c payment.Checkout,
) (payment.Checkout, error) {
	u, err := p.unitOf(c.Currency)
	if err == nil && o.Amount*u.scale%u.step != 0 {
		err = fmt.Errorf("currency %s: Stripe takes multiples of %d only", u.code, u.step)
	}
	if err != nil {
		return c, fmt.Errorf("%w: %w: %w", payment.ErrRefused, errUnpayable, err)
	}
	page := stripe.String(p.orders + o.OrderSn)
	metadata := map[string]string{
		goodsIDKey: strconv.FormatInt(o.GoodsID, 10), orderSnKey: o.OrderSn,
	}
	if c.Currency != "" {
		metadata[currencyKey] = c.Currency
	}
	params := &stripe.CheckoutSessionCreateParams{
		Mode:              stripe.String("payment"),
		ClientReferenceID: stripe.String(o.OrderSn),
		SuccessURL:        page, CancelURL: page,
		ExpiresAt: stripe.Int64(expiry(o, c).Unix()),
		Metadata:  metadata,
		PaymentIntentData: &stripe.CheckoutSessionCreatePaymentIntentDataParams{
			Metadata: metadata,
		},
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
			Quantity: stripe.Int64(1), // one item of the whole amount: Stripe need not multiply
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: stripe.String(u.code), UnitAmount: stripe.Int64(o.Amount * u.scale),
				ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{
					Name: stripe.String("Order " + o.OrderSn),
				},
			},
		}},
	}
	params.SetIdempotencyKey(key(c))
	session, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return c, openError(err)
	}
	c.ID, c.URL = session.ID, session.URL
	return c, nil
}

// errUnpayable is a Conflict: no repetition of Open can succeed.
var errUnpayable = apierror.New(apierror.Conflict,
	"the payment provider takes no payment of this amount or currency")

// openError marks the refusals after which no buyer can know a page. A request that Stripe finds
// invalid made none. A key that was used with other parameters, by a program with other settings,
// may have made one. Its answer, which alone has the URL, got lost. An error of Stripe is the
// answer to that key for a day.
func openError(err error) error {
	refusal, ok := errors.AsType[*stripe.Error](err)
	if ok && isUnpayable(refusal) {
		return fmt.Errorf("%w: %w: %w", payment.ErrRefused, errUnpayable, readable(err))
	}
	if ok && (refusal.HTTPStatusCode == http.StatusBadRequest ||
		refusal.HTTPStatusCode >= http.StatusInternalServerError ||
		refusal.Type == stripe.ErrorTypeIdempotency && refusal.HTTPStatusCode != http.StatusConflict) {
		return fmt.Errorf("%w: %w", payment.ErrRefused, readable(err))
	}
	return fmt.Errorf("open a session: %w", readable(err))
}

// isUnpayable reports whether Stripe refuses the amount or the currency. Some refusals name only
// the parameter.
func isUnpayable(e *stripe.Error) bool {
	return e.Code == stripe.ErrorCodeAmountTooSmall || e.Code == stripe.ErrorCodeAmountTooLarge ||
		e.HTTPStatusCode == http.StatusBadRequest && (strings.HasSuffix(e.Param, "[currency]") ||
			strings.HasSuffix(e.Param, "[unit_amount]"))
}

// readable returns Stripe's error as one line. The library prints a JSON object.
func readable(err error) error {
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return err
	}
	what := strings.Fields(string(e.Type) + " " + string(e.Code) + " " + e.Param)
	line := fmt.Sprintf("answer %d of Stripe: %s (request %s)", e.HTTPStatusCode,
		strings.Join(what, " "), e.RequestID)
	switch e.HTTPStatusCode {
	case http.StatusUnauthorized:
		line += ": correct SECKILL_STRIPE_SECRET_KEY"
	case http.StatusForbidden:
		line += ": the key of SECKILL_STRIPE_SECRET_KEY lacks a permission"
	}
	return errors.New(line)
}

// Ask reads a session.
func (p *Provider) Ask(ctx context.Context, c payment.Checkout) (payment.Answer, error) {
	params := &stripe.CheckoutSessionRetrieveParams{}
	params.AddExpand("payment_intent")
	session, err := p.client.V1CheckoutSessions.Retrieve(ctx, c.ID, params)
	if e, ok := errors.AsType[*stripe.Error](err); ok && e.Code == stripe.ErrorCodeResourceMissing {
		return payment.Answer{}, fmt.Errorf("%w: %w", payment.ErrNoSuchPage, readable(err))
	}
	if err != nil {
		return payment.Answer{}, fmt.Errorf("read a session: %w", readable(err))
	}
	return p.answer(session, c)
}

func (p *Provider) answer(
	session *stripe.CheckoutSession, c payment.Checkout,
) (payment.Answer, error) {
	intent := session.PaymentIntent
	switch {
	case session.Status == stripe.CheckoutSessionStatusOpen:
		return payment.Answer{State: payment.PageOpen}, nil
	case session.Status == stripe.CheckoutSessionStatusExpired:
		return payment.Answer{State: payment.PageEnded}, nil
	case intent == nil:
		return payment.Answer{}, errors.New("the session is complete and has no payment")
	case session.PaymentStatus == stripe.CheckoutSessionPaymentStatusPaid:
		return payment.Answer{State: payment.PagePaid, Payment: p.paymentOf(session, c)}, nil
	case intent.Status == stripe.PaymentIntentStatusRequiresPaymentMethod,
		intent.Status == stripe.PaymentIntentStatusCanceled:
		return payment.Answer{State: payment.PageEnded}, nil // the bank refused a slow payment
	default:
		return payment.Answer{State: payment.PageProcessing}, nil
	}
}

// paymentOf returns the payment of a paid session. Webhooks and answers describe it alike.
func (p *Provider) paymentOf(s *stripe.CheckoutSession, c payment.Checkout) payment.Payment {
	paid := p.payment(s.PaymentIntent.ID, s.Metadata, s.AmountTotal, s.Currency)
	paid.GoodsID, paid.OrderSn = c.GoodsID, c.OrderSn
	return paid
}

// payment returns a payment without its order. The metadata names the currency that Open asked for,
// which no exposed sale can change.
func (p *Provider) payment(
	id string, metadata map[string]string, amount int64, currency stripe.Currency,
) payment.Payment {
	foreign := strings.ToUpper(string(currency))
	if u, err := p.unitOf(metadata[currencyKey]); err == nil {
		amount, foreign = u.from(amount, string(currency))
	}
	return payment.Payment{ID: id, Amount: amount, Currency: foreign}
}

// End expires an open session.
func (p *Provider) End(ctx context.Context, c payment.Checkout) error {
	_, err := p.client.V1CheckoutSessions.Expire(ctx, c.ID, nil)
	if err != nil {
		return fmt.Errorf("expire a session: %w", readable(err))
	}
	return nil
}

// Refund returns all that is left of a payment. It reads the charge first, because an answer may
// have got lost, and the merchant may have refunded the payment too. Each call has an idempotency
// key of its own, which the library adds: Stripe would repeat the answer to a former key for a day,
// also a failure. Calls at once return no money twice, because Stripe refunds no more than is left.
func (p *Provider) Refund(ctx context.Context, paid payment.Payment) error {
	_, returned, err := p.returned(ctx, paid.ID)
	if err != nil || returned.whole() {
		return err
	}
	params := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(paid.ID),
		Metadata:      map[string]string{orderSnKey: paid.OrderSn},
	}
	refund, err := p.client.V1Refunds.Create(ctx, params)
	if e, ok := errors.AsType[*stripe.Error](err); ok &&
		e.Code == stripe.ErrorCodeChargeAlreadyRefunded {
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("refund a payment: %w", readable(err))
	case isFailed(refund):
		return fmt.Errorf("refund %s of Stripe is %s", refund.ID, refund.Status)
	}
	return nil
}

// returns are the refunds and the lost disputes of a payment, in Stripe's unit.
type returns struct {
	charge *stripe.Charge
	amount int64    // of refunds that have not failed
	ids    []string // of those
	failed int      // how many have
	lost   int64    // the amount of lost disputes
}

// whole reports whether nothing of the payment is left. Stripe does not document what a charge says
// after a refund of it has failed.
func (r returns) whole() bool {
	if r.charge == nil {
		return false
	}
	return r.failed == 0 && r.charge.Refunded ||
		(r.failed > 0 || r.lost > 0) && r.amount+r.lost >= r.charge.Amount
}

// returned reads a payment, its refunds and its disputes. Stripe returns the money of a lost
// dispute to the buyer's bank, and refuses every refund of it.
func (p *Provider) returned(
	ctx context.Context, id string,
) (*stripe.PaymentIntent, returns, error) {
	read := &stripe.PaymentIntentRetrieveParams{}
	read.AddExpand("latest_charge")
	intent, err := p.client.V1PaymentIntents.Retrieve(ctx, id, read)
	if err != nil {
		return nil, returns{}, fmt.Errorf("read a payment: %w", readable(err))
	}
	r := returns{charge: intent.LatestCharge}
	params := &stripe.RefundListParams{PaymentIntent: stripe.String(id)}
	for refund, err := range p.client.V1Refunds.List(ctx, params).All(ctx) {
		switch {
		case err != nil:
			return nil, r, fmt.Errorf("list refunds: %w", readable(err))
		case isFailed(refund):
			r.failed++
		default:
			r.amount, r.ids = r.amount+refund.Amount, append(r.ids, refund.ID)
		}
	}
	if r.charge == nil || !r.charge.Disputed {
		return intent, r, nil
	}
	disputes := &stripe.DisputeListParams{PaymentIntent: stripe.String(id)}
	for dispute, err := range p.client.V1Disputes.List(ctx, disputes).All(ctx) {
		if err != nil {
			return nil, r, fmt.Errorf("list disputes: %w", readable(err))
		}
		// The bank may dispute in a currency of its own. Such an amount can't be compared.
		if dispute.Status == stripe.DisputeStatusLost && dispute.Currency == r.charge.Currency {
			r.lost += dispute.Amount
		}
	}
	return intent, r, nil
}

func isFailed(r *stripe.Refund) bool {
	return r.Status == stripe.RefundStatusFailed || r.Status == stripe.RefundStatusCanceled
}
