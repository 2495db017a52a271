package httpapi

import (
	"context"
	"slices"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/httpapi/params"
	"flashsale.dev/seckill/internal/webhook"
)

// endpointResponse is a webhook as its owner sees it. The secret is shown only when it is new.
type endpointResponse struct {
	ID           string       `json:"id"`
	OwnerID      string       `json:"ownerId"`
	URL          string       `json:"url"`
	EventTypes   []event.Type `json:"eventTypes"` // empty: all
	MaxBatch     int64        `json:"maxBatch"`
	MaxPerSecond int64        `json:"maxPerSecond"`
	Enabled      bool         `json:"enabled"`
	Position     int64        `json:"position,string"`
	FailingSince timestamp    `json:"failingSince,omitzero"`
	// OldSecretUntil is when the secret before the present one no longer signs.
	OldSecretUntil timestamp `json:"oldSecretUntil,omitzero"`
	CreatedAt      timestamp `json:"createdAt"`
	UpdatedAt      timestamp `json:"updatedAt"`
	Secret         string    `json:"secret,omitzero"`
}

func newEndpointResponse(e webhook.Endpoint) endpointResponse {
	return endpointResponse{
		ID: e.ID, OwnerID: e.OwnerID, URL: e.URL, EventTypes: append([]event.Type{}, e.Types...),
		MaxBatch: e.MaxBatch, MaxPerSecond: e.MaxPerSecond, Enabled: e.Enabled,
		Position: e.Position, FailingSince: timestamp(e.FailingSince),
		OldSecretUntil: timestamp(e.OldSecretUntil), CreatedAt: timestamp(e.CreatedAt),
		UpdatedAt: timestamp(e.UpdatedAt),
	}
}

// deliveryResponse is one batch of events for a webhook.
type deliveryResponse struct {
	ID            string          `json:"id"` // the header webhook-id
	State         webhook.State   `json:"state"`
	Events        int64           `json:"events"`
	After         int64           `json:"after,string"`
	LastEventID   int64           `json:"lastEventId,string"`
	Attempts      int64           `json:"attempts"`
	Status        int             `json:"status,omitzero"` // of the last response
	Problem       webhook.Problem `json:"problem,omitzero"`
	CreatedAt     timestamp       `json:"createdAt"`
	LastAttemptAt timestamp       `json:"lastAttemptAt,omitzero"`
	NextAttemptAt timestamp       `json:"nextAttemptAt,omitzero"`
	EndedAt       timestamp       `json:"endedAt,omitzero"`
}

func newDeliveryResponse(d webhook.Delivery) deliveryResponse {
	return deliveryResponse{
		ID: d.ID, State: d.State, Events: d.Events, After: d.After, LastEventID: d.To,
		Attempts: d.Attempts, Status: d.Status, Problem: d.Problem,
		CreatedAt: timestamp(d.CreatedAt), LastAttemptAt: timestamp(d.LastAt),
		NextAttemptAt: timestamp(d.NextAt), EndedAt: timestamp(d.EndedAt),
	}
}

// createWebhook is POST /admin/webhooks.
func (a *api) createWebhook(ctx context.Context, r *request) (response, error) {
	url := r.Text("url")
	c := webhookChange(r.Fields)
	if c.URL = &url; r.Err() == nil {
		if err := a.Endpoints.Allow.CheckURL(url); err != nil {
			return response{}, err
		}
	}
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	e, secret, err := a.Endpoints.Create(ctx, r.actor, c)
	shown := newEndpointResponse(e)
	shown.Secret = secret
	return response{
		reason: reasonCreated, data: shown, location: "/admin/webhooks/" + e.ID,
	}, err
}

// webhookChange takes the fields that an owner may set; absent ones keep their values.
func webhookChange(p *params.Fields) webhook.Change {
	bounded := func(most int64) func(string) int64 {
		return func(name string) int64 { return p.IntOr(name, 1, 1, most) }
	}
	return webhook.Change{
		URL: params.Optional(p, "url", p.Text), Types: eventTypes(p),
		MaxBatch:     params.Optional(p, "maxBatch", bounded(webhook.MaxBatch)),
		MaxPerSecond: params.Optional(p, "maxPerSecond", bounded(webhook.MaxPerSecond)),
		Enabled:      params.Optional(p, "enabled", p.Bool),
	}
}

// eventTypes takes a list of types, without repetitions.
func eventTypes(p *params.Fields) *[]event.Type {
	if !p.Has("eventTypes") {
		return nil
	}
	types := []event.Type{}
	for _, word := range p.List("eventTypes") {
		t := event.Type(word)
		if !slices.Contains(event.Types(), t) {
			p.Reject("eventTypes", "must be a list of %v", event.Types())
			break
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return &types
}

// listWebhooks is GET /admin/webhooks.
func (a *api) listWebhooks(ctx context.Context, r *request) (response, error) {
	limit, after := r.limit(), r.cursor(webhookCursor, isUUID)
	if err := r.checked(ctx); err != nil {
		return response{}, err
	}
	found, err := a.Endpoints.List(ctx, r.actor, after, limit+1)
	key := func(e webhook.Endpoint) string { return webhookCursor + e.ID }
	return ok(page(found, limit, newEndpointResponse, key)), err
}

// showWebhook is GET /admin/webhooks/{id}.
func (a *api) showWebhook(ctx context.Context, r *request) (response, error) {
	id, err := a.webhookID(ctx, r)
	if err != nil {
		return response{}, err
	}
	e, err := a.Endpoints.Get(ctx, r.actor, id)
	return ok(newEndpointResponse(e)), err
}

// changeWebhook is PATCH /admin/webhooks/{id}.
func (a *api) changeWebhook(ctx context.Context, r *request) (response, error) {
	c := webhookChange(r.Fields)
	c.RotateSecret = r.Has("rotateSecret") && r.Bool("rotateSecret")
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if c.URL != nil {
		if err := a.Endpoints.Allow.CheckURL(*c.URL); err != nil {
			return response{}, err
		}
	}
	id, err := a.webhookID(ctx, r)
	if err != nil {
		return response{}, err
	}
	e, secret, err := a.Endpoints.Change(ctx, r.actor, id, c)
	shown := newEndpointResponse(e)
	shown.Secret = secret
	return ok(shown), err
}

// deleteWebhook is DELETE /admin/webhooks/{id}.
func (a *api) deleteWebhook(ctx context.Context, r *request) (response, error) {
	id, err := a.webhookID(ctx, r)
	if err != nil {
		return response{}, err
	}
	return ok(nil), a.Endpoints.Delete(ctx, r.actor, id)
}

// listDeliveries is GET /admin/webhooks/{id}/deliveries.
func (a *api) listDeliveries(ctx context.Context, r *request) (response, error) {
	limit, before := r.limit(), r.cursor(deliveryCursor, isUUID)
	state := params.OneOf(r.Fields, "state", "", webhook.Pending, webhook.Delivered, webhook.Dead)
	if err := r.Err(); err != nil {
		return response{}, err
	}
	id, err := a.webhookID(ctx, r)
	if err != nil {
		return response{}, err
	}
	found, err := a.Endpoints.Deliveries(ctx, r.actor, id, state, before, limit+1)
	key := func(d webhook.Delivery) string { return deliveryCursor + d.ID }
	return ok(page(found, limit, newDeliveryResponse, key)), err
}

// retryDelivery is POST /admin/webhooks/{id}/deliveries/{deliveryId}/retry.
func (a *api) retryDelivery(ctx context.Context, r *request) (response, error) {
	id, err := a.webhookID(ctx, r)
	if err != nil {
		return response{}, err
	}
	delivery := r.Raw("deliveryId")
	if !isUUID(delivery) {
		return response{}, apierror.New(apierror.NotFound, "there is no such delivery")
	}
	d, err := a.Endpoints.Retry(ctx, r.actor, id, delivery)
	return ok(newDeliveryResponse(d)), err
}

// webhookID takes the id of a call for sellers only, and calls permit. An id of another form names
// no webhook. The service checks the owner.
func (a *api) webhookID(ctx context.Context, r *request) (string, error) {
	id := r.Raw("id")
	if !isUUID(id) {
		return "", apierror.New(apierror.NotFound, "there is no such webhook")
	}
	return id, r.permit(ctx, func() error { return errorOnly(a.Endpoints.Get(ctx, r.actor, id)) })
}
