package webhook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/order"
	"flashsale.dev/seckill/internal/seckill"
)

// Store keeps endpoints and deliveries. Each change writes an entry of the audit log for the
// context's actor, in the transaction of the change.
type Store interface {
	order.Clock
	// CreateEndpoint stores an endpoint and sets its Position to the end of the events. It returns
	// a Conflict if the owner has MaxEndpoints. A repeated call stores the endpoint once.
	CreateEndpoint(ctx context.Context, e *Endpoint) error
	// FindEndpoint returns an endpoint, or ErrNoSuchEndpoint.
	FindEndpoint(ctx context.Context, id string) (Endpoint, error)
	// EndpointsOf lists at most limit endpoints of an owner ("": of all), oldest first, with ids
	// after one ("": from the oldest).
	EndpointsOf(ctx context.Context, ownerID, after string, limit int) ([]Endpoint, error)
	// ChangeEndpoint changes what the owner may set and makes the endpoint due, or returns
	// ErrNoSuchEndpoint.
	ChangeEndpoint(
		ctx context.Context, id string, now time.Time, change func(*Endpoint),
	) (Endpoint, error)
	// DeleteEndpoint deletes an endpoint and its deliveries, or returns ErrNoSuchEndpoint.
	DeleteEndpoint(ctx context.Context, id string, now time.Time) error
	// Deliveries lists at most limit deliveries of an endpoint in a state ("": in all), newest
	// first, with ids below one ("": from the newest).
	Deliveries(
		ctx context.Context, endpointID string, state State, before string, limit int,
	) ([]Delivery, error)
	// RetryDelivery makes a dead delivery pending again, and a pending one due. It returns
	// ErrNoSuchDelivery, or a Conflict for one that succeeded.
	RetryDelivery(ctx context.Context, endpointID, id string, now time.Time) (Delivery, error)
}

// Sealer encrypts the secret of an endpoint.
type Sealer interface {
	Seal(endpointID, secret string) string
}

// Service manages endpoints for merchants and operators. It is safe for concurrent use.
type Service struct {
	Store   Store
	Secrets Sealer
	Allow   Allow
	Log     *slog.Logger // gets an entry for each change, with its actor
}

// Change is what an owner sets; nil keeps a value.
type Change struct {
	URL                    *string
	Types                  *[]event.Type
	MaxBatch, MaxPerSecond *int64
	Enabled                *bool
	RotateSecret           bool
}

// Create makes an endpoint, which receives the events from now on. It returns the secret too, which
// is shown only now. It refuses with BAD_REQUEST, or with CONFLICT beyond MaxEndpoints. Without the
// database its error is UNAVAILABLE, as that of every method.
func (s *Service) Create(
	ctx context.Context, by seckill.Actor, c Change,
) (Endpoint, string, error) {
	if c.URL == nil {
		return Endpoint{}, "", apierror.NewBadField("url", "is missing")
	}
	if err := s.Allow.CheckURL(*c.URL); err != nil {
		return Endpoint{}, "", err
	}
	now, err := s.Store.Now(ctx)
	if err != nil {
		return Endpoint{}, "", unavailable(err)
	}
	e := Endpoint{
		ID: newID(now), OwnerID: by.ID, AllSales: by.Role == seckill.Operator,
		MaxBatch: defaultBatch, MaxPerSecond: defaultPerSecond, Enabled: true,
		CreatedAt: now, UpdatedAt: now, DueAt: now,
	}
	secret := newSecret()
	e.Secret = s.Secrets.Seal(e.ID, secret)
	c.apply(&e)
	err = order.RetryTransaction(ctx, func() error {
		return s.Store.CreateEndpoint(seckill.WithActor(ctx, by), &e)
	})
	s.record(ctx, err, "webhook created", by, "endpoint", e.ID, "fields", c.fields())
	return e, secret, unavailable(err)
}

// record logs a change that was made. URLs stay out, because they may contain tokens.
func (s *Service) record(
	ctx context.Context, err error, what string, by seckill.Actor, attrs ...any,
) {
	if err == nil {
		s.Log.InfoContext(ctx, what, append(attrs, "actor_id", by.ID, "role", by.Role)...)
	}
}

// fields names what a change sets.
func (c Change) fields() (names []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"url", c.URL != nil},
		{"eventTypes", c.Types != nil},
		{"maxBatch", c.MaxBatch != nil},
		{"maxPerSecond", c.MaxPerSecond != nil},
		{"enabled", c.Enabled != nil},
		{"secret", c.RotateSecret},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// apply sets the fields of a change, except for the secret.
func (c Change) apply(e *Endpoint) {
	set(&e.URL, c.URL)
	set(&e.Types, c.Types)
	set(&e.MaxBatch, c.MaxBatch)
	set(&e.MaxPerSecond, c.MaxPerSecond)
	if c.Enabled != nil && *c.Enabled && !e.Enabled {
		e.FailingSince = time.Time{} // it may fail for deadAfter and disableAfter anew
	}
	set(&e.Enabled, c.Enabled)
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// Get returns an endpoint. It refuses with NOT_FOUND, or with FORBIDDEN for another owner's.
func (s *Service) Get(ctx context.Context, by seckill.Actor, id string) (Endpoint, error) {
	e, err := s.Store.FindEndpoint(ctx, id)
	if err != nil {
		return Endpoint{}, unavailable(err)
	}
	if !e.mayManage(by) {
		return Endpoint{}, apierror.New(apierror.Forbidden, "this is somebody else's webhook")
	}
	return e, nil
}

// List pages through the actor's endpoints, oldest first. Operators see all endpoints.
func (s *Service) List(
	ctx context.Context, by seckill.Actor, after string, limit int,
) ([]Endpoint, error) {
	list, err := s.Store.EndpointsOf(ctx, by.ManagedMerchant(), after, limit)
	return list, unavailable(err)
}

// mayChange returns the database's time for a change, or refuses as Get does.
func (s *Service) mayChange(ctx context.Context, by seckill.Actor, id string) (time.Time, error) {
	if _, err := s.Get(ctx, by, id); err != nil {
		return time.Time{}, err
	}
	now, err := s.Store.Now(ctx)
	return now, unavailable(err)
}

// Change changes an endpoint. With RotateSecret it returns the new secret, which is shown only now;
// otherwise secret is "". The replaced secret signs too for SecretOverlap. A caller who missed the
// answer may repeat the call. It refuses as Get does, or with BAD_REQUEST.
func (s *Service) Change(
	ctx context.Context, by seckill.Actor, id string, c Change,
) (e Endpoint, secret string, err error) {
	if c.URL != nil {
		if err := s.Allow.CheckURL(*c.URL); err != nil {
			return e, "", err
		}
	}
	now, err := s.mayChange(ctx, by, id)
	if err != nil {
		return e, "", err
	}
	if c.RotateSecret {
		secret = newSecret()
	}
	e, err = s.Store.ChangeEndpoint(seckill.WithActor(ctx, by), id, now, func(e *Endpoint) {
		c.apply(e)
		if c.RotateSecret {
			e.rotate(s.Secrets.Seal(e.ID, secret), now)
		}
	})
	s.record(ctx, err, "webhook changed", by, "endpoint", id, "fields", c.fields())
	return e, secret, unavailable(err)
}

// Delete deletes an endpoint and its deliveries. It refuses as Get does.
func (s *Service) Delete(ctx context.Context, by seckill.Actor, id string) error {
	now, err := s.mayChange(ctx, by, id)
	if err != nil {
		return err
	}
	err = s.Store.DeleteEndpoint(seckill.WithActor(ctx, by), id, now)
	s.record(ctx, err, "webhook deleted", by, "endpoint", id)
	return unavailable(err)
}

// Deliveries pages through the deliveries of an endpoint in a state ("": in all), newest first. It
// refuses as Get does.
func (s *Service) Deliveries(
	ctx context.Context, by seckill.Actor, id string, state State, before string, limit int,
) ([]Delivery, error) {
	if _, err := s.Get(ctx, by, id); err != nil {
		return nil, err
	}
	list, err := s.Store.Deliveries(ctx, id, state, before, limit)
	return list, unavailable(err)
}

// Retry sends a dead delivery again, with one attempt, and a pending one at once. It refuses as Get
// does, or with CONFLICT for a delivery that succeeded.
func (s *Service) Retry(
	ctx context.Context, by seckill.Actor, id, delivery string,
) (Delivery, error) {
	now, err := s.mayChange(ctx, by, id)
	if err != nil {
		return Delivery{}, err
	}
	d, err := s.Store.RetryDelivery(seckill.WithActor(ctx, by), id, delivery, now)
	s.record(ctx, err, "webhook delivery sent again", by, "endpoint", id, "delivery", delivery)
	return d, unavailable(err)
}

// unavailable maps the errors of a Store to refusals.
func unavailable(err error) error {
	switch {
	case errors.Is(err, ErrNoSuchEndpoint):
		return apierror.New(apierror.NotFound, "there is no such webhook")
	case errors.Is(err, ErrNoSuchDelivery):
		return apierror.New(apierror.NotFound, "there is no such delivery")
	default:
		return apierror.OrUnavailable(err, "the webhooks can't be reached")
	}
}
